#!/usr/bin/env python3
"""Random programs of functions that call themselves and each other, whose answers are Python's: as threaded code, and walked
(--reference). Where one fails, both fail with the same message.

usage: tests/call_programs.py UNISONO [SEED] [--count N]
"""
import argparse
import itertools
import random
import subprocess
import sys
import tempfile

import sanitizers


class Wrong(Exception):
    """What is an error of the program."""


class TooLong(Exception):
    """A program of more calls than a test has time for: two functions that call each other twice have millions."""


def whole(value):
    """An int of the host."""
    if not -2**63 <= value < 2**63:
        raise Wrong("overflow")
    return value


def divided(x, y):
    if y == 0:
        raise Wrong("division by zero")
    return whole(x // y)


def rest(x, y):
    if y == 0:
        raise Wrong("division by zero")
    return x % y


def shifted(x, y):
    if not 0 <= y < 63:
        raise Wrong("shift")
    return whole(x << y)


def ensure(holds):
    if not holds:
        raise Wrong("assertion")


STARTS = (3, 9, 12)
MOST_CALLS = 100_000
NAMES = {"int": "i", "f64": "x", "bool": "b"}


class Program:
    """Functions that take n, which goes down with each call, and values of some types; each gives one."""

    def __init__(self, rng):
        self.rng = rng
        self.ours, self.python = [], []
        self.wild = rng.random() < 0.3  # ints may leave 64 bits
        count = rng.randint(1, 4)
        self.functions = [(f"f{i}", [rng.choice(["int", "int", "f64", "bool"]) for _ in range(rng.randint(0, 3))],
                           rng.choice(["int", "int", "f64", "bool"])) for i in range(count)]
        self.helper = rng.random() < 0.5
        if self.helper:
            self.line(0, "def half(x) = x * 0.5 + 1.0", "def half(x): return x * 0.5 + 1.0")
        self.line(0, "let scale = 3", "scale = 3")
        self.line(0, "let row = [0.5f64, 1.5f64, -2.0f64, 4.25f64]", "row = [0.5, 1.5, -2.0, 4.25]")
        self.line(0, "let grid = reshape(arange(12, f64), (4, 3)) - 5.5f64", "grid = [[3 * i + j - 5.5 for j in range(3)] for i in range(4)]")
        for index in range(count):
            self.function(index)

    def line(self, level, ours, python):
        if ours is not None:
            self.ours.append("  " * level + ours)
        if python is not None:
            self.python.append("    " * level + python)

    # ---- expressions of a function: (ours, Python's)

    def value(self, kind, depth=0):
        return {"int": self.integer, "f64": self.floating, "bool": self.boolean}[kind](depth)

    def called(self, kind, depth):
        """A call of a function that gives `kind`, or nothing."""
        chosen = [f for f in self.functions if f[2] == kind]
        if not chosen or self.calls == 0:
            return None
        self.calls -= 1
        name, params, _ = self.rng.choice(chosen)
        less = self.rng.choice(["n - 1", "n - 2", "n // 2", "n - 3"])
        ours, python = [less], [less]
        for each in params:
            p, q = self.value(each, depth + 1)
            ours.append(p), python.append(q)
        return f"{name}({', '.join(ours)})", f"{name}({', '.join(python)})"

    def local(self, kind):
        names = [name for name, k in self.names if k == kind]
        if not names:
            return None
        name = self.rng.choice(names)
        return name, name

    def integer(self, depth=0):
        pick = self.rng.random()
        if pick < 0.25 or depth > 3:
            return self.local("int") or ("n", "n")
        if pick < 0.35:
            number = self.rng.choice([0, 1, 2, -1, 7, 1000, -3])
            return f"({number})", f"({number})"
        if pick < 0.4:
            return "scale", "scale"
        if pick < 0.6:
            made = self.called("int", depth)
            if made:
                return made
        if pick < 0.68:
            # An int is chosen by what the host knows.
            (c, cc), (p, pp), (q, qq) = self.comparison(depth + 1), self.integer(depth + 1), self.integer(depth + 1)
            return f"(if {c} {{ {p} }} else {{ {q} }})", f"({pp} if {cc} else {qq})"
        (p, pp), (q, qq) = self.integer(depth + 1), self.integer(depth + 1)
        op = self.rng.choice(["+", "-", "*", "//", "%", "maximum", "minimum", "&", "|", "^", "<<", ">>", "abs", "neg"])
        if op in ("abs", "neg"):
            return (f"abs({p})", f"whole(abs({pp}))") if op == "abs" else (f"(-{p})", f"whole(-{pp})")
        if op in ("maximum", "minimum"):
            return f"{op}({p}, {q})", f"{op[:3]}({pp}, {qq})"
        if op in ("//", "%"):
            if not self.wild:
                q = qq = self.rng.choice(["2", "3", "7", "(-5)"])
            return f"({p} {op} {q})", f"{'divided' if op == '//' else 'rest'}({pp}, {qq})"
        if op in ("<<", ">>"):
            number = self.rng.randint(0, 3)
            return (f"(({p} % 512) << {number})", f"shifted(rest({pp}, 512), {number})") if op == "<<" else \
                   (f"({p} >> {number})", f"({pp} >> {number})")
        if self.wild or op in "&|^":
            return f"({p} {op} {q})", f"whole({pp} {op} {qq})"
        return f"(({p} {op} {q}) % 1009)", f"rest(whole({pp} {op} {qq}), 1009)"

    def floating(self, depth=0):
        pick = self.rng.random()
        if pick < 0.3 or depth > 3:
            return self.local("f64") or ("1.5f64", "1.5")
        if pick < 0.45:
            made = self.called("f64", depth)
            if made:
                return made
        if pick < 0.5:
            p, pp = self.integer(depth + 1)
            if self.rng.random() < 0.5:
                shift = self.rng.choice(["", " - 4"])  # from the end
                return f"row[({p}) % 4{shift}]", f"row[({pp}) % 4{shift}]"
            return f"grid[({p}) % 4, n % 3]", f"grid[({pp}) % 4][n % 3]"
        if pick < 0.55:
            p, pp = self.integer(depth + 1)
            return f"f64({p} % 100)", f"float({pp} % 100)"
        if pick < 0.6 and self.helper:
            p, pp = self.floating(depth + 1)
            return f"half({p})", f"half({pp})"
        if pick < 0.65:
            (c, cc), (p, pp), (q, qq) = self.boolean(depth + 1), self.floating(depth + 1), self.floating(depth + 1)
            return f"(if {c} {{ {p} }} else {{ {q} }})", f"({pp} if {cc} else {qq})"
        (p, pp), (q, qq) = self.floating(depth + 1), self.floating(depth + 1)
        factor = self.rng.choice(["0.5", "0.25", "-0.75", "0.1"])
        form = self.rng.randrange(4)
        if form == 0:
            return f"({p} * {factor} + {q})", f"({pp} * {factor} + {qq})"
        if form == 1:
            return f"({p} / ({q} * {q} + 1.0))", f"({pp} / ({qq} * {qq} + 1.0))"
        if form == 2:
            return f"sqrt(abs({p}))", f"abs({pp}) ** 0.5"
        return f"(-{p} - {q})", f"(-{pp} - {qq})"

    def boolean(self, depth=0):
        pick = self.rng.random()
        if pick < 0.15 or depth > 3:
            return self.local("bool") or ("n > 3", "n > 3")
        if pick < 0.25:
            made = self.called("bool", depth)
            if made:
                return made
        if pick < 0.45:
            (p, pp), (q, qq) = self.boolean(depth + 1), self.boolean(depth + 1)
            word = self.rng.choice(["and", "or"])
            return f"({p} {word} {q})", f"({pp} {word} {qq})"
        if pick < 0.52:
            p, pp = self.boolean(depth + 1)
            return f"(not {p})", f"(not {pp})"
        return self.comparison(depth)

    def comparison(self, depth):
        (p, pp), (q, qq) = self.integer(depth + 1), self.integer(depth + 1)
        compare = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"({p} {compare} {q})", f"({pp} {compare} {qq})"

    # ---- functions

    def function(self, index):
        name, params, result = self.functions[index]
        self.names = [(f"{NAMES[kind]}{i}", kind) for i, kind in enumerate(params)]
        ours = ", ".join(["n: int"] + [f"{p}: {kind}" for p, kind in self.names])
        self.line(0, f"def {name}({ours}) -> {result} {{", f"def {name}({', '.join(['n'] + [p for p, _ in self.names])}):")
        self.line(1, None, "enter()")
        self.calls = 0
        p, q = self.value(result, 2)
        self.line(1, f"if n <= 0 {{ {p} }} else {{", f"if n <= 0: return {q}")
        self.calls = 2
        for i in range(self.rng.randint(0, 3)):
            self.statement(i)
        p, q = self.value(result)
        if self.rng.random() < 0.3:
            c, cc = self.comparison(2)
            other, theirs = self.value(result, 2)
            self.line(2, f"if {c} {{ {p} }} else {{ {other} }}", None)
            self.line(1, None, f"return {q} if {cc} else {theirs}")
        else:
            self.line(2, p, None)
            self.line(1, None, f"return {q}")
        self.line(1, "}", None)
        self.line(0, "}", None)

    def statement(self, i):
        pick = self.rng.random()
        if pick < 0.42:
            kind = self.rng.choice(["int", "f64", "bool"])
            p, q = self.value(kind, 1)
            self.line(2, f"let t{i} = {p}", None)
            self.line(1, None, f"t{i} = {q}")
            self.names.append((f"t{i}", kind))
        elif pick < 0.54:
            p, q = self.integer(2)
            self.line(2, f'print("{{n}} {{{p}}}")', None)
            self.line(1, None, f'out.append(f"{{n}} {{{q}}}")')
        elif pick < 0.64:
            bound = self.rng.choice(["n > 0", "n < 100", "n != 4", "n <= 11"])
            self.line(2, f'assert({bound}, "n is {{n}}")', None)
            self.line(1, None, f"ensure({bound})")
        elif pick < 0.8:
            self.loop(i)
        else:
            (p, pp), (q, qq), (c, cc) = self.start(), self.floating(2), self.boolean(2)
            self.line(2, f"var v{i} = {p}", None)
            self.line(2, f"if {c} {{ v{i} = v{i} * 0.5 + {q} }}", None)
            self.line(1, None, f"v{i} = {pp}")
            self.line(1, None, f"if {cc}: v{i} = v{i} * 0.5 + {qq}")
            self.names.append((f"v{i}", "f64"))

    def start(self):
        """What a variable begins with: a float, or a number that takes its type from what the variable meets."""
        if self.rng.random() < 0.5:
            return self.floating(2)
        number = self.rng.choice(["0.0", "0.5", "0.1", "-2.0", "3.0"])
        return number, number

    def loop(self, i):
        """A loop of a few turns. Its counter is an element, which meets only what the check knows of elements."""
        p, pp = self.start()
        self.line(2, f"var s{i} = {p}", None)
        self.line(1, None, f"s{i} = {pp}")
        self.names.append((f"s{i}", "f64"))
        k = f"k{i}"
        if self.rng.random() < 0.3:
            self.line(2, f"var {k} = n % 4", None)
            self.line(1, None, f"{k} = n % 4")
            self.line(2, f"while {k} > 0 {{", None)
            self.line(1, None, f"while {k} > 0:")
            self.line(3, f"{k} -= 1", None)
            self.line(2, None, f"{k} -= 1")
        else:
            count = self.rng.choice(["3", "n % 4", "n, n - 3, -1", "1, minimum(n, 6), 2", "4, 4", "-2, 2"])
            self.line(2, f"for {k} in range({count}) {{", None)
            self.line(1, None, f"for {k} in range({count.replace('minimum', 'min')}):")
        for _ in range(self.rng.randint(1, 3)):
            form = self.rng.randrange(5)
            q, qq = self.floating(2)
            if form == 0:
                self.line(3, f"s{i} = s{i} * 0.5 + f64({k}) * ({q})", None)
                self.line(2, None, f"s{i} = s{i} * 0.5 + float({k}) * ({qq})")
            elif form == 1:
                self.line(3, f"if {k} % 2 == 0 {{ s{i} = s{i} - {q} }} else {{ s{i} += 0.25 }}", None)
                self.line(2, None, f"s{i} = s{i} - {qq} if {k} % 2 == 0 else s{i} + 0.25")
            elif form == 2:
                self.line(3, f'print("{{n}} {{{k}}} {{s{i}:.6e}}")', None)
                self.line(2, None, f'out.append(f"{{n}} {{{k}}} {{s{i}:.6e}}")')
            elif form == 3:
                self.line(3, f"for j in range(2) {{ s{i} = s{i} * 0.75 - f64(j) }}", None)
                self.line(2, None, f"for j in range(2): s{i} = s{i} * 0.75 - float(j)")
            else:
                self.line(3, f"let u = s{i} - {q}", None)
                self.line(3, f"s{i} = u * 0.5", None)
                self.line(2, None, f"s{i} = (s{i} - {qq}) * 0.5")
        self.line(2, "}", None)

    def loops(self):
        """Loops at top level that call the functions: lines of ours, and of Python's."""
        for name, params, result in self.functions:
            n, turns = self.rng.choice(STARTS), self.rng.choice([9, 20])
            ours = {"int": f"n{name}", "f64": "f64(k) * 0.25", "bool": "k % 2 == 0"}
            theirs = {"int": str(n), "f64": "k * 0.25", "bool": "k % 2 == 0"}
            mine = f"{name}({', '.join([f'n{name}'] + [ours[p] for p in params])})"
            python = f"{name}({', '.join([str(n)] + [theirs[p] for p in params])})"
            a, b = [f"let n{name} = int(clock() * 0.0) + {n}", "var t = 0.5f64", "var k = 0"], ["t, k = 0.5, 0"]
            if self.rng.random() < 0.5:
                head, end = f"for i in range({turns}) {{", f"for i in range({turns}):"
            else:
                head, end = f"while k < {turns} {{", f"while k < {turns}:"
            a.append(head), b.append(end)
            step = {"int": ("t = t * 0.5 + f64(r % 100)", "t = t * 0.5 + float(r % 100)"), "f64": ("t = t * 0.5 + r * 0.25", "t = t * 0.5 + r * 0.25"),
                    "bool": ("if r { t = t * 0.5 + f64(k) } else { t -= 0.25 }", "t = t * 0.5 + float(k) if r else t - 0.25")}[result]
            a += [f"  let r = {mine}", f"  {step[0]}"]
            b += [f"  r = {python}", f"  {step[1]}"]
            if self.rng.random() < 0.4:
                a.append('  print("{k} {t:.12e}")')
                b.append('  out.append(f"{k} {t:.12e}")')
            a += ["  k += 1", "}", 'print("{k} {t:.12e}")']
            b += ["  k += 1", 'out.append(f"{k} {t:.12e}")']
            yield a, b

    # ---- the whole

    def run(self):
        """The program, what it prints, and whether it ends with an error."""
        out, calls = [], itertools.count(1)

        def enter():
            if next(calls) > MOST_CALLS:
                raise TooLong
        space = {"out": out, "enter": enter, "whole": whole, "divided": divided, "rest": rest, "shifted": shifted, "ensure": ensure}
        exec("\n".join(self.python), space)
        number = {"int": "5", "f64": "0.75f64", "bool": "true"}
        theirs = {"int": 5, "f64": 0.75, "bool": True}
        lines = []
        loops = self.loops()
        try:
            for name, params, result in self.functions:
                for n in STARTS:  # which the check does not know
                    call = f"{name}({', '.join([f'int(clock() * 0.0) + {n}'] + [number[p] for p in params])})"
                    lines.append('print("{' + call + ':.12e}")' if result == "f64" else f"print({call})")
                    got = space[name](n, *[theirs[p] for p in params])
                    out.append(str(got).lower() if result == "bool" else f"{got:.12e}" if result == "f64" else str(got))
            for ours, theirs in loops:
                lines += ours
                exec("\n".join(theirs), space)
        except Wrong:
            return "\n".join(self.ours + lines) + "\n", out, True
        return "\n".join(self.ours + lines) + "\n", out, False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("unisono")
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failed, errors, too_long = False, 0, 0
    for each in range(options.count):
        try:
            text, wanted, is_error = Program(random.Random(options.seed + each)).run()
        except TooLong:
            too_long += 1
            continue
        errors += is_error
        with tempfile.NamedTemporaryFile("w", suffix=".uni") as file:
            file.write(text)
            file.flush()
            ran = [subprocess.run([options.unisono, "run", *more, file.name], capture_output=True,
                                  text=True, timeout=sanitizers.limit()) for more in ([], ["--reference"])]
        problem = ""
        # Ints that are known when a program is checked are computed then, on either side of an `if` whose condition is not:
        # Python may never come there.
        early = all(one.returncode and not one.stdout and one.stderr.startswith(("error[U0501]", "error[U0304]")) for one in ran)
        if early and not is_error and ran[0].stderr == ran[1].stderr:
            continue
        for one in ran:
            got = one.stdout.splitlines()
            # What is certain to fail fails when it is checked, and prints nothing.
            if (one.returncode != 0) != is_error or got != wanted and not (is_error and not got):
                first = next((i for i, (g, w) in enumerate(zip(got, wanted)) if g != w), min(len(got), len(wanted)))
                problem = (f"line {first + 1} of {len(wanted)}:\n  {got[first] if first < len(got) else '(none)'}\n"
                           f"  {wanted[first] if first < len(wanted) else '(none)'} in Python\n{one.stderr[:1500]}")
        if not problem and ran[0].stderr != ran[1].stderr:
            problem = f"{ran[0].stderr}walked:\n{ran[1].stderr}"
        if problem:
            failed = True
            print(f"seed {options.seed + each}: {problem}")
            if options.show:
                print(text)
    print(f"{options.count} programs, {errors} of them with an error, {too_long} too long to be run")
    sys.exit(failed)


if __name__ == "__main__":
    main()
