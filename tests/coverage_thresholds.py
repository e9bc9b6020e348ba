"""The thresholds of runtime/tuning/tuning.def, and whether tests take both sides of each, as tests/coverage.py counts them. Of a row, these
are the conditions that ask for it:
* the innermost condition, or operand of `&&` and `||`, that `tuning().row` stands in;
* where a bool is made of it, or a variable that has its value, or a function returns a bool of it: those that ask for that;
* what tests/coverage_thresholds.txt names: conditions elsewhere, and rows that no condition asks for, with reasons.
That file also has the rows of which one side is not taken, with reasons: tests/thresholds.py tells of it, and here it is measured.
"""
import bisect
import collections
import pathlib
import re
import sys

from coverage_counts import ROOT, never

ROW = re.compile(r"^THRESHOLD\(\w+, (\w+),", re.M)
READ = re.compile(r"\btuning\(\)\s*\.(\w+)")
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
        """Of the scope of what the statement around a place declares: where a brace closes further left."""
        indent = self.at(offset - len(self.before(offset).lstrip()))[1] - 1
        match = re.compile(rf"^ {{0,{max(indent - 1, 0)}}}\}}", re.M).search(self.text, offset)
        return match.start() if match else len(self.text)

    def function(self, offset):
        """The name of the function around a place that returns a bool, or None."""
        for line in reversed(self.lines[:self.at(offset)[0] - 1]):
            if match := re.match(r"(?:  )?(?:static |inline )?([\w:<>*&,]+ (?:\w+ )*?)?([\w:]+)\((?!.*;$)", line):
                if match[1] and match[1].split()[0] not in ("return", "else", "const"):
                    return match[2].split("::")[-1] if match[1].split()[0] == "bool" else None
        return None


class Finder:
    def __init__(self, top, branches):
        self.places = collections.defaultdict(dict)  # of each file
        for (_, file), places in branches.items():
            self.places[file].update({place: sides for place, sides in places.items() if not place.macro})
        paths = [path for floor in FLOORS for path in sorted((top / floor).rglob("*")) if path.suffix in (".cpp", ".h")]
        self.texts = {str(path.relative_to(top)): Text(path.read_text()) for path in paths if path.parent.name != "tuning"}
        self.reads = collections.defaultdict(list)  # of each row
        for file, text in self.texts.items():
            for match in READ.finditer(text.text):
                self.reads[match[1]].append((file, match))

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
        for file, match in self.reads[row]:
            conditions = self.conditions(file, match.start(), match.end())
            found.update(conditions)
            if not conditions:
                others.append(f"{file}:{self.texts[file].at(match.start())[0]}")
        return found, others

    def named(self, row, file, words):
        """The conditions of a line that coverage_thresholds.txt names."""
        lines = [number for number, line in enumerate(self.texts[file].lines, 1) if line.strip() == words] if file in self.texts else []
        found = {(file, place) for place in self.places[file] if place.line in lines}
        if not found:
            sys.exit(f"tests/coverage_thresholds.txt: {row}: {file} has no condition in a line `{words}`")
        return found


def told():
    """What tests/coverage_thresholds.txt has: {row: why no condition asks for it}, {row: [(file, line), ...]}, {row: why one side is not
    taken}."""
    no_question, elsewhere, one_side = {}, collections.defaultdict(list), {}
    for line in (ROOT / "tests/coverage_thresholds.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        row, *words = line.split(" | ")
        if len(words) == 1:
            no_question[row] = words[0]
        elif words[0] == "one side":
            one_side[row] = words[1]
        else:
            elsewhere[row].append(tuple(words))
    return no_question, elsewhere, one_side


def report(top, branches):
    """Prints what is not as tests/coverage_thresholds.txt says, and the counts. Whether all is."""
    finder, (no_question, elsewhere, one_side) = Finder(top, branches), told()
    rows = ROW.findall((top / "runtime/tuning/tuning.def").read_text())
    problems, both = [], 0
    for row in rows:
        conditions, others = finder.of_row(row)
        for file, line in elsewhere[row]:
            conditions |= finder.named(row, file, line)
        if row in no_question:
            problems += [f"{row}: {file}:{place.line} asks for it" for file, place in conditions]
            continue
        if not conditions:
            problems.append(f"{row}: no condition asks for it: {', '.join(others)}")
        left = [(file, place) for file, place in sorted(conditions) if never(finder.places[file][place])]
        if row not in one_side:
            problems += [f"{row}: {file}:{place.line}:{place.column}: never {' nor '.join(never(finder.places[file][place]))}: "
                         f"{finder.texts[file].lines[place.line - 1].strip()}" for file, place in left]
        elif not left:
            problems.append(f"{row}: both sides are taken")
        both += bool(conditions) and not left
    print("\n".join(problems))
    print(f"{len(rows)} thresholds: of {both} tests take both sides, {len(no_question)} no branch asks for, of {len(one_side)} they take one side, with a reason")
    return not problems
