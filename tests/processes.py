#!/usr/bin/env python3
"""Programs in several processes give what they give in one: output, messages, files and exit status, whoever moves the
bytes. Golden programs of maps under `unisono launch`, on CPUs and on simulated GPUs, by the host's memory and by a
simulated NCCL, and, where there is an mpirun for which libunisono_mpi.so was
built, under that; then processes that fail, or have another program. Those that are killed are killed_processes.py's,
what they read and write process_files.py's, what --stats and --trace tell of them process_reports.py's.

usage: tests/processes.py UNISONO [--full] [--seed N] [--slice I/N] [NAME ...]

Without --full a part of the programs runs, with one division into processes each, chosen by the seed (1). NAME is a part of the
test (usage, sums, failures, gpus, openmpi, many, goldens, gpu_goldens, sixteen, random), or a part of
programs' names. --slice 2/5: of what there are many of, the second of five parts.
"""
import argparse
import concurrent.futures
import functools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.argv, ARGUMENTS = sys.argv[:1], sys.argv[1:]  # tests/run reads them, too
import importlib.machinery
import importlib.util

loader = importlib.machinery.SourceFileLoader("run_tests", str(ROOT / "tests/run"))
run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
sys.path.insert(0, str(ROOT / "tests"))
loader.exec_module(run_tests)

import sanitizers
import simulated

parser = argparse.ArgumentParser()
parser.add_argument("unisono")
parser.add_argument("names", nargs="*")
parser.add_argument("--full", action="store_true")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--slice", default="1/1")
OPTIONS = parser.parse_intermixed_args(ARGUMENTS)
UNISONO = os.path.abspath(OPTIONS.unisono)
MPI_LIBRARY = pathlib.Path(UNISONO).parent / "libunisono_mpi.so"
SIMCUDA_LIBRARY = pathlib.Path(UNISONO).parent / "libsimcuda.so"
NCCL_LIBRARY = pathlib.Path(UNISONO).parent / "libsimnccl.so"
RANDOM = random.Random(OPTIONS.seed)
SLICE, SLICES = (int(part) for part in OPTIONS.slice.split("/"))
OF_PROGRAMS = ("goldens", "gpu_goldens", "sixteen", "random")
PARTS = ("usage", "sums", "files", "failures", "reports", "gpus", "openmpi", "many", *OF_PROGRAMS, "starts", "kills", "lags", "torn", "resumed", "gpu_kills",
         "resharded", "moved", "gpus_meanwhile", "gpus_resharded")
WANTED = [name for name in OPTIONS.names if name in PARTS]
NAMES = [name for name in OPTIONS.names if name not in PARTS]
LIMIT = sanitizers.limit()
PROBLEMS = []
COUNT = 0
# What cannot be the same, and why.
LEFT_OUT = {
    "tests/programs/nested/boxes.uni": "--explain-speed tells of one process",
    "tests/programs/maps/processes.uni": "it tells how many processes there are",
    "tests/errors/maps/watchdog.uni": "a process that does not come is named, not its device",
    "tests/programs/language/devices.uni": "there are more devices than were asked for in each process",
}


def launcher(processes, mpi):
    if mpi:
        return ["mpirun", "-n", str(processes), UNISONO, "run"]
    return [UNISONO, "launch", "-n", str(processes)]


def run(command, environment=None, cwd=ROOT, seconds=LIMIT):
    """Status, output and errors; the status None if it did not end."""
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, **(environment or {})})
    try:
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return None, out.decode(errors="replace"), err.decode(errors="replace")


def check(name, holds, *seen):
    global COUNT
    COUNT += 1
    if not holds:
        PROBLEMS.append(name)
        print(f"{name}\n" + "\n".join(str(s) for s in seen), "\n", flush=True)


def chosen(name):
    return not NAMES or any(part in name for part in NAMES)


def sliced(items):
    return list(items)[SLICE - 1::SLICES]


def several(function, items):
    """Calls of what waits more than it works, three at once; they draw no numbers."""
    has_mpi()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda item: function(*item), items))


@functools.cache
def has_mpi():
    instrumented = MPI_LIBRARY.parent.name.endswith(("sanitize", "threads"))  # which an MPI is not
    if not shutil.which("mpirun") or not MPI_LIBRARY.exists() or instrumented:
        return False
    return run(["mpirun", "-n", "2", "true"], seconds=30)[0] == 0  # a machine without names of hosts cannot


def processor_time():
    times = os.times()
    return times.children_user + times.children_system


def strip(text):
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def divisions(golden):
    """(options, processes, devices of each) of a program's runs on several devices."""
    for options in golden.runs:
        found = re.search(r"--devices cpu:(\d+)", " ".join(options))
        if not found:
            continue
        devices = int(found[1])
        for processes in (2, 3, 4, 8, 16):
            if devices % processes == 0:
                rest = [o for o in options if not o.startswith("cpu:") and o != "--devices"]
                yield rest, processes, devices // processes


def golden_programs(_=None):
    goldens = [g for g in run_tests.goldens() if g.has_expectation and g.command == ["run"] and g.name not in LEFT_OUT
               and chosen(g.name) and not {"--stats", "--trace"} & {o for r in g.runs for o in r}]
    cases = [(g, d) for g in goldens for d in divisions(g)]
    if not OPTIONS.full:
        by_name = {}
        for g, d in RANDOM.sample(cases, len(cases)):
            by_name.setdefault(g.name, (g, d))
        cases = RANDOM.sample(list(by_name.values()), min(60, len(by_name)))
    by_golden = {}
    for turn, (golden, division) in enumerate(sliced(cases)):
        # MPI waits by asking: many of its processes on few processors take long.
        with_mpi = division[1] <= 4 and (division[2] <= 2 if OPTIONS.full else RANDOM.random() < 0.25)
        by_golden.setdefault(golden.name, (golden, []))[1].append((turn, division, with_mpi))

    def runs(golden, turns):
        for turn, (rest, processes, each), with_mpi in turns:
            # Every other run has its exchanges under way while devices compute, whether or not that is worth it.
            faults = {"UNISONO_FAULTS": "eager"} if turn % 2 else {}
            for mpi in [False] + ([True] if with_mpi and has_mpi() else []):
                command = launcher(processes, mpi) + rest + ["--devices", f"cpu:{each}",
                                                             str(golden.path.relative_to(golden.folder)), *golden.args]
                status, out, err = run(command, faults, cwd=golden.folder)
                got = out + (err if golden.status else "")
                check(f"{faults} " + " ".join(command), status == golden.status and strip(got) == strip(golden.expected),
                      f"status {status}, expected:\n{golden.expected}got:\n{out}{err}")

    # Programs write files into their folder, so one program's runs go one after the other.
    several(runs, by_golden.values())


def sixteen_programs(_=None):
    """All programs of maps on 16 processes, whose messages come in any order, beside one process with 16 devices. Programs that
    are for fewer devices fail alike."""
    goldens = [g for g in run_tests.goldens() if g.command == ["run"] and g.name not in LEFT_OUT and chosen(g.name)
               and not {"--stats", "--trace"} & {o for r in g.runs for o in r} and any(divisions(g))
               and g.holder.name not in simulated.HEAVY]
    if not OPTIONS.full:
        # What takes a process seconds takes sixteen minutes.
        goldens = [g for g in goldens if not g.path.name.startswith(simulated.EVERY) and g.path.name not in simulated.LONG]
        goldens = RANDOM.sample(goldens, min(3, len(goldens)))
    for turn, golden in enumerate(sliced(goldens)):
        words = [str(golden.path.relative_to(golden.folder)), *golden.args]
        alone = run([UNISONO, "run", "--devices", "cpu:16", *words], cwd=golden.folder, seconds=4 * LIMIT)
        together = run(launcher(16, False) + ["--devices", "cpu:1", *words], {"UNISONO_FAULTS": f"reorder {turn}; eager"},
                       cwd=golden.folder, seconds=4 * LIMIT)  # sixteen compile it, on a few processors
        check(f"sixteen: {golden.name}", alone == together, alone, together)


def random_programs(_=None):
    """Random programs over devices of several processes, whose messages come in any order; with all of them, some under mpirun."""
    import random_programs as programs
    first = OPTIONS.seed * 1000
    divided = [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2), (16, 1)]
    for n in sliced(range(first, first + (200 if OPTIONS.full else len(divided)))):
        processes, each = divided[n % len(divided)]
        text = programs.RandomProgram(n, processes * each).text()
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.uni"
            program.write_text(text)
            alone = run([UNISONO, "run", "--devices", f"cpu:{processes * each}", program])
            for mpi in (False, True) if OPTIONS.full and processes == 2 and has_mpi() else (False,):
                together = run(launcher(processes, mpi) + ["--devices", f"cpu:{each}", program], {"UNISONO_FAULTS": f"reorder {n}; eager"})
                check(f"random program {n} on {processes} x {each} mpi={mpi}", alone == together, text, alone, together)


def gpu_environment(nccl, devices, turn):
    """Of simulated GPUs: which reach each other, in which order things happen, and what moves bytes between processes."""
    kinds = simulated.topologies(devices)
    return {"SIMCUDA": simulated.keys(kinds[turn % len(kinds)], turn % 8, races=turn % 3 == 0),
            "UNISONO_NCCL": str(NCCL_LIBRARY) if nccl else ""}


def gpu_programs(_=None):
    """Golden programs of maps on simulated GPUs, by the host's memory and by a simulated NCCL."""
    goldens = [g for g in run_tests.goldens() if g.has_expectation and g.command == ["run"] and g.name not in LEFT_OUT
               and chosen(g.name) and not {"--stats", "--trace"} & {o for r in g.runs for o in r}
               and g.name.startswith(simulated.COLLECTIVE) and g.path.name not in simulated.LEFT_OUT]
    cases = [(g, d) for g in goldens for d in divisions(g) if "--reference" not in d[0] and d[1] <= 3 and d[2] <= 4]
    if not OPTIONS.full:
        quick = [(g, d) for g, d in cases if g.path.name not in simulated.LONG and not g.path.name.startswith(simulated.EVERY)]
        by_name = {}
        for g, d in RANDOM.sample(quick, len(quick)):
            by_name.setdefault(g.name, (g, d))
        cases = RANDOM.sample(list(by_name.values()), min(30, len(by_name)))
    by_golden = {}
    for turn, (golden, division) in enumerate(sliced(cases)):
        by_golden.setdefault(golden.name, (golden, []))[1].append((turn, division))

    def runs(golden, turns):
        for turn, (rest, processes, each) in turns:
            for nccl in [False, True] if OPTIONS.full else [turn % 2 == 1]:
                command = launcher(processes, False) + rest + ["--devices", f"sim:{each}",
                                                               str(golden.path.relative_to(golden.folder)), *golden.args]
                environment = gpu_environment(nccl, each, turn)
                if turn % 4 in (0, 3):  # as on CPUs
                    environment["UNISONO_FAULTS"] = "eager"
                status, out, err = run(command, environment, cwd=golden.folder)
                got = re.sub(r"\bsim:(\d)", r"cpu:\1", out + (err if golden.status else ""))
                check(f"{environment} " + " ".join(command),
                      status == golden.status and strip(got) == strip(golden.expected) and "simcuda:" not in err,
                      f"status {status}, expected:\n{golden.expected}got:\n{out}{err}")

    several(runs, by_golden.values())


STEPS = """
axis dev = devices()
let step = pmap(fn(w) => w + psum(w, dev) / 16.0, over=dev)
var w = ones(f32[device_count(), 5000])
for i in range(200) { w = step(w) * 0.5 }
print(sum(w))
"""
# All have come so far when this file is there.
BEGUN = 'save("{}", [1.0])\n'
# Two sums are under way while something else is computed.
MEANWHILE = """
axis dev = devices()
@pmap(over=dev, in_axes=(none, split(0)), out_axes=none)
def step(w, x) {
  let a = transpose(x) @ tanh(x @ w)
  let b = psum(a, dev)
  let c = transpose(x) @ cos(x @ w)
  let d = psum(c, dev)
  let e = tanh(w @ w)
  tanh(b * 0.01 + d * 0.02) + psum(sum(e), dev) * 1e-9
}
let x = sin(arange(device_count() * 8 * 60, f32)).reshape((device_count() * 8, 60))
var w = ones(f32[60, 60])
for i in range(60) { w = step(w, x) }
print(sum(w), w[3, 5], w[59, 0])
"""
# The same for GPUs, without products of matrices, which simulated ones take long for.
GPUS_MEANWHILE = """
axis dev = devices()
@pmap(over=dev, in_axes=(none, split(0)), out_axes=none)
def step(w, x) {
  let b = psum(cumsum(tanh(x[0] * w)), dev)
  let c = cumsum(cos(x[0] * w))
  w * 0.5 + b * 1e-6 + psum(c, dev) * 1e-6
}
let x = sin(arange(device_count() * 70000, f32)).reshape((device_count(), 70000))
var w = ones(f32[70000])
for i in range(3) { w = step(w, x) }
print(sum(w), w[3], w[69999])
"""
MEMBERS = """
axis dev = devices()
def f(x) {
  print("member", axis_index(dev), process_index(), x)
  let y = psum(x, dev)
  print("then", axis_index(dev), y)
  10 // (axis_index(dev) - WHICH)
}
print("before")
print(pmap(f, over=dev)(arange(4, i32)))
print("after")
"""


def failures(folder):
    steps = folder / "steps.uni"
    steps.write_text(STEPS)

    def members(which):
        program = folder / f"members{which}.uni"
        program.write_text(MEMBERS.replace("WHICH", str(which)))
        alone = run([UNISONO, "run", "--devices", "cpu:4", program])
        alone = (alone[0], re.sub(r"(?m)^(.*member \d) 0 ", r"\1 # ", alone[1]), alone[2])
        for mpi in (False, True) if has_mpi() else (False,):
            for processes in (2, 4):
                together = run(launcher(processes, mpi) + ["--devices", f"cpu:{4 // processes}", program])
                together = (together[0], re.sub(r"(?m)^(.*member \d) \d ", r"\1 # ", together[1]), together[2])
                check(f"members {which} {processes} mpi={mpi}", alone == together, alone, together)

    several(members, [(0,), (1,), (3,), (9,)])
    whole = run([UNISONO, "run", "--devices", "cpu:4", steps])

    def link(faults):
        got = run(launcher(2, False) + ["--devices", "cpu:2", steps], {"UNISONO_FAULTS": faults})
        check(faults, got == whole, whole, got)

    several(link, [("slow 0 1 3",), ("slow 1 0 3; reorder 5",), ("reorder 9",)])
    # Nobody reads on: all stop, and say as little as one process.
    lines = folder / "lines.uni"
    lines.write_text("let x = pmap(fn(v) => v + 1.0)(arange(6, f32))\nfor i in range(100000) { print(i, x[0]) }\n")

    def unread(command):
        got = run(["bash", "-c", '"$@" | head -1; exit ${PIPESTATUS[0]}', "bash", *map(str, command), lines])
        check(f"unread {command}", got == (141, "0 1.0\n", ""), *got)

    several(unread, [([UNISONO, "run"],), (launcher(2, False),), (launcher(3, False),)])
    # Ctrl-C for all, as a terminal sends it.
    endless = folder / "endless.uni"
    begun = folder / "begun.npy"
    endless.write_text(BEGUN.format(begun) + STEPS.replace("range(200)", "range(100000000)"))
    process = subprocess.Popen(launcher(3, False) + [endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, text=True)
    sanitizers.comes(begun.exists, process)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    check("Ctrl-C", process.returncode == 130 and err.count("U0505") == 1, process.returncode, out, err)


SHARES = """
axis dev = devices()
print(process_count(), device_count(), pmap(fn(x) => x * 1.0 + psum(x, dev), over=dev)(arange(device_count(), f32)))
"""
# Sums of 16 bits are rounded once, at the end: partial results are 2051 and 259, of which every second number is an f16 or bf16.
SMALL = """
axis dev = devices()
let f = pmap(fn(x) => psum(x, dev), over=dev)
print(f(cast([2048.0, 1.0, 1.0, 1.0], f16)), f(cast([256.0, 1.0, 1.0, 1.0], bf16)))
"""
# Copies between the memory of GPUs and the host's are staged.
LARGE = """
axis dev = devices()
let y = pmap(fn(x) => psum(x % 7, dev), over=dev)(reshape(arange(120000, i32), (4, 30000)))
print(y[0, 0], y[3, 29999], sum(y[1]))
"""
ONE_FAILS = """
axis dev = devices()
def f(x, n) {
  let y = psum(x // (axis_index(dev) - n[0]), dev)
  y // (axis_index(dev) - n[1])
}
print(pmap(f, over=dev, in_axes=(split(0), none))(arange(4, i32), [FIRST, SECOND]))
"""


def gpus(folder):
    """Whose GPUs are whose; errors of members; processes that are killed or lag while GPUs wait for them."""
    shares = folder / "shares.uni"
    shares.write_text(SHARES)
    driver = {"UNISONO_CUDA_DRIVER": str(SIMCUDA_LIBRARY), "UNISONO_NCCL": str(NCCL_LIBRARY)}
    for environment, words, status, expected in [
            ({"SIMCUDA": "devices=4"}, ["-n", "2", "--devices", "cuda"], 0, "2 4 [6. 7. 8. 9.]\n"),
            ({"SIMCUDA": "devices=4"}, ["-n", "4", "--devices", "cuda"], 0, "4 4 [6. 7. 8. 9.]\n"),
            ({"SIMCUDA": "devices=4"}, ["-n", "3", "--devices", "cuda"], 2,
             "has 4 GPUs, which 3 processes there cannot share evenly: start 1 or 2 or 4 there"),
            ({"SIMCUDA": "devices=2"}, ["-n", "3", "--devices", "cuda"], 2, "start 1 or 2 there"),
            # Two devices on one GPU, and a library that is none: NCCL takes neither.
            ({"SIMCUDA": "devices=1"}, ["-n", "2", "--devices", "cuda:0,cuda:0"], 0, "2 4 [6. 7. 8. 9.]\n"),
            ({"SIMCUDA": "devices=2", "SIMNCCL": "refuse"}, ["-n", "2", "--devices", "cuda"], 0, "2 2 [1. 2.]\n"),
            ({"SIMCUDA": "devices=2", "UNISONO_NCCL": "/nowhere"}, ["-n", "2", "--devices", "cuda"], 0, "2 2 [1. 2.]\n"),
            ({"SIMCUDA": "devices=2"}, ["-n", "2", "--devices", "cuda:5"], 1, "there is no cuda:5")]:
        got, out, err = run([UNISONO, "launch", *words, shares], {**driver, **environment})
        by_host = "cuda:0,cuda:0" in words or "SIMNCCL" in environment or "UNISONO_NCCL" in environment
        good = got == status and (out == expected if status == 0 else expected in err and len(re.findall(r"(?m)^error", err)) == 1)
        check(f"{environment} launch {words}", good and by_host == ("by way of the host's memory" in err), got, out, err)

    for nccl in (False, True) if has_mpi() else ():
        got = run(launcher(2, True) + ["--devices", "sim:2", shares], gpu_environment(nccl, 2, 0))
        check(f"mpirun with GPUs, nccl={nccl}", got == (0, "2 4 [6. 7. 8. 9.]\n", ""), got)

    small = folder / "small.uni"
    small.write_text(SMALL)
    for processes in (1, 2, 4):
        got = run(launcher(processes, False) + ["--devices", f"sim:{4 // processes}", small], gpu_environment(processes == 2, 4 // processes, 0))
        check(f"small sums {processes}", got == (0, "[2052. 2052. 2052. 2052.] [260. 260. 260. 260.]\n", ""), got)
    large = folder / "large.uni"
    large.write_text(LARGE)
    for processes, nccl in ((2, False), (4, False), (2, True)):
        got = run(launcher(processes, False) + ["--devices", f"sim:{4 // processes}", large],
                  {**gpu_environment(nccl, 4 // processes, 0), "UNISONO_TUNING": "gpu_least_staged_copy=4096"})
        check(f"large sums {processes} nccl={nccl}", got == (0, "9 11 359997\n", ""), got)

    def fails(nccl, first, second):
        environment = gpu_environment(nccl, 2, 0)
        program = folder / f"fails{first}{second}{nccl}.uni"
        program.write_text(ONE_FAILS.replace("FIRST", str(first)).replace("SECOND", str(second)))
        alone = run([UNISONO, "run", "--devices", "sim:4", program], environment)
        for processes in (2, 4):
            together = run(launcher(processes, False) + ["--devices", f"sim:{4 // processes}", program], environment)
            check(f"fails {first} {second} {processes} nccl={nccl}", alone == together, alone, together)

    def members(nccl, which):
        environment = gpu_environment(nccl, 2, 0)
        program = folder / f"gpu_members{which}{nccl}.uni"
        program.write_text(MEMBERS.replace("WHICH", str(which)))
        alone = run([UNISONO, "run", "--devices", "sim:4", program], environment)
        alone = (alone[0], re.sub(r"(?m)^(.*member \d) 0 ", r"\1 # ", alone[1]), alone[2])
        together = run(launcher(2, False) + ["--devices", "sim:2", program], environment)
        together = (together[0], re.sub(r"(?m)^(.*member \d) \d ", r"\1 # ", together[1]), together[2])
        check(f"gpu members {which} nccl={nccl}", alone == together, alone, together)

    kinds = (False, True)
    several(fails, [(nccl, *which) for nccl in kinds for which in [(9, 9), (0, 9), (3, 1), (9, 0), (9, 3)]])
    several(members, [(nccl, which) for nccl in kinds for which in (0, 1, 3, 9)])


def usage(folder):
    program = folder / "one.uni"
    program.write_text("print(process_count(), device_count())\n")
    other = folder / "two.uni"
    other.write_text("print(process_count() + 1)\n")
    for words, status, expected in [
            (["-n", "3", program], 0, "3 3\n"),
            (["-n", "1", program], 0, "1 1\n"),
            (["-n", "2", "--devices", "cpu:3", program], 0, "2 6\n"),
            (["-n", "2", "-e", "process_count()"], 0, "2\n"),
            (["-n", "2", program, "--devices", "sim:2"], 0, "2 4\n"),
            (["-n", "2", "--explain-speed", program], 2, "--explain-speed tells of one process"),
            (["-n", "2", "-"], 2, "cannot share standard input"),
            (["-n", "3", "--devices", "cpu:32", program], 0, "3 96\n"),
            (["-n", "2", "--devices", "cpu:65", program], 2, "--devices expects"),
            (["-n", "2", folder / "none.uni"], 1, "none.uni"),
            (["-n", "2", "--devices", "cpu:x", program], 2, "--devices expects"),
            (["-n", "2"], 2, "there is no file"),
            (["4", program], 2, "how many processes stands behind -n: `unisono launch -n 4 FILE`"),
            (["-n", "0", program], 2, "-n"),
            (["-n", "2", "--all-output", program], 0, "")]:
        got, out, err = run([UNISONO, "launch", *words])
        text = out + err
        good = got == status and (text == expected if status == 0 and expected else expected in text)
        if "--all-output" in words:
            good = sorted(out.splitlines()) == ["[process 0] 2 2", "[process 1] 2 2"]
        if status and expected != "-n":
            good = good and len(re.findall(r"(?m)^error", text)) == 1
        check(f"launch {words}", good, got, out, err)
    got = run([UNISONO, "run", "-n", "4", program])
    check("run -n", got[0] == 2 and "`unisono launch -n N FILE`" in got[2] and "`mpirun -n N" in got[2], got)
    if has_mpi():
        got = run(["mpirun", "-n", "1", UNISONO, "run", program, ":", "-n", "1", "env", "UNISONO_TUNING=least", UNISONO, "run", program])
        check("other thresholds", got[0] == 1 and "process 0 and process 1 have other thresholds: UNISONO_TUNING and" in got[2], got)
    got = run([UNISONO, "run", program], {"UNISONO_FAULTS": "nonsense"})
    check("faults alone", got[0] == 0, got)
    # Processes of a launcher that do not find each other.
    apart = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}
    got = run([UNISONO, "run", program], apart)
    check("srun without MPI", got[:2] == (0, "1 1\n") and got[2].startswith("note: srun has started 4 processes, and each"), got)
    got = run([UNISONO, "run", program], {**apart, "SLURM_PROCID": "1"})
    check("srun without MPI, another one", got == (0, "1 1\n", ""), got)
    got = run([UNISONO, "launch", "-n", "2", program], {"PMI_RANK": "0", "PMI_SIZE": "2"})
    check("launch under a launcher", got[0] == 2 and "several processes already" in got[2], got)
    # Where an array lies is asked for in the words of one process, or with processes and hosts.
    program.write_text("axis dev = devices()\nlet x = pmap(fn(v) => v * 2.0)(ones(f32[6]))\n"
                       "print(sharding(x))\nprint(sharding(x, processes=true))\nprint(sharding([1.0, 2.0], processes=true))\n"
                       "print([process_index(d) for d in devices(x)])\n")
    for n in (1, 2, 3):
        on = lambda p: f"(process {p} on {os.uname().nodename[:63]})"
        parts = [", ".join(f"cpu:{d}" for d in range(p * 6 // n, (p + 1) * 6 // n)) + " " + on(p) for p in range(n)]
        expected = (f"split(0) over {', '.join(f'cpu:{d}' for d in range(6))}\nsplit(0) over {', '.join(parts)}\n"
                    f"on cpu:0 {on(0) if n == 1 else '(each process)'}\n[{' '.join(str(d * n // 6) for d in range(6))}]\n")
        for command in [[UNISONO, "run"] if n == 1 else launcher(n, False)] + ([launcher(n, True)] if has_mpi() and n > 1 else []):
            got = run([*command, "--devices", f"cpu:{6 // n}", program])
            check(f"sharding with processes {command}", got == (0, expected, ""), expected, *got)
    program.write_text("print(process_count(), device_count())\n")
    if has_mpi():
        got = run(["mpirun", "-n", "1", UNISONO, "run", program, ":", "-n", "1", UNISONO, "run", other])
        check("two programs", got[0] == 1 and got[2].count("do different things at the program's text") == 1, got)
        for words, differ in ((("cpu:1", "cpu:3"), "process 0 has 1 devices, and process 1 has 3"),
                              (("cpu:1", "sim:1"), "process 0 has cpu devices, and process 1 has sim devices"),
                              (("cuda", "cpu:1"), "process 0 has cuda devices, and process 1 has cpu devices")):
            one = ["-n", "1", UNISONO, "run", program, "--devices"]
            got = run(["mpirun", *one, words[0], ":", *one, words[1]])
            check(f"devices that differ {words}", got[0] == 1 and len(re.findall(r"(?m)^error", got[2])) == 1
                  and f"{differ}: `--devices` must be the same in all processes" in got[2], got)
        for environment in ({"PMI_RANK": "0", "PMI_SIZE": "2"}, {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
                            {"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "2"}):
            got = run([UNISONO, "run", program], environment)
            check(f"another MPI's launcher {environment}", got[:2] == (1, "") and "a launcher has started 2 processes, but MPI (" in got[2]
                  and "knows of 1" in got[2], got)
        got = run(["mpirun", "-n", "2", UNISONO, "run", program, "--nonsense"])
        check("an unknown option", got[0] == 2 and got[2].count("not expected") == 1, got)
        got = run(["mpirun", "-n", "2", UNISONO, "run", program], {"UNISONO_MPI": "/nowhere/libunisono_mpi.so"})
        check("no library", got[0] == 1 and got[2].count("cannot use /nowhere/libunisono_mpi.so") == 1, got)
        for command in ("test", "bench"):
            got = run(["mpirun", "-n", "2", UNISONO, command, program])
            check(f"{command} under mpirun", got[0] == 2 and got[1] == "" and got[2].count("run in one process") == 1, *got)
        got = run(["mpirun", "-n", "4", UNISONO, "run", program])
        check("mpirun", got == (0, "4 4\n", ""), got)
        # Open MPI's processes write to a terminal of its own.
        program.write_text("visualize(pmap(fn(v) => v)(arange(4)))\n")
        terminal = ROOT / "tests/tools/on_terminal.py"
        for command, colours in (([], True), (["mpirun", "-n", "2"], False)):
            got = run([*command, terminal, UNISONO, "run", "--devices", "cpu:2", program], {"TERM": "xterm", "NO_COLOR": ""})
            check(f"colours {command}", got[0] == 0 and ("\x1b[" in got[1]) == colours and "cpu:1" in got[1], got)
        program.write_text("print(process_count(), device_count())\n")
        got = run(["mpirun", "-n", "2", UNISONO, "devices", "--devices", "cpu:2"])
        shown = re.sub(r"on \S+\n", "on HOST\n", got[1])
        check("devices", got[0] == 0 and shown.startswith("".join(f"cpu:{d}  process {d // 2} on HOST\n" for d in range(4)))
              and shown.count("\n") == 5 and "2 processes, which talk over MPI" in shown, *got)
        got = run(["mpirun", "-n", "2", UNISONO, "devices", "--devices", "sim:2"])
        shown = re.sub(r"on \S+\n", "on HOST\n", got[1])
        check("simulated devices", got[0] == 0 and shown.startswith("".join(f"sim:{d}  process {d // 2} on HOST\n" for d in range(4)))
              and shown.endswith("bytes go by host memory\n"), *got)


# Sums that are cut into windows, of numbers that do not fit them; some lie where their operands were.
SUMS = """
axis dev = devices()
let n = int(args()[0])
let x = sin(arange(device_count() * n, f32)).reshape((device_count(), n))
@pmap(over=dev, out_axes=none)
def sums(x) = (psum(x * 1.5, dev), pmax(x - 0.5, dev), cast(psum(cast(x, bf16), dev), f32))
@pmap(over=dev)
def turns(x) {
  var y = x
  for i in range(5) { y = psum(y * 0.4, dev) }
  let z = tanh(y)
  (y, psum(z, dev) * axis_index(dev))
}
let (y, z) = turns(x)
save(args()[1], (s = sums(x), y = y[device_count() - 1], z = z[device_count() - 1]))
"""


def sums(folder):
    """Large sums have the bits of one process, whoever moves the bytes: also where no process may read another one's memory."""
    program = folder / "sums.uni"
    program.write_text(SUMS)
    divided = [(n, processes, each) for n in (1_000_003, 4 << 20) for processes in (2, 3, 4) for each in (1, 2)]
    if not OPTIONS.full:
        divided = [d for d in divided if d[1:] in (((2, 1), (3, 2), (4, 1)) if d[0] < 4 << 20 else ((2, 1),))]

    def saved(name, command, n, environment=None):
        path = folder / f"{name}.npz"
        got = run([*command, program, str(n), str(path)], environment)
        data = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)
        return got, data

    for n in sorted({d[0] for d in divided}):
        alone = {}
        for _, processes, each in (d for d in divided if d[0] == n):
            devices = processes * each
            if devices not in alone:
                alone[devices] = saved("alone", [UNISONO, "run", "--devices", f"cpu:{devices}"], n)
            ways = [("sockets", launcher(processes, False), {"UNISONO_FAULTS": "eager"})]
            if has_mpi() and (processes == 2 or OPTIONS.full):
                ways += [("MPI", launcher(processes, True), None)]
            if has_mpi() and (processes, each) == (2, 1):
                forbidden = ["mpirun", "-n", "2", ROOT / "tests/tools/without_readv.py", UNISONO, "run"]
                ways += [("MPI without readv", forbidden, None)]
            for name, command, environment in ways:
                got = saved(name, [*command, "--devices", f"cpu:{each}"], n, environment)
                check(f"sums of {n} on {processes} x {each}, {name}", alone[devices][0] == (0, "", "") and len(got[1]) > 16 * n
                      and got == alone[devices], alone[devices][0], got[0], len(got[1]))


def many(folder):
    """More devices than one process may have: what they give is what is expected of any number."""
    program = folder / "many.uni"
    text = ("axis dev = devices()\n@pmap(over=dev)\ndef f(x) {\n  let i = axis_index(dev)\n"
                       "  (psum(i, dev), pmax(process_index(), dev), sum(all_gather(i, dev)), psum(ones(f32[20000]) * x, dev)[19999],\n"
                       "   ppermute(i, dev, PAIRS))\n}\n"
                       "let r = f(ones(f32[device_count()]))\nprint(device_count(), r.0[0], r.1[5], r.2[7], r.3[9], r.4[0])\n")
    for processes, each, faults in ((16, 8, ""), (16, 5, "reorder 3"), (3, 40, "slow 2 0 2")):
        n = processes * each
        program.write_text(text.replace("PAIRS", f"({', '.join(f'({d}, {(d + 1) % n})' for d in range(n))})"))
        got = run(launcher(processes, False) + ["--devices", f"cpu:{each}", program], {"UNISONO_FAULTS": faults})
        check(f"{n} devices", got == (0, f"{n} {n * (n - 1) // 2} {processes - 1} {n * (n - 1) // 2} {float(n)} {n - 1}\n", ""), *got)


def open_mpi(folder):
    """The other MPI, where the machine has it beside the one that the library was built for."""
    words = [shutil.which(name) for name in ("mpicxx.openmpi", "mpirun.openmpi")]
    if not all(words) or not has_mpi() or os.path.samefile(words[1], shutil.which("mpirun")):
        return
    library = folder / "libunisono_mpi.so"
    flags = [run([words[0], f"--showme:{what}"])[1].split() for what in ("compile", "link")]
    compiler = shutil.which("clang++-19") or "c++"
    built = run([compiler, "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{ROOT}", *flags[0], str(ROOT / "runtime/cluster/mpi_library.cc"),
                 *flags[1], "-o", str(library)])
    check("Open MPI's library", built[0] == 0, *built)
    program = folder / "sums.uni"
    program.write_text("axis dev = devices()\n@pmap(over=dev)\ndef f(x) {\n  let y = x * sin(arange(30000, f32))\n"
                       "  (sum(psum(y, dev)), psum(x, dev), sum(all_gather(y, dev)))\n}\nprint(f(arange(device_count(), f32)))\n")
    alone = run([UNISONO, "run", "--devices", "cpu:6", program])
    environment = {"UNISONO_MPI": str(library), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for n in (2, 3):
        got = run([words[1], "--oversubscribe", "-n", str(n), UNISONO, "run", "--devices", f"cpu:{6 // n}", program], environment)
        check(f"Open MPI {n}", alone[0] == 0 and got[:2] == alone[:2], alone, got)


def run_parts(parts):
    """Those of the functions, by name, that the command line wants; each has a folder to write to. Gives the exit status."""
    times = []
    with tempfile.TemporaryDirectory() as name:
        for part, function in parts.items():
            if part not in WANTED if WANTED else NAMES and part not in OF_PROGRAMS:
                continue
            begin, used = time.monotonic(), processor_time()
            function(pathlib.Path(name))
            times.append(f"{part} {time.monotonic() - begin:.0f} s ({processor_time() - used:.0f})")
    print(f"{COUNT} checks, {len(PROBLEMS)} failed" + ("" if has_mpi() else "; without MPI") + ": " + ", ".join(times))
    return 1 if PROBLEMS or COUNT == 0 else 0


def main():
    return run_parts({"usage": usage, "sums": sums, "failures": failures, "gpus": gpus, "openmpi": open_mpi,
                      "many": many, "goldens": golden_programs, "gpu_goldens": gpu_programs, "sixteen": sixteen_programs,
                      "random": random_programs})


if __name__ == "__main__":
    sys.exit(main())
