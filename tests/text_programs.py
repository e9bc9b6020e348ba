#!/usr/bin/env python3
"""Random programs of loops that read and build text, whose answers are Python's: as loops of the host that go on as code, and
walked by the reference evaluator. Some texts have characters beyond ASCII, some loops end with an error.

usage: tests/text_programs.py UNISONO [FIRST [COUNT]]
"""
import random
import sys

import seeded

WORDS = ("alpha", "Beta", "12", "x7", "(a+b)", "  ", "Zz", "9", "end.", "tab\t", "\"q\"")
WIDE = ("é", "€uro", "Straße", "日本")


class Program:
    def __init__(self, rng):
        self.rng = rng
        words = [rng.choice(WORDS) for _ in range(rng.randint(3, 12))]
        if rng.random() < 0.25:
            words.insert(rng.randint(0, len(words)), rng.choice(WIDE))
        self.source = " ".join(words)
        self.lines, self.python = [], []
        self.level = 0
        self.add(f"let text = {self.quoted(self.source)}", f"text = {self.source!r}")
        self.add("var n = 0", "n = 0")
        self.add("var h = 7i64", "h = 7")
        self.add('var s = "<"', 's = "<"')
        self.add('var t = ""', 't = ""')
        self.add("var seen = zeros(128, i32)", "seen = [0] * 128")
        for _ in range(rng.randint(1, 3)):
            self.loop()
        self.add('print(n, h)', 'print(n, h)')
        self.add('print("{s}|{t}|{len(s)} {len(t)}")', 'print(f"{s}|{t}|{len(s)} {len(t)}")')
        self.add('print(sum(seen), seen[97], seen[48])', 'print(sum(seen), seen[97], seen[48])')

    @staticmethod
    def quoted(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'

    def add(self, ours, python):
        self.lines.append("  " * self.level + ours)
        self.python.append("    " * self.level + python)

    def block(self, ours, python, depth):
        self.add(ours + " {", python + ":")
        self.level += 1
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth + 1)
        self.level -= 1
        self.add("}", "pass")

    def loop(self):
        self.character = "c"
        pick = self.rng.random()
        if pick < 0.6:
            self.block("for c in text", "for c in text", 0)
        elif pick < 0.8:
            self.add("for i in range(len(text)) {", "for i in range(len(text)):")
            self.level += 1
            self.add("let c = text[i]", "c = text[i]")
            for _ in range(self.rng.randint(1, 4)):
                self.statement(1)
            self.level -= 1
            self.add("}", "pass")
        else:
            self.character = None
            turns = self.rng.randint(2, 40)
            self.block(f"for i in range({turns})", f"for i in range({turns})", 0)

    def condition(self):
        if self.character is None:
            k = self.rng.randint(2, 5)
            return f"i % {k} == 0", f"i % {k} == 0"
        return self.rng.choice([
            ('c >= "a" and c <= "z"', 'c >= "a" and c <= "z"'), ('c == " "', 'c == " "'), ('isdigit(c)', 'c.isdigit()'),
            ('c in "aeiou12"', 'c in "aeiou12"'), ('isalpha(c)', 'c.isalpha()'), ('isupper(c)', 'c.isupper()'),
            ('isspace(c)', 'c.isspace()'), ('isalnum(c)', 'c.isalnum()'), ('ord(c) % 3 == 1', 'ord(c) % 3 == 1'),
            ('upper(c) != c', 'c.upper() != c'), ('c != "b"', 'c != "b"'), ('islower(c)', 'c.islower()')])

    def piece(self):
        if self.character is None:
            return self.rng.choice([("str(i)", "str(i)"), ('"{i}-"', 'f"{i}-"'), ('"{i:03d} "', 'f"{i:03d} "'), ('"ab"', '"ab"')])
        return self.rng.choice([
            ("c", "c"), ("upper(c)", "c.upper()"), ("lower(c)", "c.lower()"), ('"{n}{c}"', 'f"{n}{c}"'), ('"."', '"."'),
            ("chr((ord(c) + 3) % 94 + 33)", "chr((ord(c) + 3) % 94 + 33)"), ("str(ord(c))", "str(ord(c))")])

    def statement(self, depth):
        pick = self.rng.random()
        if pick < 0.25 and depth < 3:
            ours, python = self.condition()
            self.block(f"if {ours}", f"if {python}", depth)
            if self.rng.random() < 0.4:
                self.lines[-1] += " else {"
                self.python[-1] = "    " * self.level + "else:"
                self.level += 1
                self.statement(depth + 1)
                self.level -= 1
                self.add("}", "pass")
        elif pick < 0.55:
            name = self.rng.choice("st")
            ours, python = self.piece()
            more, also = self.piece()
            form = self.rng.random()
            if form < 0.6:
                self.add(f"{name} += {ours}", f"{name} += {python}")
            elif form < 0.9:
                self.add(f"{name} = {name} + {ours} + {more}", f"{name} = {name} + {python} + {also}")
            else:
                self.add(f"{name} = {more} + {name}", f"{name} = {also} + {name}")
        elif pick < 0.65:
            self.add("n += 1", "n += 1")
        elif pick < 0.7:
            self.add('print("{n} {h}")', 'print(f"{n} {h}")')
        elif pick < 0.73:
            self.add("n += len(s)", "n += len(s)")
        elif self.character is None:
            self.add("h = (h * 31 + i) % 1000003", "h = (h * 31 + i) % 1000003")
        elif pick < 0.85:
            self.add("h = (h * 31 + ord(c)) % 1000003", "h = (h * 31 + ord(c)) % 1000003")
        elif pick < 0.93:
            self.add("seen[ord(c) % 128] += 1", "seen[ord(c) % 128] += 1")
        elif pick < 0.99:
            self.add("if isdigit(c) { n += int(c) }", 'if c.isdigit(): n += int(c)')
        else:
            self.add("n += int(c)", "n += int(c)")

    def text(self):
        return "\n".join(self.lines) + "\n"

    def answer(self):
        """What Python prints, and whether it ends without an error."""
        out = []
        names = {"print": lambda *parts: out.append(" ".join(map(str, parts)))}
        try:
            exec("\n".join(self.python), names)
        except (ValueError, IndexError):
            return out, False
        return out, True


def problems_of(unisono, seed, made, program):
    wanted, ends_well = made.answer()
    problems = []
    for options in ([], ["--reference"]):
        status, output, errors = seeded.run(unisono, program, options)
        if output.splitlines() != wanted or (status == 0) != ends_well:
            got = output.splitlines()
            first = next((i for i, (g, w) in enumerate(zip(got, wanted)) if g != w), min(len(got), len(wanted)))
            problems.append(f"{options} line {first + 1}: {got[first:first + 1]}, in Python {wanted[first:first + 1]} {errors[:600]}")
    return problems


if __name__ == "__main__":
    sys.exit(seeded.main("text", 24, lambda seed: Program(random.Random(seed)), problems_of))
