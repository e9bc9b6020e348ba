#!/usr/bin/env python3
"""Holds every room to its line: a folder of C++ has a README.md whose first
lines are its name and "May include: ...", and its #includes name these rooms,
all of them and no other. Arrows run down only: there is no cycle, and none runs
up a floor. Headers of LLVM, CUDA and xeus stay in the rooms named below, and no room
has more than MOST files. Prints what the house looks like."""
import collections
import pathlib
import re
import sys

FLOORS = ["runtime", "jit", "lang", "host", "embed"]  # from the ground up
BESIDE = ["simcuda"]  # the simulated driver: what it shares with the floors are tables of NVIDIA's names
OUTSIDE = {"llvm": ("jit/emit", "jit/target"), "llvm-c": (), "cuda.h": (), "cuda_runtime.h": (), "cublasLt.h": (), "nccl.h": (),
           "mpi.h": ("runtime/cluster",), "xeus": ("host/notebook",), "zmq.hpp": ("host/notebook",)}
MOST = 30
ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
LINE = re.compile(r"May include: (.+)\.")


def rooms():
    """The files of each room."""
    found = collections.defaultdict(list)
    for floor in FLOORS + BESIDE:
        for path in sorted((ROOT / floor).rglob("*")):
            if path.suffix in (".h", ".cpp", ".def", ".cc"):
                found[str(path.parent.relative_to(ROOT))].append(path)
    return found


def allowed(room):
    """What the README of a room says it may include, or what is wrong with that."""
    path = ROOT / room / "README.md"
    lines = path.read_text().splitlines() if path.exists() else []
    if len(lines) < 3 or lines[0] != f"# {room}" or not (line := LINE.fullmatch(lines[2])):
        return set(), [f"{room}/README.md does not begin with `# {room}`, an empty line, and `May include: ... .`"]
    names = set() if line[1] == "nothing of ours" else set(line[1].split(", "))
    return names, []


def cycle(arrows):
    """The rooms of a cycle, or nothing."""
    done = set()

    def walk(room, above):
        if room in above:
            return above[above.index(room):] + [room]
        if room in done:
            return None
        for below in sorted(arrows.get(room, ())):
            if found := walk(below, above + [room]):
                return found
        done.add(room)
        return None

    return next((found for room in sorted(arrows) if (found := walk(room, []))), None)


def check(files):
    problems, arrows = [], {}
    floor_of = lambda room: FLOORS.index(room.split("/")[0]) if room.split("/")[0] in FLOORS else -1
    for room, paths in files.items():
        may, wrong = allowed(room)
        problems += wrong
        used = set()
        for path in paths:
            for target in INCLUDE.findall(path.read_text()):
                place, top = path.relative_to(ROOT), target.split("/")[0]
                if room not in OUTSIDE.get(top, (room,)):
                    problems.append(f"{place}: {target} belongs to {' and '.join(OUTSIDE[top]) or 'no room'}")
                if top not in FLOORS + BESIDE:
                    continue
                to = target.rpartition("/")[0]
                used.add(to)
                if not (ROOT / target).exists():
                    problems.append(f"{place}: there is no {target}")
                if to not in may | {room}:
                    problems.append(f"{place}: {target} lies in {to}, which {room}/README.md does not name")
                if floor_of(room) >= 0 and floor_of(to) > floor_of(room):
                    problems.append(f"{place}: {target} lies above it")
        problems += [f"{room}/README.md names {name}, which it does not include" for name in sorted(may - used)]
        if len(paths) > MOST:
            problems.append(f"{room} has {len(paths)} files, more than {MOST}")
        arrows[room] = used - {room}
    if found := cycle(arrows):
        problems.append("a cycle: " + " -> ".join(found))
    return problems, arrows


def main():
    files = rooms()
    problems, arrows = check(files)
    largest = max(files, key=lambda room: len(files[room]))
    print(f"{len(files)} rooms, {sum(map(len, arrows.values()))} arrows; the largest is {largest} with {len(files[largest])} files")
    for room in sorted(arrows):
        print(f"  {room} ({len(files[room])}) -> {', '.join(sorted(arrows[room])) or 'nothing'}")
    print("\n".join(sorted(set(problems))), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
