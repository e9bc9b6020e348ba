#!/usr/bin/env python3
"""The branches of the compiler and the run time that no test takes.

usage: tests/coverage.py FOLDER [--left] [FILE ...]

FOLDER is a build folder with UNISONO_COVERAGE in which the tests have run (`./dev test --coverage` does both). Prints, for each room of
tests/coverage_rooms.txt, how many branches there are and how many the tests took, each side of each condition and each `case` counted;
--left lists the others, of all rooms or of the files. A branch in tests/coverage_left.txt needs no test, for the reason that stands
there. Exit status 1: fewer than 97 % are taken or excused, or a row of coverage_left.txt excuses nothing.

What is counted:
* A branch of a template or of an inline function is one branch, whatever it is instantiated for and wherever: it is taken if one instance
  takes it.
* A branch in a macro, such as the rows of a .def table that are the cases of a switch, is a branch of each place that the macro stands at:
  of the row of the table, or of the line that names the macro.
* A condition that is constant in an instance is no branch there.
* `switch` over an enumeration without `default` has no branch beside its cases: -Wswitch holds it to all values.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WANTED = 97  # % of the branches
CODE, EXPANSION = 0, 1  # kinds of LLVM's regions
Place = collections.namedtuple("Place", "line column end_line end_column macro")  # macro: where in its text, "" outside of macros


def rooms():
    """The rooms whose branches must be taken; and those that count only for thresholds."""
    paragraphs = (ROOT / "tests/coverage_rooms.txt").read_text().split("\n\n")
    return [[line for line in paragraph.splitlines() if not line.startswith("#")] for paragraph in paragraphs]


def source(folder):
    """Of what the folder was built, as lines have moved since, perhaps."""
    return pathlib.Path(re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", (folder / "CMakeCache.txt").read_text())[1])


def merged(folder):
    """All runs' counts in one file. Tests may still run: a file that is written meanwhile is left out."""
    profiles = sorted((folder / "profiles").glob("*.profraw"))
    if not profiles:
        sys.exit(f"tests/coverage.py: no test has run in {folder}")
    listing = folder / "profiles.txt"
    listing.write_text("".join(f"{profile}\n" for profile in profiles))
    out = folder / "tests.profdata"
    subprocess.run(["llvm-profdata-19", "merge", "--sparse", "--failure-mode=warn", f"--input-files={listing}", "-o", str(out)], check=True)
    return out


def objects(folder):
    """The objects that count: each says of its branches which counts they have, once."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    commands = [entry for entry in commands if "-fcoverage-mapping" in entry["command"]]
    found = [pathlib.Path(entry["directory"], re.search(r" -o (\S+)", entry["command"])[1]) for entry in commands]
    return [str(path) for path in found if path.exists()]


def exported(folder, profile):
    """LLVM's functions: their regions and branches with counts."""
    words = ["llvm-cov-19", "export", "-format=text", f"-instr-profile={profile}"]
    first, *others = objects(folder)
    words += [first, *(f"-object={name}" for name in others)]
    done = subprocess.run(words, capture_output=True, check=True)
    return json.loads(done.stdout)["data"][0]["functions"]


def executed(regions, at, file):
    """How often the innermost region of code was that a branch stands in."""
    inside = [region for region in regions if region[5] == file and region[7] == CODE and tuple(region[:2]) <= at < tuple(region[2:4])]
    return max(inside, key=lambda region: (region[:2], [-n for n in region[2:4]]))[4] if inside else 0


def branches(folder, profile):
    """{(file of the function, file of the place): {Place: [times true, times false]}}: the second is another one for rows of a table."""
    top = source(folder)
    files = collections.defaultdict(dict)
    for function in exported(folder, profile):
        names = function["filenames"]
        if not names[0].startswith(f"{top}/"):
            continue
        came = {region[6]: region for region in function["regions"] if region[7] == EXPANSION}
        for branch in function["branches"]:
            line, column, end_line, end_column, true, false, file = branch[:7]
            if true == 0 and false == 0 and executed(function["regions"], (line, column), file):
                continue  # constant
            place = Place(line, column, end_line, end_column, "")
            while file in came:
                line, column, end_line, end_column, _, file, *_ = came[file]
                place = Place(line, column, end_line, end_column, f"{branch[0]}:{branch[1]}")
            sides = files[tuple(str(pathlib.Path(name).relative_to(top)) for name in (names[0], names[file]))].setdefault(place, [0, 0])
            sides[0] += true
            sides[1] += false
    return files


def is_switch_of_all(lines, place):
    """Whether the place is the value of a `switch` whose first case is an enumerator."""
    before = lines[place.line - 1][:place.column - 1]
    if not re.search(r"\bswitch \($", before):
        return False
    after = "\n".join(lines[place.end_line - 1:place.end_line + 30])
    case = re.search(r"\bcase ([^:]|::)*?:(?!:)|^#include|\w+\(", after[place.end_column:])
    return bool(case and "::" in case[0])


def reasons():
    """{(file, text of the line): reason}"""
    rows = (ROOT / "tests/coverage_left.txt").read_text().splitlines()
    cut = [row.split(" | ") for row in rows if row and not row.startswith("#")]
    return {(row[0], row[1]): row[2] for row in cut}


def main():
    words = [word for word in sys.argv[1:] if word != "--left"]
    if not words or words[0].startswith("-"):
        print(__doc__.partition("\n\n")[2].strip())
        return 2
    folder, wanted = pathlib.Path(words[0]).resolve(), set(words[1:])
    top, excused, used = source(folder), reasons(), set()
    tally = {room: [0, 0, 0] for room in rooms()[0]}
    for (owner, file), places in sorted(branches(folder, merged(folder)).items()):
        room = tally.get(str(pathlib.Path(owner).parent))
        if room is None or (wanted and owner not in wanted):
            continue
        lines = (top / file).read_text().splitlines()
        for place, sides in sorted(places.items()):
            if is_switch_of_all(lines, place):
                continue
            missing = [side for side, count in zip(("true", "false"), sides) if count == 0]
            room[0] += 2
            room[1] += 2 - len(missing)
            if not missing:
                continue
            text = lines[place.line - 1].strip()
            if (file, text) in excused:
                used.add((file, text))
                room[2] += len(missing)
            elif "--left" in sys.argv:
                condition = lines[place.line - 1][place.column - 1:place.end_column - 1] if place.line == place.end_line else "..."
                macro = f" (macro, {place.macro})" if place.macro else ""
                print(f"{file}:{place.line}:{place.column}: never {' nor '.join(missing)}{macro}: {condition}: {text}")
    total = [sum(counts) for counts in zip(*tally.values())]
    percent = lambda taken, counts: 100 * taken / max(counts[0], 1)
    print(f"{'room':18} branches    taken           excused")
    for room, counts in [*tally.items(), ("all", total)]:
        print(f"{room:18} {counts[0]:8} {counts[1]:8}  {percent(counts[1], counts):5.1f} % {counts[2]:8}  "
              f"{percent(counts[1] + counts[2], counts):5.1f} %")
    unused = sorted(set(excused) - used) if not wanted else []
    for file, text in unused:
        print(f"tests/coverage_left.txt: all of `{text}` of {file} is taken", file=sys.stderr)
    return 0 if percent(total[1] + total[2], total) >= WANTED and not unused else 1


if __name__ == "__main__":
    sys.exit(main())
