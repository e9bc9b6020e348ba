#!/usr/bin/env python3
"""Compiled functions of arrays with shapes of all kinds (long and thin, sizes beside powers of two, up to half a million
elements) give on CPU devices what the reference evaluator gives.

usage: tests/shape_programs.py UNISONO [FIRST [COUNT]]

Program n is always the same. One that goes wrong is kept in shape_programs/ of the build folder; `UNISONO_SHOW=1` prints
each before it runs. random_programs.py has smaller arrays and more of the language.
"""
import math
import random
import sys

import seeded
import tunings

DTYPES = ("f32", "f32", "f64", "f16", "i32", "i8", "u16", "i64")
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 255, 257)
SMALLEST, LARGEST = 13, 19.3  # exponents of 2: elements of the first array of a function
MOST = 1 << 21  # elements that a step may make
FUNCTIONS = 6  # of a program

CHECK = """def check(y) {
  let z = reshape(y, (-1,))
  print(sum(f64(z) * f64(arange(len(z)) % 1009 + 1)), typeof(y))
}
"""


def list_of(items):
    return ", ".join(map(str, items))


def at(axis, rank, index):
    """`[:, index, :]`"""
    return f"[{list_of(index if i == axis else ':' for i in range(rank))}]"


class ShapeProgram:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.lines = [CHECK]
        for number in range(FUNCTIONS):
            self.function(number)

    def text(self):
        return "\n".join(self.lines) + "\n"

    def shape(self):
        """One axis is as long as the elements of the others leave room for, or one off that."""
        pick = self.random
        rank = pick.choice((1, 2, 2, 2, 3, 3, 4))
        elements = int(2**pick.uniform(SMALLEST, LARGEST))
        others = [pick.choice(SIZES) for _ in range(rank - 1)]
        while math.prod(others) * 4 > elements:
            others[pick.randrange(rank - 1)] = pick.choice(SIZES[:12])
        others.insert(pick.randrange(rank), elements // math.prod(others) + pick.choice((-1, 0, 1)))
        return others

    def function(self, number):
        """One to three steps on random elements, compiled as one."""
        pick = self.random
        dtype, shape = pick.choice(DTYPES), self.shape()
        source = f"key({self.seed * 100 + number}), {dtype}[{list_of(shape)}]"
        source = f"uniform({source})" if dtype[0] == "f" else f"randint({source}, 0, 100)"
        body, steps = [], pick.choice((1, 1, 2, 2, 3))
        while len(body) < steps and shape:
            made = pick.choice(self.STEPS)(self, f"x{len(body)}", shape, dtype)
            if made is None or math.prod(made[1]) > MOST:
                continue
            text, shape, *other = made
            dtype = other[0] if other else dtype
            body.append(f"  let x{len(body) + 1} = {text}")
        self.lines += [f"def f{number}(x0) {{", *body, f"  x{len(body)}", "}", f"check(jit(f{number})({source}))"]

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

    STEPS = (transpose, transpose, part, turn_round, reduce, reduce, reduce, reduce_two, position, count, along, along, join, stack,
             pad, roll, spread, spread, softmax, reshape, gather, product, product, product_with_itself)


def problems_of(unisono, seed, made, program):
    environment = tunings.of_program(seed)
    expected = seeded.run(unisono, program, ["--reference"], environment)
    problems = [] if expected[0] == 0 else [f"reference: status {expected[0]}\n{expected[2]}"]
    for number in (1, 3):
        own = seeded.run(unisono, program, ["--devices", f"cpu:{number}"], environment)
        if own != expected:
            wrong = [f"{i}: {a}, expected {b}" for i, (a, b) in enumerate(zip(own[1].splitlines(), expected[1].splitlines())) if a != b]
            problems.append(f"cpu:{number}: status {own[0]}\n{own[2]}" + "\n".join(wrong))
    return problems


if __name__ == "__main__":
    sys.exit(seeded.main("shape", 30, ShapeProgram, problems_of))
