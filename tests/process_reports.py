#!/usr/bin/env python3
"""What --stats and --trace tell of several processes, and with them that devices compute while something travels, that what lies where
it is needed is not sent, and that resharding sends what differs. A test beside processes.py, whose command line it has.

usage: tests/process_reports.py UNISONO [reports] [resharded] [moved] [gpus_meanwhile] [gpus_resharded]
"""
import json
import re
import sys

from processes import GPUS_MEANWHILE, MEANWHILE, MEMBERS, UNISONO, check, gpu_environment, has_mpi, launcher, run, run_parts

# The columns of one map's rows are on their way while the rows of another array are computed.
RESHARDED = """
axis dev = devices()
let x = sin(arange(device_count() * 60 * 1200, f32)).reshape((device_count() * 60, 1200))
let rows = pmap(fn(v) => tanh(v), in_axes=split(0), out_axes=split(0))
@pmap(over=dev, in_axes=(split(0), split(1)), out_axes=(none, split(1)))
def both(r, c) {
  let m = r @ transpose(r)
  let s = psum(sum(m @ m), dev)
  (s, c - s * 1e-9)
}
let r = rows(x)
var y = r
for i in range(4) {
  let (s, c) = both(r, y)
  print(s)
  y = rows(c)
}
print(sum(y), y[3, 5])
"""
GPUS_RESHARDED = """
axis dev = devices()
let x = sin(arange(device_count() * 2 * 40000, f32)).reshape((device_count() * 2, 40000))
let rows = pmap(fn(v) => v * 0.5, in_axes=split(0), out_axes=split(0))
@pmap(over=dev, in_axes=(split(0), split(1)), out_axes=(none, split(1)))
def both(r, c) {
  let s = psum(sum(cumsum(tanh(r), axis=1)), dev)
  (s, c - s * 1e-9)
}
let r = rows(x)
var y = r
for i in range(2) {
  let (s, c) = both(r, y)
  print(s)
  y = rows(c)
}
print(sum(y), y[1, 5])
"""


def reports(folder):
    """--stats and --trace tell of all processes; the trace shows that devices compute while what they exchange is on its way."""
    import trace as traces  # tests/trace.py
    program = folder / "meanwhile.uni"
    program.write_text(MEANWHILE.replace("60", "300").replace("range(300)", "range(4)"))
    alone = run([UNISONO, "run", "--devices", "cpu:4", "--stats", program])
    rows = r"(?m)^(cpu:\d) +(\d+) +\S+ +(\d+) +(\S+)"
    for mpi in (False, True) if has_mpi() else (False,):
        path = folder / f"trace{mpi}.json"
        got = run(launcher(2, mpi) + ["--devices", "cpu:2", "--stats", "--trace", path, program], {"UNISONO_FAULTS": "slow 0 1 30; slow 1 0 30"})
        # Collectives and their bytes are those of one process.
        devices = re.findall(rows, got[2])
        check(f"stats mpi={mpi}", got[:2] == alone[:2] and [d[0] for d in devices] == [f"cpu:{d}" for d in range(4)]
              and [d[2:] for d in devices] == [d[2:] for d in re.findall(rows, alone[2])]
              and len(re.findall("(?m)^compiled", got[2])) == 1, *alone, *got)
        trace = json.loads(path.read_text())
        traces.viewable(trace)
        events = trace["traceEvents"]
        named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        check(f"processes of a trace mpi={mpi}", named == {1: "process 0", 2: "process 1"} and {t.partition(",")[0] for (p, _), t in threads.items()
              if p == 2} == {"cpu:2", "cpu:3", "host"}, named, threads)
        # A busy machine may let the kernels end before the thread of the exchange begins: not each time.
        for attempt in range(3):
            if attempt > 0:
                run(launcher(2, mpi) + ["--devices", "cpu:2", "--stats", "--trace", path, program], {"UNISONO_FAULTS": "slow 0 1 30; slow 1 0 30"})
                events = json.loads(path.read_text())["traceEvents"]
            spans = {pid: [(e["cat"], e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["pid"] == pid and e["ph"] == "X"] for pid in (1, 2)}
            meanwhile = {pid: [c for c in mine if c[0] == "collective" and any(k[0] == "kernel" and c[1] < k[1] and k[2] < c[2] for k in mine)]
                         for pid, mine in spans.items()}
            if all(len(found) >= 2 for found in meanwhile.values()):
                break
        for pid, found in meanwhile.items():
            check(f"kernels while exchanges are under way, process {pid - 1} mpi={mpi}", len(found) >= 2, spans[pid])
    failing = folder / "failing.uni"
    failing.write_text(MEMBERS.replace("WHICH", "3"))
    path = folder / "failed.json"
    got = run(launcher(2, False) + ["--devices", "cpu:2", "--stats", "--trace", path, failing])
    check("stats of a failure", got[0] == 1 and got[2].count("error[") == 1 and re.findall(rows, got[2])[0][0] == "cpu:0", *got)
    traces.viewable(json.loads(path.read_text()))
    got = run(launcher(2, False) + ["--trace", folder / "none" / "trace.json", program])
    check("no folder for a trace", got[0] == 2 and got[2].count("error: --trace cannot write") == 1, *got)


def resharded(folder):
    """The first kernel of a run does not wait for what another split of an array needs, over a link that makes it late."""
    program = folder / "resharded.uni"
    program.write_text(RESHARDED)
    late = {"UNISONO_FAULTS": "slow 0 1 60; slow 1 0 60"}
    for mpi in (False, True) if has_mpi() else (False,):
        for each in (1, 2):
            alone = run([UNISONO, "run", "--devices", f"cpu:{2 * each}", program])
            path = folder / f"resharded{each}{mpi}.json"
            got = run(launcher(2, mpi) + ["--devices", f"cpu:{each}", "--trace", path, program], late)
            check(f"resharded, {each} each mpi={mpi}", alone[0] == 0 and got[:2] == alone[:2], alone, got)
            events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
            for pid in (1, 2):
                mine = [e for e in events if e["pid"] == pid]
                copies = [e for e in mine if e["cat"] == "copy" and e["dur"] >= 20_000]
                # Its kernels are done, and devices wait, before what was begun first has arrived.
                waits = [e for e in mine if e["cat"] == "wait" and any(e["ts"] < c["ts"] + c["dur"] < e["ts"] + e["dur"] for c in copies)]
                check(f"kernels while an array is resharded, process {pid - 1}, {each} each mpi={mpi}", len(waits) >= 3, mine)
    # The reference evaluator waits for what it reads, too.
    small = folder / "reshard.uni"
    small.write_text("let y = pmap(fn(r) => 2 * r)(reshape(arange(8, f32), (4, 2)))\nlet z = pmap(fn(r) => r + 1, over=devices(2))(y)\nprint(z)\n")
    alone = run([UNISONO, "run", "--devices", "cpu:4", small])
    for options in ([], ["--reference"]):
        got = run(launcher(4, False) + [*options, "--devices", "cpu:1", small], {"UNISONO_FAULTS": "eager; slow 2 0 40; slow 3 1 40"})
        check(f"resharded, eager {options}", alone[0] == 0 and got == alone, alone, got)


# By the host's memory, over links that make each message late, and on GPUs that go on by themselves.
def late_by_host(devices, processes, late):
    environment = gpu_environment(False, devices, 0)
    links = "; ".join(f"slow {a} {b} {late}" for a in range(processes) for b in range(processes) if a != b)
    return {**environment, "SIMCUDA": environment["SIMCUDA"] + ";goes_on=1", "UNISONO_FAULTS": links}


def spans_of(path):
    """Of a trace: kind, device, begin and end of each event."""
    events = json.loads(path.read_text())["traceEvents"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"].partition(",")[0] for e in events if e["name"] == "thread_name"}
    return [(e["cat"], threads[e["pid"], e["tid"]], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]


def with_kernels(spans, kind):
    """Those of a kind in whose time a kernel of the same device runs for most of its own: it may begin before the thread that exchanges wakes."""
    kernels = [s for s in spans if s[0] == "kernel"]

    def most(k, c):
        return k[1] == c[1] and min(k[3], c[3]) - max(k[2], c[2]) > (k[3] - k[2]) / 2

    return [c for c in spans if c[0] == kind and any(most(k, c) for k in kernels)]


def gpus_meanwhile(folder):
    """A GPU computes while what it exchanges is on its way: by NCCL, and by the host's memory."""
    program = folder / "gpus_meanwhile.uni"
    program.write_text(GPUS_MEANWHILE)
    alone = run([UNISONO, "run", "--devices", "sim:4", program], gpu_environment(True, 4, 0))
    for each in (1, 2):
        path = folder / f"gpus{each}.json"
        for way, environment in (("NCCL", gpu_environment(True, each, 0)), ("the host", late_by_host(each, 4 // each, 100))):
            got = run(launcher(4 // each, False) + ["--devices", f"sim:{each}", "--trace", path, program], environment)
            check(f"GPUs under way, {each} each, by {way}", alone[0] == 0 and got[:2] == alone[:2] and "simcuda" not in got[2], alone, got)
            spans = spans_of(path)
            check(f"kernels while GPUs exchange, {each} each, by {way}", len(with_kernels(spans, "collective")) >= 2, spans)


def gpus_resharded(folder):
    """So it does while what another split of an array needs is on its way by the host's memory."""
    program = folder / "gpus_resharded.uni"
    program.write_text(GPUS_RESHARDED)
    for each in (1, 2):
        alone = run([UNISONO, "run", "--devices", f"sim:{2 * each}", program], gpu_environment(False, 2 * each, 0))
        path = folder / f"gpus_resharded{each}.json"
        got = run(launcher(2, False) + ["--devices", f"sim:{each}", "--trace", path, program], late_by_host(each, 2, 100))
        check(f"GPUs resharded, {each} each", alone[0] == 0 and got[:2] == alone[:2] and "simcuda" not in got[2], alone, got)
        spans = spans_of(path)
        check(f"kernels while GPUs' array is resharded, {each} each", len(with_kernels(spans, "copy")) >= 2, spans)

# A chain of maps whose placements match, and one that wants another split.
MOVED = """
axis dev = devices()
let n = device_count()
let rows = pmap(fn(v) => tanh(v), in_axes=split(0), out_axes=split(0))
let columns = pmap(fn(v) => v + 1.0, in_axes=split(1), out_axes=split(1))
var y = rows(ones(f32[4 * n, 1000]))
for i in range(5) { y = rows(y) }
let z = columns(y)
for i in range(5) { y = columns(z) }
"""


def moved(folder):
    """Bytes that go from device to device: those of the first array's blocks, which the host had, and of one resharding."""
    program = folder / "moved.uni"
    program.write_text(MOVED)
    for n, each in ((2, 1), (2, 2), (4, 1)):
        devices = n * each
        got = run(launcher(n, False) + ["--devices", f"cpu:{each}", "--stats", program])
        copied = {(int(a), int(b)): int(size) for a, b, size in re.findall(r"(?m)^copied cpu:(\d+) → cpu:(\d+): (\d+) bytes", got[2])}
        block = 4 * 1000 * 4
        expected = {(a, b): block // devices + (block if a == 0 else 0) for a in range(devices) for b in range(devices)}
        check(f"moved, {n} x {each}", got[0] == 0 and copied == expected, expected, *got)



if __name__ == "__main__":
    sys.exit(run_parts({"reports": reports, "resharded": resharded, "moved": moved, "gpus_meanwhile": gpus_meanwhile,
                        "gpus_resharded": gpus_resharded}))
