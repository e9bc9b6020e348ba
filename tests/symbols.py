#!/usr/bin/env python3
"""A symbol is defined in the room that declares it: a header's class has its member functions in files of the header's own room,
and so a function of its own. Who reads a room's headers finds their code beside them, and an arrow of tests/includes.py cannot be
turned round by a definition elsewhere.

usage: tests/symbols.py BUILD [--rewrite]

The symbol tables of the object files in BUILD say where definitions are. Those that are elsewhere today stand in
tests/symbols_elsewhere.txt; no line may come to it, and one that is no longer true goes (--rewrite).
"""
import collections
import pathlib
import re
import subprocess
import sys

import includes

ROOT = includes.ROOT
LIST = ROOT / "tests/symbols_elsewhere.txt"
CLASS = re.compile(r"^(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^;{]*)? \{", re.M)
FUNCTION = re.compile(r"^(?!return|using|typedef|#|//)(?:[\w:<>,&*\[\]]+[ \n])*[&*]*(\w+)\((?=[^;{]*[;])", re.M)


def declared():
    """The rooms that declare a class, and those that declare a function outside of classes, by name."""
    classes, functions = collections.defaultdict(set), collections.defaultdict(set)
    for room, files in includes.rooms().items():
        for path in files:
            if path.suffix == ".h":
                text = path.read_text()
                for name in CLASS.findall(text):
                    classes[name].add(room)
                for name in FUNCTION.findall(text):
                    functions[name].add(room)
    return classes, functions


def defined(build):
    """(room, floor of its namespace, name) of each symbol that other files may use; a name is without namespaces, parameters and
    template arguments."""
    for floor in includes.FLOORS:
        folder = build / f"CMakeFiles/unisono_{floor}.dir" / floor
        objects = sorted(str(path) for path in folder.rglob("*.o"))
        if not objects:
            sys.exit(f"no object files in {folder}")
        listed = subprocess.run(["nm", "-A", "-C", "--defined-only", "--extern-only", *objects], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            path, _, rest = line.partition(".o:")
            kind, _, symbol = rest.strip().partition(" ")[2].partition(" ")
            if kind == "T" and symbol.startswith("unisono::"):
                room = str(pathlib.Path(path).relative_to(folder.parent).parent)
                space = symbol.split("::")[1]
                yield room, space if space in includes.FLOORS else includes.FLOORS[0], name_of(symbol)


def name_of(symbol):
    """`Walk::add` of `unisono::lang::Walk::add(unisono::...) const`."""
    symbol = re.sub(r"\[abi:\w+\]", "", symbol)
    while "<" in symbol and (shorter := re.sub(r"(?<!operator)<[^<>]*>", "", symbol)) != symbol:
        symbol = shorter
    parts = symbol.partition("(")[0].split(" ")[-1].split("::")
    return "::".join(part for part in parts if not part.islower() or part == parts[-1])


def elsewhere(build):
    """Lines `DECLARED DEFINED NAME`."""
    classes, functions = declared()
    for room, floor, name in set(defined(build)):
        found = classes.get(name.partition("::")[0]) if "::" in name else functions.get(name)
        rooms = {each for each in found or () if each.partition("/")[0] == floor}
        if rooms and room not in found:
            yield f"{min(rooms)} {room} {name}"


def main():
    found = sorted(set(elsewhere(pathlib.Path(sys.argv[1]))))
    if "--rewrite" in sys.argv:
        LIST.write_text("# Symbols that are defined outside of the room that declares them: DECLARED DEFINED NAME (tests/symbols.py).\n" +
                        "".join(line + "\n" for line in found))
        return 0
    known = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    problems = [f"{line.split()[2]} is declared in {line.split()[0]}, but defined in {line.split()[1]}" for line in found if line not in known]
    problems += [f"no longer true, tests/symbols.py --rewrite takes it out: {line}" for line in known if line not in found]
    print("\n".join(problems) or f"{len(found)} symbols are defined outside of the room that declares them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
