#!/usr/bin/env python3
"""Random programs give the same on the reference evaluator, on CPU devices and on simulated GPUs.

usage: tests/random_programs.py UNISONO [FIRST [COUNT]]

Program n is always the same. One that goes wrong is kept in random_programs/ of the build folder; `UNISONO_SHOW=1` prints
each before it runs.
"""
import random
import re
import sys

import seeded
import tunings

FLOATS = ("f32", "f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i32", "i8", "i16", "i64", "u8", "u16", "u32")
SIZES = (1, 2, 3, 4, 5, 7, 16, 33, 64, 100, 128, 257)
LONG = (65, 1000, 4097, 20_000)
MOST = 60_000  # elements of an array, about


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def tuple_of(items):
    return "(" + ", ".join(map(str, items)) + (",)" if len(items) == 1 else ")")


class Array:
    """Text that gives an array, and what is known of it."""

    def __init__(self, text, dtype, shape):
        self.text, self.dtype, self.shape = text, dtype, tuple(shape)
        self.floating = "f" in dtype
        self.boolean = dtype == "bool"

    def like(self, text, dtype=None, shape=None):
        return Array(text, dtype or self.dtype, self.shape if shape is None else shape)

    def without(self, axis):
        return self.shape[:axis] + self.shape[axis + 1:]

    def bounded(self):
        """As a number that every type holds."""
        return f"minimum(maximum(cast({self.text}, f64), 0.0f64), 100.0f64)"


class RandomProgram:
    def __init__(self, seed, devices):
        self.random = random.Random(seed)
        self.devices = devices  # 0: no maps over devices
        self.arrays = []  # that have names
        self.names = 0
        self.lines = ["import nn", "import stats"] + (["axis dev = devices()"] if devices else [])
        for _ in range(3):
            self.bind(self.source())
        for _ in range(self.random.randint(3, 10)):
            self.random.choice(self.STATEMENTS)(self)
        for array in self.arrays:
            self.show(array)

    def text(self):
        return "\n".join(self.lines) + "\n"

    # ---- parts -------------------------------------------------------------

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def bind(self, array, keyword="let"):
        name = self.name()
        self.lines.append(f"{keyword} {name} = {array.text}")
        self.arrays.append(array.like(name))
        return self.arrays[-1]

    def any(self, accept=lambda array: True):
        found = [array for array in self.arrays if accept(array)]
        return self.random.choice(found) if found else None

    def number(self, dtype):
        value = self.random.randint(0 if dtype[0] == "u" else -3, 6)
        text = f"{abs(value)}{'.5' if 'f' in dtype else ''}{dtype}"
        return f"(-{text})" if value < 0 else text

    def shape(self):
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3))
        if rank == 1 and self.random.random() < 0.5:
            return (self.random.choice(LONG),)
        shape = []
        for _ in range(rank):
            size = self.random.choice(SIZES)
            while count(shape) * size > MOST:
                size = max(1, size // 3)
            shape.append(size)
        return tuple(shape)

    def source(self):
        choice = self.random.choice
        dtype, shape = choice(FLOATS + INTEGERS), self.shape()
        modulus = choice((7, 13, 101, 251) if dtype[1:] != "8" else (7, 13, 101))
        text = f"(arange({count(shape)}) * {self.random.randint(1, 90)} + {self.random.randint(0, 50)}) % {modulus}"
        if dtype[0] != "u":
            text += f" - {modulus // 2}"
        text = f"cast({text}, {dtype})"
        if "f" in dtype:
            text += f" * {choice(('0.25', '0.37', '1.0', '3.1'))}{dtype}"
        return Array(f"reshape({text}, {tuple_of(shape)})", dtype, shape)

    def show(self, array):
        values = f"i32({array.text})" if array.boolean else array.text
        self.lines += [f"print(shape({array.text}))", f"print({values})"]
        flat = f"reshape(cast({values}, f64), (-1,))" if array.shape else ""
        if count(array.shape) > 1:  # all of it, where the text leaves something out
            self.lines.append(f"print(max({flat}), min({flat}), sum({flat}), sum({flat} * cast(arange({count(array.shape)}) % 97, f64)))")

    # ---- expressions -------------------------------------------------------

    def expression(self, depth):
        if depth == 0 or self.random.random() < 0.15:
            return self.any()
        x = self.expression(depth - 1)
        if x.boolean:
            x = x.like(f"cast({x.text}, i32)", "i32")
        result = self.random.choice(self.EXPRESSIONS)(self, x)
        return result if result and count(result.shape) <= 4 * MOST else x

    def arithmetic(self, x):
        op = self.random.choice(("+", "-", "*") + (("/",) if x.floating else ("&", "|", "^")))

        def fits(y):
            return y.dtype == x.dtype and len(y.shape) <= len(x.shape) and all(
                mine in (1, its) for mine, its in zip(y.shape[::-1], x.shape[::-1]))

        y = self.any(fits)
        other = y.text if y and self.random.random() < 0.6 else self.number(x.dtype)
        return x.like(f"({x.text} {op} {other})")

    def division(self, x):
        if x.floating:
            return None
        return x.like(f"({x.text} {self.random.choice(('//', '%'))} {self.random.choice((1, 3, 7, 50))}{x.dtype})")

    def failing(self, x):
        """Divides by what may be 0, or looks where there may be nothing: the message must be the same."""
        if not x.shape:
            return None
        if x.floating or self.random.random() < 0.3:
            index = f"(arange(50) * {self.random.randint(1, 9)} % {x.shape[0] + self.random.choice((0, 0, 0, 1, 9))})"
            return x.like(f"{x.text}[{index}]", shape=(50,) + x.shape[1:])
        return x.like(f"({self.number(x.dtype)} {self.random.choice(('//', '%'))} ({x.text} | {self.random.choice('0012')}{x.dtype}))")

    def function(self, x):
        names = ("abs", "sign", "square") + (
            ("exp", "sin", "tanh", "floor", "erf", "nn.sigmoid", "nn.gelu", "cbrt", "atan") if x.floating else ())
        return x.like(f"{self.random.choice(names)}({x.text})")

    def root(self, x):
        return x.like(f"{self.random.choice(('sqrt', 'log1p', 'rsqrt'))}(abs({x.text}))") if x.floating else None

    def choose(self, x):
        op = self.random.choice(("<", ">=", "==", "!="))
        return x.like(f"where({x.text} {op} {self.number(x.dtype)}, {x.text}, {self.number(x.dtype)})")

    def compare(self, x):
        return x.like(f"({x.text} {self.random.choice(('<', '>=', '=='))} {self.number(x.dtype)})", "bool")

    def reduction(self, x):
        if not x.shape:
            return None
        axis = self.random.randrange(len(x.shape))
        name = self.random.choice(("sum", "max", "min", "argmax", "argmin") + (("mean", "variance", "logsumexp") if x.floating else ()))
        keep = self.random.random() < 0.4
        shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape)) if keep else x.without(axis)
        dtype = "i32" if name.startswith("arg") else x.dtype
        text = f"{name}({x.text}, axis={axis - self.random.choice((0, len(x.shape)))}{', keepdims=true' if keep else ''})"
        return x.like(f"cast({text}, {dtype})", dtype, shape)

    def scan(self, x):
        if not x.shape:
            return None
        name = self.random.choice(("cumsum", "cummax", "cummin"))
        reverse = self.random.choice(("", ", reverse=true"))
        return x.like(f"cast({name}({x.text}, axis={self.random.randrange(len(x.shape))}{reverse}), {x.dtype})")

    def order(self, x):
        if not x.shape:
            return None
        name = self.random.choice(("sort", "argsort"))
        descending = self.random.choice(("", ", descending=true"))
        return x.like(f"{name}({x.text}, axis={self.random.randrange(len(x.shape))}{descending})", "i32" if name == "argsort" else x.dtype)

    def normal(self, x):
        if not x.shape or not x.floating:
            return None
        return x.like(f"{self.random.choice(('softmax', 'log_softmax', 'stats.standardize', 'nn.layer_norm'))}({x.text}, axis={self.random.randrange(len(x.shape))})")

    def centred(self, x):
        if not x.shape:
            return None
        return x.like(f"({x.text} - {self.random.choice(('max', 'min'))}({x.text}, axis=-1, keepdims=true))")

    def transposed(self, x):
        axes = list(range(len(x.shape)))
        self.random.shuffle(axes)
        return x.like(f"transpose({x.text}, {tuple_of(axes)})", shape=[x.shape[a] for a in axes]) if axes else None

    def indexed(self, x):
        items, shape = [], []
        for size in x.shape:
            first = self.random.randrange(size)
            kind = self.random.randrange(5)
            if kind == 0:
                items.append(str(first - self.random.choice((0, size))))
            elif kind == 1:
                items.append(":")
                shape.append(size)
            elif kind == 2:
                step = self.random.randint(1, 3)
                items.append(f"{first}::{step}")
                shape.append(len(range(first, size, step)))
            elif kind == 3:
                items.append("::-1")
                shape.append(size)
            else:
                end = self.random.randint(first + 1, size)
                items.append(f"{first}:{end}")
                shape.append(end - first)
        return x.like(f"{x.text}[{', '.join(items)}]", shape=shape) if items else None

    def gathered(self, x):
        if not x.shape:
            return None
        n = self.random.choice((1, 3, 40, 300))
        return x.like(f"{x.text}[{self.positions(n, x.shape[0])}]", shape=(n,) + x.shape[1:])

    def positions(self, n, size):
        return f"(arange({n}) * {self.random.randint(1, 9)} + {self.random.randint(0, 5)}) % {size}"

    def reshaped(self, x):
        if self.random.random() < 0.5:
            return x.like(f"reshape({x.text}, (-1,))", shape=(count(x.shape),))
        return x.like(f"expand_dims({x.text}, 0)", shape=(1,) + x.shape)

    def moved(self, x):
        if not x.shape:
            return None
        axis = self.random.randrange(len(x.shape))
        kind = self.random.randrange(4)
        if kind == 0:
            return x.like(f"roll({x.text}, {self.random.randint(-3, 9)}, axis={axis})")
        if kind == 1:
            return x.like(f"flip({x.text}, axis={axis})")
        longer = [size + 3 if kind == 2 and i == axis else 2 * size if kind == 3 and i == axis else size for i, size in enumerate(x.shape)]
        if kind == 2:
            widths = tuple_of(["(1, 2)" if i == axis else "(0, 0)" for i in range(len(x.shape))])
            return x.like(f"pad({x.text}, {widths}, value={self.number(x.dtype)})", shape=longer)
        return x.like(f"concat(({x.text}, {x.text}), axis={axis})", shape=longer)

    def converted(self, x):
        dtype = self.random.choice(FLOATS + INTEGERS)
        return x.like(f"cast({x.text if 'f' in dtype else x.bounded()}, {dtype})", dtype)

    def product(self, x):
        if len(x.shape) != 2 or count(x.shape) > 5000:
            return None
        precision = ', precision="exact"' if x.dtype in ("f16", "bf16") else ""
        return x.like(f"matmul({x.text}, transpose({x.text}){precision})", shape=(x.shape[0], x.shape[0]))

    def mapped(self, x):
        if not x.shape or x.shape[0] > 300:
            return None
        inner = x.like("q", shape=x.shape[1:])
        body = self.inside(inner, 2)
        return x.like(f"vmap(fn(q) => {body.text})({x.text})", body.dtype, (x.shape[0],) + body.shape)

    def inside(self, parameter, depth):
        """An expression of a parameter alone."""
        outer, self.arrays = self.arrays, [parameter]
        body = self.expression(depth)
        self.arrays = outer
        return body

    EXPRESSIONS = (arithmetic, arithmetic, arithmetic, division, failing, failing, function, function, root, choose, compare, reduction, reduction, scan,
                   order, normal, centred, transposed, indexed, indexed, gathered, reshaped, moved, moved, converted, product, mapped)

    # ---- statements --------------------------------------------------------

    def let(self):
        self.bind(self.expression(self.random.randint(1, 4)))

    def update(self):
        x = self.any(lambda a: a.shape and not a.boolean)
        if not x:
            return
        y = self.bind(x, "var").text
        for _ in range(self.random.randint(1, 3)):
            size = x.shape[0]
            place = self.random.choice((f"{self.random.randrange(size)}", f"{self.random.randrange(size)}::{self.random.randint(1, 3)}",
                                        f"..., {self.random.randrange(x.shape[-1])}", self.positions(self.random.choice((1, 5, 700)), size)))
            self.lines.append(f"{y}[{place}] {self.random.choice(('=', '+=', '*='))} {self.number(x.dtype)}")

    def loop(self):
        x = self.any(lambda a: a.shape and not a.boolean)
        if not x:
            return
        size, number = x.shape[0], self.number(x.dtype)
        body = self.random.choice((f"a = a * {number} + x", "a = where(a > x, a, x - a)", f"a = cast(cumsum(a, axis=0), {x.dtype})",
                                   f"a[k % {size}] += {number}", "a = flip(a, axis=0) - x", f"a[k % {size}] = a[(k * 7 + 1) % {size}]",
                                   "if k % 2 == 0 { a = a + x } else { a = a - roll(x, k, axis=0) }"))
        turns = self.random.choice((1, 3, 7, 20))
        head = self.random.choice((f"for k in range({turns})", f"var k = 0\n  while k < {turns}"))
        step = "; k += 1" if "while" in head else ""
        function = self.name()
        self.lines.append(f"def {function}(x) {{\n  var a = x\n  {head} {{ {body}{step} }}\n  a\n}}")
        self.call(function, x, x)

    def define(self):
        x = self.any(lambda a: a.shape and not a.boolean)
        if not x:
            return
        body = self.inside(x.like("x"), 3)
        function = self.name()
        self.lines.append(f"def {function}(x) = {body.text}")
        self.call(function, x, body)

    def call(self, function, x, result):
        self.bind(result.like(self.random.choice((f"jit({function})({x.text})", f"{function}({x.text})"))))

    def spread(self):
        x = self.any(lambda a: a.shape and not a.boolean)
        n = self.devices
        if not n or not x or x.shape[0] * n > 3 * MOST:
            return
        if x.shape[0] % n:
            x = self.bind(x.like(f"concat({tuple_of([x.text] * n)}, axis=0)", shape=(x.shape[0] * n,) + x.shape[1:]))
        if x.shape[0] > 64 * n:
            return
        q = x.like("q", shape=x.shape[1:])
        inner = self.inside(q, 1)
        body = self.random.choice((
            inner, q.like("psum(q, dev)"), q.like("q + pmax(q, dev)"), q.like("q - ppermute(q, dev, shift=1)"), q.like("pmin(q * q, dev)"),
            q.like("all_gather(q, dev)[axis_index(dev)]"), q.like("where(axis_index(dev) == 1, q, q + q)"),
            q.like(f"psum({inner.text}, dev)", inner.dtype, inner.shape) if not inner.boolean else inner))
        self.bind(x.like(f"pmap(fn(q) => {body.text}, over=dev)({x.text})", body.dtype, (x.shape[0],) + body.shape))

    def spread_two(self):
        """A map along any axis, beside an array that all have, with a tuple of results along any axis or of one."""
        x = self.any(lambda a: a.shape and not a.boolean)
        n = self.devices
        if not n or not x or count(x.shape) * n > 3 * MOST:
            return
        axis = self.random.randrange(len(x.shape))
        if x.shape[axis] % n:
            longer = x.shape[:axis] + (x.shape[axis] * n,) + x.shape[axis + 1:]
            x = self.bind(x.like(f"concat({tuple_of([x.text] * n)}, axis={axis})", shape=longer))
        if x.shape[axis] > 64 * n:
            return
        q = x.like("q", shape=x.without(axis))
        other = self.any(lambda a: a.dtype == x.dtype and a.shape in ((), q.shape))
        inner = self.inside(q, 1)
        out = self.random.randrange(len(inner.shape) + 1)
        mean = self.random.choice(("psum(q * c, dev)", "pmax(q, dev) - c", "sum(all_gather(q + c, dev), axis=0)"))
        mean = f"cast({mean}, {x.dtype})"
        name = self.name()
        self.lines.append(f"let {name} = pmap(fn(q, c) => ({inner.text}, {mean}), in_axes=({axis}, none), out_axes=({out}, none), "
                          f"over=dev)({x.text}, {other.text if other else self.number(x.dtype)})")
        self.arrays += [inner.like(f"{name}.0", shape=inner.shape[:out] + (x.shape[axis],) + inner.shape[out:]), q.like(f"{name}.1")]

    STATEMENTS = (let, let, let, let, update, loop, define, spread, spread, spread_two)


def run(unisono, program, options, seed):
    links = ("all", "none", "ring", "islands:2")[seed // 3 % 4]
    status, out, errors = seeded.run(unisono, program, options, {"SIMCUDA": f"peers={links};seed={seed % 8}", **tunings.of_program(seed // 6, orders=False)})
    return status, out.replace("sim:", "cpu:"), errors.replace("sim:", "cpu:")


def devices_of(seed):
    return (0, 3, 4, 0, 2, 8)[seed % 6]


def problems_of(unisono, seed, made, program):
    number = max(devices_of(seed), 1)
    expected = run(unisono, program, ["--quiet", "--devices", f"cpu:{number}", "--reference"], seed)
    problems = []
    if expected[0] != 0 and not re.match(r"error\[(U0501|U0502)\]", expected[2]):
        problems.append(f"reference: status {expected[0]}\n{expected[2]}")
    for kind in ("cpu", "sim"):
        own = run(unisono, program, ["--quiet", "--devices", f"{kind}:{number}"], seed)
        if own != expected:
            problems.append(f"{kind}:{number}: status {own[0]}, expected {expected[0]}\n{own[2]}expected\n{expected[2]}")
    return problems


if __name__ == "__main__":
    sys.exit(seeded.main("random", 60, lambda seed: RandomProgram(seed, devices_of(seed)), problems_of))
