#!/usr/bin/env python3
"""Tables and arrays in files against what others write and read, damaged files, batches of files larger than memory, and a
training that is killed and resumed.

usage: tests/data.py UNISONO [--rounds N]
"""
import array
import csv
import io
import json
import math
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

import sanitizers

UNISONO = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 300
FILES = pathlib.Path(__file__).resolve().parent / "data"
SECONDS = sanitizers.limit()
PROBLEMS = []


def run(folder, program, *words):
    return subprocess.run([UNISONO, "run", "--devices", "cpu:1", *words, "-"], cwd=folder, input=program, capture_output=True,
                          text=True, timeout=SECONDS, check=False)


def check(holds, what):
    if not holds:
        PROBLEMS.append(what)


def printed(folder, program, expected, *words):
    done = run(folder, program, *words)
    check(done.stdout == expected and done.returncode == 0, f"{program}\ngives {done.stdout}{done.stderr}\nnot {expected}")


CODES = {"<f8": "d", "<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B", "|b1": "B"}


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def read_npz(path):
    """Type and elements of each array."""
    out = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            (length,) = struct.unpack("<H", data[8:10])
            kind = re.search(r"'descr': '(.*?)'", data[10:10 + length].decode())[1]
            out[name[:-4]] = (kind, list(array.array(CODES[kind], data[10 + length:])))
    return out


# ---- tables ----------------------------------------------------------------

def by_pandas(folder):
    """What pandas has written."""
    for name, options in (("pandas.csv", ""), ("pandas.tsv", ", columns=(\"sepal length (cm)\", \"count\", \"id\", \"flag\", \"seen\", \"name\", \"when\", \"count \")")):
        printed(folder, f'let t = read_csv("{FILES / name}"{options})\n' + """
print(typeof(t))
print(t.sepal_length_cm, t.count, t.id)
print(t.flag, t.seen, t.count_2)
print(t.name.codes, t.name.categories)
print(t.when.codes, t.when.categories.0)
""", """(sepal_length_cm: f32[5], count: i32[5], id: i64[5], flag: bool[5], seen: f32[5], name: (codes: i32[5], categories: (str, str, str)), when: (codes: i32[5], categories: (str, str, str, str, str)), count_2: i32[5])
[5.10e+00 4.90e+00      nan 1.00e-07 6.25e+10] [    1    -2     3 40000     5] [1000000000000             2             3             4             5]
[ true false  true  true false] [ 1. nan  3.  4. nan] [9 8 7 6 5]
[ 0  1 -1  2  0] ("Anna", "Bö, \\"Bo\\"", "two\\nlines")
[0 1 2 3 4] 2026-01-01
""")


def random_tables(folder):
    """Tables that Python's csv module writes, and reads again after we did."""
    draw = random.Random(5)
    words = ["", "a", "b c", 'say "so"', "x,y", "two\nlines", "ä", " blank ", "1a", "-", "None of it"]
    for turn in range(12):
        rows = draw.choice((1, 2, 17, 300))
        columns = {
            "i": [draw.randint(-2**31, 2**31 - 1) for _ in range(rows)],
            "l": [draw.randint(-2**63, 2**63 - 1) for _ in range(rows)],
            "f": [float32(draw.gauss(0, 10.0**draw.randint(-30, 30))) for _ in range(rows)],
            "d": [draw.gauss(0, 1) * 10.0**draw.choice((-200, 0, 200)) for _ in range(rows)],
            "m": [draw.choice(("", "NA", 1.5)) for _ in range(rows)],
            "t": [draw.choice(words) for _ in range(rows)],
        }
        columns["l"][0], columns["d"][0], columns["t"][0], columns["f"][0] = 2**62, 1e-200, "a", 0.5
        delimiter = draw.choice(",;\t|")
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, quoting=draw.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)),
                            lineterminator=draw.choice(("\n", "\r\n")))
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
        (folder / "t.csv").write_text(draw.choice(("", "\ufeff")) + text.getvalue(), newline="")
        quoted = json.dumps(delimiter)
        done = run(folder, f"""
let t = read_csv("t.csv", delimiter={quoted}) with (m = (read_csv("t.csv", delimiter={quoted}, types=f64, columns="m")).m)
save("t.npz", t with (t = t.t.codes))
for name in t.t.categories {{ print("<{{name}}>") }}
write_csv("u.csv", t)
""")
        if done.returncode:
            PROBLEMS.append(f"table {turn}: {done.stderr}")
            continue
        there = read_npz(folder / "t.npz")
        for name, kind in (("i", "<i4"), ("l", "<i8"), ("f", "<f4"), ("d", "<f8")):
            check(there[name][0] == kind, f"table {turn}: {name} is {there[name][0]}")
            check(there[name][1] == columns[name], f"table {turn}: column {name}")
        missing = ["nan" if m in ("", "NA") else str(m) for m in columns["m"]]
        check([str(m) for m in there["m"][1]] == missing, f"table {turn}: missing values")
        names = re.findall(r"<(.*?)>\n", done.stdout, re.S)
        check(names == sorted({t for t in columns["t"] if t}), f"table {turn}: categories {names}")
        check([names[c] if c >= 0 else "" for c in there["t"][1]] == columns["t"], f"table {turn}: texts")
        again = list(csv.DictReader(open(folder / "u.csv", newline="", encoding="utf-8")))
        check([row["t"] for row in again] == columns["t"], f"table {turn}: texts that are written")
        check([float32(float(row["f"])) for row in again] == columns["f"], f"table {turn}: floats that are written")
        check([float(row["d"]) for row in again] == columns["d"], f"table {turn}: f64 that are written")
        check([int(row["l"]) for row in again] == columns["l"], f"table {turn}: integers that are written")


# ---- arrays ----------------------------------------------------------------

def read_safetensors(path):
    """By the format's description alone."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    types = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "BOOL": "?"}
    out = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        begin, end = entry["data_offsets"]
        part = data[8 + length:][begin:end]
        size = struct.calcsize(types[entry["dtype"]])
        check((8 + length + begin) % size == 0, f"{name} is not aligned")
        check(len(part) == size * math.prod(entry["shape"]), f"the size of {name}")
        out[name] = entry["shape"], list(struct.unpack(f"<{len(part) // size}{types[entry['dtype']]}", part))
    return out


def safetensors(folder):
    package = json.dumps(str(FILES / "package.safetensors"))
    printed(folder, f"let t = load({package})\nprint(typeof(t))\nprint(t.layers.0.weight, t.layers.0.bias, t.step, t.mask)\n"
            f"print(load({package}, like=(step = 0i64, layers = ((bias = zeros(f16[2]),),))))\n",
            "(step: i64, layers: ((weight: f32[2, 3], bias: f16[2]), (weight: f64[1, 1])), empty: u8[0, 4], mask: bool[2])\n"
            "[[0. 1. 2.]\n [3. 4. 5.]] [1. 2.] 7 [ true false]\n(step = 7, layers = ((bias = [1. 2.]),))\n")
    done = run(folder, 'save("a.safetensors", (b = [true], layers = ((w = [[1.5]], b = 2u8), (w = zeros(f64[0, 2]),)), h = f16([0.5])))')
    check(done.returncode == 0, done.stderr)
    there = read_safetensors(folder / "a.safetensors")
    check(list(there) == ["b", "layers.0.w", "layers.0.b", "layers.1.w", "h"], f"names {list(there)}")
    check(there == {"b": ([1], [True]), "layers.0.w": ([1, 1], [1.5]), "layers.0.b": ([], [2]), "layers.1.w": ([0, 2], []), "h": ([1], [0.5])}, f"{there}")
    try:
        import safetensors.numpy as package
    except ImportError:
        return
    there = package.load_file(folder / "a.safetensors")
    check(there["layers.0.w"] == 1.5 and there["layers.0.b"] == 2, "the package reads other elements")


# ---- what is damaged -------------------------------------------------------

def damaged(folder):
    """Files of all kinds with bytes changed, left out and added: read, or refused with a place and a code."""
    run(folder, 'save("good.npz", (a = arange(6), b = (w = [1.5], c = ([true], 2.0))))\n'
                'save("good.safetensors", (a = arange(6), b = (w = [1.5], c = ([true], 2.0))))\n'
                'save("good.npy", arange(12, f64))\n'
                'write_csv("good.csv", (a = arange(4), b = [0.5, 1.5, 2.5, 3.5], t = (codes = [0, 1, 0, 1], categories = ("x", "a \\"b\\""))))')
    programs = {"npz": 'print(load("{}"))', "safetensors": 'print(load("{}"))', "csv": 'print(read_csv("{}"))',
                "npy": 'for x in batches("{}", 5, key=key(0)) {{ print(x) }}'}
    draw = random.Random(3)
    kinds = list(programs)
    for turn in range(ROUNDS):
        kind = kinds[turn % len(kinds)]
        data = bytearray((folder / f"good.{kind}").read_bytes())
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(data))
            what = draw.randrange(4)
            if what == 0:
                data[at] = draw.randrange(256)
            elif what == 1:
                del data[at:at + draw.randint(1, 9)]
            elif what == 2:
                data[at:at] = draw.choice((b"9" * 18, b'"', b"\0", b"\n", b"[", b"}", b",,", b"\xff"))
            else:
                data[at:] = b"" if draw.random() < 0.5 else data[at // 2:]
            data = data or bytearray(b"x")
        path = folder / f"bad{turn}.{kind}"
        path.write_bytes(data)
        done = run(folder, programs[kind].format(path.name))
        located = re.search(r"^error\[U06\d\d\]: .*\n +--> \S+:1:\d+$", done.stderr, re.M)
        fine = done.returncode == 0 or (done.returncode == 1 and located)
        if not fine:
            PROBLEMS.append(f"{kind} damaged, {bytes(data)[:300]}:\n{done.returncode} {done.stderr[:500]}")
        path.unlink()


# ---- batches ---------------------------------------------------------------

def large_file(folder):
    """Batches of a file of 4 GiB, most of which is not on the disk either."""
    path = folder / "large.npy"
    rows = 1 << 20
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1024), }" % rows
    header += b" " * (117 - len(header)) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.seek(128 + (rows - 1) * 4096)
        file.write(struct.pack("<1024f", *[2.0] * 1024))
    program = """
var total = 0.0
for epoch in range(100) {
  for x in batches("large.npy", 256, key=fold_in(key(1), epoch)) {
    if total == 0.0 { save("begun.npy", [1.0]) }
    total += sum(x) + 1.0
  }
}
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    last = 'for x in batches("large.npy", 1024, start=1023) { print(sum(x)) }'
    printed(folder, last, "2048.0\n")
    check(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - before < 1 << 20, "a part of a file takes a GiB of memory")
    # Somebody shortens it while it is read.
    process = subprocess.Popen([UNISONO, "run", "--devices", "cpu:1", "-"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdin.write(program)
    process.stdin.close()
    sanitizers.comes((folder / "begun.npy").exists, process)
    os.truncate(path, 1 << 20)
    status = process.wait(SECONDS)
    error = process.stderr.read()
    check(status == 1 and "error[U0650]: cannot read \"large.npy\": " in error, f"a file that is shortened: {status} {error}")


# ---- arrays for which there is no room -------------------------------------

def larger_than_memory(folder):
    """Of an array for which the devices have no room is read what is used."""
    count, part = 1 << 23, 1 << 20
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (%d, 2), }" % (count // 2)
    header += b" " * (117 - len(header)) + b"\n"
    elements = array.array("i", range(count))
    (folder / "more.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + elements.tobytes())
    sums = [sum(elements[i * part:(i + 1) * part]) for i in range(count // part)]
    program = f"""
let x = load("more.npy")
print(shape(x), x[5], x[{count // 2 - 1}, 1], sum(x[1000:2000, 0]))
for i in range({count // part}) {{ print(sum(i64(x[i * {part // 2}:(i + 1) * {part // 2}]))) }}
let (a, b) = (x[0:10], x[10:20])
print(sum(a), sum(b))
let rows = reshape(arange(4) * 999983, (2, 2))
print(x[7::{count // 4 - 3}][1, 0], sum(i64(x[[3, -1, 77]])), sum(i64(x[::1000, 1:])), all(x[rows, 1] == 2 * rows + 1))
for (i, b) in enumerate(batches(x, {part // 8})) {{ print(i, sum(i64(b[:, 1] - b[:, 0]))) }}
"""
    expected = "\n".join([f"({count // 2}, 2) [10 11] {count - 1} {sum(elements[2000:4000:2])}", *map(str, sums),
                          f"{sum(range(20))} {sum(range(20, 40))}",
                          f"{count // 2 + 8} {13 + 2 * count - 3 + 309} {sum(elements[1::2000])} true",
                          *(f"{i} {part // 8}" for i in range(count // 2 // (part // 8)))]) + "\n"
    for devices in ("cpu:1", "sim:1"):
        limit = ("--devices", devices, "--memory-limit", "24M")
        printed(folder, program, expected, *limit)
        # Whole it does not fit, and says where.
        done = run(folder, 'let x = load("more.npy")\nprint(x[0])\nprint(sum(x))\n', *limit)
        check(done.returncode == 1 and done.stdout == "[0 1]\n" and "out of memory" in done.stderr and ":3:" in done.stderr,
              f"more than there is memory, {devices}: {done.returncode} {done.stdout} {done.stderr}")
        check("in a file still: parts of it are read by" in done.stderr, f"what to do instead, {devices}: {done.stderr}")
        printed(folder, 'print(sum(i64(load("more.npy"))))\n', f"{sum(sums)}\n", "--devices", devices)
        # So do arrays of an archive, if it is not packed.
        save = f"save('two.npz', (a=(x=reshape(arange({count}), ({count // 2}, 2)), small=arange(3)), b=arange(5) * 2))\n".replace("'", '"')
        printed(folder, save, "", "--devices", devices)
        of_archive = f"""
let t = load("two.npz")
print(shape(t.a.x), t.a.x[5], t.a.x[{count // 2 - 1}, 1], t.a.small, t.b)
let double = jit(fn(x) => 2 * x)
print(double(t.a.x[2:4])[1], sum(i64(t.a.x[::{count // 8}])))
"""
        printed(folder, of_archive, f"({count // 2}, 2) [10 11] {count - 1} [0 1 2] [0 2 4 6 8]\n[12 14] {count * 3 + 4}\n", *limit)
        done = run(folder, 'let double = jit(fn(x) => 2 * x)\nlet t = load("two.npz")\nlet y = double(t.a.x)\n', *limit)
        check(done.returncode == 1 and "out of memory" in done.stderr and "in a file still" in done.stderr and ":3:" in done.stderr,
              f"an archive's array is given whole, {devices}: {done.returncode} {done.stdout} {done.stderr}")


# ---- a training that is killed ---------------------------------------------

TRAINING = str(pathlib.Path(__file__).resolve().parent.parent / "examples/train_resume.uni")


def saved(path, times, process):
    """Waits until a file has been replaced so often; false if the process ends before."""
    last, end = None, time.monotonic() + SECONDS
    while times and process.poll() is None and time.monotonic() < end:
        now = path.stat().st_ino if path.exists() else None
        times -= now != last
        last = now
        time.sleep(0.001)
    return process.poll() is None


def killed(folder):
    """A training killed at any moment, and resumed from its checkpoint, on other numbers of devices, ends with the same bits."""
    whole = subprocess.run([UNISONO, "run", "--devices", "cpu:4", TRAINING, "whole.npz"], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    check(whole.returncode == 0, f"training: {whole.stderr}")
    draw = random.Random(11)
    for kind in ("npz", "safetensors"):
        name = f"step.{kind}"
        kills = 0  # since the training began; one that is over before the sixth begins anew
        for turn in range(60):
            devices = (4, 1, 2)[turn % 3]
            process = subprocess.Popen([UNISONO, "run", "--devices", f"cpu:{devices}", TRAINING, name], cwd=folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            if kills < 6 and saved(folder / name, draw.randint(1, 6), process):
                time.sleep(draw.uniform(0, 0.02))
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                continue
            out, err = process.communicate(timeout=SECONDS)
            check(process.returncode == 0 and out == whole.stdout, f"after {kills} kills, {kind}: {process.returncode} {err}\n{out}")
            if kills == 6 or process.returncode:
                break
            (folder / name).unlink()
            kills = 0
        check(kills == 6, f"the training was killed only {kills} times")
        a, b = (run(folder, f'print(load("{n}"))').stdout for n in ("whole.npz", name))
        check(a == b, f"the last checkpoints differ, {kind}")
        check(not list(folder.glob("*.unisono-part")), "unfinished files are left behind")


TESTS = [by_pandas, random_tables, safetensors, damaged, large_file, larger_than_memory, killed]


def main():
    names = [w for w in sys.argv[2:] if w in {t.__name__ for t in TESTS}]
    for test in TESTS:
        if names and test.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    for problem in PROBLEMS:
        print(problem)
    sys.exit(1 if PROBLEMS else 0)


if __name__ == "__main__":
    main()
