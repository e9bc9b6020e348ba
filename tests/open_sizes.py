#!/usr/bin/env python3
"""What the checker does not know it leaves to the run: a program whose sizes are literals runs or is refused; with each size
made at run time it passes the check, and its run prints the same or fails with the same code.

usage: tests/open_sizes.py UNISONO [FIRST [COUNT]]

Program n is always the same. One that goes wrong is kept in open_sizes_programs/ of the build folder; `UNISONO_SHOW=1` prints
each before it runs.
"""
import random
import re
import subprocess
import sys

import sanitizers
import seeded

STEPS, MOST = 8, 6
HEAD = """axis dev = devices(2)
let h = arange(32)
def both(x: f32[n], y: f32[n]) -> f32[n] = x + 2.0 * y
def rows(x: f32[n, d]) -> f32[d] = sum(x, axis=0)
def halves(x: f32[2 * n]) -> f32[n] = x[:n] + x[n:]
def kept(x: f32[n]) -> f32[n] = x[x > 2.0]
@jit
def last(x, y) {
  var s = x
  for i in range(2) { s = y + s[0] }
  s
}
def tell(x) = print(shape(x), sum(x), x)
"""


def broadcast(a, b):
    out = []
    for i in range(1, max(len(a), len(b)) + 1):
        x, y = (s[-i] if i <= len(s) else 1 for s in (a, b))
        if x != y and 1 not in (x, y):
            return None
        out.insert(0, y if x == 1 else x)
    return out


class Program:
    """Sizes stand between `<` and `>` until the text is made."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.arrays = [], []
        for rank in (1, 1, 2):
            self.make(rank)
        steps = 0
        while steps < STEPS:
            made = self.random.choice(self.KINDS)(self)
            if made is None or (made[1] is None and self.random.random() < 0.8):
                continue
            steps += 1
            text, shape = made
            if shape is None:  # one that is refused ends the program
                self.lines += [text.replace("=", f"let v{steps} =", 1) if text.startswith("=") else text]
                break
            self.lines += [text] if not text.startswith("=") else []
            if text.startswith("="):
                name = f"v{len(self.arrays)}"
                self.lines += [f"let {name} {text}", f"tell({name})"]
                self.arrays.append((name, shape))

    def text(self, opened=False):
        body = "\n".join(self.lines)
        return HEAD + re.sub(r"<(\d+)>", r"h[\1]" if opened else r"\1", body) + "\n"

    def size(self):
        return self.random.randrange(1, MOST)

    def make(self, rank):
        shape = [self.size() for _ in range(rank)]
        name, sizes = f"v{len(self.arrays)}", ", ".join(f"<{n}>" for n in shape)
        count = " * ".join(f"<{n}>" for n in shape)
        self.lines.append(f"let {name} = reshape(f32(arange({count})) + 1.0, ({sizes},))")
        self.arrays.append((name, shape))

    def array(self, rank=None):
        own = [a for a in self.arrays if rank is None or len(a[1]) == rank]
        return self.random.choice(own) if own else (None, None)

    def part(self):
        x, shape = self.array()
        if not shape:
            return None
        axis, to = self.random.randrange(len(shape)), self.size()
        low = self.random.randrange(to + 1)
        new = list(shape)
        new[axis] = max(min(to, shape[axis]) - min(low, shape[axis]), 0)
        return f"= {x}[{':, ' * axis}<{low}>:<{to}>]", new

    def ends(self):
        x, shape = self.array()
        if not shape:
            return None
        n, how = shape[0], self.random.choice(("1:", ":-1", "::2", "::-1", "-2:"))
        size = {"1:": max(n - 1, 0), ":-1": max(n - 1, 0), "::2": (n + 1) // 2, "::-1": n, "-2:": min(n, 2)}[how]
        return f"= {x}[{how}]", [size, *shape[1:]]

    def operator(self):
        (x, a), (y, b) = self.array(), self.array()
        return f"= {x} {self.random.choice('+-*')} {y}", broadcast(a, b)

    def where(self):
        (x, a), (y, b) = self.array(), self.array()
        return f"= where({x} > 3.0, {x}, {y})", broadcast(a, b)

    def joined(self):
        (x, a), (y, b) = self.array(), self.array()
        fits = len(a) == len(b) and len(a) > 0 and a[1:] == b[1:]
        if not a or not b or len(a) != len(b):
            return None
        return f"= concat(({x}, {y}))", [a[0] + b[0], *a[1:]] if fits else None

    def stacked(self):
        (x, a), (y, b) = self.array(), self.array()
        if len(a) != len(b):
            return None
        return "= " + self.random.choice((f"stack(({x}, {y}))", f"[{x}, {y}]")), [2, *a] if a == b else None

    def product(self):
        (x, a), (y, b) = self.array(), self.array()
        if not a or not b:
            return None
        inner = b[0] if len(b) == 1 else b[-2]
        return f"= {x} @ {y}", a[:-1] + b[:-2] + b[-1:] * (len(b) > 1) if a[-1] == inner and len(a) < 3 and len(b) < 3 else None

    def einsum(self):
        (x, a), (y, b) = self.array(2), self.array(2)
        return x and (f'= einsum("ij,kj->ik", {x}, {y})', [a[0], b[0]] if a[1] == b[1] else None)

    def reshaped(self):
        x, shape = self.array()
        elements, n = 1, self.size()
        for k in shape:
            elements *= k
        if elements == 0:
            return None
        return f"= reshape({x}, (<{n}>, -1))", [n, elements // n] if elements % n == 0 else None

    def cut(self):
        x, shape = self.array()
        n = self.random.choice((2, 3))
        if not shape:
            return None
        return f"= split({x}, {n})[0]", [shape[0] // n, *shape[1:]] if shape[0] % n == 0 else None

    def pattern(self):
        x, shape = self.array()
        if not shape:
            return None
        return f"let p{len(self.lines)}, q{len(self.lines)} = {x}", () if shape[0] == 2 else None

    def called(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        return x and (f"= both({x}, {y})", a if a == b else None)

    def other_calls(self):
        x, a = self.array(1)
        m, b = self.array(2)
        if not x or not m:
            return None
        return self.random.choice(((f"= rows({m})", b[1:]), (f"= halves({x})", [a[0] // 2] if a[0] % 2 == 0 else None)))

    def stated(self):
        x, a = self.array(1)
        n = self.size()
        return x and (f"= {x} as f32[<{n}>]", a if a == [n] else None)

    def mapped(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        return x and (f"= vmap(fn(a, b) => a * b)({x}, {y})", a if a == b else None)

    def spread(self):
        x, a = self.array(1)
        return x and (f"= pmap(fn(a) => a * 2.0, over=dev)({x})", a if a[0] % 2 == 0 and a[0] > 0 else None)

    def compiled(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        return x and (f"= last({x}, {y})", a if a == b and a[0] > 0 else None)

    def scanned(self):
        (x, a), (y, b) = self.array(2), self.array(1)
        return x and (f"= scan(fn(c, r) => (c + r, sum(c)), {y}, {x})[1]", a[:1] if a[1:] == b else None)

    def zipped(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        return x and (f"= [u - v for u, v in zip({x}, {y})]", a if a == b else None)

    def tangent(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        return x and (f"= jvp(fn(u) => u * u)(({x},), ({y},))[1]", a if a == b else None)

    def masked(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        return x and (f"= {x}[{y} > 2.0]", [max(a[0] - 2, 0)] if a == b and y == "v0" else a if False else None)

    def assigned(self):
        (x, a), (y, b) = self.array(1), self.array(1)
        if not x:
            return None
        n = self.random.randrange(1, a[0] + 1) if a[0] else 1
        fits = b in ([min(n, a[0])], [1])
        number = len(self.lines)
        return (f"var w{number} = {x}\nw{number}[:<{n}>] = {y}\ntell(w{number})", () if fits else None)

    def squeezed(self):
        x, shape = self.array(2)
        return x and (f"= squeeze({x}, 0)", shape[1:] if shape[0] == 1 else None)

    def gathered(self):
        (x, a), (y, b) = self.array(2), self.array(2)
        if not x or a[1] == 0 or b[1] == 0:
            return None
        return f"= take_along_axis({x}, argmax({y}, axis=1)[:, none] % <{a[1]}>, axis=1)", [a[0], 1] if a[0] == b[0] else None

    KINDS = (part, part, ends, operator, operator, where, joined, stacked, product, einsum, reshaped, cut, pattern, called, other_calls,
             stated, mapped, spread, compiled, scanned, zipped, tangent, assigned, squeezed, gathered)


def codes(errors):
    return re.findall(r"^error\[(U\d{4})\]", errors, re.M)


def problems_of(unisono, _, made, program):
    devices = ["--devices", "cpu:2"]
    expected = seeded.run(unisono, program, devices)
    program.write_text(made.text(opened=True))
    check = subprocess.run([unisono, "check", program.name, *devices], cwd=program.parent, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=sanitizers.limit())
    # `x[1:] + x` is wrong for all sizes, and so before it runs, too.
    certain = expected[0] == 1 and codes(check.stderr) == codes(expected[2])[:1]
    problems = [f"check: status {check.returncode}\n{check.stdout}{check.stderr}"] if check.returncode and not certain else []
    for options in (devices, [*devices, "--reference"]):
        own = seeded.run(unisono, program, options)
        same = own[:2] == expected[:2] if expected[0] == 0 else own[0] == 1 and codes(own[2]) == codes(expected[2])[:1]
        if not same:
            problems.append(f"{options}: status {own[0]}, expected {expected[0]} {codes(expected[2])}\n{own[1]}{own[2]}"
                            f"with literals:\n{expected[1]}{expected[2]}\n{made.text()}")
    return problems


if __name__ == "__main__":
    sys.exit(seeded.main("open_sizes", 40, Program, problems_of))
