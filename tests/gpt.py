#!/usr/bin/env python3
"""The first losses that examples/gpt.uni prints are those of JAX (examples/data/gpt_jax.py), to 1e-4 of themselves, and
examples/gpt_generate.uni writes with the weights that it leaves.

What gpt.uni prints is a golden test of its own, so its expectation is read here.

usage: tests/gpt.py UNISONO
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import sanitizers

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def main():
    ours = [float(x) for x in re.findall(r"^# \| step +\d+: loss (\S+)$", (EXAMPLES / "expected/gpt.txt").read_text(), re.M)]
    theirs = [float(line) for line in (EXAMPLES / "data/gpt_losses.txt").read_text().split()]
    if len(theirs) != 20 or len(ours) != 20:
        print(f"{len(ours)} losses, and {len(theirs)} of JAX: 20 were expected")
        return 1
    wrong = [f"step {i + 1}: {a}, JAX {b}" for i, (a, b) in enumerate(zip(ours, theirs)) if not abs(a - b) <= 1e-4 * b]
    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            done = subprocess.run([sys.argv[1], "run", *words], cwd=EXAMPLES.parent, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=sanitizers.limit())
            if done.returncode:
                wrong.append(f"{words}: {done.stderr}")
            return done.stdout.splitlines()
        for name in ("gpt.npz", "gpt.safetensors"):
            path = f"{folder}/{name}"
            run("examples/gpt.uni", "--devices", "cpu:2", "1", path)
            texts = [run("examples/gpt_generate.uni", path, "20", seed) for seed in ("5", "5", "6")]
            if texts[0] != texts[1] or texts[0] == texts[2] or not re.fullmatch(r"it was raining\. [\n a-z.,?!]{20}", "\n".join(texts[0])):
                wrong.append(f"{name}: {texts}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
