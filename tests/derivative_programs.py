#!/usr/bin/env python3
"""Random programs whose derivatives are checked: against central differences, forward mode against reverse mode, second
derivatives against differences of first ones and for symmetry, the bits of values, of executors, of numbers of devices.

usage: tests/derivative_programs.py UNISONO [FIRST [COUNT]]

Program n is always the same. One that goes wrong is kept in derivative_programs/ of the build folder; `UNISONO_SHOW=1` prints
each before it runs.
"""
import random
import sys

import seeded
import tunings

MEMBERS = 12  # of a map over devices: 1, 2, 3 and 4 devices share them evenly
MOST = 60  # elements of an array

# What is smooth for every argument.
SMOOTH = ("sin({})", "cos({})", "tanh({})", "atan({})", "erf({})", "sqrt(1.0 + {0} * {0})", "log1p({0} * {0})", "1.0 / (1.0 + {0} ** 2)",
          "exp(-{0} * {0})", "exp(0.3 * {})", "expm1(0.2 * {})", "exp2(0.5 * {})", "nn.sigmoid({})", "nn.softplus({})", "nn.gelu({})",
          "nn.silu({})", "sinh(0.4 * {})", "cosh(0.4 * {})", "asinh({})", "cbrt(1.5 + sin({}))", "rsqrt(1.5 + sin({}))", "log(2.5 + cos({}))",
          "log2(2.5 + cos({}))", "asin(0.7 * sin({}))", "acos(0.7 * sin({}))",
          "atanh(0.5 * tanh({}))", "acosh(2.5 + sin({}))", "tan(0.5 * sin({}))", "square({})", "reciprocal(2.5 + sin({}))", "erf_inv(0.6 * sin({}))",
          "lgamma(1.6 + sin({}))", "digamma(1.8 + cos({}))", "polygamma(2, 2.5 + sin({}))",
          "(1.7 + sin({0})) ** 1.3", "{0} ** 3", "0.5 ** {0}", "custom({})", "checkpoint(fn(c) => sin(c) * c)({})")
# What has edges, which random points are not near to.
EDGES = ("abs({})", "nn.relu({})", "maximum({}, 0.11)", "minimum({}, 0.23)", "clip({}, -0.4, 0.6)", "where({0} > 0.05, {0} * {0}, 0.3 * {0})",
         "{} % 0.7", "where({0} > 0.1, log(abs({0})), 0.2)", "nn.leaky_relu({})", "where({0} > 0.2, sqrt(abs({0} - 0.2)), {0})")
PAIRS = ("{} + {}", "{} - {}", "{} * {}", "{} / (1.6 + cos({}))", "atan2({}, 1.5 + sin({}))", "hypot({}, 1.0 + abs({}))", "maximum({}, {})",
         "minimum({}, {})", "(1.5 + sin({})) ** {}", "fma({0}, {1}, {0})", "where({0} > {1}, {0} * {1}, {1})", "logaddexp({}, {})",
         "copysign({}, 0.3 + {})", "{0} % (2.0 + abs({1}))")


class Value:
    """Text that gives an f64 array, and its shape."""

    def __init__(self, text, shape):
        self.text, self.shape = text, tuple(shape)


def elements(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def tuple_of(items):
    return "(" + ", ".join(map(str, items)) + (",)" if len(items) == 1 else ")")


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        self.spread = self.random.random() < 0.4  # has maps over devices
        self.inside = 0  # how many maps, functions and loops are around: less is done there
        self.in_map = False
        shapes = [self.shape() for _ in range(2)]
        vector = self.random.randint(1, 5)
        values = [Value("a", shapes[0]), Value("b", shapes[1]), Value("c.w", (vector,)), Value("c.k", ())]
        self.body, self.result, made = self.block(values, self.random.randint(3, 7), 1)
        others = [f"mean({v.text})" for v in made if v is not self.result]  # so that nothing is without effect
        self.result = Value(f"{self.result.text} + 0.3 * ({' - '.join(others)})", self.result.shape)
        self.shapes = shapes + [(vector,)]

    # ---- parts

    def name(self, letter="v"):
        self.names += 1
        return f"{letter}{self.names}"

    def chance(self, part):
        return self.random.random() < part

    def shape(self):
        rank = self.random.choice((0, 1, 1, 1, 2, 2, 2, 3))
        return tuple(self.random.choice((1, 2, 3, 4, 5)) if rank > 1 else self.random.choice((1, 2, 3, 5, 8)) for _ in range(rank))

    def pick(self, values, accept=lambda v: True):
        found = [v for v in values if accept(v)]
        # Later values rather than the first, so that programs are deep.
        return found[min(int(self.random.random() ** 0.6 * len(found)), len(found) - 1)] if found else None

    def small(self):
        return self.random.choice(("0.3", "0.7", "-0.4", "1.1", "0.5", "-0.9"))

    def bounded(self, text):
        """The same, no larger than about 1, so that deep programs stay accurate."""
        return self.random.choice(("tanh({})", "sin({})", "sin({})", "({0}) / sqrt(1.0 + ({0}) ** 2)", "0.5 * ({})")).format(text)

    # ---- expressions

    def expression(self, values, depth):
        x = self.pick(values)
        if depth <= 0 or self.chance(0.1):
            return Value(x.text, x.shape)
        x = self.expression(values, depth - 1)
        made = self.random.choice(self.FORMS)(self, values, x)
        return made if made and elements(made.shape) <= MOST else x

    def like(self, values, shape, depth=1):
        """An expression of this shape."""
        y = self.pick(values, lambda v: v.shape == tuple(shape))
        if y and self.chance(0.8):
            text = self.random.choice(SMOOTH).format(f"({y.text})") if depth and self.chance(0.5) else y.text
            return Value(text, shape)
        scalar = self.pick(values, lambda v: v.shape == ()) or Value(f"mean({self.pick(values).text})", ())
        if not shape:
            return Value(scalar.text, ())
        steps = f"reshape(arange({elements(shape)}, f64) * 0.17 - 0.4, {tuple_of(shape)})"
        return Value(f"({scalar.text} * {steps} + 0.2)", shape)

    def smooth(self, values, x):
        return Value(self.random.choice(SMOOTH).format(f"({x.text})"), x.shape)

    def edge(self, values, x):
        return Value(self.random.choice(EDGES).format(f"({x.text})"), x.shape)

    def pair(self, values, x):
        y = self.pick(values, lambda v: v.shape == () or v.shape == x.shape or (x.shape and v.shape == x.shape[-1:])) or x
        pair = (x.text, y.text) if self.chance(0.6) else (y.text, x.text)
        return Value("(" + self.random.choice(PAIRS).format(*(f"({p})" for p in pair)) + ")", x.shape)

    def reduction(self, values, x):
        if not x.shape:
            return None
        axis = self.random.randrange(len(x.shape))
        text = self.random.choice(("sum({}, axis={})", "mean({}, axis={})", "max({}, axis={})", "min({}, axis={})", "logsumexp({}, axis={})",
                                   "variance(0.1 + {}, axis={})", "prod(1.1 + 0.3 * {}, axis={})", "norm(0.1 + {}, axis={})"))
        return Value(text.format(x.text, axis), x.shape[:axis] + x.shape[axis + 1:])

    def along(self, values, x):
        if not x.shape:
            return None
        text = self.random.choice(("cumsum({}, axis={})", "cumsum({}, axis={}, reverse=true)", "cumprod(1.1 + 0.2 * sin({}), axis={})", "cummax({}, axis={})",
                                   "cummin({}, axis={})", "sort({}, axis={})", "sort({}, axis={}, descending=true)", "softmax({}, axis={})",
                                   "log_softmax({}, axis={})", "nn.layer_norm({}, axis={}, eps=0.3)", "flip({}, axis={})", "roll({}, 1, axis={})"))
        return Value(text.format(x.text, self.random.randrange(len(x.shape))), x.shape)

    def moved(self, values, x):
        shape, axes = x.shape, list(range(len(x.shape)))
        kind = self.random.randrange(8)
        if not shape:
            return Value(f"broadcast_to({x.text}, (3,))", (3,))
        axis = self.random.choice(axes)
        if kind == 0:
            self.random.shuffle(axes)
            return Value(f"transpose({x.text}, {tuple_of(axes)})", [shape[a] for a in axes])
        if kind == 1:
            return Value(f"flatten({x.text})", (elements(shape),))
        if kind == 2:
            longer = tuple(2 * s if i == axis else s for i, s in enumerate(shape))
            other = self.like(values, shape)
            return Value(f"concat(({x.text}, {other.text}), axis={axis})", longer)
        if kind == 3:
            widths = tuple_of(["(1, 2)" if i == axis else "(0, 0)" for i in axes])
            return Value(f"pad({x.text}, {widths}, value=0.3)", [s + 3 if i == axis else s for i, s in enumerate(shape)])
        if kind == 4:
            other = self.like(values, shape)
            return Value(f"stack(({x.text}, {other.text}), axis={axis})", shape[:axis] + (2,) + shape[axis:])
        if kind == 5:
            return Value(f"repeat({x.text}, 2, axis={axis})", [2 * s if i == axis else s for i, s in enumerate(shape)])
        if kind == 6:
            return Value(f"expand_dims({x.text}, {axis})", shape[:axis] + (1,) + shape[axis:])
        return Value(f"tile({x.text}, {tuple_of([2 if i == axis else 1 for i in axes])})", [2 * s if i == axis else s for i, s in enumerate(shape)])

    def indexed(self, values, x):
        items, shape = [], []
        if not x.shape:
            return None
        for size in x.shape:
            first, kind = self.random.randrange(size), self.random.randrange(5)
            if kind == 0:
                items.append(str(first))
            elif kind == 1:
                items.append("::-1")
                shape.append(size)
            elif kind == 2:
                step = self.random.randint(1, 3)
                items.append(f"{first}::{step}")
                shape.append(len(range(first, size, step)))
            else:
                items.append(":")
                shape.append(size)
        return Value(f"({x.text})[{', '.join(items)}]", shape)

    def gathered(self, values, x):
        if not x.shape:
            return None
        n, size = self.random.choice((1, 3, 6)), x.shape[0]
        if self.chance(0.3):
            return Value(f"take_along_axis({x.text}, argsort({x.text}, axis=0), axis=0)", x.shape)
        return Value(f"({x.text})[(arange({n}) * {self.random.randint(1, 9)} + {self.random.randint(0, 5)}) % {size}]", (n,) + x.shape[1:])

    def product(self, values, x):
        if len(x.shape) == 1:
            if self.chance(0.5):
                y = self.like(values, x.shape)
                return Value(f"dot({x.text}, {y.text})", ())
            return Value(f"outer({x.text}, {self.like(values, x.shape).text})", x.shape * 2)
        if len(x.shape) == 2:
            n, m = x.shape
            kind = self.random.randrange(4)
            if kind == 0:
                return Value(f"(({x.text}) @ transpose({self.like(values, x.shape).text}))", (n, n))
            if kind == 1:
                return Value(f"(({x.text}) @ {self.like(values, (m,)).text})", (n,))
            if kind == 2:
                return Value(f'einsum("ij,kj->ki", {x.text}, {self.like(values, x.shape).text})', (n, n))
            return Value(f'einsum("ij,i->j", {x.text}, {self.like(values, (n,)).text})', (m,))
        if len(x.shape) == 3:
            b, n, m = x.shape
            return Value(f"matmul({x.text}, swapaxes({self.like(values, x.shape).text}, 1, 2))", (b, n, n))
        return None

    def function(self, values, x):
        """A derivative, a map or a choice inside."""
        if self.inside > 2:
            return None
        z = self.name("z")
        kind = self.random.randrange(9)
        row = kind in (6, 7)
        if row and not x.shape:
            return None
        own = Value(z, x.shape[1:] if row else x.shape)
        self.inside += 1
        seen = [own] + [v for v in values if self.chance(0.3)]
        body = self.expression(seen, 2)
        body = Value(self.bounded(body.text), body.shape)
        self.inside -= 1
        if kind == 0:
            return Value(f"grad(fn({z}) => sum({body.text}))({x.text})", x.shape)
        if kind == 1:
            return Value(f"jvp(fn({z}) => {body.text})({x.text}, {self.like(values, x.shape, 0).text}).1", body.shape)
        if kind == 2:
            return Value(f"vjp(fn({z}) => {body.text})({x.text}, {self.like(values, body.shape, 0).text}).1", x.shape)
        if kind == 3:
            return Value(f"jit(fn({z}) => {body.text})({x.text})", body.shape)
        if kind == 4:
            return Value(f"checkpoint(fn({z}) => {body.text})({x.text})", body.shape)
        if kind == 5:
            return Value(f"jacobian(fn({z}) => {body.text})({x.text})", body.shape + x.shape) if elements(body.shape) * elements(x.shape) <= MOST else None
        if kind == 6:
            axis = self.random.randrange(len(body.shape) + 1)
            return Value(f"vmap(fn({z}) => {body.text}, out_axes={axis})({x.text})", body.shape[:axis] + x.shape[:1] + body.shape[axis:])
        if kind == 7:
            return Value(f"vmap(fn({z}) => grad(fn({z}) => sum({body.text}))({z}))({x.text})", x.shape)
        other = self.random.choice(SMOOTH).format(z)
        return Value(f"(fn({z}) => if mean({z}) > 0.04 {{ {own.text} * 0.7 }} else {{ {other} }})({x.text})", x.shape)

    FORMS = (smooth, smooth, smooth, smooth, edge, edge, pair, pair, pair, pair, reduction, reduction, along, along, moved, moved, indexed, indexed,
             gathered, product, product, function, function)

    # ---- statements: lines of text and what is known after them

    def block(self, values, count, level):
        """Lines of a block, its last value, and all that is known at its end."""
        values, lines = list(values), []
        for _ in range(count):
            made = None
            if self.inside < 2 and self.chance(0.5):
                made = self.random.choice(self.STATEMENTS)(self, values, lines, "  " * level)
            if not made:
                made = self.let(values, lines, "  " * level)
            values.append(made)
        return lines, values[-1], values

    def bind(self, text, shape, lines, indent, keyword="let"):
        name = self.name()
        lines.append(f"{indent}{keyword} {name} = {text}")
        return Value(name, shape)

    def let(self, values, lines, indent):
        made = self.expression(values, self.random.randint(1, 3))
        return self.bind(self.bounded(made.text), made.shape, lines, indent)

    def choice(self, values, lines, indent):
        x = self.pick(values)
        condition = self.random.choice((f"mean({self.pick(values).text}) > 0.03", f"sum({x.text}) < 0.2", f"max({x.text}) > 0.1 and min({x.text}) < 0.9"))
        s = self.bind(x.text, x.shape, lines, indent, "var")
        self.inside += 1
        for head in (f"if {condition} {{", "} else {") if self.chance(0.7) else (f"if {condition} {{",):
            lines.append(indent + head)
            inner, last, _ = self.block([v for v in values] + [s], self.random.randint(1, 2), len(indent) // 2 + 1)
            lines += inner
            lines.append(f"{indent}  {s.text} = {self.bounded(f'{s.text} + {self.small()} * {self.fit(last, x.shape)}')}")
        lines.append(indent + "}")
        self.inside -= 1
        return s

    def fit(self, value, shape):
        """The value, or its mean where it has another shape."""
        return value.text if value.shape == tuple(shape) else f"mean({value.text})"

    def loop(self, values, lines, indent):
        """A carry of any shape, with rows read, a block of statements, and an end that is known or not."""
        x = self.pick(values)
        s, i = self.bind(x.text, x.shape, lines, indent, "var"), self.name("i")
        turns = self.random.choice((1, 2, 3, 5))
        rows = self.pick(values, lambda v: v.shape)
        head = self.random.randrange(4)
        if head == 0:
            lines.append(f"{indent}for {i} in range({turns}) {{")
        elif head == 1 and rows:
            lines.append(f"{indent}for {i}_row in {rows.text} {{")
        elif head == 2:
            lines.append(f"{indent}for {i} in range({turns}, 0, -1) {{")
        else:
            head = 3
            lines.append(f"{indent}var {i} = 0")
            lines.append(f"{indent}while {i} < {turns} and mean(abs({s.text})) < 7.0, max={turns + self.random.randint(0, 2)} {{")
        if head == 1 and not rows:
            head = 0
        inside = list(values) + [s]
        if head == 1:
            inside.append(Value(f"{i}_row", rows.shape[1:]))
        elif rows:
            inside.append(Value(f"{rows.text}[{i} % {rows.shape[0]}]", rows.shape[1:]))
        self.inside += 1
        inner, last, _ = self.block(inside, self.random.randint(1, 2), len(indent) // 2 + 1)
        self.inside -= 1
        lines += inner
        lines.append(f"{indent}  {s.text} = {self.bounded(f'{s.text} * 0.8 + {self.small()} * {self.fit(last, x.shape)}')}")
        if head == 3:
            lines.append(f"{indent}  {i} += 1")
        lines.append(indent + "}")
        return s

    def writes(self, values, lines, indent):
        """A loop that reads and writes elements or rows of an array."""
        x = self.pick(values, lambda v: v.shape)
        if not x:
            return None
        n, i = x.shape[0], self.name("i")
        y = self.bind(x.text if self.chance(0.6) else f"zeros_like({x.text})", x.shape, lines, indent, "var").text
        f, small = self.random.choice(SMOOTH), self.small()
        body = self.random.choice((
            f"{y}[{i}] = {f.format(f'{x.text}[{i}]')}", f"{y}[{i} % {n}] += {small} * {f.format(f'{y}[({i} * 7 + 1) % {n}]')}",
            f"{y}[({i} * 3) % {n}] = {small} * {x.text}[{n} - 1 - {i}] * {y}[{i}]", f"{y}[{i}] = {small} * {y}[({i} + {n - 1}) % {n}] + {x.text}[{i}]",
            f"if sum({x.text}[{i}]) > 0.1 {{ {y}[{i}] = {x.text}[{i}] ** 2 }} else {{ {y}[{n} - 1 - {i}] *= {small} }}",
            f"if sum({x.text}[{i}]) > 0.1 {{ {y}[{i}] = {y}[{i}] * {x.text}[{i}] }}",
            f"let t = {y}[{i}]; {y}[{i}] = {y}[{n} - 1 - {i}]; {y}[{n} - 1 - {i}] = t * {small}",
            f"{y}[:{max(1, n // 2)}] = {y}[{n - max(1, n // 2)}:] * {small}"))
        lines.append(f"{indent}for {i} in range({n}) {{ {body} }}")
        return Value(y, x.shape)

    def scanned(self, values, lines, indent):
        xs, carry = self.pick(values, lambda v: v.shape), self.pick(values)
        if not xs:
            return None
        s, r = self.name("s"), self.name("r")
        seen = [Value(s, carry.shape), Value(r, xs.shape[1:])] + [v for v in values if self.chance(0.3)]
        self.inside += 1
        step, out = self.expression(seen, 2), self.expression(seen, 2)
        self.inside -= 1
        if elements(out.shape) * xs.shape[0] > MOST:
            out = Value(f"sum({out.text})", ())
        following = self.bounded(f"{s} * 0.7 + {self.small()} * {self.fit(step, carry.shape)}")
        if self.chance(0.3):
            return self.bind(f"fold(fn({s}, {r}) => {following}, {carry.text}, {xs.text})", carry.shape, lines, indent)
        name = self.name()
        reverse = ", reverse=true" if self.chance(0.4) else ""
        lines.append(f"{indent}let {name} = scan(fn({s}, {r}) => ({following}, {self.bounded(out.text)}), {carry.text}, {xs.text}{reverse})")
        values.append(Value(f"{name}.0", carry.shape))
        return Value(f"{name}.1", xs.shape[:1] + out.shape)

    def collective(self, q):
        """An expression of members' values."""
        text, n = q.text, MEMBERS
        forms = [f"psum({text}, dev)", f"pmean({text}, dev)", f"pmax({text}, dev)", f"pmin({text}, dev)", f"ppermute({text}, dev, shift=1)",
                 f"ppermute({text}, dev, shift=-2, wrap=true)", f"ppermute({text}, dev, perm=((0, 2), (3, 1), (2, 0)))", f"pbroadcast({text}, dev, source=2)",
                 f"all_gather({text}, dev)[{self.random.randrange(n)}]", f"all_gather(sin({text}), dev)[(axis_index(dev) * 5 + 1) % {n}]",
                 f"pshuffle({text}, dev, {tuple_of([(5 * i + 3) % n for i in range(n)])})",
                 f"psum({text}, dev, groups=((0, 2, 4, 6, 8, 10), (1, 3, 5), (7, 9, 11)))",
                 f"psum_scatter(stack({tuple_of([f'{text} * {0.1 * (i + 1):.1f}' for i in range(n)])}), dev)",
                 f"sum(all_to_all(stack({tuple_of([f'{text} + {0.1 * i:.1f}' for i in range(n)])}) ** 2, dev), axis=0)",
                 f"where(axis_index(dev) % 3 == 1, {text}, {self.small()} * {text})", f"pargmax(sum({text}), dev) * {text}"]
        return Value(self.random.choice(forms), q.shape)

    def mapped(self, values, lines, indent):
        """A map over devices, along any axis, beside what all members have; its results are stacked, or the same for all."""
        if not self.spread or self.in_map or self.inside:
            return None
        x = self.pick(values, lambda v: elements(v.shape) <= 6)
        if not x:
            return None
        axis = self.random.randrange(len(x.shape) + 1)
        wide = x.shape[:axis] + (MEMBERS,) + x.shape[axis:]
        ramp = f"reshape(arange({MEMBERS}, f64) * 0.11 + 0.3, {tuple_of([MEMBERS if i == axis else 1 for i in range(len(wide))])})"
        data = self.bind(f"{ramp} * expand_dims({x.text}, {axis})", wide, lines, indent)
        q, w = self.name("q"), self.name("w")
        shared = self.pick(values)
        self.in_map, self.inside = True, self.inside + 1
        seen = [Value(q, x.shape), Value(w, shared.shape)]
        inner = self.expression(seen, 2)
        met = self.collective(Value(f"({self.bounded(inner.text)})", inner.shape))
        seen.append(Value(f"({met.text})", met.shape))
        after = self.expression(seen, 1)
        if self.chance(0.3):
            z = self.name("z")
            loss = f"sum(sin({z} * mean({q}))) + psum(sum({z}), dev)" if self.chance(0.5) else f"mean(({z} * mean({q})) ** 2)"
            after = Value(f"grad(fn({z}) => {loss})({w})", shared.shape)
        self.in_map, self.inside = False, self.inside - 1
        kind = self.random.choice(("vmap", "pmap", "pmap", "pmap"))
        if self.chance(0.3):
            total = self.random.choice(("psum", "pmean", "pmax"))
            return self.bind(f"{kind}(fn({q}, {w}) => {total}({self.bounded(after.text)}, dev), in_axes=({axis}, none), out_axes=none, "
                             f"over=dev)({data.text}, {shared.text})", after.shape, lines, indent)
        if elements(after.shape) * MEMBERS > 2 * MOST:
            after = Value(f"mean({after.text})", ())
        out = self.random.randrange(len(after.shape) + 1)
        return self.bind(f"{kind}(fn({q}, {w}) => {self.bounded(after.text)}, in_axes=({axis}, none), out_axes={out}, over=dev)"
                         f"({data.text}, {shared.text})", after.shape[:out] + (MEMBERS,) + after.shape[out:], lines, indent)

    STATEMENTS = (choice, loop, loop, writes, scanned, mapped, mapped)

    # ---- the program

    def text(self):
        def array(shape, scale, shift):
            ramp = f"sin(arange({elements(shape)}, f64) * {scale} + {shift})"
            return f"reshape({ramp}, {tuple_of(shape)})" if shape else f"({ramp})[0]"

        a, b, w = self.shapes
        form = lambda s, t: f"({array(a, s, t)}, {array(b, s + 0.3, t + 1)}, (w = {array(w, s + 0.7, t + 2)}, k = f64({t} * 0.3 - 0.2)))"
        lines = ["import nn"] + (["axis dev = devices()"] if self.spread else [])
        lines += ["def custom_rule(x, t) = (sin(x) * x, (sin(x) + x * cos(x)) * t)", "@custom_jvp(custom_rule)", "def custom(x) = sin(x) * x",
                  "def f(a, b, c) {", *self.body, f"  {self.result.text}", "}"]
        lines.append(f"let g = {array(self.result.shape, 1.7, 0.4)}")
        return "\n".join(lines) + CHECKS.replace("POINTS", ", ".join(form(0.9 + 0.37 * p, 0.5 + 0.61 * p) for p in range(2))).replace(
            "TANGENT", form(1.3, 0.8)).replace("OTHER", form(2.1, 0.2))


# The distance of two trees as a part of the second's size, or of 1; what the functions give, at two points.
CHECKS = """
def apart(x, y) {
  var distance = 0.0f64
  var size = 1.0f64
  for leaf in tree_leaves(y) { size = maximum(size, max(abs(leaf))) }
  for leaf in tree_leaves(tree_map(fn(p, q) => max(abs(p - q)), x, y)) { distance = maximum(distance, leaf) }
  distance / size
}
def inner_product(x, y) {
  var total = 0.0f64
  for leaf in tree_leaves(tree_map(fn(p, q) => sum(p * q), x, y)) { total += leaf }
  total
}
def moved(x, t, h) = tree_map(fn(p, q) => p + h * q, x, t)
def differences(f, x, t) {
  let h = 2e-5
  let near = tree_map(fn(p, q) => p - q, f(moved(x, t, h)), f(moved(x, t, -h)))
  let far = tree_map(fn(p, q) => p - q, f(moved(x, t, 2 * h)), f(moved(x, t, -2 * h)))
  tree_map(fn(p, q) => (8 * p - q) / (12 * h), near, far)
}
def on_all(x) = f(x.0, x.1, x.2)
def loss(a, b, c) = sum(f(a, b, c) * g)
def gradient(x) = grad(loss, wrt=(0, 1, 2))(x.0, x.1, x.2)
let t = TANGENT
let s = OTHER
for x in (POINTS) {
  let (y, dy) = jvp(f)(x, t)
  let (same, cotangents) = vjp(f)(x, g)
  let slopes = gradient(x)
  print("value", apart(y, on_all(x)), apart(same, on_all(x)))
  print("forward", apart(dy, differences(on_all, x, t)))
  print("reverse", abs(inner_product(cotangents, t) - sum(g * dy)) / (1 + sum(abs(g * dy)) + inner_product(tree_map(abs, cotangents), tree_map(abs, t))))
  print("loss", apart(cotangents, slopes))
  let along = jvp(gradient)((x,), (t,)).1
  print("second", apart(along, differences(gradient, x, t)))
  print("symmetric", abs(inner_product(along, s) - inner_product(jvp(gradient)((x,), (s,)).1, t)) / (1 + inner_product(tree_map(abs, along), tree_map(abs, s))))
  let both = tree_map(fn(p) => stack((p, p * 0.9)), x)
  print("vmap", apart(tree_map(fn(p) => p[0], vmap(gradient)(both)), slopes))
  print(y, slopes, along)
}
"""

# The largest distance that may be: of a value 0, of what is computed twice a few roundings, of differences more.
LIMITS = {"value": 0.0, "forward": 3e-7, "reverse": 1e-10, "loss": 1e-11, "second": 3e-5, "symmetric": 1e-9, "vmap": 0.0}


def judge(output):
    """What is wrong with a program's own checks: a limit that is passed at both points (an edge may be near to one)."""
    least, count = {}, {}
    for line in output.splitlines():
        words = line.split()
        if not words or words[0] not in LIMITS:
            continue
        for number in words[1:]:
            value = float(number)
            within = value <= LIMITS[words[0]]
            count[words[0]] = count.get(words[0], 0) + 1
            least.setdefault(words[0], []).append(within)
    problems = [f"{name}: {sum(least[name])} of {len(least[name])} within {LIMITS[name]}" for name in LIMITS
                if name in least and (not any(least[name]) if name in ("forward", "second") else not all(least[name]))]
    if set(least) != set(LIMITS):
        problems.append("not all checks were made")
    return problems


def problems_of(unisono, seed, made, program):
    number = (1, 2, 3, 4)[seed % 4] if made.spread else 1
    environment = tunings.of_program(seed, orders=False)
    status, out, errors = seeded.run(unisono, program, ["--quiet", "--devices", f"cpu:{number}"], environment)
    problems = judge(out) if status == 0 else [f"status {status}\n{errors[:2000]}"]
    if status == 0:
        others = [["--devices", "cpu:1", "--reference"]] if seed % 3 == 0 or made.spread else []
        others += [["--devices", "sim:3"]] if made.spread and seed % 8 == 0 else []
        for options in others:
            other = seeded.run(unisono, program, options, environment)
            if other[:2] != (0, out):
                problems.append(f"{' '.join(options)} differs: status {other[0]}\n{other[2][:2000]}")
    return problems


if __name__ == "__main__":
    sys.exit(seeded.main("derivative", 24, Program, problems_of))
