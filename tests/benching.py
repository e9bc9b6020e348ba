#!/usr/bin/env python3
"""`unisono bench`: what it finds, measures, says, writes and compares. Nothing here depends on how long something takes.

usage: tests/benching.py UNISONO
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import sanitizers

UNISONO = os.path.abspath(sys.argv[1])
SECONDS = sanitizers.limit()
PROBLEMS = []
QUICK = ["--seconds", "0.01"]

PROGRAM = """\
print("the file runs once, and nobody sees it")
var counter = 1
let x = ones(f32[100_000])
let f = jit(fn(x) => 2.0 * x + 1.0)

bench "kernel" { f(x) }
bench "lazy" { x + x }
bench "small" { sum(ones(f32[8])) }
bench "assigns" { counter += 1
  print(counter) }
test "is none" { assert(counter == 1) }
"""


class Ran:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"status {self.status}\nout: {self.out}\nerr: {self.err}"


def bench(folder, *words):
    return Ran(subprocess.run([UNISONO, "bench", *words], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False))


def expect(name, ran, status, out="", err="^$"):
    if ran.status != status or not re.search(out, ran.out, re.M) or not re.search(err, ran.err, re.M):
        PROBLEMS.append(f"{name}: wanted status {status}, {out!r}, {err!r}\n{ran}")


TIME = r"[\d.e+]+ (ns|us|ms|s)"


def whole(folder):
    (folder / "a.uni").write_text(PROGRAM)
    (folder / "none.uni").write_text('save("ran.npy", [1])\n')
    ran = bench(folder, *QUICK, "--json", "new.json")
    expect("all of a folder", ran, 0, rf"^peak, measured: [\d.e+]+ GB/s, [\d.e+]+ Gflop/s of f32$")
    for name in ("kernel", "lazy"):
        expect(name, ran, 0, rf"^a\.uni: {name} +{TIME} +{TIME} … {TIME} +[\d.e+]+ +\d+ +[\d.e+]+ +\d+( +\(not stable\))?$")
    for name in ("small", "assigns"):
        expect(name, ran, 0, rf"^a\.uni: {name} +{TIME} +{TIME} … {TIME} +- +- +- +-")
    if (folder / "ran.npy").exists():
        PROBLEMS.append("a file without blocks was run")
    results = json.loads((folder / "new.json").read_text())
    if [b["name"] for b in results["benches"]] != ["kernel", "lazy", "small", "assigns"] or results["devices"] != ["cpu:0"]:
        PROBLEMS.append(f"--json: {results}")
    kernel = results["benches"][0]
    if (kernel["flops"], kernel["bytes"], kernel["file"], kernel["line"]) != (200_000, 800_000, "a.uni", 6):
        PROBLEMS.append(f"what a kernel does: {kernel}")
    if not all(b["low"] <= b["median"] <= b["high"] and b["least"] <= b["mean"] and b["runs"] >= b["samples"] >= 3
               for b in results["benches"]):
        PROBLEMS.append(f"numbers in disorder: {results}")
    if results["benches"][2]["flops"] is not None or results["peak"]["flops_per_second"] <= 0:
        PROBLEMS.append(f"--json: {results}")

    expect("some", bench(folder, *QUICK, "--no-peak", "--filter", "a.uni: s"), 0, r"\A +median[^\n]*\na\.uni: small [^\n]*\n\Z")
    expect("several devices", bench(folder, *QUICK, "--no-peak", "--devices", "cpu:3", "a.uni"), 0, "^a.uni: kernel")
    expect("none of this name", bench(folder, "--filter", "qqq"), 1, r"\A\Z", r"\Ano bench has `qqq` in its name\n\Z")
    expect("no blocks", bench(folder, "none.uni"), 1, r"\A\Z", r"\Ano benches: they are `bench \"name\"")
    return results


def comparison(folder, results):
    def compare(name, change, *patterns, status=0):
        changed = json.loads(json.dumps(results))
        change(changed["benches"])
        (folder / "old.json").write_text(json.dumps(changed))
        for pattern in patterns:
            expect(name, bench(folder, *QUICK, "--no-peak", "--compare", "old.json", "--filter", "kernel"), status, pattern)

    def times(factor):
        def change(benches):
            for key in ("low", "median", "high"):
                benches[0][key] *= factor
        return change
    compare("much faster", times(1000), rf"^a\.uni: kernel .* 0\.0\d of {TIME}: faster", r"^1 faster, 0 slower, 0 as before, 0 new$")
    compare("much slower", times(1e-3), rf"^a\.uni: kernel .* \d+\.\d\d of {TIME}: slower", r"^0 faster, 1 slower, 0 as before, 0 new$")

    def wide(benches):
        benches[0]["low"] *= 1e-6
        benches[0]["high"] *= 1e6
    compare("within noise", wide, r"^0 faster, 0 slower, 1 as before, 0 new$")
    compare("new", lambda benches: benches.clear(), r"^0 faster, 0 slower, 0 as before, 1 new$")

    def renamed(benches):
        benches[0]["name"] = "kernel of old"
    compare("gone", renamed, r"^a\.uni: kernel of old: not there any more$")
    for text in ("", "{}", "[1]", '{"version": 7, "benches": []}', '{"version": 1, "benches": [{}]}'):
        (folder / "old.json").write_text(text)
        expect(f"compared with {text}", bench(folder, "--compare", "old.json"), 2, r"\A\Z", r"\Aerror: cannot compare with `old.json`: ")
    expect("compared with nothing", bench(folder, "--compare", "gone.json"), 2, r"\A\Z", "No such file")


def mistakes(folder):
    (folder / "a.txt").write_text("")
    expect("no file", bench(folder, "absent.uni"), 2, r"\A\Z", "^error: `absent.uni` is not there")
    expect("another file", bench(folder, "a.txt"), 2, r"\A\Z", "^error: `a.txt` is no .uni file")
    for value in ("x", "-1", "nan", "1e999"):
        expect(f"--seconds {value}", bench(folder, f"--seconds={value}"), 2, r"\A\Z", "^error: --seconds expects")
    (folder / "wrong.uni").write_text('bench "x" { y }\n')
    expect("a wrong program", bench(folder, "wrong.uni"), 1, r"\A\Z", r"^error\[U0201\]")
    (folder / "fails.uni").write_text('bench "fails" { assert(sum(ones(f32[3])) == 4.0) }\nbench "goes on" { 1 }\n')
    ran = bench(folder, *QUICK, "--no-peak", "fails.uni", "--json", "fails.json")
    expect("a block that fails", ran, 1, r"^fails.uni: goes on", r"^FAILED fails.uni: fails\nerror\[U\d+\]")
    (folder / "top.uni").write_text('assert(sum(ones(f32[3])) == 4.0)\nbench "x" { 1 }\n')
    expect("a file that fails", bench(folder, *QUICK, "--no-peak", "top.uni"), 1, "", r"^error\[U\d+\]")
    (folder / "inner.uni").write_text('def f() {\n  bench "x" { 1 }\n}\n')
    expect("a block inside", bench(folder, "inner.uni"), 1, r"\A\Z", r"^error\[U\d+\].*`bench`")
    expect("no room for results", bench(folder, *QUICK, "--no-peak", "--filter", "small", "--json", "no/where.json"), 1, "", "^error: cannot write `no/where.json`")


def interrupted(folder):
    (folder / "long.uni").write_text('bench "long" { var i = 0\n  while true { i += 1 } }\n')
    child = subprocess.Popen([UNISONO, "bench", "--no-peak", "long.uni"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=SECONDS)
    if child.returncode != 130:
        PROBLEMS.append(f"Ctrl-C: status {child.returncode}\n{out}{err}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        comparison(folder, whole(folder))
        mistakes(folder)
        interrupted(folder)
    print("\n\n".join(PROBLEMS) or "benches: all as they should be")
    return 1 if PROBLEMS else 0


sys.exit(main())
