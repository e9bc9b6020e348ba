#!/usr/bin/env python3
"""Decisions of the compiler are turned around, one at a time, and a test must notice.

usage: tests/mutation.py [--every N] [--offset K] [--jobs N] [--keep] [--list] [MUTANT ...]

A mutant is one condition of an `if`, or one comparison with a threshold, that means the opposite. All mutants are compiled together: a
condition `c` becomes `turned(17) != bool(c)`, where turned(N) says whether UNISONO_MUTANT=N. What is so changed is linked before the
archives of the build folder, which stays as it is, into build/mutation. Then each test runs once with UNISONO_MUTANT=record:FILE, which
tells the mutants that it reaches, and each mutant goes through the tests that reach it until one fails: it is killed. Who has killed most
in a second comes first. Mutants that survive are listed, and those that no test reaches; those in tests/mutation_survivors.txt, each of
which has a reason, are not tried.

--every N takes each N-th mutant, from number K on, numbers these alone; --list shows them. --keep takes what the run before has built and
recorded. The build folder needs the targets `unisono`, `player`, `test_jit` and those of the simulators.
"""
import argparse
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import threading
import time

import sanitizers

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("UNISONO_BUILD", "build")
FOLDER = BUILD / "mutation"  # of what is made for mutants
FILES = ["jit/kernel/group*.cpp", "jit/kernel/stages.cpp", "jit/kernel/choice.cpp", "jit/kernel/row_sums.cpp", "jit/kernel/schedule.cpp",
         "jit/plan/fuse*.cpp", "jit/arrange/*.cpp"]
PROGRAMS = ["errors", "numerics", "derivatives", "members", "maps", "nested", "collectives"]  # folders of tests/programs and tests/errors
OPERATIONS = ["sum", "max", "argmax", "cumsum", "sort", "dot", "gather", "scatter", "scatter_add"]  # of the matrix of uses
NOT_QUICK = ("op_table/", "element/", "uses/", "derivative/", "gpu/", "kernel_forms", "product")  # of tests/unit/jit
MOST_SECONDS = 20  # of a processor: a test that takes longer is left out
MOST_MEMORY = 6 << 30


def brackets(text, start):
    """The place of the bracket that closes the one at `start`, and of the last semicolon that is in no other bracket, or nothing."""
    depth, semicolon, at = 0, None, start
    while True:
        c = text[at]
        if c in "\"'":
            close = at + 1
            while text[close] != c:
                close += 2 if text[close] == "\\" else 1
            at = close
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            return at, semicolon
        if c == ";" and depth == 1:
            semicolon = at
        at += 1


class Mutant:
    def __init__(self, number, path, line, what, nth):
        self.number, self.path, self.line = number, str(path.relative_to(ROOT)), line
        self.what = " ".join(what.split()) + (f" #{nth}" if nth > 1 else "")

    def __str__(self):
        return f"{self.path}:{self.line}  {self.what}"


def mutate(path, mutants):
    """The file with all its mutants, which are added to `mutants`."""
    text = path.read_text()
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)
    inserts, conditions, times = [], [], {}

    def add(at, what):
        what = " ".join(what.split())
        times[what] = times.get(what, 0) + 1
        mutants.append(Mutant(len(mutants), path, text.count("\n", 0, at) + 1, what, times[what]))
        return mutants[-1].number

    for found in re.finditer(r"\bif \(", code):
        start = found.end()
        end, semicolon = brackets(code, start - 1)
        call = f"::unisono::mutation::turned({add(start, code[start:end])}) != bool("
        declared = re.match(r"\s*(?:const )?[\w:<>]+(?: [*&]?|[*&] )(\w+)\s*=[^=]", code[start:end])
        if declared and semicolon is None:
            inserts.append((end, f"; {call}{declared[1]})"))
        else:
            inserts += [(start if semicolon is None else semicolon + 1, call), (end, ")")]
        conditions.append((code.rfind("\n", 0, start), code.find("\n", start)))
    for found in re.finditer(r"(<=|>=|==|!=|<|>) (?=[\w.*() ]*\btuning\(\)\.\w+)", code):
        if not any(first < found.start() < last for first, last in conditions):
            number = add(found.start(), code[found.start():code.find("\n", found.start())])
            inserts.append((found.end(), f"::unisono::mutation::Compared{{{number}}} {found[1]} "))
    for at, more in sorted(inserts, key=lambda insert: -insert[0]):
        text = text[:at] + more + text[at:]
    return text


def run_in_build(words):
    done = subprocess.run(words, cwd=BUILD, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr[:5000]}")


def build(texts):
    """Compiles the changed files, and links the executables."""
    for library in BUILD.glob("libsim*.so"):
        (FOLDER / library.name).unlink(missing_ok=True)
        (FOLDER / library.name).symlink_to(library)
    command_of = {pathlib.Path(row["file"]): row["command"] for row in json.loads((BUILD / "compile_commands.json").read_text())}
    objects = []
    for path, text in texts.items():
        changed = FOLDER / f"{path.parent.name}_{path.name}"
        changed.write_text(text)
        objects.append(str(changed.with_suffix(".o")))
        words = shlex.split(command_of[path])
        words[words.index("-o") + 1], words[words.index("-c") + 1] = objects[-1], str(changed)
        run_in_build([word for word in words if word != "-Werror"] + ["-w", "-include", str(ROOT / "tests/tools/mutation.h")])
    for target in ("unisono", "player", "test_jit"):
        told = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], capture_output=True, text=True, check=True).stdout
        words = shlex.split(told.strip().splitlines()[-1].removeprefix(": && ").removesuffix(" && :"))
        words[words.index("-o") + 1] = str(FOLDER / target)
        first = next(at for at, word in enumerate(words) if word.endswith(".a"))
        run_in_build(words[:first] + objects + words[first:])


class Test:
    """A command that fails by its exit status, or a golden program's first run, which the player plays."""

    alone = threading.Lock()  # who writes files has them for itself

    def __init__(self, name, words, environment=None, golden=None, writes=False):
        self.name, self.words, self.environment, self.golden, self.writes = name, words, environment or {}, golden, writes
        self.seconds, self.reached, self.kills = 0.0, b"", 0

    def problem(self, mutant, players):
        """What is wrong, in a word, or nothing."""
        limit = sanitizers.limit() + 30 * self.seconds  # by the clock: the machine may be busy
        most = str(round(20 + 10 * self.seconds))  # of a processor
        environment = {"UNISONO_CACHE": "off", "UNISONO_MUTANT": mutant, **self.environment}
        try:
            if self.golden:
                status, out, err = players.play(self.words, self.golden.folder, environment, limit)
                lines = lambda text: [line.rstrip() for line in text.splitlines()]
                told = out + (err if self.golden.status else b"")
                wrong = lines(told.decode(errors="replace")) != lines(self.golden.expected)
                return "dies" if status < 0 else "differs" if status != self.golden.status or wrong else None
            with self.alone if self.writes else threading.Lock():
                status = subprocess.run(["prlimit", "--cpu=" + most, *self.words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, timeout=limit, env={**os.environ, **environment}).returncode
            return "dies" if status < 0 else "fails" if status else None
        except subprocess.TimeoutExpired:
            return "does not end"


def prepare_tests():
    """The module of tests/run, and the tests."""
    # With thresholds at their least small arrays take all ways.
    os.environ["UNISONO_BUILD"] = str(FOLDER.relative_to(ROOT) if FOLDER.is_relative_to(ROOT) else FOLDER)
    loader = importlib.machinery.SourceFileLoader("run", str(ROOT / "tests/run"))
    run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(run)
    tests, unit = [], [str(FOLDER / "test_jit"), "--abort-after=1"]
    for operation in OPERATIONS:
        tests.append(Test(f"uses of {operation}", [*unit, "-tc=uses of results*"], {**run.tunings.SMALL, "UNISONO_USES": operation}))
    for path in sorted((ROOT / "tests/unit/jit").rglob("*_test.cpp")):
        name = str(path.relative_to(ROOT / "tests/unit/jit"))
        if not name.startswith(NOT_QUICK):
            tests.append(Test(name, [*unit, f"-sf=*jit/{name}", "-tce=*: random programs*"]))
    for golden in run.goldens():
        own = [options for options in golden.runs if "--reference" not in options]
        if golden.path.parent.name in PROGRAMS and golden.command == ["run"] and own and golden.name not in run.tunings.EXEMPT:
            tests.append(Test(golden.name, golden.words(own[0]), run.tunings.LEAST, golden))
    for first in range(0, 12, 3):
        tests.append(Test(f"shapes {first}", ["python3", "tests/shape_programs.py", str(FOLDER / "unisono"), str(first), "3"], writes=True))
    return run, tests


def killed_by(mutant, tests, run):
    """The test that fails first, and how; nothing if the mutant survives all."""
    players = run.player.Players(FOLDER)
    try:
        for test in sorted(tests, key=lambda test: -(test.kills + 1) / (test.seconds + 0.1)):
            problem = test.problem(str(mutant.number), players) if test.reached[mutant.number] else None
            if problem:
                test.kills += 1
                return f"{test.name} {problem}"
        return None
    finally:
        for player in players.of.values():
            player.end()


def record(tests, run):
    """The tests that pass in time, with their seconds and what they reach."""
    file = FOLDER / "reached"
    kept, players = [], run.player.Players(FOLDER)
    spent = lambda: run.player.Player.seconds + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    for test in tests:
        with open(file, "r+b" if file.exists() else "w+b") as reached:  # the player holds it
            reached.write(bytes(65536))
        before, problem = spent(), test.problem(f"record:{file}", players)
        test.seconds, test.reached = spent() - before, file.read_bytes()
        if problem or test.seconds > MOST_SECONDS:
            print(f"left out: {test.name} {problem or f'takes {test.seconds:.0f} s'}")
        else:
            kept.append(test)
    for player in players.of.values():
        player.end()
    return kept


def survivors():
    """File and condition of mutants that have a reason to survive."""
    rows = (ROOT / "tests/mutation_survivors.txt").read_text().splitlines()
    return {tuple(row.split(" | ")[:2]) for row in rows if row and not row.startswith("#")}


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--offset", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--keep", action="store_true")
    options.add_argument("--list", action="store_true")
    options.add_argument("mutants", nargs="*", type=int)
    chosen = options.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    mutants = []
    texts = {path: mutate(path, mutants) for path in sorted(path for pattern in FILES for path in ROOT.glob(pattern))}
    numbered = [mutants[n] for n in chosen.mutants] or mutants[chosen.offset::chosen.every]
    if chosen.list:
        for mutant in numbered:
            print(f"{mutant.number:4} {mutant}")
        return 0
    FOLDER.mkdir(exist_ok=True)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))  # of each process
    if not chosen.keep:
        build(texts)
    run, tests = prepare_tests()
    recorded = FOLDER / "recorded.json"
    if chosen.keep and recorded.exists():
        known = json.loads(recorded.read_text())
        tests = [test for test in tests if test.name in known]
        for test in tests:
            test.seconds, test.reached = known[test.name][0], bytes.fromhex(known[test.name][1])
    else:
        tests = record(tests, run)
        recorded.write_text(json.dumps({test.name: (test.seconds, test.reached[:len(mutants)].hex()) for test in tests}))
    print(f"{len(mutants)} mutants, {len(tests)} tests of {sum(test.seconds for test in tests):.0f} s of a processor")
    known, tally = survivors(), {}

    def outcome(mutant):
        start, reasoned = time.time(), (mutant.path, mutant.what) in known
        test = None if reasoned else killed_by(mutant, tests, run)
        is_reached = any(test.reached[mutant.number] for test in tests)
        told = "killed" if test else "reasoned" if reasoned else "survived" if is_reached else "not reached"
        tally[told] = tally.get(told, 0) + 1
        print(f"{mutant.number:4} {told:11} {time.time() - start:4.0f} s  {mutant}" + (f"  [{test}]" if test else ""))

    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        list(pool.map(outcome, numbered))
    count = lambda name: tally.get(name, 0)
    without = len(numbered) - count("reasoned")
    print(", ".join(f"{number} {told}" for told, number in tally.items()) +
          f": {100 * count('killed') / max(without, 1):.1f} % of those without a reason to survive are killed")
    return 1 if count("survived") + count("not reached") else 0


if __name__ == "__main__":
    sys.exit(main())
