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


# Milliseconds that each message is late. What kernels are done before it comes is a matter of the program's order alone if it comes late
# enough for the machine, however busy that is; where nothing goes on meanwhile no lateness helps.
LATER = (30, 100, 600, 3000)


def slow(processes, late):
    return "; ".join(f"slow {a} {b} {late}" for a in range(processes) for b in range(processes) if a != b)


def spans_of(path):
    """Of a trace, by device: (kind, name, line of the program, begin, end) of each event, in the order of their ends."""
    if not path.exists():
        return {}
    events = json.loads(path.read_text())["traceEvents"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"].partition(",")[0] for e in events if e["name"] == "thread_name"}
    spans = {}
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"] + e["dur"]):
        device = threads[e["pid"], e["tid"]]
        line = re.match(r"\S*?:(\d+):", e.get("args", {}).get("source", ""))
        if device != "host":
            spans.setdefault(device, []).append((e["cat"], e["name"], int(line[1]) if line else 0, e["ts"], e["ts"] + e["dur"]))
    return spans


def line_of(program, words):
    return 1 + program[:program.index(words)].count("\n")


def meanwhile(spans, kernel, event, after=None, before=None):
    """By device: in how many turns of the program the last kernel of a line had begun before an event ended, though it comes later in the
    program. A turn's event is the one of this kind and name, or the last one between the kernels of the lines `after` and `before`."""
    counts = {}
    for device, mine in spans.items():
        def last(line):  # kernel of each turn: begin and end
            each = [s for s in mine if s[0] == "kernel" and s[2] == line]
            return [s[3:] for i, s in enumerate(each) if i + 1 == len(each) or each[i + 1][1] <= s[1]]

        arrived = [s[4] for s in mine if s[0] == event[0] and event[1] in (None, s[1])]
        if before:
            arrived = [max((a for a in arrived if done < a <= reads), default=0)
                       for (_, done), (reads, _) in zip(last(after), last(before))]
        counts[device] = sum(begins < there for (begins, _), there in zip(last(kernel), arrived))
    return counts


def beside(spans, kernel, name):
    """Whether a kernel of a line ran while a collective did, on any device and in any turn: where it is the program's order to compute
    first it never does, and a thread that is to exchange may wake too late for most."""
    return any(k[0] == "kernel" and k[2] == kernel and c[:2] == ("collective", name) and k[3] < c[4] and c[3] < k[4]
               for mine in spans.values() for c in mine for k in mine)


def reports(folder):
    """--stats and --trace tell of all processes; the trace shows that devices compute while what they exchange is on its way."""
    import trace as traces  # tests/trace.py
    program = folder / "meanwhile.uni"
    program.write_text(MEANWHILE.replace("60", "300").replace("range(300)", "range(4)"))
    alone = run([UNISONO, "run", "--devices", "cpu:4", "--stats", program])
    rows = r"(?m)^(cpu:\d) +(\d+) +\S+ +(\d+) +(\S+)"
    for mpi in (False, True) if has_mpi() else (False,):
        path = folder / f"trace{mpi}.json"
        got = run(launcher(2, mpi) + ["--devices", "cpu:2", "--stats", "--trace", path, program], {"UNISONO_FAULTS": slow(2, LATER[0])})
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
        line, once = line_of(MEANWHILE, "let e"), False
        for late in LATER:
            if late > LATER[0]:
                run(launcher(2, mpi) + ["--devices", "cpu:2", "--trace", path, program], {"UNISONO_FAULTS": slow(2, late)})
            counts = meanwhile(spans_of(path), line, ("collective", "psum(a, dev)"))
            once |= beside(spans_of(path), line, "psum(a, dev)")
            if done := once and sorted(counts) == [f"cpu:{d}" for d in range(4)] and min(counts.values()) >= 2:
                break
        check(f"kernels while exchanges are under way, mpi={mpi}", done, counts, spans_of(path))
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
    for mpi in (False, True) if has_mpi() else (False,):
        for each in (1, 2):
            alone = run([UNISONO, "run", "--devices", f"cpu:{2 * each}", program])
            path = folder / f"resharded{each}{mpi}.json"
            for late in LATER[1:]:
                got = run(launcher(2, mpi) + ["--devices", f"cpu:{each}", "--trace", path, program], {"UNISONO_FAULTS": slow(2, late)})
                counts = meanwhile(spans_of(path), line_of(RESHARDED, "let m"), ("copy", None), line_of(RESHARDED, "let rows"),
                                   line_of(RESHARDED, "(s, c - s"))
                if done := sorted(counts) == [f"cpu:{d}" for d in range(2 * each)] and min(counts.values()) >= 3:
                    break
            check(f"resharded, {each} each mpi={mpi}", alone[0] == 0 and got[:2] == alone[:2], alone, got)
            check(f"kernels while an array is resharded, {each} each mpi={mpi}", done, counts, spans_of(path))
    # The reference evaluator waits for what it reads, too.
    small = folder / "reshard.uni"
    small.write_text("let y = pmap(fn(r) => 2 * r)(reshape(arange(8, f32), (4, 2)))\nlet z = pmap(fn(r) => r + 1, over=devices(2))(y)\nprint(z)\n")
    alone = run([UNISONO, "run", "--devices", "cpu:4", small])
    for options in ([], ["--reference"]):
        got = run(launcher(4, False) + [*options, "--devices", "cpu:1", small], {"UNISONO_FAULTS": "eager; slow 2 0 40; slow 3 1 40"})
        check(f"resharded, eager {options}", alone[0] == 0 and got == alone, alone, got)


def by_host(devices, processes, late):
    """The environment of GPUs that go on by themselves, and meet by the host's memory."""
    environment = gpu_environment(False, devices, 0)
    return {**environment, "SIMCUDA": environment["SIMCUDA"] + ";goes_on=1", "UNISONO_FAULTS": slow(processes, late)}


def gpus_meanwhile(folder):
    """A GPU computes while what it exchanges is on its way: by NCCL, and by the host's memory."""
    program = folder / "gpus_meanwhile.uni"
    program.write_text(GPUS_MEANWHILE)
    alone = run([UNISONO, "run", "--devices", "sim:4", program], gpu_environment(True, 4, 0))
    for each in (1, 2):
        path = folder / f"gpus{each}.json"
        ways = [("NCCL", 3 * [gpu_environment(True, each, 0)]), ("the host", [by_host(each, 4 // each, late) for late in LATER[1:]])]
        line, name = line_of(GPUS_MEANWHILE, "let c"), "psum(cumsum(tanh(x[0] * w)), dev)"
        for way, environments in ways:
            once = False
            for environment in environments:
                got = run(launcher(4 // each, False) + ["--devices", f"sim:{each}", "--trace", path, program], environment)
                counts = meanwhile(spans_of(path), line, ("collective", name))
                once |= beside(spans_of(path), line, name)
                if done := once and sorted(counts) == [f"sim:{d}" for d in range(4)] and min(counts.values()) >= 2:
                    break
            check(f"GPUs under way, {each} each, by {way}", alone[0] == 0 and got[:2] == alone[:2] and "simcuda" not in got[2], alone, got)
            check(f"kernels while GPUs exchange, {each} each, by {way}", done, counts, spans_of(path))


def gpus_resharded(folder):
    """So it does while what another split of an array needs is on its way by the host's memory."""
    program = folder / "gpus_resharded.uni"
    program.write_text(GPUS_RESHARDED)
    for each in (1, 2):
        alone = run([UNISONO, "run", "--devices", f"sim:{2 * each}", program], gpu_environment(False, 2 * each, 0))
        path = folder / f"gpus_resharded{each}.json"
        for late in LATER[1:]:
            got = run(launcher(2, False) + ["--devices", f"sim:{each}", "--trace", path, program], by_host(each, 2, late))
            counts = meanwhile(spans_of(path), line_of(GPUS_RESHARDED, "let s"), ("copy", None), line_of(GPUS_RESHARDED, "let rows"),
                               line_of(GPUS_RESHARDED, "(s, c - s"))
            if done := sorted(counts) == [f"sim:{d}" for d in range(2 * each)] and min(counts.values()) >= 1:
                break
        check(f"GPUs resharded, {each} each", alone[0] == 0 and got[:2] == alone[:2] and "simcuda" not in got[2], alone, got)
        check(f"kernels while GPUs' array is resharded, {each} each", done, counts, spans_of(path))


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


# Rows and boxes of a split array, read and written.
ROWS = """
let rows = pmap(fn(v) => tanh(v), in_axes=split(0), out_axes=split(0))
var y = rows(sin(reshape(arange(40_000, f32), (8, 5000))))
let p = argsort(arange(8) * 3 % 8)
var s = f32(0.0)
for j in range(8) { s += sum(y[j, 1:]) + y[j, 0] }
s += sum(y[p[0]]) + y[p[1]][3]
for j in range(8) { y[j] = y[7 - j] * 2.0 }
for j in range(3) { y[j:7:2, j] += 1.0 }
y[2:6, 3:5] = 7.0
let z = y
y[5] = 1.0
print(s, y[:, 7], sum(z), sum(y), sharding(y))
"""


# An argument of which the host's part has all, and one that lies on the devices.
KEPT = """
let f = pmap(fn(w, x) => sum(w) * x, in_axes=(none, split(0)), out_axes=split(0))
let rows = pmap(fn(w) => w * 2.0, in_axes=split(0), out_axes=split(0))
let captured = pmap(fn(x) => sum(spread) * x, in_axes=split(0), out_axes=split(0))
var w = sin(arange(100_000, f32))
let spread = rows(w)
var x = ones(f32[device_count()])
for i in range(20) { x = captured(f(w, x)) * 1e-9 }
w[0] = 1.0
print(f(w, x), rows(w)[5])
"""


def kept(folder):
    """What is moved once by one process is moved once by several, also where one of them has little memory."""
    program = folder / "kept.uni"
    program.write_text(KEPT)
    for n, each in ((2, 1), (2, 2)):
        alone = run([UNISONO, "run", "--devices", f"cpu:{n * each}", "--stats", program])
        got = run(launcher(n, False) + ["--devices", f"cpu:{each}", "--stats", program])
        check(f"kept, {n} x {each}", alone[0] == 0 and got[:2] == alone[:2], alone, got)
        # Not more than: w twice and its parts, each part of `spread` to each other device, and results.
        for which in (alone, got):
            most = max(size for (a, b), size in copies_of(which).items() if a != b)
            check(f"moved once, {n} x {each}", 800_000 <= most < 1_500_000, copies_of(which))


def copies_of(got):
    return {(int(a), int(b)): int(size) for a, b, size in re.findall(r"(?m)^copied cpu:(\d+) → cpu:(\d+): (\d+) bytes", got[2])}


def rows_moved(folder):
    """Processes move the same rows as one with all the devices, and no more."""
    program = folder / "rows.uni"
    program.write_text(ROWS)
    for n, each in ((2, 1), (2, 2), (4, 1)):
        alone = run([UNISONO, "run", "--devices", f"cpu:{n * each}", "--stats", program])
        got = run(launcher(n, False) + ["--devices", f"cpu:{each}", "--stats", program])
        # What the host has is no device's own where there are several.
        between = [{pair: size for pair, size in copies_of(each).items() if pair[0] != pair[1]} for each in (alone, got)]
        check(f"rows moved, {n} x {each}", alone[0] == 0 and got[:2] == alone[:2] and between[0] == between[1], alone, got)
        # The array comes to its devices, half of its rows are read twice and written once.
        check(f"no more than rows moved, {n} x {each}", 0 < sum(between[0].values()) < 5 * 8 * 5000 * 4, between[0])


def moved(folder):
    """Bytes that go from device to device: those of the first array's blocks, which the host had, and of one resharding."""
    program = folder / "moved.uni"
    program.write_text(MOVED)
    for n, each in ((2, 1), (2, 2), (4, 1)):
        devices = n * each
        got = run(launcher(n, False) + ["--devices", f"cpu:{each}", "--stats", program])
        copied = copies_of(got)
        block = 4 * 1000 * 4
        expected = {(a, b): block // devices + (block if a == 0 else 0) for a in range(devices) for b in range(devices)}
        check(f"moved, {n} x {each}", got[0] == 0 and copied == expected, expected, *got)
    rows_moved(folder)
    kept(folder)


if __name__ == "__main__":
    sys.exit(run_parts({"reports": reports, "resharded": resharded, "moved": moved, "gpus_meanwhile": gpus_meanwhile,
                        "gpus_resharded": gpus_resharded}))
