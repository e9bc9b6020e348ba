#!/usr/bin/env python3
"""The thresholds of runtime/tuning/tuning.def of which the tests take one side alone.

usage: tests/coverage_thresholds.py FOLDER [--all]

FOLDER is what tests/coverage.py takes. For each row, the conditions that ask for it, and whether the tests took both sides of each:
* the innermost condition, or operand of `&&` and `||`, that `tuning().row` stands in;
* where a bool is made of it, or a variable that has its value, or a function returns a bool of it: those that ask for that;
* what tests/coverage_thresholds.txt names: conditions elsewhere, and rows that are no question, with reasons.
Exit status 1: a row has a side that no test takes and no reason in tests/coverage_left.txt, or is read where it decides nothing and
tests/coverage_thresholds.txt does not know it. --all lists all rows.
"""
import bisect
import collections
import pathlib
import re
import sys

import coverage

ROW = re.compile(r"^THRESHOLD\(\w+, (\w+),", re.M)
FLOORS = ("jit", "runtime", "lang", "host")
# `const bool name = `, and what has the value itself: `const int64_t name = tuning().row;`.
MADE = re.compile(r"\s*(?:const )?bool (\w+) =[^=]")
SAME = re.compile(r"\s*(?:const )?[\w:]+ (\w+)(?: = |\()$")


class Text:
    """A file's text, with places as lines and columns."""

    def __init__(self, text):
        self.text = re.sub(r"//[^\n]*", lambda match: " " * len(match[0]), text)
        self.lines = text.splitlines()
        self.starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def at(self, offset):
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def before(self, offset):
        """What its statement has before a place."""
        return self.text[max(self.text.rfind(mark, 0, offset) for mark in ";{}") + 1:offset]

    def end(self, offset):
        """Of the function or class around a place."""
        match = re.compile(r"^[^\s{]*\}", re.M).search(self.text, offset)
        return match.start() if match else len(self.text)

    def function(self, offset):
        """The name of the function around a place that returns a bool, or None."""
        for line in reversed(self.lines[:self.at(offset)[0] - 1]):
            if match := re.match(r"(?:  )?(?:static |inline )?([\w:<>*&,]+ (?:\w+ )*?)?([\w:]+)\((?!.*;$)", line):
                if match[1] and match[1].split()[0] not in ("return", "else", "const"):
                    return match[2].split("::")[-1] if match[1].split()[0] == "bool" else None
        return None


class Finder:
    def __init__(self, folder):
        self.top = coverage.source(folder)
        self.places = collections.defaultdict(dict)  # of each file
        for (_, file), places in coverage.branches(folder, coverage.merged(folder)).items():
            self.places[file].update({place: sides for place, sides in places.items() if not place.macro})
        paths = [path for floor in FLOORS for path in sorted((self.top / floor).rglob("*")) if path.suffix in (".cpp", ".h")]
        self.texts = {str(path.relative_to(self.top)): Text(path.read_text()) for path in paths if path.parent.name != "tuning"}

    def conditions(self, file, offset, end, depth=0):
        """(file, Place) of those that ask for what stands there in a file."""
        text, at = self.texts[file], self.texts[file].at(offset)
        inside = [p for p in self.places[file] if (p.line, p.column) <= at < (p.end_line, p.end_column)]
        if inside:
            return [(file, max(inside, key=lambda p: ((p.line, p.column), (-p.end_line, -p.end_column))))]
        if depth == 3:
            return []
        statement = text.before(offset)
        made = MADE.match(statement) or (SAME.match(statement) if re.match(r"\)?;", text.text[end:]) else None)
        if made:
            uses = re.compile(rf"\b{made[1]}\b").finditer(text.text, text.text.find(";", offset), text.end(offset))
            return [found for use in uses for found in self.conditions(file, use.start(), use.end(), depth + 1)]
        if re.match(r"\s*(?:case [\w:]+: )?return\b", statement) and (name := text.function(offset)):
            for files in ([file], self.texts):  # names of a file's own are often those of another's
                found = [one for other in files for use in re.finditer(rf"\b{name}\(", self.texts[other].text)
                         for one in self.conditions(other, use.start(), use.end(), depth + 1)]
                if found:
                    return found
        return []

    def of_row(self, row):
        """Its conditions, and the places that ask for nothing."""
        found, others = set(), []
        for file, text in self.texts.items():
            for match in re.finditer(rf"\btuning\(\)\s*\.{row}\b", text.text):
                conditions = self.conditions(file, match.start(), match.end())
                found.update(conditions)
                if not conditions:
                    others.append(f"{file}:{text.at(match.start())[0]}")
        return found, others

    def named(self, row, file, words):
        """The conditions of a line that coverage_thresholds.txt names."""
        lines = [number for number, line in enumerate(self.texts[file].lines, 1) if line.strip() == words] if file in self.texts else []
        found = {(file, place) for place in self.places[file] if place.line in lines}
        if not found:
            sys.exit(f"tests/coverage_thresholds.txt: {row}: {file} has no condition in a line `{words}`")
        return found


def told():
    """{row: [(file, line), ...] or its reason}"""
    out = {}
    for line in (coverage.ROOT / "tests/coverage_thresholds.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            row, *words = line.split(" | ")
            if len(words) == 1:
                out[row] = words[0]
            else:
                out.setdefault(row, []).append(tuple(words))
    return out


def main():
    words = [word for word in sys.argv[1:] if word != "--all"]
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__.partition("\n\n")[2].strip())
        return 2
    finder, known, excused = Finder(pathlib.Path(words[0]).resolve()), told(), coverage.reasons()
    rows = ROW.findall((finder.top / "runtime/tuning/tuning.def").read_text())
    both, reasons, problems = 0, 0, [f"{row}: tests/coverage_thresholds.txt knows it, tuning.def does not" for row in set(known) - set(rows)]
    for row in rows:
        conditions, others = finder.of_row(row)
        if isinstance(known.get(row), str):
            reasons += 1
            if conditions:
                problems.append(f"{row}: {', '.join(f'{f}:{p.line}' for f, p in conditions)} asks for it")
            continue
        for file, line in known.get(row, ()):
            conditions |= finder.named(row, file, line)
        if not conditions:
            problems.append(f"{row}: no condition asks for it: {', '.join(others)}")
            continue
        one = []
        for file, place in sorted(conditions):
            never = [side for side, count in zip(("true", "false"), finder.places[file][place]) if count == 0]
            line = finder.texts[file].lines[place.line - 1].strip()
            if never and (file, line) not in excused:
                one.append(f"{row}: {file}:{place.line}:{place.column}: never {' nor '.join(never)}: {line}")
            elif "--all" in sys.argv:
                print(f"{row}: {file}:{place.line}:{place.column}: {finder.places[file][place]}: {line}")
        both += not one
        problems += one
    print("\n".join(problems))
    print(f"{len(rows)} thresholds, {both} with both sides taken, {reasons} that are no question")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
