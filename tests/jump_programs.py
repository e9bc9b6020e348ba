#!/usr/bin/env python3
"""Random programs of `break`, `continue` and `return`, whose answers are Python's: walked (--reference), as threaded code, as loops
of the host that go on as code, and compiled by jit, vmap and pmap.

usage: tests/jump_programs.py UNISONO [FIRST [COUNT]]
"""
import random
import sys

import seeded

MEMBERS = 6


class Made:
    """A program in both languages. Numbers stay below MODULUS, so that no element type overflows."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.ours, self.theirs = [], []
        names = []
        for i in range(3):
            names.append(self.function(f"f{i}", prints=False))
        shown = self.function("shown", prints=True)
        for name in names:
            self.ours.append(f"print([{name}(i32(k)) for k in range({MEMBERS})])")
            self.ours.append(f"for k in range({MEMBERS}) {{ print({name}(k)) }}")
            self.ours.append(f"print(jit({name})(i32(2)), vmap({name})(arange({MEMBERS})), pmap({name})(arange({MEMBERS})))")
            self.theirs.append(f"out += [row([{name}(k) for k in range({MEMBERS})])] + [str({name}(k)) for k in range({MEMBERS})]")
            self.theirs.append(f"out.append(str({name}(2)) + ' ' + row([{name}(k) for k in range({MEMBERS})]) + ' ' + row([{name}(k) for k in range({MEMBERS})]))")
        for k in range(3):
            self.ours.append(f"print({shown}({k}))")
            self.theirs.append(f"out.append(str({shown}({k})))")
        self.script()

    def text(self):
        return "\n".join(self.ours) + "\n"

    def wanted(self):
        space = {"out": [], "row": row}
        exec("\n".join(self.theirs), space)
        return space["out"]

    # ---- numbers and conditions over the variables in scope
    def number(self, scope):
        kind = self.random.randrange(4)
        a, b = self.random.choice(scope), self.random.choice(scope)
        if kind == 0:
            return str(self.random.randrange(30))
        if kind == 1:
            return a
        if kind == 2:
            return f"({a} * {self.random.randrange(2, 7)} + {b}) % 97"
        return f"({a} + {b} + {self.random.randrange(9)}) % 89"

    def condition(self, scope):
        a, b = self.random.choice(scope), self.random.choice(scope)
        kind = self.random.randrange(4)
        if kind == 0:
            return f"{a} % {self.random.randrange(2, 6)} == {self.random.randrange(2)}"
        if kind == 1:
            return f"{a} > {self.random.randrange(40)}"
        if kind == 2:
            return f"{a} < {b}"
        return f"{a} % 3 == 1 {self.random.choice(['and', 'or'])} {b} > {self.random.randrange(30)}"

    # ---- statements; each adds lines of both languages
    def line(self, depth, ours, theirs=None):
        self.ours.append("  " * depth + ours)
        self.theirs.append("  " * depth + (ours if theirs is None else theirs))

    def close(self, depth):
        self.ours.append("  " * depth + "}")

    def block(self, depth, scope, loops, returns, prints, size=None):
        self.theirs.append("  " * depth + "pass")
        count = self.random.randint(1, 3) if size is None else size
        for i in range(count):
            self.statement(depth, scope, loops, returns, prints, last=i == count - 1)

    def jump(self, depth, scope, loops, returns):
        kinds = (["break", "continue"] if loops else []) + (["return"] if returns else [])
        if not kinds:
            return
        kind = self.random.choice(kinds)
        self.line(depth, kind if kind != "return" else f"return {self.random.choice(scope)} + {self.random.randrange(9)}")

    def statement(self, depth, scope, loops, returns, prints, last):
        variables = [name for name in scope if name.startswith("v")]
        choice = self.random.random()
        deep = depth > 3
        if prints and choice < 0.15:
            return self.line(depth, f"print({variables[0]})", f"out.append(str({variables[0]}))")
        if choice < 0.3 or deep and choice < 0.75:
            return self.line(depth, f"{self.random.choice(variables)} = {self.number(scope)}")
        if choice < 0.65 or deep:
            return self.choice(depth, scope, loops, returns, prints)
        if last and choice < 0.7 and (loops or returns):
            return self.jump(depth, scope, loops, returns)
        self.loop(depth, scope, returns, prints)

    def choice(self, depth, scope, loops, returns, prints):
        condition = self.condition(scope)
        self.line(depth, f"if {condition} {{", f"if {condition}:")
        if self.random.random() < 0.6:
            self.theirs.append("  " * (depth + 1) + "pass")
            self.jump(depth + 1, scope, loops, returns)
        else:
            self.block(depth + 1, scope, loops, returns, prints)
        while self.random.random() < 0.3:
            condition = self.condition(scope)
            self.line(depth, f"}} else if {condition} {{", f"elif {condition}:")
            self.block(depth + 1, scope, loops, returns, prints)
        if self.random.random() < 0.35:
            self.line(depth, "} else {", "else:")
            self.block(depth + 1, scope, loops, returns, prints)
        self.close(depth)

    def loop(self, depth, scope, returns, prints):
        name = f"k{depth}"
        kind = self.random.randrange(5)
        if kind == 0:
            counter = f"w{depth}"
            self.line(depth, f"var {counter} = i32(0)", f"{counter} = 0")
            most = self.random.randint(1, 7)
            self.line(depth, f"while {counter} < {most} {{", f"while {counter} < {most}:")
            self.line(depth + 1, f"{counter} += 1")
            name = counter
        elif kind == 1:
            items = ", ".join(str(self.random.randrange(20)) for _ in range(3))
            self.line(depth, f"for {name} in ({items}) {{", f"for {name} in ({items}):")
        elif kind == 2:
            items = ", ".join(str(self.random.randrange(50)) for _ in range(4))
            self.line(depth, f"for {name} in [{items}] {{", f"for {name} in [{items}]:")
        else:
            bounds = self.random.choice(["5", "1, 12, 3", "9, 0, -2", "0", f"{scope[0]} % 7"])
            self.line(depth, f"for {name} in range({bounds}) {{", f"for {name} in range({bounds}):")
        self.block(depth + 1, scope + [name], True, returns, prints, self.random.randint(1, 4))
        self.close(depth)

    def function(self, name, prints):
        self.line(0, f"def {name}(x) {{", f"def {name}(x):")
        self.line(1, "var v0 = i32(x)", "v0 = x")
        self.line(1, "var v1 = i32(x * 3 + 1)", "v1 = x * 3 + 1")
        self.block(1, ["x", "v0", "v1"], False, True, prints, self.random.randint(2, 4))
        self.line(1, "(v0 + v1) % 101", "return (v0 + v1) % 101")
        self.close(0)
        return name

    def script(self):
        """Loops outside of functions, which are long enough to go on as code."""
        self.line(0, "var v0 = 3", "v0 = 3")
        self.line(0, "var v1 = 5", "v1 = 5")
        for i in range(2):
            stop = self.random.choice([40, 3000])
            self.line(0, f"for k in range({stop}) {{", f"for k in range({stop}):")
            self.block(1, ["v0", "v1", "k"], True, False, prints=stop == 40, size=3)
            self.close(0)
            self.line(0, "print(v0, v1)", "out.append(f'{v0} {v1}')")
        self.line(0, "var w = 0", "w = 0")
        self.line(0, "while true {", "while True:")
        self.line(1, "w += 1")
        limit = self.random.choice([20, 2500])
        self.line(1, f"if w > {limit} {{ break }}", f"if w > {limit}: break")
        self.block(1, ["v0", "v1", "w"], True, False, prints=False, size=2)
        self.close(0)
        self.line(0, "print(v0, v1, w)", "out.append(f'{v0} {v1} {w}')")


def row(numbers):
    width = max(len(str(n)) for n in numbers)
    return "[" + " ".join(str(n).rjust(width) for n in numbers) + "]"


def problems_of(unisono, seed, made, program):
    wanted = made.wanted()
    out = []
    at_once = {"UNISONO_COMPILE_FROM": "0"}  # all that can be code is, however short
    for options, environment in ((["--devices", "cpu:3"], {}), (["--devices", "cpu:3"], at_once), (["--reference", "--devices", "cpu:3"], {})):
        status, output, errors = seeded.run(unisono, program, options, environment)
        got = output.splitlines()
        if status or got != wanted:
            first = next((i for i, (g, w) in enumerate(zip(got, wanted)) if g != w), min(len(got), len(wanted)))
            out.append(f"{' '.join(options)} {environment or ''}: line {first + 1} of {len(wanted)}: {got[first] if first < len(got) else '(none)'}, "
                       f"{wanted[first] if first < len(wanted) else '(none)'} in Python\n{errors[:1500]}")
    return out


if __name__ == "__main__":
    sys.exit(seeded.main("jump", 40, Made, problems_of))
