#!/usr/bin/env python3
"""Ctrl-C at random moments of everything that may take long: the processor time between the signal and the end of the
process, its status, its message, and what it leaves behind.

usage: tests/interrupt.py UNISONO [--rounds N] [--seed N] [--table] [NAME ...]

Each case runs N times (2), and gets the signal after so much processor time of its own, a random part of what the case
says it takes at least. `--table` prints the measured milliseconds.
"""
import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import sanitizers

BOUND = 0.25 * sanitizers.slow()  # seconds of processor time; 0.05 is what is wanted, the rest is for machines that do other work, too
PATIENCE = 300  # seconds by the clock
MEGABYTE = 1 << 20

parser = argparse.ArgumentParser()
parser.add_argument("unisono")
parser.add_argument("names", nargs="*")
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--seed", type=int, default=None)
parser.add_argument("--table", action="store_true")
OPTIONS = parser.parse_intermixed_args()
UNISONO = os.path.abspath(OPTIONS.unisono)
SEED = random.randrange(1 << 30) if OPTIONS.seed is None else OPTIONS.seed
RANDOM = random.Random(SEED)
PROBLEMS = []


class Case:
    """A command that takes at least `seconds` of processor time, and ends with `status` if nothing stops it; None: it does not end."""

    def __init__(self, name, words, seconds, text=None, place=r"--> [^\n]*:\d+:\d+", leaves=(), status=0):
        self.name, self.words, self.seconds, self.text, self.place = name, words, seconds, text, place
        self.status = status
        self.leaves = set(leaves)


def program(name, text, *options, seconds, head="", status=0):
    return Case(name, ["run", "program.uni", *options], seconds, head + text + "\n", status=status)


# ---- texts

def many_statements(size, line):
    out, length, i = [], 0, 0
    while length < size:
        out.append(line.format(i=i))
        length += len(out[-1])
        i += 1
    return "".join(out)


def long_function(statements):
    body = "".join(f"  y = sin(y * {1 + i % 97}.5 + x) + {i}.25\n" for i in range(statements))
    return f"def f(x) {{\n  var y = x\n{body}  y\n}}\nprint(sum(jit(f)(ones(f32[64]))))"


def long_of_many_kinds(statements):
    kinds = ["y = y + sum(y * {i}.5)", "y = cumsum(y) * 0.{i}1", "y = sort(y) + {i}.0", "y = y - max(y, axis=0) / {i}.0"]
    body = "".join("  " + kinds[i % 4].format(i=1 + i % 89) + "\n" for i in range(statements))
    return f"def f(x) {{\n  var y = x\n{body}  y\n}}\nprint(sum(jit(f)(ones(f32[64]))))"


def loops(count):
    body = "".join(f"  for i in range({2 + i}) {{ y = y * 0.{1 + i % 89}1 + cos(y) }}\n" for i in range(count))
    return f"def f(x) {{\n  var y = x\n{body}  y\n}}\nprint(sum(jit(f)(ones(f32[640]))))"


# ---- cases

BIG = 40_000_000
REFERENCE = {
    "map": f"print(sum(lgamma(arange({BIG}, f32) + 1.5)))",
    "cast": f"let x = arange({BIG}, i64)\nprint(sum(f64(x) * 0.5) + sum(f64(i8(x))))",
    "reduce": f"print(sum(ones(f64[{2 * BIG}])), max(ones(f32[{BIG}])))",
    "reduce of columns": f"print(sum(sum(ones(f64[{BIG // 2}, 2]), axis=0)))",
    "argmax": f"print(argmax(arange({2 * BIG})))",
    "scan": f"print(sum(cumsum(ones(f32[{BIG}]))))",
    "dot": "let x = ones(f32[2000, 2000])\nprint(sum(x @ x))",
    "sort": f"print(sum(sort(sin(arange({BIG // 8}, f32)))))",
    "argsort": f"print(sum(argsort(sin(arange({BIG // 8}, f32)))))",
    "gather": f"let x = arange({BIG // 2})\nprint(sum(x[(x * 7919) % {BIG // 2}]))",
    "scatter": f"let x = arange({BIG // 2})\nprint(sum(scatter_add(x, (x * 7919) % {BIG // 2}, x)))",
    "transpose": "let x = ones(f32[7000, 7000])\nprint(sum(transpose(x) + transpose(x, (1, 0))))",
    "concat and pad": f"let x = ones(f32[{BIG}])\nprint(sum(concat((x, x))), sum(pad(x, 1000)))",
    "einsum": "let x = ones(f32[150, 150, 150])\nprint(sum(einsum(\"ijk,kjl->il\", x, x)))",
    "a loop": "def f(x) {\n  var y = x\n  for i in range(1_000_000) { y = y * 0.5 + 1.0 }\n  y\n}\nprint(jit(f)(3.0))",
    "psum": f"axis dev = devices()\nprint(sum(pmap(fn(x) => psum(x), over=dev)(ones(f32[4, {BIG // 8}]))))",
}
COMPILED = {
    "map": f"let x = arange({4 * BIG}, f32)\nvar y = x\nfor i in range(50) {{ y = lgamma(y + 1.5) }}\nprint(sum(y))",
    "reduce": f"let x = ones(f64[{2 * BIG}])\nfor i in range(100) {{ print(sum(x * f64(i))) }}",
    "scan": f"let x = ones(f32[{2 * BIG}])\nfor i in range(20) {{ print(sum(cumsum(x + f32(i)))) }}",
    "dot": "let x = ones(f32[6000, 6000])\nprint(sum(x @ x))",
    "long dot": "let x = ones(f32[8, 6_000_000])\nfor i in range(50) { print(sum(x @ ones(f32[6_000_000, 16]))) }",
    "scan of columns": f"let x = ones(f32[{BIG // 4}, 8])\nfor i in range(20) {{ print(sum(cumsum(x, axis=0))) }}",
    "small dot": "let x = ones(f32[3, 20_000_000])\nfor i in range(50) { print(sum(x @ transpose(x))) }",
    "sort": f"print(sum(sort(sin(arange({BIG}, f32)))))",
    "gather": f"let x = arange({BIG})\nfor i in range(20) {{ print(sum(x[(x * 7919) % {BIG}])) }}",
    "scatter": f"let x = arange({BIG})\nfor i in range(20) {{ print(sum(scatter_add(x, (x * 7919) % {BIG}, x))) }}",
    "a loop": "def f(x) {\n  var y = x\n  while sum(y) > 0.0 { y = y * 0.5 + 1.0 }\n  y\n}\nprint(jit(f)(ones(f32[9])))",
    "loops in a loop": "def f(x: i64) {\n  var y = x\n  while y != 1 { for i in range(10) { var j = 0\n while j < 200 { y = y * 2 + 4\n j += 1 } } }\n"
                       "  y\n}\nprint(jit(f)(2))",
}
MATRIX = "let x = reshape(sin(arange(ROWS * ROWS, TYPE) ** 2.0), (ROWS, ROWS))\nlet p = x @ transpose(x) + eye(ROWS, dtype=TYPE)\n"
FACTORS = {  # the kind of elements, rows, and what is computed of x, or of p, which is positive definite
    "svd": ("f64", 1600, "let (u, s, v) = linalg.svd(x)\nprint(sum(u), sum(v))"),
    "svd of f32 in jit": ("f32", 2000, "let (u, s, v) = jit(fn(x) => linalg.svd(x))(x)\nprint(sum(u), sum(v))"),
    "svdvals": ("f64", 2000, "print(sum(linalg.svdvals(x)))"),
    "eigh": ("f64", 2000, "let (w, v) = linalg.eigh(p)\nprint(sum(v))"),
    "eigvalsh in vmap": ("f64", 500, "print(sum(vmap(fn(i) => sum(linalg.eigvalsh(p + i)))(arange(40, f64))))"),
    "cholesky": ("f64", 2000, "for i in range(20) { print(sum(linalg.cholesky(p + f64(i)))) }"),
    "solve in jit": ("f64", 2000, "let f = jit(fn(x) => linalg.solve(x, x + 1.0))\nfor i in range(10) { print(sum(f(x + f64(i)))) }"),
    "inverses of many": ("f64", 300, "print(sum(vmap(fn(i) => linalg.inv(x + i))(arange(200, f64))))"),
    "det": ("f64", 2000, "for i in range(20) { print(linalg.det(p + f64(i))) }"),
    "qr": ("f64", 2000, "let (q, r) = linalg.qr(x)\nlet (a, b) = linalg.qr(x + 1.0)\nprint(sum(q), sum(b))"),
    "lstsq": ("f64", 1600, "print(sum(linalg.lstsq(x, x[:, :3]).0))"),
    "a gradient of svd": ("f64", 1200, "print(sum(grad(fn(x) => sum(linalg.svd(x).1))(x)))"),
    "a gradient of inv": ("f64", 2000, "print(sum(grad(fn(x) => sum(linalg.inv(x)))(x)))"),
}
# Whose results nobody reads, or that have none.
ENDLESS = {
    "in jit": "def f(x) {\n  while true { }\n  x\n}\nprint(jit(f)(3.0))",
    "of what is not read": "def f(x) {\n  var y = x\n  while x > 0.0 { y = y + 1.0 }\n  x + 1.0\n}\nprint(jit(f)(3.0))",
    "in a branch in a loop": "def f(x) {\n  for i in range(3) { if x > 1.0 { while x > 0.0 { } } }\n  x\n}\nprint(jit(f)(3.0))",
    "in vmap": "def f(x) {\n  while x > 0.0 { }\n  x\n}\nprint(vmap(f)(ones(f32[5])))",
    "in pmap": "def f(x) {\n  while x > 0.0 { }\n  x\n}\nprint(pmap(f)(ones(f32[2])))",
    "in a comprehension": "let x = 3.0\nprint([if x > 0.0 { while x > 0.0 { }\n 1.0 } else { 2.0 } for i in range(5)])",
    "of arrays": "def f(x) {\n  var y = x\n  while sum(y) > 0.0 { y = sort(y) }\n  x * 2.0\n}\nprint(jit(f)(ones(f32[1000])))",
    "on the host": "let x = 3.0\nwhile x > 0.0 { }\nprint(x)",
}


def cases():
    text = many_statements(4 * MEGABYTE - 4096, "let x{i} = [1, 2, 3] + {i} * (2 + 3)\n")
    yield Case("lex and parse", ["check", "program.uni"], 0.4, text)
    yield Case("parse one expression", ["check", "program.uni"], 0.3, "let x = [" + "1, (2 + 3), " * 330_000 + "4]\n",
               status=1)  # too many computed items, as is seen at the end
    yield Case("format", ["fmt", "program.uni"], 0.6, text)
    yield Case("format to be checked", ["fmt", "--check", "program.uni"], 0.6, text)
    yield Case("tokens", ["inspect", "--emit=tokens", "program.uni"], 0.5, text)
    yield Case("tree", ["inspect", "--emit=ast", "program.uni"], 0.6, text)
    yield Case("types", ["inspect", "--emit=types", "program.uni"], 1.0, text[:MEGABYTE // 2].rpartition("\n")[0])
    yield Case("check", ["check", "program.uni"], 1.0,
               many_statements(MEGABYTE, "let x{i} = sum(ones(f32[3, {i}]) @ ones(f32[{i}, 2]))\n"))
    yield program("trace", "def f(x) {\n  var y = x\n  for j in unrolled(100) { for i in unrolled(3000) { y = y * 0.5 + f32(i) } }\n"
                  "  y\n}\nprint(jit(f)(3.0))", seconds=1)
    yield program("compile", long_function(4000), seconds=1)
    yield program("compile many kinds", long_of_many_kinds(2000), seconds=1)
    yield program("compile loops", loops(1000), seconds=1)
    yield program("compile for GPUs", long_function(2000), "--devices", "sim:1", "--no-cache", seconds=1)
    for stage in ("asm", "ptx"):  # of llvm the text itself, 13 MB, takes LLVM a second
        yield Case(f"inspect {stage}", ["inspect", "--run", f"--emit={stage}", "program.uni"], 4, long_function(2000))
    yield program("statements", many_statements(200_000, "let x{i} = sum(ones(f32[{i}, 200]) * {i}.5)\n"), seconds=1)
    for name, text in REFERENCE.items():
        yield program(f"reference, {name}", text, "--reference", seconds=0.5)
    for name, text in COMPILED.items():
        yield program(f"compiled, {name}", text, "--devices", "cpu:2", seconds=0.7)
    for name, (kind, rows, text) in FACTORS.items():
        head = "import linalg\n" + MATRIX.replace("ROWS", str(rows)).replace("TYPE", kind)
        yield program(f"factors, {name}", text, "--devices", "cpu:2", seconds=0.6, head=head)
    for name, text in ENDLESS.items():
        for options in (["--devices", "cpu:2"], ["--reference"], ["--no-cache", "--devices", "sim:2"]):
            yield program(f"endless {name}, {options[-1]}", text, *options, seconds=0.3, status=None)
    yield program("copies", f"let x = pmap(fn(r) => r * 1.0)(ones(f32[4, {BIG // 4}]))\nfor i in range(100) {{ print(sum(f32(i) + x[::2])) }}",
                  "--devices", "cpu:4", "--quiet", seconds=0.7)
    yield program("collectives", "axis dev = devices()\ndef f(x) {\n  var y = x\n  for i in range(1000) { y = psum(y) * 0.25 }\n  y\n}\n"
                  f"print(sum(pmap(f, over=dev)(ones(f32[4, {BIG // 4}]))))", "--devices", "cpu:4", seconds=0.7)
    yield program("one collective", "axis dev = devices()\n"
                  f"print(sum(pmap(fn(x) => psum(x), over=dev)(ones(f32[4, {2 * BIG}]))))", "--devices", "cpu:4", seconds=1.5)
    yield program("load", "for i in range(10) { print(sum(load(\"large.npy\") as f32[_])) }", seconds=0.5)
    yield program("load of other order", "print(sum(sum(load(\"fortran.npy\") as f32[_, _])))", seconds=0.5)
    yield program("load of packed arrays", "for i in range(10) { print(sum(load(\"packed.npz\").x)) }", seconds=0.5)
    yield program("save", f"save(\"out.npy\", ones(f64[{2 * BIG}]))", seconds=0.2)
    yield program("save to an archive", f"save(\"out.npz\", (x=ones(f64[{2 * BIG}])))", seconds=0.2)
    yield program("save to safetensors", f"save(\"out.safetensors\", (x=ones(f64[{2 * BIG}])))", seconds=0.2)
    yield program("read a table", "for i in range(20) { print(sum((read_csv(\"table.csv\")).a)) }", seconds=0.5)
    yield program("check a table", "let t = (read_csv(\"table.csv\"), read_csv(\"table.csv\", columns=\"b\"))", seconds=0.3)
    yield program("write a table", f"write_csv(\"out.csv\", (x=ones(f32[{BIG // 2}]), y=ones(f64[{BIG // 2}]) / 3))", seconds=0.5)
    yield program("batches", f"let x = ones(f32[{BIG // 64}, 64])\nfor i in range(1000) {{ for b in batches(x, 100_000, key=key(i)) {{ print(b[0, 0]) }} }}", seconds=0.5)
    yield program("batches of a file", "for i in range(1000) { for b in batches(\"large.npy\", 1_000_000, key=key(0)) { print(b[0]) } }", seconds=0.7)
    yield program("print", "let x = arange(3_000_000)\nfor i in range(100) { print(\"{x + i}\") }", seconds=0.5)
    yield program("print of many lines", "for i in range(100_000_000) { print(i) }", seconds=0.5)
    yield program("a simulated kernel", f"print(sum(lgamma(arange({BIG}, f32) + 1.5)))", "--devices", "sim:1",
                  "--no-cache", seconds=1)
    yield program("a simulated product", "let x = ones(f32[2048, 2048])\nprint(sum(x @ x))", "--devices", "sim:1",
                  "--no-cache", "--no-cublas", seconds=1)
    yield program("simulated sort", f"print(sum(sort(sin(arange({BIG // 8}, f32)))))", "--devices", "sim:2",
                  "--no-cache", seconds=1)
    # Runs that are left under way, and waited for elsewhere: by a statement of the evaluator's, and by output.
    yield program("simulated loops under way", "@jit\ndef steps(x: f32[q]) -> f32 {\n  var y = x\n"
                  "  for i in range(2000) { y = y * 0.6 + flip(y, axis=0) * 0.4 }\n  sum(y)\n}\n"
                  "let x = sin(arange(2_000_000, f32))\nlet r = steps(x)\nlet s = steps(x + 1.0)\nprint(r + s)",
                  "--devices", "sim:1", "--no-cache", seconds=2)
    yield program("simulated collectives under way", "axis dev = devices()\nlet d = device_count()\n"
                  "let x = reshape(sin(arange(d * 3_000_000, f32)), (d, 3_000_000))\n"
                  "let f = pmap(fn(x) => psum(lgamma(x * x + 1.5), dev), over=dev)\nlet a = f(x)\nlet b = f(a + x)\nlet c = f(b + a)\nprint(sum(c))",
                  "--devices", "sim:2", "--no-cache", "--quiet", seconds=0.6)
    yield Case("import", ["run", "program.uni"], 0.4, "import \"module.uni\"\nprint(module.x1)\n")


def write_files(folder):
    """What is loaded, and a module."""
    def header(text):
        text = text.ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    with open(folder / "large.npy", "wb") as file:  # a hole
        file.write(header("{'descr': '<f4', 'fortran_order': False, 'shape': (200000000,), }"))
        file.truncate(128 + 800_000_000)
    with open(folder / "fortran.npy", "wb") as file:
        file.write(header("{'descr': '>f4', 'fortran_order': True, 'shape': (10000, 10000), }"))
        file.truncate(128 + 400_000_000)
    with zipfile.ZipFile(folder / "packed.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("x.npy", "w", force_zip64=False) as file:
            file.write(header("{'descr': '<f4', 'fortran_order': False, 'shape': (15000000,), }"))
            piece = random.Random(1).randbytes(MEGABYTE // 4) + bytes(3 * MEGABYTE // 4)
            left = 60_000_000
            while left:
                file.write(piece[:left])
                left -= min(left, len(piece))
    (folder / "table.csv").write_text("a,b,c\n" + "".join(f"{i},{i / 7},word {i % 50}\n" for i in range(1_000_000)))
    (folder / "module.uni").write_text(many_statements(3 * MEGABYTE, "let x{i} = [1, 2, 3] + {i}\n"))


# ---- one run

def processor_time(pid):
    """Seconds that all threads of a process have had so far."""
    return time.clock_gettime((~pid << 3) | 2)


def whole_run(case, folder):
    """The processor time of a run that nothing stops."""
    with subprocess.Popen([UNISONO, *case.words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def interrupt(case, folder, again=None):
    """The milliseconds after the signal; None if the process ended before it. What is too long is tried at the same moment
    thrice more (`again`): the kernel bills to a process what others on a busy machine cost it, but not each time."""
    if case.text is not None:
        (folder / "program.uni").write_text(case.text)
    before = set(os.listdir(folder))
    moment = again or RANDOM.uniform(0.03, case.seconds)
    with tempfile.TemporaryFile() as err:
        child = subprocess.Popen([UNISONO, *case.words], cwd=folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=err)
        end = time.monotonic() + PATIENCE
        while processor_time(child.pid) < moment and os.waitid(
                os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(0.002)
        start = processor_time(child.pid)
        os.kill(child.pid, signal.SIGINT)
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > end:
                child.kill()
                break
            time.sleep(0.002)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read().decode(errors="replace")
    took = usage.ru_utime + usage.ru_stime - start
    where = f"{case.name}, after {start:.3f} s of processor time"
    if child.returncode == 0:
        if case.status is None:
            PROBLEMS.append(f"{where}: it ends")
        return None
    # Before it listens, and when it has nothing left to do, the signal itself is the end; a machine that is faster than
    # ours has come to the case's own end.
    itself = child.returncode == -signal.SIGINT and start < 0.1 or (
        child.returncode in (-signal.SIGINT, case.status) and start > 0.7 * whole_run(case, folder))
    if not itself and (child.returncode != 130 or not re.search(
            r"^error\[U0505\]: stopped\n.*" + case.place, said, re.M | re.S) or said.count("error[") != 1):
        PROBLEMS.append(f"{where}: status {child.returncode}\n{said[:1500]}")
    if took > BOUND and again is None:
        if sorted(interrupt(case, folder, moment) or 0 for _ in range(3))[1] > BOUND * 1000:
            PROBLEMS.append(f"{where}: {took * 1000:.0f} ms of it after Ctrl-C, and mostly so")
    left = set(os.listdir(folder)) - before - case.leaves
    if left:
        PROBLEMS.append(f"{where}: it leaves {left}")
    for name in left:
        os.remove(folder / name)
    if case.words[0] == "fmt" and (folder / "program.uni").read_text() != case.text:
        PROBLEMS.append(f"{where}: the file is not what it was")
    return took * 1000


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_files(folder)
        for case in cases():
            if OPTIONS.names and not any(name in case.name for name in OPTIONS.names):
                continue
            took = [interrupt(case, folder) for _ in range(OPTIONS.rounds)]
            if OPTIONS.table:
                shown = " ".join("   -" if t is None else f"{t:4.0f}" for t in took)
                print(f"{case.name:28} {shown}", flush=True)
            for name in ("out.npy", "out.npz", "out.csv", "out.safetensors"):
                (folder / name).unlink(missing_ok=True)
    print("\n\n".join(PROBLEMS) + f"\nseed {SEED}" if PROBLEMS else "Ctrl-C is heard")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
