#!/usr/bin/env python3
"""Random programs that read and write parts of arrays give what a small model of indexing gives, tests/index_model.py.

usage: tests/index_programs.py UNISONO [FIRST [COUNT]] [--numpy]

Program n is always the same. Fifty are one file, which runs as it is: a line of output begins with `@n`. Those that must end with an
error run by themselves. One that goes wrong is kept in index_programs/ of the build folder; `UNISONO_SHOW=1` prints each before it
runs. `--numpy` compares the model with NumPy, too.
"""
import itertools
import os
import pathlib
import re
import sys

import index_model
import seeded
import tunings
from index_items import MANY, MOST, Again, Items, tuple_of
from index_model import Linear, Misfit, Table, add_all, moved, read, times, write

TOGETHER, USUAL = 50, 800
LARGEST = 30_000  # value, so that every wide type holds it

WIDE = ("f64", "f32", "i32", "i64")  # what is computed with
NARROW = ("u8", "i8", "i16", "u16", "u32", "u64", "f16", "bf16", "bool")
MEMBERS = 6  # of a map over devices: 1, 2 or 3
RUNS = (["--devices", "cpu:1"], ["--devices", "cpu:3"], ["--devices", "cpu:3", "--reference"], ["--devices", "cpu:2"],
        ["--devices", "cpu:1"], ["--devices", "cpu:3"], ["--devices", "cpu:1", "--reference"], ["--devices", "sim:2"])
PLACED = re.compile(r"error\[(U\d+)\]: index (-?\d+) .*\n *--> [^\n]*:(\d+):\d+")
NUMBER = re.compile(r"true|false|-?\d+(?:\.\d*)?(?:e[+-]?\d+)?")


# ---- programs ----------------------------------------------------------------


class Step:
    """Lines that change a variable, what its name is afterwards, and what they do to its table, given the turn."""

    def __init__(self, lines, name, apply):
        self.lines, self.name, self.apply = lines, name, apply


OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
             "%": lambda a, b: a % b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b}


class Program(Items):
    """Some statements about an array, and what they must print, or the error that they end with: `fault` is the index out of range, or
    a code."""

    def __init__(self, number):
        tries = itertools.count()
        while True:
            super().__init__(number, next(tries))
            self.kept = []  # other names of arrays, with what they hold
            try:
                self.make()
                return
            except (Again, Misfit):
                pass

    # ---- steps

    def operand(self, shape):
        """Something that fits into this shape: its text, and its table."""
        if not shape or self.chance(0.3) or self.grows or self.symbolic:
            v = self.random.randrange(0 if self.dtype[0] in "ub" else -3, 6)
            text = str(v) if self.dtype != "bool" else str(v > 2).lower()
            return text, Table((), [v if self.dtype != "bool" else v > 2])
        own = tuple(1 if self.chance(0.2) else size for size in shape)[self.random.choice((0, 0, 0, 1)):]
        own = (1,) + own if self.chance(0.05) else own
        others = {"f64": ("f32", "i32", "u8"), "f32": ("i32", "f16", "i8"), "i64": ("i32", "u8", "u32"), "i32": ("i16", "u8", "u16")}
        dtype = self.random.choice(others[self.dtype]) if self.dtype in others and not self.linear and self.chance(0.15) else self.dtype
        text, table = self.numbers(own, dtype, 5)
        if self.chance(0.4):
            text = self.bound(text if self.chance(0.5) else f"unknown({text})")
        return text, table

    def read_step(self, name, shape):
        items, text, found = self.selection(name, shape)
        new = self.name()
        if found is None:
            return Step([f"var {new} = {name}{text}"], new, None), shape
        if self.dtype in WIDE and self.chance(0.3):
            factor, more = self.random.randrange(-2, 4), self.random.randrange(5)
            source = self.random.choice((f"{name}{text} * {factor} + {more}", f"({name} * {factor} + {more}){text}"))
            change = lambda table: table.each(lambda x: x * factor + more)
        else:
            source, change = f"{name}{text}", lambda table: table
        return Step([f"var {new} = {source}"], new, lambda table, turn: change(read(table, self.known(items, turn)))), found.shape

    def move_step(self, name, shape):
        """What makes another view of an array: what is read or written next is a part of that."""
        new, axes = self.name(), list(range(len(shape)))
        kind = self.random.randrange(3)
        if kind == 0 and axes:
            self.random.shuffle(axes)
            return Step([f"var {new} = transpose({name}, {tuple_of(axes)})"], new, lambda table, turn: moved(table, axes)), tuple(
                shape[axis] for axis in axes)
        if kind == 1 and axes:
            axis = self.random.choice(axes)
            index = [slice(None)] * axis + [slice(None, None, -1)]
            return Step([f"var {new} = flip({name}, axis={axis})"], new, lambda table, turn: read(table, index)), shape
        flat = lambda table, turn: Table((len(table.values),), table.values)
        return Step([f"var {new} = reshape({name}, (-1,))"], new, flat), (times(shape),)

    def write_step(self, name, shape):
        self.whole = True
        items, text, found = self.selection(name, shape)
        op = self.random.choice(("", "", "", "+", "-", "*") + (("%", "|", "^") if self.dtype[0] == "i" and not self.linear else ()))
        if self.dtype not in WIDE or (self.dtype == "bool" and op):
            op = ""
        target = f"{name}{text}"
        kind = self.random.randrange(8)
        if found is None:
            return Step([f"{target} = {'true' if self.dtype == 'bool' else 0}"], name, None), shape
        if kind == 0 and op not in ("%", "*") and not self.grows and found.shape and self.dtype in WIDE:
            return self.self_step(name, shape, items, target, op)
        if kind == 1 and self.dtype in WIDE and not any(isinstance(i, slice) or i in (None, ...) for i in self.known(items, 0)) and items:
            value, table = self.operand(found.shape)
            at = items[0].text if len(items) == 1 else tuple_of([item.text for item in items])
            apply = lambda a, turn: add_all(a, self.known(items, turn), table)
            return Step([f"{name} = scatter_add({name}, {at}, {self.typed_number(value)})"], name, apply), shape
        if kind == 2 and len(found.shape) > 0 and not self.counter:
            return self.nested_step(name, shape, items, text, found)
        value, table = self.operand(found.shape)
        if op == "%":
            value, table = "7", Table((), [7])
        apply = lambda a, turn: write(a, self.known(items, turn), table, OPERATORS.get(op))
        return Step([f"{target} {op}= {value}"], name, apply), shape

    def typed_number(self, value):
        return value if "(" in value or value.startswith("g") else f"{self.dtype}({value})"

    def self_step(self, name, shape, items, target, op):
        """What is written is another order of what is read there."""
        text, index = self.random.choice((("[::-1]", [slice(None, None, -1)]), ("[..., ::-1]", [..., slice(None, None, -1)]), ("", [])))
        more = self.random.randrange(3)

        def apply(table, turn):
            new = read(read(table, self.known(items, turn)), index).each(lambda x: x + more)
            return write(table, self.known(items, turn), new, OPERATORS.get(op))

        return Step([f"{target} {op}= {target}{text} + {more}"], name, apply), shape

    def nested_step(self, name, shape, items, text, found):
        """`a[i][j] = v`"""
        self.current = name
        self.whole = False
        inner, inner_text, there = self.selection(name, found.shape)
        self.whole = True
        if there is None:
            raise Again
        value, table = self.operand(there.shape)

        def apply(a, turn):
            part = read(a, self.known(items, turn))
            return write(a, self.known(items, turn), write(part, self.known(inner, turn), table))

        return Step([f"{name}{text}{inner_text} = {value}"], name, apply), shape

    def loop_step(self, name, shape):
        """Writes in each turn of a loop."""
        turns = self.random.choice((1, 2, 3, 5, *shape, 12, 40))
        if turns == 0:
            raise Again
        i = self.name("i")
        inner = self.random.choice((0, 0, 0, 2, 3, 5)) if turns < 12 else 0
        j = self.name("i")
        self.counter = (f"({i} * {inner} + {j})", turns * inner) if inner else (i, turns)
        kinds = [self.write_step] * 6 + [self.swap_step, self.mask_step]
        steps = [self.random.choice(kinds)(name, shape)[0] for _ in range(self.random.choice((1, 1, 2)))]
        self.counter = None
        if any(step.apply is None for step in steps):
            steps = [step for step in steps if step.apply is None]
        lines = [line for step in steps for line in step.lines]
        if self.chance(0.25) and len(lines) == 2:
            lines = [f"if {i} % 2 == 0 {{ {lines[0]} }} else {{ {lines[1]} }}"]
            chosen = lambda turn: [steps[turn // max(inner, 1) % 2]]
        else:
            chosen = lambda turn: steps
        if inner:
            lines = [f"for {j} in range({inner}) {{", *(f"  {line}" for line in lines), "}"]
        if self.chance(0.2):
            most = f", max={turns}" if self.linear else ""
            lines = [f"var {i} = 0", f"while {i} < {turns}{most} {{", *(f"  {line}" for line in lines), f"  {i} += 1", "}"]
        else:
            lines = [f"for {i} in range({turns}) {{", *(f"  {line}" for line in lines), "}"]

        def apply(table, _):
            for turn in range(turns * max(inner, 1)):
                for step in chosen(turn):
                    table = self.bounded(step.apply(table, turn))
            return table

        return Step(lines, name, None if steps[0].apply is None else apply), shape

    def member_step(self, name, shape):
        """A comprehension: the parts that the turns of a loop would read."""
        turns = self.random.choice((1, 2, 3, 5, *shape))
        i, new = self.name("i"), self.name()
        compiled, self.compiled = self.compiled, True  # parts of one size
        self.counter = (i, turns)
        items, text, found = self.selection(name, shape)
        self.counter, self.compiled = None, compiled
        if turns == 0 or found is None or turns * len(found.values) > self.most:
            raise Again

        def apply(table, _):
            parts = [read(table, self.known(items, turn)) for turn in range(turns)]
            return Table((turns,) + parts[0].shape, [v for part in parts for v in part.values])

        way = self.random.choice((
            f"[{name}{text} for {i} in range({turns})]", f"[{name}{text} for {i} in range({turns})]",
            f"vmap(fn({i}) => {name}{text})(arange({turns}))", f"map(fn({i}) => {name}{text}, arange({turns}))",
            f"scan(fn(c, {i}) => (c, {name}{text}), 0, range({turns}))[1]"))
        return Step([f"var {new} = {way}"], new, apply), (turns,) + found.shape

    def sum_step(self, name, shape):
        """A loop adds up what it reads; what it reads may be read by a function."""
        if self.dtype not in WIDE or self.fault == "wanted":
            raise Again
        turns = self.random.choice((1, 2, 3, 12, 70))
        i, new = self.name("i"), self.name("s")
        self.counter = (i, turns)
        items, text, found = self.selection(name, shape)
        self.counter = None
        part = f"{name}{text}"
        if self.how == "host" and "j" not in text and not self.symbolic and self.chance(0.4):
            reader = self.name("h")
            self.head.append(f"def {reader}(q, {i}) = " + part.replace(name, "q"))
            part = f"{reader}({name}, {i})"
        scalar = not found.shape and not self.grows
        lines = [f"var {new} = {self.dtype}(0)", f"for {i} in range({turns}) {{",
                 f"  {new} = {new} + " + (part if scalar else f"sum({part})"), "}"]

        def apply(table, _):
            total = Linear(0, {}) if self.linear else 0
            for turn in range(turns):
                for v in read(table, self.known(items, turn)).values:
                    total = total + v
            return Table((), [total])

        return Step(lines, new, apply), ()

    @staticmethod
    def bounded(table):
        for v in table.values:
            if abs(v.value if isinstance(v, Linear) else v) > LARGEST:
                raise Again
        return table

    def keep_step(self, name):
        """Another name for the array, which is printed at the end: it has changed nothing."""
        other = self.name("k")

        def apply(table, _):
            self.kept.append((other, table))
            return table

        return Step([f"let {other} = {name}"], name, apply)

    def mask_step(self, name, shape):
        """Where a mask is true a value is set that does not depend on how much of it is: compiled code can do that."""
        end = self.random.randrange(len(shape)) + 1 if shape else 0
        if not end or not self.function or self.symbolic or times(shape[:end]) > 80 or 0 in shape or self.fault == "wanted":
            raise Again
        mask, self.grows = self.mask_argument(shape[:end]), False
        value, table = self.operand(shape[end:])
        if len(table.shape) > len(shape[end:]):
            raise Again
        rest = self.random.choice(("", ", ...")) if end < len(shape) else ""
        return Step([f"{name}[{mask.text}{rest}] = {value}"], name, lambda a, turn: write(a, [mask.at(turn)], table)), shape

    def swap_step(self, name, shape):
        """Two parts change places: both are read first, then written from the left to the right."""
        if not shape or 0 in shape or self.fault == "wanted":
            raise Again
        self.current = name
        one, other = (self.position(shape[0], 0) for _ in range(2))
        a, b = (f"{name}[{item.text}]" for item in (one, other))

        def apply(table, turn):
            first, second = ([item.at(turn)] for item in (one, other))
            left, right = read(table, second), read(table, first)
            return write(write(table, first, left), second, right)

        return Step([f"({a}, {b}) = ({b}, {a})"], name, apply), shape

    def chase_step(self, name, shape):
        """A loop that finds its places in the array."""
        if len(shape) != 1 or not 0 < shape[0] or self.dtype not in ("i32", "i64") or self.fault == "wanted":
            raise Again
        n, turns, k, i = shape[0], self.random.choice((3, 10, 40)), self.name("k"), self.name("i")
        more = self.random.randrange(4)
        changed = self.random.choice(("+=", "="))
        lines = [f"var {k} = {self.dtype}(0)", f"for {i} in range({turns}) {{",
                 f"  {k} = ({k} + abs({name}[{k}]) + {more}) % {n}", f"  {name}[{k}] {changed} 1", "}"]

        def apply(table, _):
            values, at = list(table.values), 0
            for _ in range(turns):
                at = (at + abs(values[at]) + more) % n
                values[at] = values[at] + 1 if changed == "+=" else 1
            return Table(shape, values)

        return Step(lines, name, apply), shape

    def misfit_step(self, name, shape):
        """What no array of this shape takes: the fault is then the code of the error."""
        rank = len(shape)
        if not rank or 0 in shape or self.symbolic:
            raise Again
        size = shape[0]
        index, value, self.fault = self.random.choice((
            (", ".join(["0:1"] * (rank + 1)), None, "U0369"), (f"ones(bool[{size + 1}])", None, "U0373"),
            ("zeros(i32[2]), zeros(i32[3])" if rank > 1 else "zeros(i32[2]), zeros(i32[3]), 0", None, "U0301" if rank > 1 else "U0369"),
            (":", f"zeros({self.dtype}{[size + 2, *shape[1:]]})", "U0376"), ("0:1, ...", f"zeros({self.dtype}{[2, *shape]})", "U0376"),
            ("..., ...", None, "U0372"), ("1.5", None, "U0370"), ("::0", None, "U0365")))
        if self.compiled and "bool" in index:
            raise Again
        change = f"{name}[{index}] = {value}" if value else f"var {self.name()} = {name}[{index}]"
        return Step([change], name, None)

    def body(self, name, shape):
        """Steps from a variable on: lines, the name of the result, and a function of tables."""
        steps = []
        for _ in range(self.random.choice((1, 1, 2, 3, 4))):
            make = self.random.choice((self.read_step, self.read_step, self.write_step, self.write_step, self.move_step, self.loop_step,
                                       self.member_step, self.swap_step, self.chase_step, self.sum_step, self.mask_step))
            before = steps[-1].name if steps else name
            step, shape = make(before, shape)
            can_keep = make in (self.write_step, self.loop_step) and self.how == "host" and not self.fault and times(shape) < MOST // 2
            if can_keep and self.chance(0.3):
                steps.append(self.keep_step(before))
            steps.append(step)
            if step.apply is None:  # the one that fails
                break
            if times(shape) > self.most:
                raise Again
        if self.fault == "misfit":
            steps.append(self.misfit_step(steps[-1].name, shape))
        lines = [line for step in steps for line in step.lines]

        def apply(table):
            for step in steps:
                table = self.bounded(step.apply(table, 0))
            return table

        return lines, steps[-1].name, apply

    # ---- whole programs

    HOWS = ("host",) * 6 + ("record", "call", "call", "jit", "jit", "jit", "vmap", "jit vmap", "pmap", "grad", "grad", "jit grad", "jvp",
                            "vmap grad")

    def make(self):
        self.how = self.random.choice(self.HOWS)
        self.linear = "grad" in self.how or self.how == "jvp"
        self.mapped = any(word in self.how for word in ("vmap", "pmap"))
        self.compiled = self.how not in ("host", "record", "call")
        self.dtype = "f64" if self.linear else self.random.choice(WIDE * 3 + NARROW)
        self.whole, self.grows, self.function = True, False, False
        self.symbolic = self.how not in ("host", "record") and self.chance(0.15)
        if not self.linear and self.chance(0.08):
            self.fault = self.random.choice(("wanted", "wanted", "wanted", "misfit"))
        self.most = MANY if not self.linear and not self.fault and self.chance(0.04) else MOST
        shape = self.shape()
        if self.most == MANY:
            shape = self.random.choice(((1500,), (20_000,), (3000, 4), (4, 3000), (70, 90), (300, 2, 7), (5, 4000)))
        if self.how == "pmap":
            shape = (MEMBERS,) + shape[1:]
        self.split = not self.mapped and self.chance(0.2)
        if self.split:
            shape = tuple(MEMBERS if axis == 0 else size for axis, size in enumerate(shape))
        text, table = self.numbers(shape, self.dtype)
        source = self.name("x")
        self.lines = [f"let {source} = " + (f"unknown({text})" if self.chance(0.5) else text)]
        if self.split:
            table = self.spread(source, table)
        getattr(self, {"host": "on_host", "record": "on_host"}.get(self.how, "in_function"))(self.lines[-1].split()[1], table)
        if self.fault in ("wanted", "misfit"):
            raise Again

    def spread(self, source, table):
        """An array in parts on the devices."""
        name, to = self.name("x"), self.random.randrange(len(table.shape))
        if self.chance(0.5):
            self.lines.append(f"let {name} = pmap(fn(q) => q, over=dev, in_axes=split(0), out_axes=split(0))({source})")
            return table
        self.lines.append(f"let {name} = pmap(fn(q) => q, over=dev, out_axes={to})({source})")
        order = list(range(1, len(table.shape)))
        order.insert(to, 0)
        return moved(table, order)

    def tell(self, text, table):
        if self.fault:
            self.lines.append(f"print({text})")
            return
        if len(table.values) > self.most:
            raise Again
        self.lines.append(f'print("@{self.number}", shape({text}))')
        self.expected = table
        if len(table.values) <= MOST:
            self.lines.append(f"print({', '.join([text, *(name for name, _ in self.kept)])})")
            return
        name, n = self.name("t"), len(table.values)
        self.kept.clear()
        self.lines.append(f"let {name} = reshape(i64({text}), (-1,))")
        self.lines.append(f"print(sum({name}), sum({name} * (arange({n}) % 97)), sum({name} * (arange({n}) % 101)))")

    def on_host(self, source, table):
        name = self.name()
        if self.how == "record":
            self.lines.append(f"var {name} = (a = {source}, k = 1)")
            name += ".a"
        else:
            self.lines.append(f"var {name} = {source}")
        lines, result, apply = self.body(name, table.shape)
        self.lines += lines
        if self.fault:
            return self.tell(result, None)
        self.kept.clear()
        after = apply(table)
        both = table.values + after.values
        if not self.kept and table.shape and len(both) < self.most and self.chance(0.2):  # what was read from is what it was
            both = Table((len(both),), both)
            return self.tell(f"concat((reshape({source}, (-1,)), reshape({result}, (-1,))))", both)
        self.tell(result, after)

    def in_function(self, source, table):
        self.function = True
        f, x, w = self.name("f"), self.name("p"), self.name("w")
        inner, axis = table, 0
        if self.mapped:
            axis = self.random.randrange(len(table.shape))
            if self.how == "pmap":
                axis = 0
            if table.shape[axis] == 0 or len(table.values) > 2 * self.most:
                raise Again
            inner = read(table, [slice(None)] * axis + [0])
            self.count = table.shape[axis]
        name = self.name()
        lines, result, apply = self.body(name, inner.shape)
        names = ", ".join(name for name, _, _ in self.parameters)
        more = f", {names}" if names else ""
        declared = x
        if self.symbolic:
            sizes = [self.random.choice((f"n{at}", f"n{at}", size)) for at, size in enumerate(inner.shape)]
            declared = f"{x}: {self.dtype}" + (f"[{', '.join(map(str, sizes))}]" if sizes else "")
        self.lines += [f"def {f}({declared}{more}) {{", f"  var {name} = {x}", *(f"  {line}" for line in lines), f"  {result}", "}"]
        to = 0
        if self.mapped and not self.fault and not self.linear:
            results = []
            for self.member, member in enumerate(self.members(table, axis)):
                results.append(apply(member))
            stacked = Table((len(results),) + results[0].shape, [v for each in results for v in each.values])
            to = self.random.randrange(len(stacked.shape))
            order = list(range(1, len(stacked.shape)))
            order.insert(to, 0)
        call = self.called(f, x, w, more, axis, to)
        arguments = ", ".join([source, *(outer for _, outer, _ in self.parameters)])
        if self.fault:
            return self.tell(f"{call}({arguments})", None)
        if self.linear:
            return self.differentiated(call, w, source, arguments, table, axis, apply)
        self.tell(f"{call}({arguments})", moved(stacked, order) if self.mapped else apply(table))

    def called(self, f, x, w, more, axis, to):
        """A function of the array and of all that is an argument besides."""
        axes = tuple_of([axis, *("0" if mapped else "none" for _, _, mapped in self.parameters)]) if more else axis
        weighted = f"fn({x}{more}) => sum({w} * {f}({x}{more}))"
        over = ", over=dev" if self.how == "pmap" else ""
        return {"call": f, "jit": f"jit({f})", "grad": f"grad({weighted})", "jit grad": f"jit(grad({weighted}))", "jvp": f,
                "vmap grad": f"vmap(grad({weighted}), in_axes={axes})", "vmap": f"vmap({f}, in_axes={axes}, out_axes={to})",
                "jit vmap": f"jit(vmap({f}, in_axes={axes}, out_axes={to}))",
                "pmap": f"pmap({f}, in_axes={axes}, out_axes={to}{over})"}[self.how]

    @staticmethod
    def members(table, axis):
        return [read(table, [slice(None)] * axis + [at]) for at in range(table.shape[axis])]

    def differentiated(self, call, w, source, arguments, table, axis, apply):
        """The gradient of a weighted sum, or a derivative along a direction."""
        if times(table.shape) > 120:
            raise Again
        own = self.members(table, axis) if self.mapped else [table]
        results = []
        for self.member, member in enumerate(own):
            x = Table(member.shape, [Linear(v, {at: 1}) for at, v in enumerate(member.values)])
            results.append((member, apply(x).each(Linear.of)))
        if self.how == "jvp":
            text, along = self.numbers(table.shape, "f64")
            out = results[0][1].each(lambda y: sum(part * along.values[at] for at, part in y.parts.items()))
            call = f"fn(q) => {call}({arguments.replace(source, 'q', 1)})"
            return self.tell(f"jvp({call})(({source},), ({text},))[1]", self.bounded(out))
        text, weights = self.numbers(results[0][1].shape, "f64", 5)
        self.lines.append(f"let {w} = {text}")
        gradients = []
        for member, result in results:
            gradient = [0] * len(member.values)
            for weight, y in zip(weights.values, result.values):
                for at, part in y.parts.items():
                    gradient[at] += weight * part
            gradients.append(Table(member.shape, gradient))
        shape = (len(gradients),) + gradients[0].shape if self.mapped else gradients[0].shape
        self.tell(f"{call}({arguments})", self.bounded(Table(shape, [v for each in gradients for v in each.values])))

    def text(self):
        return "\n".join(self.head + self.lines) + "\n"


# Positions that no checker knows: `here[k + 40]` is k.
HEAD = """axis dev = devices()
let three = reshape(arange(9), (3, 3))[1, 0]
let here = arange(80) - 40 * three // 3
def unknown(x) = [x][three // 3 - 1]
"""


# ---- runs --------------------------------------------------------------------


def wrong_output(program, text):
    """What is wrong with what it printed, if anything."""
    if text is None:
        return "it printed nothing"
    first, _, rest = text.partition("\n")
    shape = tuple(int(size) for size in re.findall(r"\d+", first))
    values = [{"true": 1.0, "false": 0.0}.get(word) if word in ("true", "false") else float(word) for word in NUMBER.findall(rest)]
    table = program.expected
    if shape != table.shape:
        return f"shape {shape}, expected {table.shape}"
    if len(table.values) > MOST:
        wanted = [sum(map(int, table.values)), *(sum(v * (at % k) for at, v in enumerate(table.values)) for k in (97, 101))]
        return f"expected {wanted}\ngot\n{rest}" if values != wanted else None
    wanted = table.values + [v for _, kept in program.kept for v in kept.values]
    if values != [float(v) for v in wanted]:
        return f"expected {table.shape} {[int(v) for v in wanted]}\ngot\n{rest}"
    return None


def wrong_error(program, done):
    """What is wrong with the error that it ended with, if anything."""
    status, _, errors = done
    if isinstance(program.fault, str):
        found = re.match(r"error\[(U\d+)\].*\n *--> [^\n]*:(\d+):\d+", errors)
        line = (HEAD + program.text()).splitlines()[int(found[2]) - 1] if found else ""
        wrong = status != 1 or not found or found[1] != program.fault or "[" not in line
        return f"expected {program.fault}" if wrong else None
    found = PLACED.search(errors)
    lines = (HEAD + program.text()).splitlines()
    if status != 1 or not found or found[1] not in ("U0368", "U0502"):
        return f"expected an error about index {program.fault}"
    if int(found[2]) != program.fault:
        return f"index {program.fault} was expected"
    named = lines[int(found[3]) - 1]
    return None if "[" in named or "scatter_add" in named else f"it names line {found[3]}"


class Runner:
    def __init__(self, unisono):
        self.unisono = unisono
        self.folder = pathlib.Path(unisono).parent / "index_programs"
        self.folder.mkdir(exist_ok=True)

    def run(self, programs, name):
        """What they print as one file, and the file."""
        number = programs[0].number // TOGETHER
        file = self.folder / name
        file.write_text(HEAD + "".join(program.text() for program in programs))
        if os.environ.get("UNISONO_SHOW"):
            print(file.read_text(), flush=True)
        environment = ({}, tunings.COMPILED, tunings.at_random(number), tunings.LEAST, tunings.at_random(number))[number % 5]
        return seeded.run(self.unisono, file, ["--quiet", *RUNS[number % len(RUNS)]], environment), file

    def alone(self, program):
        """What is wrong with it, if anything."""
        done, file = self.run([program], f"index_{program.number}.uni")
        if program.fault is not None:
            wrong = wrong_error(program, done)
        else:
            wrong = wrong_output(program, dict(outputs(done[1])).get(program.number)) or (done[0] != 0 and "it fails")
        if not wrong:
            file.unlink()
        return wrong and f"status {done[0]}, {wrong}\n{done[2]}"

    def problems(self, programs):
        """What is wrong, by program. Of one that goes wrong only among others their file is kept."""
        suspects = [program for program in programs if program.fault is not None]
        good = [program for program in programs if program.fault is None]
        found = {}
        if good:
            done, file = self.run(good, f"index_{good[0].number}_and_more.uni")
            output = dict(outputs(done[1]))
            wrong = [program for program in good if done[0] or wrong_output(program, output.get(program.number))]
            found = {program: problem for program in wrong if (problem := self.alone(program))}
            if wrong and not found:
                found[wrong[0]] = f"only in {file}: status {done[0]}, {wrong_output(wrong[0], output.get(wrong[0].number))}\n{done[2]}"
            else:
                file.unlink()
        return found | {program: problem for program in suspects if (problem := self.alone(program))}


def outputs(text):
    for part in text.split("\n@")[0 if text.startswith("@") else 1:]:
        number, _, rest = part.lstrip("@").partition(" ")
        yield int(number), rest


def main():
    words = [word for word in sys.argv[1:] if word != "--numpy"]
    if "--numpy" in sys.argv:
        import numpy
        index_model.numpy = numpy
    first, count = (list(map(int, words[1:])) + [0, USUAL][len(words) - 1:])[:2]
    runner = Runner(str(pathlib.Path(words[0]).resolve()))
    failed, number = 0, first
    while number < first + count:
        end = min((number // TOGETHER + 1) * TOGETHER, first + count)
        programs = [Program(n) for n in range(number, end)]
        for program, problem in runner.problems(programs).items():
            failed += 1
            options = " ".join(RUNS[program.number // TOGETHER % len(RUNS)])
            print(f"index_programs/index_{program.number}.uni ({program.how}, {options}): {problem}\n{program.text()}", flush=True)
        number = end
    print(f"{count - failed} of {count} programs agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
