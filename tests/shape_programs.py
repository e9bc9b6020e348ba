#!/usr/bin/env python3
"""Compiled functions of arrays with shapes of all kinds (long and thin, sizes beside powers of two, up to half a million
elements) give on CPU devices what the reference evaluator gives: straight code, gradients, loops and maps over devices.

usage: tests/shape_programs.py UNISONO [FIRST [COUNT]]

The body of a function is Python, too, so NumPy computes it once more (where it is installed): what both have wrong is found,
if it is wrong by more than rounding. Program n is always the same. One that goes wrong is kept in shape_programs/ of the build
folder; `UNISONO_SHOW=1` prints each before it runs. random_programs.py has smaller arrays and more of the language.
"""
import math
import os
import random
import sys

import seeded
import tunings

try:
    import numpy
except ImportError:
    numpy = None
DEBIAN = "/usr/bin/python3"  # which has NumPy from the distribution

DTYPES = ("f32", "f32", "f64", "f64", "f16", "i32", "i8", "u16", "i64")
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 255, 257)
SMALLEST, LARGEST = 13, 19.3  # exponents of 2: elements of the first array of a function
LIMITS = (1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 18)  # of elements, at which functions are compiled in other ways
MOST = 1 << 21  # elements that a step may make
MEMBERS = 6  # of a map over devices
FUNCTIONS = 2  # of a program

CHECK = """axis dev = devices()
def check(y) {
  let z = f64(reshape(y, (-1,)))
  print(sum(z * f64(arange(len(z)) % 1009 + 1)), typeof(y))
}
def check_gradient(g, d) = print(sum(f64(g * d)), sum(abs(f64(g * d))), typeof(g))
"""


def list_of(items):
    return ", ".join(map(str, items))


def at(axis, rank, index):
    """`[:, index, :]`"""
    return f"[{list_of(index if i == axis else ':' for i in range(rank))}]"


class Function:
    """A function of `x0`: statements (name, expression, turns), each of which gives a name its value, or, with turns, changes in each
    turn what the name before it had. Its expressions are Unisono and Python."""

    def __init__(self, kind, dtype, shape, source):
        self.kind, self.dtype, self.source = kind, dtype, source
        self.shape = list(shape)
        self.of_member = kind == "map"
        self.statements = []
        self.result = "x0"
        self.exact = True  # NumPy has the same bits
        self.comparable = dtype != "f16"  # else what NumPy computes may be something else: its numbers are rounded in other places

    def add(self, expression, turns=0):
        before, self.result = self.result, f"x{len(self.statements) + 1}"
        self.statements.append((self.result, before, expression, turns))

    def text(self, name):
        lines = [f"def {name}(x0) {{"]
        for result, before, expression, turns in self.statements:
            if turns:
                lines += [f"  var {result} = {before}", f"  for k in range({turns}) {{ {result} = {expression} }}"]
            else:
                lines.append(f"  let {result} = {expression}")
        value = f"mean({self.result} * {self.result})" if self.kind == "gradient" else self.result
        lines += [f"  {value}", "}"]
        match self.kind:
            case "gradient": lines.append(f"check_gradient(jit(grad({name}))({self.source}), {self.direction()})")
            case "map": lines.append(f"check(pmap({name}, over=dev)({self.source}))")
            case _: lines.append(f"check(jit({name})({self.source}))")
        return lines

    def direction(self):
        return self.source.replace("7919", "6007")


class ShapeProgram:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.functions = [self.function() for _ in range(FUNCTIONS)]

    def text(self):
        return "\n".join([CHECK] + [line for i, function in enumerate(self.functions) for line in function.text(f"f{i}")]) + "\n"

    def shape(self):
        """One axis is as long as the elements of the others leave room for, or one off that."""
        pick = self.random
        rank = pick.choice((1, 2, 2, 2, 3, 3, 4))
        elements = pick.choice((int(2**pick.uniform(SMALLEST, LARGEST)), pick.choice(LIMITS)))
        others = [pick.choice(SIZES) for _ in range(rank - 1)]
        while math.prod(others) * 4 > elements:
            others[pick.randrange(rank - 1)] = pick.choice(SIZES[:12])
        others.insert(pick.randrange(rank), elements // math.prod(others) + pick.choice((-1, 0, 1)))
        return others

    def function(self):
        """Up to ten steps on elements that look random, compiled as one."""
        pick = self.random
        kind = pick.choice(("straight", "straight", "gradient", "loop", "map"))
        dtype, shape = pick.choice(("f32", "f64", "f64") if kind == "gradient" else DTYPES), self.shape()
        whole = [MEMBERS] + shape if kind == "map" else shape
        if math.prod(whole) > MOST:
            return self.function()
        numbers = f"arange({math.prod(whole)}) % 10007 * 7919 % "
        numbers = f"{dtype}({numbers}10007 - 5003) / {dtype}(4096)" if dtype[0] == "f" else f"{dtype}({numbers}101)"
        made = Function(kind, dtype, shape, f"reshape({numbers}, ({list_of(whole)},))")
        steps = pick.choice((1, 2, 3, 4, 6, 10))
        for _ in range(3 * steps):
            if len(made.statements) == steps or not made.shape:
                break
            self.step(made)
        if kind == "loop" and made.shape:
            self.loop(made)
        return made

    def step(self, made):
        step = self.random.choice(self.SMOOTH if made.kind == "gradient" else self.STEPS)
        found = step(self, made.result, made.shape, made.dtype)
        if found is None or math.prod(found[1]) > MOST or math.prod(found[1]) == 0:
            return
        text, made.shape, *other = found
        made.dtype = other[0] if other else made.dtype
        made.add(text)
        if made.dtype[0] == "f" and step not in self.MOVES:
            made.exact = False
        if not made.exact and step in self.DISCRETE:
            made.comparable = False

    def loop(self, made):
        """Turns that add what a step gives to half of what there is, so that it stays small."""
        if made.dtype in ("i8", "u16"):
            made.dtype = "i32"  # which its sums are
            made.add(f"i32({made.result})")
        step = self.random.choice(self.KEEPING)
        name = f"x{len(made.statements) + 1}"
        found = step(self, name, made.shape, made.dtype)
        if found is None:
            return
        half = f"({name} // {made.dtype}(2))" if made.dtype[0] != "f" else f"{name} * {made.dtype}(0.5)"
        made.add(f"{half} - {found[0]}", self.random.choice((1, 2, 3, 7)))
        made.exact = made.exact and made.dtype[0] != "f"

    # Each step: text, shape and, if it is another one, the element type; None if there is no such step of the array.

    def axis(self, shape):
        return self.random.randrange(len(shape))

    def transpose(self, x, shape, _):
        order = self.random.sample(range(len(shape)), len(shape))
        return f"transpose({x}, ({list_of(order)},))", [shape[i] for i in order]

    def part(self, x, shape, _):
        axis = self.axis(shape)
        low = self.random.randrange(shape[axis])
        high = self.random.randrange(low, shape[axis]) + 1
        step = self.random.choice((1, 1, 2, 3))
        return x + at(axis, len(shape), f"{low}:{high}:{step}"), shape[:axis] + [-((low - high) // step)] + shape[axis + 1:]

    def turn_round(self, x, shape, _):
        return x + at(self.axis(shape), len(shape), "::-1"), shape

    def reduce(self, x, shape, _):
        axis = self.axis(shape)
        text = self.random.choice(("sum(X, A)", "max(X, A)", "min(X, A)", "(sum(X * X, A) + max(X, A))", "(sum(X, A) - min(X, A))"))
        return text.replace("X", x).replace("A", f"axis={axis}"), shape[:axis] + shape[axis + 1:]

    def reduce_two(self, x, shape, _):
        if len(shape) < 2:
            return None
        axes = sorted(self.random.sample(range(len(shape)), 2))
        return f"sum({x}, axis=({list_of(axes)}))", [size for i, size in enumerate(shape) if i not in axes]

    def position(self, x, shape, _):
        axis = self.axis(shape)
        return f"{self.random.choice(('argmax', 'argmin'))}({x}, axis={axis})", shape[:axis] + shape[axis + 1:], "i32"

    def count(self, x, shape, _):
        axis = self.axis(shape)
        return f"sum(i32({x} > {x}{at(axis, len(shape), '0:1')}), axis={axis})", shape[:axis] + shape[axis + 1:], "i32"

    def along(self, x, shape, dtype):
        name = self.random.choice(("cumsum", "cummax", "sort", "argsort"))
        return f"{name}({x}, axis={self.axis(shape)})", shape, "i32" if name == "argsort" else dtype

    def join(self, x, shape, _):
        axis = self.axis(shape)
        return f"concat(({x}, {x} + {x}), axis={axis})", shape[:axis] + [2 * shape[axis]] + shape[axis + 1:]

    def stack(self, x, shape, _):
        axis = self.random.randrange(len(shape) + 1)
        return f"stack(({x}, {x} - {x}, {x} + {x}), axis={axis})", shape[:axis] + [3] + shape[axis:]

    def pad(self, x, shape, _):
        return f"pad({x}, 1)", [size + 2 for size in shape]

    def roll(self, x, shape, _):
        return f"roll({x}, {self.random.randrange(-5, 40)}, axis={self.axis(shape)})", shape

    def spread(self, x, shape, _):
        axis = self.axis(shape)
        edge, kept = x + at(axis, len(shape), "0:1"), f"({x}, axis={axis}, keepdims=true)"
        return self.random.choice((f"({x} + {edge})", f"({x} * sum{kept})", f"where({x} > max{kept} - {x}, {x}, {x} + {x})")), shape

    def softmax(self, x, shape, dtype):
        if dtype[0] != "f":
            return None
        kept = f"axis={self.axis(shape)}, keepdims=true"
        power = f"exp({x} - max({x}, {kept}))"
        return f"({power} / sum({power}, {kept}))", shape

    def reshape(self, x, shape, _):
        elements = math.prod(shape)
        rows = self.random.choice([size for size in SIZES if elements % size == 0])
        to = self.random.choice(([rows, elements // rows], [elements // rows, rows]))
        return f"reshape({x}, ({list_of(to)}))", to

    def gather(self, x, shape, _):
        axis, number = self.axis(shape), self.random.choice((5, 17, 300, 1000))
        return (f"take({x}, (arange({number}) * 7919) % {shape[axis]}, axis={axis})",
                shape[:axis] + [number] + shape[axis + 1:])

    def product(self, x, shape, dtype):
        columns = self.random.choice((1, 2, 3, 5, 8, 16, 17, 33))
        if len(shape) < 2 or math.prod(shape) * columns > 30_000_000:
            return None
        size = shape[-1]
        return f"({x} @ reshape({dtype}(arange({size * columns}) % 7), ({size}, {columns})))", shape[:-1] + [columns]

    def product_with_itself(self, x, shape, _):
        if len(shape) != 2 or min(shape) > 40:
            return None
        if self.random.random() < 0.4:
            return f"({x} @ {x}[0])", [shape[0]]
        return (f"(transpose({x}) @ {x})" if shape[1] <= 40 else f"({x} @ transpose({x}))"), [min(shape)] * 2

    def centre(self, x, shape, dtype):
        return (f"({x} - mean({x}, axis={self.axis(shape)}, keepdims=true))", shape) if dtype[0] == "f" else None

    def back(self, x, shape, dtype):
        """A result at all the places that were reduced."""
        axis = self.random.choice([f"axis={self.axis(shape)}, "] * 3 + [""])
        total = "mean" if dtype[0] == "f" else "sum"
        function = self.random.choice((total, total, "max", "min"))
        return f"broadcast_to({function}({x}, {axis}keepdims=true), shape({x}))", shape

    def total_back(self, x, shape, dtype):
        axis = f"axis={self.axis(shape)}, keepdims=true"
        function = "mean" if dtype[0] == "f" else "sum"
        return f"({function}({x}, {axis}) + {x} * {dtype}(0))", shape

    def again(self, x, shape, _):
        axis = self.axis(shape)
        return (f"sum(broadcast_to(max({x}, axis={axis}, keepdims=true), shape({x})) + {x}, axis={axis})",
                shape[:axis] + shape[axis + 1:])

    def along_smoothly(self, x, shape, _):
        return f"cumsum({x}, axis={self.axis(shape)})", shape

    def sum_of(self, x, shape, _):
        axis = self.axis(shape)
        text = self.random.choice(("sum(X, A)", "mean(X, A)", "sum(X * X, A)", "(mean(X, A) * sum(X, A))"))
        return text.replace("X", x).replace("A", f"axis={axis}"), shape[:axis] + shape[axis + 1:]

    def scaled(self, x, shape, _):
        kept = f"({x}, axis={self.axis(shape)}, keepdims=true)"
        return self.random.choice((f"({x} * mean{kept})", f"({x} / (sum({x} * {x}) + 1))", f"broadcast_to(mean{kept}, shape({x}))")), shape

    MOVES = (transpose, part, turn_round, join, stack, pad, roll, reshape, gather, position, count)
    DISCRETE = (position, count, along, reduce, spread)
    STEPS = (transpose, part, turn_round, reduce, reduce, reduce, reduce_two, position, count, along, along, join, stack,
             pad, roll, spread, spread, softmax, reshape, gather, product, product, product_with_itself, centre, back, back, total_back, again)
    SMOOTH = (transpose, part, turn_round, join, stack, pad, roll, reshape, gather, softmax, product, centre, total_back, along_smoothly,
              sum_of, sum_of, scaled, scaled)
    KEEPING = (turn_round, roll, spread, softmax, centre, back, back, total_back)


# ---- the same by NumPy -------------------------------------------------------

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23}


def names_of_numpy():
    """What expressions of functions mean, with the types of Unisono."""
    def kept(function):  # sums of short integers have 32 bits
        return lambda x, *arguments, **named: function(x, *arguments, dtype={"int8": "int32", "uint16": "uint32"}.get(str(x.dtype), x.dtype), **named)

    def position(function):
        return lambda x, axis: function(x, axis=axis).astype(numpy.int32)

    np = numpy
    names = {name: (lambda x, to=to: np.asarray(x).astype(to)) for name, to in
             (("f16", np.float16), ("f32", np.float32), ("f64", np.float64), ("i8", np.int8), ("u16", np.uint16), ("i32", np.int32), ("i64", np.int64))}
    return names | {
        "true": True, "arange": lambda n: np.arange(n, dtype=np.int32), "sum": kept(np.sum), "mean": kept(np.mean), "max": np.max, "min": np.min,
        "argmax": position(np.argmax), "argmin": position(np.argmin), "cumsum": kept(np.cumsum),
        "cummax": lambda x, axis: np.maximum.accumulate(x, axis=axis), "sort": np.sort,
        "argsort": lambda x, axis: np.argsort(x, axis=axis, kind="stable").astype(np.int32), "concat": np.concatenate, "stack": np.stack, "pad": np.pad,
        "roll": np.roll, "where": np.where, "exp": np.exp, "reshape": np.reshape, "take": np.take, "transpose": np.transpose, "shape": np.shape,
        "broadcast_to": np.broadcast_to, "abs": np.abs}


class Computed:
    """What NumPy gives for a function, and how large the numbers on the way are."""

    def __init__(self, function):
        self.function, self.names = function, names_of_numpy()
        self.largest = 0.0

    def evaluate(self, expression, **values):
        return eval(expression, {"__builtins__": {}}, self.names | values)

    def call(self, x0):
        values = {"x0": x0}
        for result, before, expression, turns in self.function.statements:
            if turns:
                values[result] = values[before]
            for _ in range(turns or 1):
                values[result] = self.evaluate(expression, **values)
                self.largest = max(self.largest, float(numpy.abs(values[result].astype(float)).max(initial=0)))
        return values[self.function.result]

    def check(self):
        """The number that `check` prints, and how far from it is all right."""
        x = self.evaluate(self.function.source)
        y = numpy.stack([self.call(member) for member in x]) if self.function.kind == "map" else self.call(x)
        z = y.astype(float).reshape(-1)
        weights = numpy.arange(len(z)) % 1009 + 1.0
        return (z * weights).sum(), EPSILON.get(self.function.source[8:11], 2.0**-52) * 1e3 * max(self.largest, 1) * weights.sum()

    def difference(self):
        """The derivative along the direction, from two values on both sides; and how far from it is all right."""
        x, d = self.evaluate(self.function.source), self.evaluate(self.function.direction())
        step = 1e-5

        def value(at):
            y = self.call(at)
            return (y * y).mean()

        high, low = value(x + step * d), value(x - step * d)
        return (high - low) / (2 * step), (1e-12 * max(abs(high), abs(low)) + (1e-10 * self.largest) ** 2) / step


def wrong_by_numpy(function, line):
    """Whether a function's line of output is not what NumPy gives."""
    if not function.comparable or (function.kind == "gradient" and "f64(" not in function.source):
        return None
    with numpy.errstate(all="ignore"):
        computed = Computed(function)
        printed = line.split()
        if function.kind == "gradient":
            want, room = computed.difference()
            room += 1e-4 * float(printed[1])
        else:
            want, room = computed.check()
    off = abs(float(printed[0]) - want)
    return f"NumPy: {want} (within {room:.3g}), printed {line}" if math.isfinite(want) and not off <= room else None


def problems_of(unisono, seed, made, program):
    environment = tunings.of_program(seed)
    expected = seeded.run(unisono, program, ["--quiet", "--reference"], environment)
    problems = [] if expected[0] == 0 else [f"reference: status {expected[0]}\n{expected[2]}"]
    for number in (1, 3):
        own = seeded.run(unisono, program, ["--quiet", "--devices", f"cpu:{number}"], environment)
        if own != expected:
            wrong = [f"{i}: {a}, expected {b}" for i, (a, b) in enumerate(zip(own[1].splitlines(), expected[1].splitlines())) if a != b]
            problems.append(f"cpu:{number}: status {own[0]}\n{own[2]}" + "\n".join(wrong))
    if numpy and expected[0] == 0:
        found = (wrong_by_numpy(*each) for each in zip(made.functions, expected[1].splitlines()))
        problems += [f"{i}: {wrong}" for i, wrong in enumerate(found) if wrong]
    return problems


if __name__ == "__main__":
    if not numpy and os.path.exists(DEBIAN) and sys.executable != DEBIAN:
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    sys.exit(seeded.main("shape", 300, ShapeProgram, problems_of))
