#!/usr/bin/env python3
"""Random programs of loops, choices and updates, whose answers are Python's: walked by the reference evaluator, as loops of the
host that go on as code, and compiled by `jit`.

usage: tests/loop_programs.py UNISONO [--count N] [SEED]
"""
import argparse
import math
import random
import subprocess
import sys
import tempfile

import sanitizers

SIZES = (6, 40, 200)  # of the arrays: compiled loops have them in registers, or in memory


def least(x, y):
    """As `minimum` has it: -0.0 is less than 0.0, where Python's `min` takes the first."""
    return min(x, y, key=lambda z: (z, math.copysign(1, z)))


class Program:
    """The body of one function, in both languages. Its variables: integers a, b and array w (i64), floats x, y and array v
    (f64); integers stay small, so Python's are those of i64."""

    def __init__(self, rng):
        self.rng = rng
        self.ours, self.python = [], []
        self.names = 0
        # One that prints nothing may be one kernel with all its loops, also under vmap; there arrays are in memory.
        self.quiet = rng.random() < 0.6
        self.size = rng.choice(SIZES) + (70 if self.quiet and rng.random() < 0.6 else 0)
        self.counters = []  # of the loops around
        self.work = 0  # turns, about
        self.block(1, depth=0, turns=1, statements=rng.randint(3, 7))
        if self.quiet:
            self.loop(1, 0, 1)

    def line(self, level, ours, python):
        if ours is not None:
            self.ours.append("  " * level + ours)
        if python is not None:
            self.python.append("    " * level + python)

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    # ---- expressions: (ours, Python's)

    def integer(self, depth=0):
        pick = self.rng.random()
        if self.counters and pick < 0.3:
            name = self.rng.choice(self.counters)
            return f"i64({name})", name
        if pick < 0.6 or depth > 2:
            name = self.rng.choice("ab")
            return name, name
        if pick < 0.7:
            index, py = self.index()
            return f"w[{index}]", f"w[{py}]"
        if pick < 0.8:
            number = self.rng.randint(-9, 9)
            return f"({number})", f"({number})"
        (p, pp), (q, qq) = self.integer(depth + 1), self.integer(depth + 1)
        op = self.rng.choice(["+", "-", "*", "//", "%", "maximum", "minimum"])
        if op in "+-*":
            return f"(({p} {op} {q}) % 1009)", f"(({pp} {op} {qq}) % 1009)"
        if op in ("//", "%"):
            divisor = self.rng.choice([2, 3, 7, -5])
            return f"({p} {op} ({divisor}))", f"({pp} {op} ({divisor}))"
        return f"{op}({p}, {q})", f"{op[:3]}({pp}, {qq})"

    def index(self):
        if self.rng.random() < 0.3:
            number = self.rng.randint(-self.size, self.size - 1)
            return str(number), str(number)
        ours, python = self.rng.choice([("a", "a"), ("b", "b")] + [(f"i64({c})", c) for c in self.counters])
        shift = self.rng.randint(0, 4)
        return f"({ours} + {shift}) % {self.size}", f"({python} + {shift}) % {self.size}"

    def floating(self, depth=0):
        pick = self.rng.random()
        if pick < 0.4 or depth > 2:
            name = self.rng.choice("xy")
            return name, name
        if pick < 0.55:
            index, py = self.index()
            return f"v[{index}]", f"v[{py}]"
        if pick < 0.65:
            ours, python = self.integer(depth + 1)
            return f"f64({ours})", f"float({python})"
        (p, pp), (q, qq) = self.floating(depth + 1), self.floating(depth + 1)
        factor = self.rng.choice(["0.5", "0.25", "-0.75", "0.1"])
        form = self.rng.randrange(4)
        if form == 0:
            return f"({p} * {factor} + {q})", f"({pp} * {factor} + {qq})"
        if form == 1:
            return f"sqrt(abs({p}))", f"math.sqrt(abs({pp}))"
        if form == 2:
            return f"minimum({p}, {q} * {factor})", f"least({pp}, {qq} * {factor})"
        return f"({p} / ({q} * {q} + 1.0))", f"({pp} / ({qq} * {qq} + 1.0))"

    def condition(self):
        compare = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        kind = self.integer if self.rng.random() < 0.6 else self.floating
        (p, pp), (q, qq) = kind(1), kind(1)
        ours, python = f"{p} {compare} {q}", f"{pp} {compare} {qq}"
        if self.rng.random() < 0.2:
            word = self.rng.choice(["and", "or"])
            (r, rr) = self.integer(1)
            ours, python = f"{ours} {word} {r} > 3", f"{python} {word} {rr} > 3"
        return ours, python

    # ---- statements

    def block(self, level, depth, turns, statements):
        start = len(self.python)
        for _ in range(statements):
            self.statement(level, depth, turns)
        if len(self.python) == start:
            self.line(level, "a = a", "a = a")

    def statement(self, level, depth, turns):
        pick = self.rng.random()
        if pick < 0.2:
            name = self.rng.choice("ab")
            ours, python = self.integer()
            self.line(level, f"{name} = {ours} % 1009", f"{name} = {python} % 1009")
        elif pick < 0.38:
            name = self.rng.choice("xy")
            ours, python = self.floating()
            self.line(level, f"{name} = {ours} * 0.5", f"{name} = {python} * 0.5")
        elif pick < 0.5:
            (index, at), (ours, python) = self.index(), self.floating()
            self.line(level, f"v[{index}] = {ours} * 0.5", f"v[{at}] = {python} * 0.5")
        elif pick < 0.57:
            (index, at), (ours, python) = self.index(), self.integer()
            self.line(level, f"w[{index}] = {ours} % 1009", f"w[{at}] = {python} % 1009")
        elif pick < 0.61:  # a swap
            (i, at), (j, to) = self.index(), self.index()
            kept = self.name("t")
            self.line(level, f"let {kept} = w[{i}]", f"{kept} = w[{at}]")
            self.line(level, f"w[{i}] = w[{j}]", f"w[{at}] = w[{to}]")
            self.line(level, f"w[{j}] = {kept}", f"w[{to}] = {kept}")
        elif pick < 0.64:  # the whole array
            self.line(level, "v = v * 0.5 + x", "v = [e * 0.5 + x for e in v]")
        elif pick < 0.67:  # another name keeps what the array was
            kept, (index, at) = self.name("o"), self.index()
            self.line(level, f"let {kept} = w", f"{kept} = list(w)")
            self.line(level, f"w[{index}] = {kept}[0] + 1", f"w[{at}] = {kept}[0] + 1")
            self.line(level, f"a = (a + {kept}[{index}]) % 1009", f"a = (a + {kept}[{at}]) % 1009")
        elif pick < 0.7 and self.quiet:
            self.whole_array(level, depth, turns)
        elif pick < 0.72 and turns < 20 and not self.quiet:
            (i, ii), (f, ff) = self.integer(), self.floating()
            self.line(level, f'print("{{{i}}} {{{f}:.9e}}")', f'out.append(f"{{{ii}}} {{{ff}:.9e}}")')
        elif pick < 0.85:
            ours, python = self.condition()
            self.line(level, f"if {ours} {{", f"if {python}:")
            self.block(level + 1, depth, turns, self.rng.randint(1, 3))
            if self.rng.random() < 0.6:
                self.line(level, "} else {", "else:")
                self.block(level + 1, depth, turns, self.rng.randint(1, 3))
            self.line(level, "}", None)
        elif depth < 3 and turns < 2000:
            self.loop(level, depth, turns)

    def whole_array(self, level, depth, turns):
        """Arrays change places, or one is made anew."""
        form = self.rng.randrange(4)
        if form == 0:
            return self.line(level, "(v, u) = (u, v)", "v, u = u, v")
        if form == 1:
            return self.line(level, "u = v", "u = list(v)")
        made, counter = self.name("z"), self.name("i")
        self.line(level, f"var {made} = zeros(f64[{self.size}])", f"{made} = [0.0] * {self.size}")
        if form == 3 and depth < 3 and turns < 2000:
            self.line(level, f"for {counter} in range({self.size}) {{", f"for {counter} in range({self.size}):")
            self.counters.append(counter)
            ours, python = self.floating()
            self.line(level + 1, f"{made}[{counter}] = {ours} * 0.25 + u[{counter}]", f"{made}[{counter}] = {python} * 0.25 + u[{counter}]")
            self.block(level + 1, depth + 1, turns * self.size, 1)
            self.counters.pop()
            self.line(level, "}", None)
        ours, python = self.floating()
        self.line(level, f"{made}[{self.size - 1}] += {ours}", f"{made}[{self.size - 1}] += {python}")
        self.line(level, f"u = {made}", f"u = {made}")

    def loop(self, level, depth, turns):
        pick = self.rng.random()
        if pick < 0.2:  # the rows of what the array is before the loop
            (e, f), form = (self.name("e"), self.name("e")), self.rng.randrange(3)
            ours = (f"{e} in w", f"({e}, {f}) in enumerate(w)", f"({e}, {f}) in zip(w, flip(w))")[form]
            python = (f"{e} in list(w)", f"{e}, {f} in enumerate(list(w))", f"{e}, {f} in zip(list(w), w[::-1])")[form]
            self.line(level, f"for {ours} {{", f"for {python}:")
            names = [e, f] if form else [e]
            self.counters += names
            self.block(level + 1, depth + 1, turns * self.size, self.rng.randint(1, 4))
            del self.counters[-len(names):]
        elif pick < 0.75:
            counter = self.name("i")
            start, count, step = self.rng.randint(-3, 5), self.rng.randint(0, 40), self.rng.choice([1, 1, 1, 2, -1, -3])
            stop = start + count * step
            self.line(level, f"for {counter} in range({start}, {stop}, {step}) {{",
                      f"for {counter} in range({start}, {stop}, {step}):")
            self.counters.append(counter)
            self.block(level + 1, depth + 1, turns * (count + 1), self.rng.randint(1, 4))
            self.counters.pop()
        else:
            left, count = self.name("k"), self.rng.randint(1, 30)
            ours, python = self.condition()
            self.line(level, f"var {left} = {count}", f"{left} = {count}")
            self.line(level, f"while {left} > 0 and ({ours} or {left} > 3) {{", f"while {left} > 0 and ({python} or {left} > 3):")
            self.line(level + 1, f"{left} -= 1", f"{left} -= 1")
            self.block(level + 1, depth + 1, turns * count, self.rng.randint(1, 3))
        self.line(level, "}", None)

    # ---- the whole

    def answers(self):
        """What the body prints, and what is shown of its variables at the end."""
        out = []
        code = ["def program(math, out):", "    a, b, x, y = 3, 14, 1.5, -0.25",
                f"    v = [i * 0.5 for i in range({self.size})]", "    u = [1.0 - e for e in v]", f"    w = [i * 3 - 4 for i in range({self.size})]",
                *self.python, '    out.append(f"{a} {b} {x:.12e} {y:.12e} {sum(u):.12e}")',
                '    out.append(" ".join(f"{e:.12e}" for e in v))', '    out.append(" ".join(str(e) for e in w))']
        space = {"least": least}
        exec("\n".join(code), space)
        space["program"](math, out)
        return out[:-3], out[-3:]

    def text(self, number):
        start = ["var a = 3i64", "var b = 14i64", "var x = 1.5f64", "var y = -0.25f64",
                 f"var v = arange({self.size}, f64) * 0.5", "var u = 1.0 - v", f"var w = arange({self.size}, i64) * 3 - 4"]
        show = ["var total = 0.0f64", "for e in u { total += e }", 'print("{a} {b} {x:.12e} {y:.12e} {total:.12e}")',
                'print("' + " ".join(f"{{v[{i}]:.12e}}" for i in range(self.size)) + '")',
                'print("' + " ".join(f"{{w[{i}]}}" for i in range(self.size)) + '")']
        body = "\n".join(["  " + line for line in start] + self.ours)
        names, result = "(a, b, x, y, v, w, u)", "\n".join("  " + line for line in show) + "\n}\n"
        text = (f"def program{number}() {{\n{body}\n  {names}\n}}\n{{\n{body}\n{result}" +
                "".join(f"{{\n  let {names} = {call}()\n{result}" for call in (f"program{number}", f"jit(program{number})")))
        if self.quiet:
            member = "\n".join(["  " + line for line in start] + ["  a += zero"] + self.ours)
            text += (f"def member{number}(zero: i64) {{\n{member}\n  {names}\n}}\n{{\n  let all = jit(vmap(member{number}))(zeros(i64[3]))\n"
                     "  let (a, b, x, y, v, w, u) = (all.0[1], all.1[1], all.2[1], all.3[1], all.4[1], all.5[1], all.6[1])\n" + result)
        return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("unisono")
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--count", type=int, default=24)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failed = False
    for each in range(options.count):
        program = Program(random.Random(options.seed + each))
        printed, shown = program.answers()
        # What compiled code prints names the device.
        wanted = [*printed, *shown] * 2 + ["[cpu:0] " + line for line in printed] + shown * (2 if program.quiet else 1)
        with tempfile.NamedTemporaryFile("w", suffix=".uni") as file:
            file.write(program.text(each))
            file.flush()
            for more in ([], ["--reference"]):
                ran = subprocess.run([options.unisono, "run", *more, file.name], capture_output=True, text=True,
                                     timeout=sanitizers.limit())
                if ran.returncode != 0 or ran.stdout.splitlines() != wanted:
                    failed = True
                    got = ran.stdout.splitlines()
                    first = next((i for i, (g, w) in enumerate(zip(got, wanted)) if g != w), min(len(got), len(wanted)))
                    print(f"{' '.join(['run', *more])}, seed {options.seed + each}: line {first + 1} of {len(wanted)}:\n"
                          f"  {got[first] if first < len(got) else '(none)'}\n"
                          f"  {wanted[first] if first < len(wanted) else '(none)'} in Python\n{ran.stderr[:1500]}")
                    print(program.text(each) if "--show" in sys.argv else "")
    sys.exit(failed)


if __name__ == "__main__":
    main()
