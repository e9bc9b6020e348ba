#!/usr/bin/env python3
"""The branches of the compiler and the run time that no test takes.

usage: tests/coverage.py FOLDER [--left] [FILE ...]

FOLDER is a build folder with UNISONO_COVERAGE in which the tests have run (`./dev test --coverage` does both). Prints, for each room of
tests/coverage_rooms.txt, how many branches there are and how many the tests took, each side of each condition and each `case` counted
(tests/coverage_counts.py says what counts); then the thresholds of which they took one side alone (tests/coverage_thresholds.py). --left
lists the branches that are left, of all rooms or of the files. A branch in tests/coverage_left.txt needs no test, for the reason that
stands there. Exit status 1: fewer than 97 % are taken or have a reason, a reason is for what is taken, or thresholds are not as
tests/coverage_thresholds.txt says.
"""
import pathlib
import sys

import coverage_counts
import coverage_thresholds

WANTED = 97  # % of the branches


def main():
    words = [word for word in sys.argv[1:] if word != "--left"]
    if not words or words[0].startswith("-"):
        print(__doc__.partition("\n\n")[2].strip())
        return 2
    folder, wanted = pathlib.Path(words[0]).resolve(), set(words[1:])
    top, excused, used = coverage_counts.source(folder), coverage_counts.reasons(), set()
    found = coverage_counts.branches(folder)
    tally = {room: [0, 0, 0] for room in coverage_counts.rooms()[0]}
    for (owner, file), places in sorted(found.items()):
        room = tally.get(str(pathlib.Path(owner).parent))
        if room is None or (wanted and owner not in wanted):
            continue
        lines = (top / file).read_text().splitlines()
        for place, sides in sorted(places.items()):
            missing = coverage_counts.never(sides)
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
    print(f"{'room':18} branches    taken           with a reason")
    for room, counts in [*tally.items(), ("all", total)]:
        print(f"{room:18} {counts[0]:8} {counts[1]:8}  {percent(counts[1], counts):5.1f} %       {counts[2]:8}  "
              f"{percent(counts[1] + counts[2], counts):5.1f} %")
    if wanted:
        return 0
    unused = sorted(set(excused) - used)
    for file, text in unused:
        print(f"tests/coverage_left.txt: all of `{text}` of {file} is taken", file=sys.stderr)
    good = coverage_thresholds.report(top, found)
    return 0 if good and percent(total[1] + total[2], total) >= WANTED and not unused else 1


if __name__ == "__main__":
    sys.exit(main())
