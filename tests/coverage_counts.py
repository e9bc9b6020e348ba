"""How often each branch was taken, as LLVM counted it in a build folder with UNISONO_COVERAGE in which tests have run.

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
CODE, EXPANSION = 0, 1  # kinds of LLVM's regions
Place = collections.namedtuple("Place", "line column end_line end_column macro")  # macro: where in its text, "" outside of macros


def rooms():
    """The rooms whose branches must be taken; and those that count only for thresholds."""
    paragraphs = (ROOT / "tests/coverage_rooms.txt").read_text().split("\n\n")
    return [[line for line in paragraph.splitlines() if not line.startswith("#")] for paragraph in paragraphs]


def source(folder):
    """Of what the folder was built."""
    return pathlib.Path(re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", (folder / "CMakeCache.txt").read_text())[1])


def merged(folder):
    """All runs' counts in one file."""
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
    found = {pathlib.Path(entry["directory"], re.search(r" -o (\S+)", entry["command"])[1]) for entry in commands}
    return sorted(str(path) for path in found if path.exists())


def exported(folder):
    """LLVM's functions: their regions and branches with counts."""
    first, *others = objects(folder)
    words = ["llvm-cov-19", "export", "-format=text", f"-instr-profile={merged(folder)}", first, *(f"-object={name}" for name in others)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)["data"][0]["functions"]


def executed(regions, at, file):
    """How often the innermost region of code was that a branch stands in."""
    inside = [region for region in regions if region[5] == file and region[7] == CODE and tuple(region[:2]) <= at < tuple(region[2:4])]
    return max(inside, key=lambda region: (region[:2], [-n for n in region[2:4]]))[4] if inside else 0


def is_switch_of_all(lines, place):
    """Whether the place is the value of a `switch` whose first case is an enumerator or a row of a table."""
    if place.macro or not re.search(r"\bswitch \($", lines[place.line - 1][:place.column - 1]):
        return False
    after = "\n".join([lines[place.end_line - 1][place.end_column - 1:], *lines[place.end_line:place.end_line + 30]])
    case = re.search(r"\bcase ((?:[^:]|::)*?):(?!:)|^#", after, re.M)
    return bool(case and (case[1] is None or "::" in case[1]))


def branches(folder):
    """{(file of the function, file of the place): {Place: [times true, times false]}}: the second is another one for rows of a table."""
    top = source(folder)
    files = collections.defaultdict(dict)
    for function in exported(folder):
        names = function["filenames"]
        if not names[0].startswith(f"{top}/") or not function["branches"]:
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
    for (_, file), places in files.items():
        lines = (top / file).read_text().splitlines()
        for place in [place for place in places if is_switch_of_all(lines, place)]:
            del places[place]
    return files


def never(sides):
    """The sides that are not taken."""
    return [side for side, count in zip(("true", "false"), sides) if count == 0]


def reasons():
    """{(file, text of the line): reason} of tests/coverage_left.txt."""
    rows = (ROOT / "tests/coverage_left.txt").read_text().splitlines()
    cut = [row.split(" | ") for row in rows if row and not row.startswith("#")]
    return {(row[0], row[1]): row[2] for row in cut}
