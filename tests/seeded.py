"""What the tests of random programs share. Program n is always the same; one that goes wrong is kept in KIND_programs/ of the
build folder, and `UNISONO_SHOW=1` prints each before it runs."""
import os
import pathlib
import subprocess
import sys

import sanitizers


def run(unisono, program, options, environment=None):
    """(status, output, errors) of a program."""
    done = subprocess.run([unisono, "run", program.name, *options], cwd=program.parent, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=sanitizers.limit(), env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr


def main(kind, count, make, problems_of):
    """Runs the programs that `make(seed)` gives, `count` of them unless the command line says FIRST and COUNT;
    `problems_of(unisono, seed, made, program)` is a list of what is wrong with one, which lies in the file `program`."""
    unisono = str(pathlib.Path(sys.argv[1]).resolve())
    first, number = (list(map(int, sys.argv[2:])) + [0, count][len(sys.argv) - 2:])[:2]
    folder = pathlib.Path(unisono).parent / f"{kind}_programs"
    folder.mkdir(exist_ok=True)
    failed = 0
    for seed in range(first, first + number):
        made = make(seed)
        program = folder / f"{kind}_{seed}.uni"
        program.write_text(made.text())
        if os.environ.get("UNISONO_SHOW"):
            print(f"# program {seed}\n{program.read_text()}", flush=True)
        problems = problems_of(unisono, seed, made, program)
        if problems:
            failed += 1
            print(f"{program}: " + "\n".join(problems), flush=True)
        else:
            program.unlink()
    print(f"{number - failed} of {number} programs agree")
    return 1 if failed else 0
