#!/usr/bin/env python3
"""Steps of training beside JAX's on the CPU, in one run, in turn: the time of a step, from the start of the process to the
end of the first step, and the most memory; and the same work on 1, 2, 4 and 8 devices of this machine.

The losses of both are compared. Without --jax only ours is printed. On a machine that others use, too,
`taskset -c 0 bench/training.py --processor-time` compares the processor time of one thread: of a step what many steps take
more than two, of the first what a process with two steps takes.

usage: bench/training.py [--unisono build/unisono] [--jax PYTHON] [--runs 3] [--processor-time] [NAME ...]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = {"mlp_digits": 400, "conv_digits": 200, "gpt": 20}
DEVICES = (1, 2, 4, 8)
# What sums in another order make of a loss after so many steps.
TOLERANCE = {"first": 1e-4, "last": 2e-2}


class Run:
    """A process, and what it says: seconds to the first step and for one of the others, bytes, and losses."""

    def __init__(self, words, environment):
        start = time.perf_counter()
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, **environment}, text=True)
        self.losses, self.first, self.step = {}, None, None
        for line in process.stdout:
            what, number = line.split()
            if what == "first":
                self.first = time.perf_counter() - start
            if what == "seconds":
                self.step = float(number)
            else:
                self.losses[what] = float(number)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode or self.first is None or self.step is None:
            sys.exit(f"{' '.join(words)}: ended with {process.returncode}")
        self.memory = usage.ru_maxrss * 1024
        self.processor = usage.ru_utime + usage.ru_stime


def in_processor_time(run, name):
    """`run` of so many steps and of two, as one Run."""
    many, few = run(STEPS[name]), run(2)
    many.first = few.processor
    many.step = (many.processor - few.processor) / (STEPS[name] - 2)
    return many


class Best:
    """The least of several runs: what else runs on the machine only adds."""

    def __init__(self, runs):
        for name in ("first", "step", "memory"):
            setattr(self, name, min(getattr(run, name) for run in runs))
        self.losses = runs[0].losses


def shown(seconds):
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"


def check(name, ours, theirs):
    for which, tolerance in TOLERANCE.items():
        a, b = ours.losses[which], theirs.losses[which]
        if not abs(a - b) <= tolerance * abs(b):
            sys.exit(f"{name}: the {which} loss is {a}, JAX's {b}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--unisono", default="build/unisono")
    parser.add_argument("--jax", help="a Python that has jax and optax")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("names", nargs="*", default=[])
    options = parser.parse_args()
    names = options.names or list(STEPS)
    for name in names:
        if name not in STEPS:
            parser.error(f"there is no training `{name}`: {', '.join(STEPS)}")
    if options.runs < 1:
        parser.error("--runs is 1 or more")

    def measured(run, name):
        return in_processor_time(run, name) if options.processor_time else run(STEPS[name])

    def ours(name, devices, *cached):
        command = [options.unisono, "run", *cached, f"bench/training/{name}.uni", "--devices", f"cpu:{devices}"]
        return measured(lambda steps: Run([*command, str(steps)], {}), name)

    def theirs(name):
        return measured(lambda steps: Run([options.jax, "bench/training/peers.py", name, str(steps)], {"JAX_PLATFORMS": "cpu"}), name)

    rows, scaled = [], []
    for name in names:
        pairs = {devices: [] for devices in DEVICES}
        peers, again = [], []
        for _ in range(options.runs):
            for devices in DEVICES:
                pairs[devices].append(ours(name, devices, "--no-cache"))
            again.append(ours(name, 1))
            if options.jax:
                peers.append(theirs(name))
        best = {devices: Best(runs) for devices, runs in pairs.items()}
        one, warm = best[1], Best(again)
        for devices in DEVICES:
            if best[devices].losses != one.losses:
                sys.exit(f"{name}: on {devices} devices the losses are {best[devices].losses}, on one {one.losses}")
        row = [name, shown(one.step), shown(one.first), shown(warm.first), f"{one.memory / 2**20:.0f} MiB"]
        if peers:
            jax = Best(peers)
            check(name, one, jax)
            row += [shown(jax.step), f"**{jax.step / one.step:.2f}**", shown(jax.first), f"**{jax.first / one.first:.2f}**",
                    f"{jax.memory / 2**20:.0f} MiB", f"**{jax.memory / one.memory:.2f}**"]
        rows.append(row)
        scaled.append([name] + [shown(best[devices].step) for devices in DEVICES] +
                      [f"**{one.step / max(best[devices].step for devices in DEVICES):.2f}**"])
        print(" | ".join(row), file=sys.stderr)

    head = ["training", "a step", "first step, nothing compiled", "code on disk", "memory"]
    if options.jax:
        head += ["JAX, a step", "ratio", "JAX, first step", "ratio", "JAX, memory", "ratio"]
    for head, rows in ((head, rows), (["training"] + [f"cpu:{n}" for n in DEVICES] + ["one / slowest"], scaled)):
        print("| " + " | ".join(head) + " |")
        print("|" + "---|" * len(head))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        print()


if __name__ == "__main__":
    main()
