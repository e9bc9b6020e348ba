#!/usr/bin/env python3
"""The model of bench/scale holds what it says of messages and bytes: its table, and beside what processes do send for a `psum`,
as they tell it (`tally`, runtime/cluster/faults.h).

usage: tests/scale.py UNISONO
"""
import importlib.machinery
import importlib.util
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNISONO = os.path.abspath(sys.argv[1])
loader = importlib.machinery.SourceFileLoader("scale", str(ROOT / "bench/scale"))
scale = importlib.util.module_from_spec(importlib.util.spec_from_loader("scale", loader))
loader.exec_module(scale)

PROGRAM = """
axis dev = devices()
@pmap(over=dev)
def turns(x) {
  var y = x
  for i in range(TURNS) { y = psum(y * 0.5, dev) }
  y
}
print(turns(ones(f32[device_count(), ELEMENTS]))[0, 0])
"""
PROBLEMS = []


def check(name, holds, *seen):
    if not holds:
        PROBLEMS.append(name)
        print(name, *seen, sep="\n")


def sent(processes, elements, turns):
    """By process: messages and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "turns.uni"
        program.write_text(PROGRAM.replace("TURNS", str(turns)).replace("ELEMENTS", str(elements)))
        done = subprocess.run([UNISONO, "launch", "-n", str(processes), "--devices", "cpu:1", program], capture_output=True, text=True,
                              check=False, env={**os.environ, "UNISONO_FAULTS": "tally"})
    told = {int(p): (int(m), int(b)) for p, m, b in re.findall(r"(?m)^process (\d+): (\d+) messages, (\d+) bytes$", done.stderr)}
    check(f"{processes} processes", done.returncode == 0 and sorted(told) == list(range(processes)), done)
    return told


def main():
    for n in scale.COUNTS + [65535, 3, 5, 6]:
        messages, moved, combined = scale.large_psum(n, 64e6)
        check(f"the model of {n}", scale.small_psum(n) == (n - 1).bit_length() and moved < 2 * 64e6
              and math.isclose(combined, 64e6 * (n - 1) / n) and messages >= 2 * scale.small_psum(n) - 2
              and (n & (n - 1) or messages == 2 * scale.small_psum(n)), messages, moved, combined)
    for n in (2, 3, 4, 5, 6):
        for elements in (2, 30030):
            few, more = sent(n, elements, 4), sent(n, elements, 14)
            if PROBLEMS:
                break
            of_one = [((more[p][0] - few[p][0]) / 10, (more[p][1] - few[p][1]) / 10) for p in range(n)]
            size = 4 * elements
            if elements == 2:
                wanted = scale.small_psum(n)
                check(f"a small sum of {n}", max(m for m, _ in of_one) == wanted, of_one, wanted)
            else:
                wanted, moved, _ = scale.large_psum(n, size)
                # Parts begin at multiples of 64 elements, so some are longer than others.
                check(f"a large sum of {n}", all(m == wanted and b < 2 * size and abs(b - moved) <= 512 * n for m, b in of_one), of_one, wanted, moved)
    print(f"{len(PROBLEMS)} problems")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
