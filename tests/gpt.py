#!/usr/bin/env python3
"""The first losses that examples/gpt.uni prints are those of JAX (examples/data/gpt_jax.py), to 1e-4 of themselves.

What gpt.uni prints is a golden test of its own, so its expectation is read here.
"""
import pathlib
import re
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def main():
    ours = [float(x) for x in re.findall(r"^# \| step +\d+: loss (\S+)$", (EXAMPLES / "expected/gpt.txt").read_text(), re.M)]
    theirs = [float(line) for line in (EXAMPLES / "data/gpt_losses.txt").read_text().split()]
    if len(theirs) != 20 or len(ours) != 20:
        print(f"{len(ours)} losses, and {len(theirs)} of JAX: 20 were expected")
        return 1
    wrong = [f"step {i + 1}: {a}, JAX {b}" for i, (a, b) in enumerate(zip(ours, theirs)) if not abs(a - b) <= 1e-4 * b]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
