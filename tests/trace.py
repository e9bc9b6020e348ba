#!/usr/bin/env python3
"""`--trace` writes a Chrome trace: valid JSON, a row for each device, events that lie in order within it, as Perfetto and
chrome://tracing want them; `--stats` a table. Kernels say which places of the program they compute. `--explain-speed`
tells which lines took time, for what, and why not less.

usage: tests/trace.py UNISONO
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sanitizers

PROGRAM = """
axis dev = devices()
def f(x) = psum(sum(x), dev) + ppermute(x, dev, shift=1, wrap=true)
let g = pmap(f, over=dev, in_axes=split(0), out_axes=split(0))
var x = arange(300, f32)
for i in range(3) { x = g(x) }
print(sum(x) > 0.0)
"""


LINES = """
def of_library(x) = softmax(x)
def product(x) = x @ transpose(x)
def sorted(x) = sort(x, axis=0)
def scanned(x) = cumsum(x, axis=0)
def counted(x) {
  var y = x
  for i in range(1000) { y = y * 0.5 + 1.0 }
  y
}
def decided(x) = if sum(x) > 0.0 { x * 2.0 } else { x * 3.0 }
def chosen(x) = x[argsort(sum(x, axis=1))]
let x = sin(arange(10000, f32)).reshape((100, 100))
for f in (of_library, product, sorted, scanned, counted, decided, chosen) { print(sum(jit(f)(x)) > -1e9) }
"""


def viewable(trace):
    """What Perfetto's importer asks of a trace (src/trace_processor/importers/json): else it drops events without a word. Times are
    microseconds, which it reads as whole nanoseconds; two events of a row lie apart, or one in the other."""
    assert trace["displayTimeUnit"] in ("ms", "ns") and isinstance(trace["traceEvents"], list), trace.keys()
    rows = {}
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"] and event["ph"] in ("X", "M"), event
        assert all(type(event[key]) is int and 0 <= event[key] < 2 ** 32 for key in ("pid", "tid")), event
        assert isinstance(event.get("args", {}), dict), event
        if event["ph"] == "M":
            kind = "sort_index" if event["name"] == "thread_sort_index" else "name"
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index") and kind in event["args"], event
            continue
        assert isinstance(event["cat"], str), event
        start, length = (round(event[key] * 1000) for key in ("ts", "dur"))
        rows.setdefault((event["pid"], event["tid"]), []).append((start, -length, event))
    for row in rows.values():
        ends = []
        for start, minus_length, event in sorted(row, key=lambda e: e[:2]):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - minus_length <= ends[-1], f"it overlaps the one before: {event}"
            ends.append(start - minus_length)


def traced(unisono, program, devices):
    """The events of a run, and what `--stats` says of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "out.json"
        done = subprocess.run([unisono, "run", "-", "--devices", devices, "--stats", "--trace", str(path)],
                              input=program, capture_output=True, text=True, timeout=sanitizers.limit())
        assert done.returncode == 0, done.stderr
        trace = json.loads(path.read_text())
        viewable(trace)
        return trace["traceEvents"], done.stderr


def places(unisono, kind):
    """Each line of LINES has a kernel that names it, in the trace and in the table."""
    events, stats = traced(unisono, LINES, f"{kind}:1")
    kernels = [e for e in events if e.get("cat") == "kernel"]
    for kernel in kernels:
        args = kernel["args"]
        assert set(args) == {"source", "places"}, kernel
        assert all(re.fullmatch(r"(<stdin>|<stdlib>/\w+\.uni):\d+:\d+", p) for p in args["places"]), kernel
        assert args["places"] == [] or any(args["source"].startswith(p + " ") for p in args["places"]), kernel
    sources = "\n".join(sorted({k["args"]["source"] for k in kernels}))
    table = stats.partition("computes")[2]
    for wanted in ("<stdlib>/math.uni:", ":3:18 x @ transpose(x)", ":4:17 sort(x, axis=0)", ":5:18 cumsum(x, axis=0)",
                   ":8:30 y * 0.5 + 1.0", ":11:36 x * 2.0", ":12:17 x[argsort(sum(x, axis=1))]"):
        assert wanted in sources, (wanted, sources)
        assert wanted in table, (wanted, table)


def check(unisono, kind):
    events, stats = traced(unisono, PROGRAM, f"{kind}:3")
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["unisono"], events[:3]
    beside = {tid: name for tid, name in rows.items() if name.endswith(", beside")}  # of a GPU that copies while it computes
    assert {t: n for t, n in rows.items() if t not in beside} == {0: f"{kind}:0", 1: f"{kind}:1", 2: f"{kind}:2", 3: "host"}, rows
    assert kind == "sim" or not beside, rows
    spans = [e for e in events if e["ph"] == "X"]
    for event in spans:
        assert event["dur"] >= 0 and event["ts"] >= 0, event
    for device in range(3):
        tids = {device} | {tid for tid, name in beside.items() if name.startswith(f"{kind}:{device},")}
        own = sorted((e for e in spans if e["tid"] in tids), key=lambda e: e["ts"])
        of = lambda kind: [e for e in own if e["cat"] == kind]
        assert len(of("kernel")) >= 3, own
        assert len(of("collective")) == 6 and len(of("wait")) == 6, own
        assert all(e["args"]["bytes"] > 0 for e in of("copy") + of("collective")), own
        assert any("psum(sum(x), dev)" in e["name"] for e in of("collective")), own
        for tid in tids:  # one thing after the other
            row = [e for e in own if e["tid"] == tid]
            for a, b in zip(row, row[1:]):
                assert b["ts"] >= a["ts"] + a["dur"] - 0.01, (a, b)
    assert any(e["cat"] == "copy" and rows[e["tid"]].startswith(f"{kind}:2") and e["args"]["bytes"] == 400 for e in spans), spans
    lines = stats.splitlines()
    assert lines[0].split()[:2] == ["device", "launches"] and lines[1].startswith(f"{kind}:0"), stats
    assert f"copied {kind}:0 → {kind}:2: 400 bytes in 1 copy" in lines, stats
    return len(spans)


SLOW = """
def walked(n: int) -> int { len("{[n, n]}") }
let g = jit(fn(x) => {
  sin(x) * 2.0
})
var total = 0
for i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) { total += walked(i) }
for i in range(20_000) { total += i }
var text = ""
for i in range(40) { text = "{[i, i]}" + text }
for n in unrolled(6) { print(sum(g(arange(100_000 + n, f32))) < 1e9) }
var x = arange(200_000, f32)
var y = x
for i in range(3) {
  y = x
  x[i] = 1.0
}
print(total > 0, len(text), y[0])
"""


def lines_of(unisono, devices, *options):
    """What `--explain-speed` says without times: what each line did, by line, and the reasons."""
    done = subprocess.run([unisono, "run", "-", "--devices", devices, "--explain-speed", *options], input=SLOW, capture_output=True,
                          text=True, timeout=sanitizers.limit())
    assert done.returncode == 0, done.stderr
    table, _, reasons = done.stderr.partition("why not faster:\n")
    head, *rows = table.splitlines()
    assert head.split() == ["ms", "%", "line"], table
    assert rows[-1].endswith("(the program is read and checked)"), table
    shares, what, order = 0, {}, []
    for row, parts in zip(rows[:-1:2], rows[1:-1:2]):
        time, share, place = re.fullmatch(r" *([\d.]+) +([\d.]+)  (<stdin>:\d+)  .+", row).groups()
        order.append(float(time))
        shares += float(share)
        what[place] = set(re.findall(r"(\w+) [\d.]+ ms", parts))
    assert order == sorted(order, reverse=True), table
    assert shares + float(rows[-1].split()[1]) <= 101, table
    return what, reasons


STORED = """
let f = jit(fn(x, w) => {
  let h = tanh(x @ w)
  let m = mean(h, axis=0)
  let s = sort(h, axis=0)
  sum((h - m) * s)
})
print(f(0.01 * ones(f32[300, 300]), 0.02 * ones(f32[300, 300])) < 1e9)
"""


def stored(unisono):
    """Why kernels are not one, by the lines of what is stored between them."""
    done = subprocess.run([unisono, "run", "-", "--explain-speed"], input=STORED, capture_output=True, text=True, timeout=sanitizers.limit())
    assert done.returncode == 0, done.stderr
    reasons = done.stderr.partition("why not faster:\n")[2]
    for reason in (r"<stdin>:3: 0.36 MB are stored here for line \d to read: a product of matrices is a kernel of its own",
                   r"<stdin>:5: 0.36 MB are stored here for line 6 to read: a sort is a kernel of its own"):
        assert re.search(reason, reasons), (reason, reasons)


def speed(unisono):
    what, reasons = lines_of(unisono, "cpu:1")
    for place, done in (("<stdin>:4", "devices"), ("<stdin>:8", "code"), ("<stdin>:11", "compile"), ("<stdin>:7", "walk")):
        assert done in what[place], (place, what)
    for reason in (r"<stdin>:2: the function is walked at each call: .+ \(<stdin>:2:\d+\)", r"<stdin>:10: the loop is walked, not run as code: .+",
                   r"<stdin>:11: compiled \d+ times, as each call has other types", r"<stdin>:16: the update copies the array"):
        assert re.search(reason, reasons), (reason, reasons)
    assert "<stdin>:8:" not in reasons, reasons
    assert "walk" in lines_of(unisono, "sim:2")[0]["<stdin>:7"]
    lines_of(unisono, "cpu:1", "--reference")


KEPT = """
let f = pmap(fn(w, x) => sum(w) * x, in_axes=(none, split(0)), out_axes=split(0))
var w = sin(arange(250_000, f32))
var x = ones(f32[3])
for i in range(50) { x = f(w, x) }
MORE
"""


# A copy of `w` and what is computed meanwhile have not both room on a device.
SHORT = """
let rows = pmap(fn(w) => w * 2.0, in_axes=split(0), out_axes=split(0))
let f = pmap(fn(w, x) => sum(w) * x, in_axes=(none, split(0)), out_axes=split(0))
let large = pmap(fn(x) => x + zeros(f32[1_000_000]), in_axes=split(0), out_axes=split(0))
let w = rows(sin(arange(240_000, f32)))
var x = ones(f32[3])
for i in range(3) { x = f(w, x) * 1e-3 }
var y = large(x)
y = x
for i in range(3) { x = f(w, x) * 1e-3 }
"""


def kept(unisono, kind):
    """An argument of 1 MB goes to each other device once in 50 calls, and once more after a write; what is kept makes no memory short."""
    def copied(program, simulated=""):
        environment = os.environ | {"SIMCUDA": ";".join([os.environ.get("SIMCUDA", ""), simulated])}
        done = subprocess.run([unisono, "run", "-", "--devices", f"{kind}:3", "--stats"], input=program,
                              capture_output=True, text=True, timeout=sanitizers.limit(), env=environment)
        assert done.returncode == 0, done.stderr
        return [int(size) for size in re.findall(rf"(?m)^copied {kind}:0 → {kind}:[12]: (\d+) bytes", done.stderr)]

    for more, times in (("", 1), ("for i in range(50) { x = f(w, x) }", 1), ("w[5] = 1.0\nx = f(w, x)", 2)):
        sizes = copied(KEPT.replace("MORE", more))
        assert sizes and all(times * 1_000_000 <= size < times * 1_000_000 + 10_000 for size in sizes), (kind, more, sizes)
    if kind == "sim":
        # A third of `w` to where it lies, and a third of a copy; without room three more of these.
        for memory, times in (("16G", 2), ("4500K", 5)):
            sizes = copied(SHORT, f"memory={memory}")
            assert sizes and all(times * 320_000 <= size < times * 320_000 + 10_000 for size in sizes), (memory, sizes)


def main():
    unisono = str(pathlib.Path(sys.argv[1]).resolve())
    print(*(f"{check(unisono, kind)} events on {kind}:3" for kind in ("cpu", "sim")), sep=", ")
    places(unisono, "cpu")
    places(unisono, "sim")
    speed(unisono)
    stored(unisono)
    kept(unisono, "cpu")
    kept(unisono, "sim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
