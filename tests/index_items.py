"""What stands between brackets, at random, for tests/index_programs.py: its text, and what it is."""
import random

from index_model import Misfit, Table, is_mask, places, times

MOST, MANY = 600, 40_000  # elements of a result; of a few, whose sums are printed


def tuple_of(items):
    return "(" + ", ".join(map(str, items)) + (",)" if len(items) == 1 else ")")


class Again(Exception):
    """This one is no good: another is made in its place."""


class Item:
    """What stands between brackets: its text, and what it is, given the turn of a loop."""

    def __init__(self, text, value):
        self.text = text
        self.at = value if callable(value) else lambda turn: value


class Items:
    """What a program is made of. `fault` is "wanted" until an index out of range is found, which it then is."""

    def __init__(self, number, attempt):
        self.random = random.Random(f"{number}.{attempt}")
        self.number, self.names = number, 0
        self.head, self.lines = [], []
        self.fault = None
        self.counter = None  # of a loop: the text of a turn's number, and how many there are
        self.parameters, self.member = [], 0  # of a function, behind its array; the member of a map

    # ---- small parts

    def chance(self, share):
        return self.random.random() < share

    def name(self, letter="v"):
        self.names += 1
        return f"{letter}{self.number}_{self.names}"

    def bound(self, text):
        """A name of the program for it."""
        name = self.name("g")
        self.head.append(f"let {name} = {text}")
        return name

    def numbers(self, shape, dtype, modulus=None):
        """An array of numbers: its text and its table."""
        n, p, q = times(shape), self.random.randrange(1, 30), self.random.randrange(40)
        modulus = modulus or self.random.choice((5, 17, 23, 59))
        half = 0 if dtype[0] == "u" or dtype == "bool" else modulus // 2
        values = [(i * p + q) % modulus - half for i in range(n)]
        text = f"(arange({n}) * {p} + {q}) % {modulus}" + (f" - {half}" if half else "")
        if dtype == "bool":
            return f"reshape({text} > {modulus // 2}, {tuple_of(shape)})", Table(shape, [v > modulus // 2 for v in values])
        return f"reshape({dtype}({text}), {tuple_of(shape)})", Table(shape, values)

    def shape(self):
        """That of a source."""
        sizes = [self.random.choice((1, 2, 3, 3, 4, 5, 6, 7)) for _ in range(self.random.choice((1, 1, 2, 2, 2, 3, 3, 4)))]
        if self.chance(0.04):
            sizes[self.random.randrange(len(sizes))] = 0
        if self.chance(0.1):
            sizes[self.random.randrange(len(sizes))] = self.random.choice((16, 33, 64))
        while times(sizes) > self.most:
            sizes[self.random.randrange(len(sizes))] = 2
        return tuple(sizes)

    def literal(self, values, shape, suffix=""):
        if not shape:
            value = next(values)
            return f"{value}{suffix}" if not isinstance(value, bool) else str(value).lower()
        return "[" + ", ".join(self.literal(values, shape[1:], suffix) for _ in range(shape[0])) + "]"

    # ---- items

    def typed(self, value):
        if abs(value) > 1 << 31:
            return "i64"
        kinds = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
        holds = lambda kind: (value >= 0 or kind[0] == "i") and abs(value) < 1 << int(kind[1:]) - 1
        return self.random.choice([kind for kind in kinds if holds(kind)])

    def wrong(self, size):
        """Whether this one is to be out of range, and a position that is."""
        if self.fault != "wanted" or size == 0 or self.chance(0.3):
            return None
        self.fault = self.random.choice((size, size + 3, -size - 1, -size - 20, 1 << 33, -(1 << 40)))
        return self.fault

    def position(self, size, axis):
        bad = self.wrong(size)
        if size == 0 and bad is None:
            return self.part(size)
        v = bad if bad is not None else self.random.randrange(-size, size)
        kind = self.random.randrange(6)
        if self.counter and bad is None and kind < 4:
            return self.moving(size)
        if kind == 0:
            return Item(f"here[{v + 40}]" if -40 <= v < 40 else str(v), v)
        if kind == 1:
            dtype = self.typed(v)
            return Item(f"{v}{dtype}" if v >= 0 else f"(-{-v}{dtype})", v)
        if kind == 2 and -40 <= v < 40:
            return Item(f"{self.typed(v)}(here[{v + 40}])", v)
        if kind == 3 and v >= 0 and self.whole:
            return Item(f"shape({self.current})[{axis}] - {size - v}", v)
        return Item(str(v), v)

    def moving(self, size):
        """A position that depends on the turn."""
        i, turns = self.counter
        p, q = self.random.randrange(1, 9), self.random.randrange(9)
        if turns <= size and self.chance(0.6):
            return self.random.choice((Item(i, lambda t: t), Item(f"-1 - {i}", lambda t: -1 - t),
                                       Item(f"{size - 1} - {i}", lambda t: size - 1 - t)))
        if self.chance(0.3):
            return Item(f"({i} * {p} + {q}) % {size} - {size}", lambda t: (t * p + q) % size - size)
        return Item(f"({i} * {p} + {q}) % {size}", lambda t: (t * p + q) % size)

    def bound_of_slice(self, size):
        if self.chance(0.35):
            return self.random.choice(("", "", "none") if self.compiled else ("", "none")), None
        v = self.random.randrange(-size - 3, size + 4)
        computed = not self.compiled and -40 <= v < 40 and self.chance(0.25)
        return (f"here[{v + 40}]" if computed else str(v)), v

    def part(self, size):
        if self.counter and not self.compiled and self.chance(0.4):
            return self.moving_part(size)
        if self.chance(0.2):
            return Item(":", slice(None))
        (start, a), (stop, b) = self.bound_of_slice(size), self.bound_of_slice(size)
        step = self.random.choice((None, None, None, 1, 2, 3, -1, -1, -2, -3, size + 1, -size - 1, 9_000_000_000_000_000_000))
        text = f"{start}:{stop}" + ("" if step is None else f":{step}")
        return Item(text, slice(a, b, step))

    def moving_part(self, size):
        """A slice whose length may differ from turn to turn: only a number fits into it."""
        i, k = self.counter[0], self.random.randrange(1, 4)
        self.grows = True
        return self.random.choice((
            Item(f"{i}:", lambda t: slice(t, None)), Item(f":{i}", lambda t: slice(None, t)),
            Item(f"{i}:{i} + {k}", lambda t: slice(t, t + k)), Item(f"-{i} - 1:", lambda t: slice(-t - 1, None)),
            Item(f"{i}::-1", lambda t: slice(t, None, -1)), Item(f"{i}::{k}", lambda t: slice(t, None, k))))

    def positions(self, size, shape):
        """An array of them."""
        n = times(shape)
        bad = self.wrong(size) if n else None
        if size == 0 and n and bad is None:
            raise Again
        if self.counter and n and bad is None and len(shape) == 1 and self.chance(0.5):
            i, p = self.counter[0], self.random.randrange(1, 5)
            return Item(f"({i} * {p} + arange({n})) % {size}", lambda t: Table(shape, [(t * p + at) % size for at in range(n)]))
        if n == 0:
            return Item(f"zeros({self.random.choice(('i32', 'u8', 'i64'))}{list(shape)})", Table(shape, []))
        if self.chance(0.3) and bad is None:
            p, q, s = self.random.randrange(1, 9), self.random.randrange(9), self.random.choice((0, 0, size))
            text = f"(arange({n}) * {p} + {q}) % {size}" + (f" - {s}" if s else "")
            values = [(at * p + q) % size - s for at in range(n)]
            text = text if len(shape) == 1 else f"reshape({text}, {tuple_of(shape)})"
        else:
            values = [self.random.randrange(-size if self.chance(0.4) else 0, size) for _ in range(n)]
            if bad is not None:
                values[self.random.randrange(n)] = bad
            least = min(values)
            dtype = self.typed(least if least < 0 else max(values)) if self.chance(0.4) else ""
            if bad is not None and abs(bad) > 1 << 31:
                text = self.literal(iter(values), shape, "i64")
            elif dtype and least < 0:
                text = f"{dtype}({self.literal(iter(values), shape)})"
            else:
                text = self.literal(iter(values), shape, dtype)
        if self.function and bad is None and not self.symbolic and self.chance(0.4):
            return self.parameter(size, text, values, shape)
        if self.chance(0.5):  # what no checker knows, or a constant with a name
            text = self.bound(text if self.chance(0.3) else f"unknown({text})")
        return Item(text, Table(shape, values))

    def parameter(self, size, text, values, shape):
        """Positions as an argument of the function, which may differ from member to member of a map."""
        tables = [Table(shape, values)]
        is_mapped = self.mapped and self.chance(0.6)
        if is_mapped:
            tables = [Table(shape, [(v + at) % size for v in values]) for at in range(self.count)]
            text = self.literal(iter([v for table in tables for v in table.values]), (self.count, *shape))
        return self.argument(text if self.chance(0.5) else f"unknown({text})", tables, is_mapped)

    def argument(self, text, tables, is_mapped):
        name = self.name("j")
        self.parameters.append((name, self.bound(text), is_mapped))
        return Item(name, lambda turn: tables[self.member % len(tables)])

    def mask_argument(self, shape):
        """A mask as an argument of the function, of which no checker knows how much of it is true."""
        is_mapped = self.mapped and self.chance(0.6)
        count = self.count if is_mapped else 1
        tables = [Table(shape, [self.chance(0.4) for _ in range(times(shape))], mask=True) for _ in range(count)]
        text = self.literal(iter([v for table in tables for v in table.values]), (count, *shape) if is_mapped else shape)
        return self.argument(f"{text} & unknown(true)", tables, is_mapped)

    def mask(self, shape, true):
        values = [True] * true + [False] * (times(shape) - true)
        self.random.shuffle(values)
        text = self.literal(iter(values), shape) if values else f"zeros(bool{list(shape)})"
        if self.chance(0.6):
            text = self.bound(text if self.compiled or self.chance(0.3) else f"{text} & unknown(true)")
        return Item(text, Table(shape, values, mask=True))

    def index(self, shape):
        """Items for an array of this shape."""
        rank, self.grows = len(shape), False
        style = self.random.choice(("plain", "plain", "arrays", "arrays", "masks", "mixed"))
        common = tuple(self.random.choice((1, 2, 3, 4, 6)) for _ in range(self.random.choice((1, 1, 1, 2, 2, 0))))
        true = None
        first, last = rank, rank  # axes from `first` to `last` are not named
        rest = self.chance(0.2)
        if rest or self.chance(0.25):
            first = self.random.randrange(rank + 1)
            last = self.random.randrange(first, rank + 1) if rest else rank
        items, axis = [], 0
        while axis < rank:
            if axis == first:
                items += [Item("...", ...)] if rest else []
                axis, first = last, rank
                rest = False
                continue
            kinds = {"plain": "pps", "arrays": "aaps", "masks": "mmps", "mixed": "amps"}[style]
            kind = self.random.choice(kinds)
            if kind == "m" and not self.symbolic:
                end = min(axis + self.random.choice((1, 1, 1, 2, 3)), first)
                size = times(shape[axis:end])
                if true is None:
                    true = self.random.choice((0, 1, size, *[self.random.randrange(size + 1)] * 4))
                    common = common[:-1] + (true,)
                if size >= true and size < 80:
                    items.append(self.mask(shape[axis:end], true))
                    axis = end
                    continue
            items.append(self.one(kind, shape[axis], axis, common, true))
            axis += 1
        if rest:
            items.append(Item("...", ...))
        for _ in range(self.random.choice((0,) * 8 + (1, 2))):
            items.insert(self.random.randrange(len(items) + 1), Item("none", None))
        return items

    def one(self, kind, size, axis, common, true):
        if kind == "a":
            shape = tuple(1 if self.chance(0.2) else n for n in common[self.random.choice((0, 0, 0, 1)):])
            if true is None or shape[-1:] in ((true,), (1,)):
                return self.positions(size, shape)
        if kind == "m":
            kind = "p"
        return self.part(size) if kind == "s" else self.position(size, axis)

    @staticmethod
    def written(items):
        return "[" + ", ".join(item.text for item in items) + "]"

    @staticmethod
    def known(items, turn):
        return [item.at(turn) for item in items]

    def selection(self, name, shape):
        """Items, their text, and the table of places in the first turn."""
        self.current = name
        items = self.index(shape)
        text = self.written(items)
        if items and self.chance(0.05) and all(":" not in item.text and "..." not in item.text for item in items):
            text = f"[{tuple_of([item.text for item in items])}]"
        if isinstance(self.fault, int):
            if not self.reaches(shape, items):
                raise Again
            return items, text, None
        try:
            found = places(shape, self.known(items, 0))
        except Misfit as misfit:
            raise Again from misfit
        if len(found.values) > self.most:
            raise Again
        return items, text, found

    def reaches(self, shape, items):
        """Whether an index out of range is met: something is selected."""
        good = []
        for item in self.known(items, 0):
            if isinstance(item, Table) and self.fault in item.values and not is_mask(item):
                item = item.each(lambda at: 0 if at == self.fault else at)
            good.append(0 if isinstance(item, int) and item == self.fault else item)
        try:
            return bool(places(shape, good).values)
        except Misfit:
            return False
