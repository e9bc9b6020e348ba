#!/usr/bin/env python3
"""Decisions of the compiler are turned around, one at a time, and a test must notice.

usage: tests/mutation.py [--every N] [--offset K] [--list] [--only N] [FILE ...]

A mutant is one condition of an `if`, or one comparison with a threshold, that means the opposite. Its file is compiled, linked before
the archives of the build folder (which stays as it is), and the quick tests run until one fails: the mutant is killed. Mutants that no
test kills are listed, but for those in tests/mutation_survivors.txt, each of which has a reason: work that is done twice, say, or code
that is slower and gives the same.

--every N takes each N-th mutant, from number K on; --list shows them. The build folder needs the targets `unisono`, `player`,
`test_jit` and `simcuda`.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("UNISONO_BUILD", "build")
FOLDER = BUILD / "mutation"  # of what is linked for a mutant
FILES = ["jit/kernel/group*.cpp", "jit/kernel/stages.cpp", "jit/kernel/choice.cpp", "jit/kernel/row_sums.cpp", "jit/plan/fuse*.cpp",
         "jit/arrange/*.cpp"]
LIMIT = 240  # seconds; who takes longer hangs, and is killed by that
TURNED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}

# What must notice, the cheapest first; with thresholds at their least, small arrays take all ways.
LEAST = {"UNISONO_TUNING": "least", "UNISONO_ORDERS": "small"}
TESTS = [
    ("uses of results, small", ["build:test_jit", "-tc=uses of results*"], LEAST),
    ("programs", ["tests/run", "programs/numerics/", "programs/derivatives/", "programs/members/", "programs/maps/"], {}),
    ("plans", ["build:test_jit", "-tc=*plan*,*kernel*,*fus*,*memory*"], {}),
    ("uses of results", ["build:test_jit", "-tc=uses of results*"], {}),
    ("random shapes", ["python3", "tests/shape_programs.py", "build:unisono", "0", "60"], {}),
    ("unit jit", ["build:test_jit", "-tce=table of operations*,uses of results*"], {}),
]


def end_of(text, start):
    """The place of the bracket that closes the one at `start`; strings and characters are skipped."""
    depth, at = 0, start
    while at < len(text):
        c = text[at]
        if c in "\"'":
            close = at + 1
            while text[close] != c:
                close += 2 if text[close] == "\\" else 1
            at = close
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    raise ValueError("a bracket is not closed")


def turned(condition):
    """The condition that means the opposite; a declaration in it stays."""
    head, semicolon, rest = condition.rpartition(";")
    if semicolon:
        return f"{head}; !({rest.strip()})"
    declared = re.match(r"\s*(?:const )?[\w:<>]+(?: [*&]?|[*&] )(\w+)\s*=[^=]", condition)
    return f"{condition}; !({declared[1]})" if declared else f"!({condition})"


def mutants_of(path):
    """(line, what was, what is, the whole text) of each mutant of a file."""
    text = path.read_text()
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)
    line_of = lambda at: text.count("\n", 0, at) + 1
    for found in re.finditer(r"\bif \(", code):
        start = found.end() - 1
        end = end_of(code, start)
        was = text[start + 1:end]
        now = turned(re.sub(r"//[^\n]*", "", was))
        yield line_of(start), was, now, text[:start + 1] + now + text[end:]
    for found in re.finditer(r"(<=|>=|==|!=|<|>) (?=[\w.*() ]*\btuning\(\)\.\w+)", code):
        line = code.rfind("\n", 0, found.start()) + 1
        if "if (" in code[line:found.start()]:
            continue
        was = text[found.start():text.find("\n", found.start())]
        yield line_of(found.start()), was, TURNED[found[1]] + was[len(found[1]):], (
            text[:found.start()] + TURNED[found[1]] + text[found.end(1):])


def short(text):
    return " ".join(text.split())


def commands():
    """How each file is compiled, and how each executable is linked."""
    rows = json.loads((BUILD / "compile_commands.json").read_text())
    compile_of = {pathlib.Path(row["file"]): row["command"] for row in rows}
    link = {}
    for target in ("unisono", "player", "test_jit"):
        last = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], capture_output=True, text=True, check=True).stdout
        link[target] = last.strip().splitlines()[-1].removeprefix(": && ").removesuffix(" && :")
    return compile_of, link


def prepare():
    FOLDER.mkdir(exist_ok=True)
    for library in BUILD.glob("libsim*.so"):
        (FOLDER / library.name).unlink(missing_ok=True)
        (FOLDER / library.name).symlink_to(library)


def build(path, text, compile_of, link):
    """Nothing, or what the compiler says of the mutant."""
    mutant, made = FOLDER / path.name, FOLDER / "mutant.o"
    mutant.write_text(text)
    words = shlex.split(compile_of[path])
    words[words.index("-o") + 1] = str(made)
    words[words.index("-c") + 1] = str(mutant)
    words = [w for w in words if w != "-Werror"] + ["-w"]
    done = subprocess.run(words, cwd=BUILD, capture_output=True, text=True)
    for target, command in link.items():
        if done.returncode:
            break
        parts = shlex.split(command)
        parts[parts.index("-o") + 1] = str(FOLDER / target)
        first = next(at for at, word in enumerate(parts) if word.endswith(".a"))
        done = subprocess.run(parts[:first] + [str(made)] + parts[first:], cwd=BUILD, capture_output=True, text=True)
    return done.stderr if done.returncode else None


def killed_by():
    """The test that fails first; nothing if the mutant survives all."""
    for name, words, environment in TESTS:
        words = [str(FOLDER / w[6:]) if w.startswith("build:") else w for w in words]
        set_up = {**os.environ, **environment, "UNISONO_BUILD": str(FOLDER.relative_to(ROOT)), "UNISONO_CACHE": "off"}
        try:
            done = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, env=set_up)
        except subprocess.TimeoutExpired:
            return f"{name} (no end)"
        if done.returncode:
            return name
    return None


def survivors():
    """File and condition of mutants that are known to survive."""
    rows = (ROOT / "tests/mutation_survivors.txt").read_text().splitlines()
    return {tuple(row.split(" | ")[:2]) for row in rows if row and not row.startswith("#")}


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--offset", type=int, default=0)
    options.add_argument("--only", type=int)
    options.add_argument("--list", action="store_true")
    options.add_argument("files", nargs="*", default=FILES)
    chosen = options.parse_args()
    paths = sorted(path for pattern in chosen.files for path in ROOT.glob(pattern))
    mutants = [(path, *mutant) for path in paths for mutant in mutants_of(path)]
    numbered = list(enumerate(mutants))[chosen.offset::chosen.every]
    if chosen.only is not None:
        numbered = [(chosen.only, mutants[chosen.only])]
    if chosen.list:
        for number, (path, line, was, now, _) in numbered:
            print(f"{number:4} {path.relative_to(ROOT)}:{line}  {short(was)}  ->  {short(now)}")
        return 0
    sys.stdout.reconfigure(line_buffering=True)
    prepare()
    compile_of, link = commands()
    known, tally = survivors(), {"killed": 0, "survived": 0, "known": 0, "not built": 0}
    for number, (path, line, was, now, text) in numbered:
        start = time.time()
        problem = build(path, text, compile_of, link)
        test = None if problem else killed_by()
        is_known = (str(path.relative_to(ROOT)), short(was)) in known
        outcome = "not built" if problem else "killed" if test else "known" if is_known else "survived"
        tally[outcome] += 1
        print(f"{number:4} {outcome:9} {time.time() - start:4.0f} s  {path.relative_to(ROOT)}:{line}  {short(was)}" +
              (f"  [{test}]" if test else ""))
        if problem:
            print(problem[:500])
    decided = tally["killed"] + tally["survived"]
    print(", ".join(f"{count} {outcome}" for outcome, count in tally.items()) +
          f": {100 * tally['killed'] / max(decided, 1):.1f} % of those without a reason to survive are killed")
    return 1 if tally["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
