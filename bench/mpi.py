#!/usr/bin/env python3
"""`psum` of a program in several processes beside MPI_Allreduce, both under mpirun, in turn, in one run: the least time of one
such sum in loops of many, of so many elements in each process. Between sums each element is multiplied once. Then sums that travel
while products are computed, over a link that makes each message late, beside the same in turn.

usage: bench/mpi.py [--build build] [--processes 2] [--rounds 3] [--launch]

--launch: our processes are started by `unisono launch`, and talk over sockets.
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Bytes, and what ours should be at least as fast as: 1 / 1.5 of the peer's latency, 0.9 of its bandwidth.
SIZES = [(8, 1 / 1.5), (1 << 10, None), (16 << 10, None), (64 << 10, None), (1 << 20, 0.9), (16 << 20, 0.9)]


def measured(words, environment=None, expected=1):
    done = subprocess.run([str(w) for w in words], cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        sys.exit(f"{' '.join(str(w) for w in words)}\n{done.stdout}{done.stderr}")
    seconds, element = done.stdout.split()
    if expected and float(element) != expected:
        sys.exit(f"{words[0]}: the sum is {element}")
    return float(seconds)


def shown(seconds):
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--processes", default=2, type=int)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--launch", action="store_true")
    options = parser.parse_args()
    build = (ROOT / options.build).resolve()
    mpirun = ["mpirun", "-n", options.processes]
    ours = [build / "unisono", "launch", "-n", options.processes] if options.launch else [*mpirun, build / "unisono", "run"]
    print(f"| psum, {options.processes} processes | ours | MPI_Allreduce | ratio | wanted |\n|---|---|---|---|---|")
    for size, wanted in SIZES:
        # A run takes some 50 ms; before its first turn ours copies the argument.
        turns = max(20, min(2000, (64 << 20) // size))
        numbers = [size // 4, turns, 7]
        pairs = [(measured([*ours, "--devices", "cpu:1", "bench/mpi.uni", *numbers]), measured([*mpirun, build / "mpi_allreduce", *numbers]))
                 for _ in range(options.rounds)]
        a, b = (min(p[i] for p in pairs) for i in (0, 1))
        name = f"{size} B" if size < 1024 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"
        print(f"| {name} | {shown(a)} | {shown(b)} | {b / a:.2f} | {f'≥ {wanted:.2f}' if wanted else ''} |", flush=True)
    overlapped(build, options.rounds)


def overlapped(build, rounds):
    """By the test transport, whose messages take so many milliseconds: on CPUs, and on simulated GPUs, which exchange by the host's
    memory and go on by themselves. These compute slowly: of their row the ratio alone says something."""
    print("\n| three products and their sums | a message | under way | in turn | ratio |\n|---|---|---|---|---|")
    for device, late, size, turns in (("cpu:1", 3, 600, 25), ("sim:1", 20, 80, 5)):
        command = [build / "unisono", "launch", "-n", 2, "--devices", device, "bench/overlap.uni", size, turns]
        environment = {"UNISONO_FAULTS": f"slow 0 1 {late}; slow 1 0 {late}", "UNISONO_NCCL": "", "SIMCUDA": "goes_on=1"}
        pairs = [[measured([*command, kind], environment, None) for kind in ("free", "chained")] for _ in range(rounds)]
        a, b = (min(p[i] for p in pairs) for i in (0, 1))
        print(f"| {size} x {size}, {device} | {late} ms | {shown(a)} | {shown(b)} | {b / a:.2f} |", flush=True)


if __name__ == "__main__":
    main()
