#!/usr/bin/env python3
"""The branches of the compiler and the run time that no test takes.

usage: tests/coverage.py FOLDER [--left] [FILE ...]

FOLDER is a build folder of the preset `coverage` in which the tests have run (`./dev test --coverage` does both). Prints, for each room,
how many branches there are and how many the tests took, each side of each condition counted; --left lists the others, of all rooms or of
the files. A branch in tests/coverage_left.txt needs no test, for the reason that stands there. Exit status 1: fewer than 97 % are taken.
"""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = (ROOT / "tests/coverage_rooms.txt").read_text().split()
WANTED = 97  # % of the branches
EXECUTABLES = ["unisono", "player", "test_jit", "test_runtime", "test_lang", "test_host", "test_embed", "test_devices"]


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


def branches(folder):
    """{file: {(line, column): [times true, times false]}}: instances of a template are one branch."""
    found = [str(folder / name) for name in EXECUTABLES if (folder / name).exists()]
    words = ["llvm-cov-19", "export", "-format=text", "-skip-expansions", f"-instr-profile={merged(folder)}", found[0]]
    for name in found[1:]:
        words += ["-object", name]
    done = subprocess.run([*words, *(str(ROOT / room) for room in ROOMS)], capture_output=True, check=True)
    files = collections.defaultdict(dict)
    for file in json.loads(done.stdout)["data"][0]["files"]:
        name = str(pathlib.Path(file["filename"]).relative_to(ROOT))
        for line, column, _, _, true, false, *_ in file["branches"]:
            sides = files[name].setdefault((line, column), [0, 0])
            sides[0] += true
            sides[1] += false
    return files


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
    excused, tally = reasons(), collections.defaultdict(lambda: [0, 0, 0])
    for file, places in sorted(branches(folder).items()):
        if wanted and file not in wanted:
            continue
        lines = (ROOT / file).read_text().splitlines()
        room = tally[str(pathlib.Path(file).parent)]
        for (line, column), sides in sorted(places.items()):
            missing = [side for side, count in zip(("true", "false"), sides) if count == 0]
            room[0] += 2
            if not missing:
                room[1] += 2
                continue
            room[1] += 2 - len(missing)
            text = lines[line - 1].strip()
            if (file, text) in excused:
                room[2] += len(missing)
            elif "--left" in sys.argv:
                print(f"{file}:{line}:{column}: never {' nor '.join(missing)}: {text}")
    total = [sum(counts) for counts in zip(*tally.values())]
    percent = lambda counts: 100 * (counts[1] + counts[2]) / max(counts[0], 1)
    print(f"{'room':18} branches   taken  excused")
    for room, counts in sorted(tally.items()) + [("all", total)]:
        print(f"{room:18} {counts[0]:8} {counts[1]:7} {counts[2]:8}  {percent(counts):5.1f} %")
    return 0 if percent(total) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
