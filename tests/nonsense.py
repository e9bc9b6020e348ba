#!/usr/bin/env python3
"""Scripts of nonsense: each must give a located error and status 1, with no
crash, no hang, and no more than 1 GiB of memory.

usage: tests/nonsense.py build/unisono
"""
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time

import sanitizers

MEMORY = (1 << 30) * (1 if sanitizers.slow() == 1 else 4)
SECONDS = sanitizers.limit()
PROCESSOR_SECONDS = 15 * sanitizers.slow()  # of which the longest takes four


def npy(header, data, version=1):
    text = header.encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
FILES = {  # written beside the scripts
    "empty.npy": b"",
    "short.npy": b"\x93NUMPY\x01",
    "magic.npy": b"\x93NUMPX" + npy(GOOD, bytes(12))[6:],
    "version.npy": npy(GOOD, bytes(12))[:6] + b"\x09\x00" + npy(GOOD, bytes(12))[8:],
    "header.npy": npy("{'descr': '<f4', 'shape': (3,", bytes(12)),
    "code.npy": npy("__import__('os').system('touch pwned')", bytes(12)),
    "object.npy": npy(GOOD.replace("<f4", "|O"), bytes(24)),
    "dtype.npy": npy(GOOD.replace("<f4", "<f3"), bytes(9)),
    "bytes.npy": npy(GOOD, bytes(8)),
    "more.npy": npy(GOOD, bytes(16)),
    "huge.npy": npy(GOOD.replace("(3,)", "(1000000, 1000000, 1000000)"), b""),
    "negative.npy": npy(GOOD.replace("(3,)", "(-3,)"), bytes(12)),
    "giant_header.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFF0) + b"{",
    "not_a.npz": b"PK\x03\x04" + bytes(100),
    "cut.npz": b"PK\x05\x06" + bytes(4),
    "good.npy": npy(GOOD, bytes(12)),
}

SCRIPTS = {
    "truncated call": "print(1,",
    "truncated def": "def f(x: f32[n]) -> f32[n] {",
    "truncated string": 'print("abc',
    "truncated interpolation": 'let s = "a {1 +"\nprint(s)',
    "truncated block": "if true { print(1)",
    "truncated comprehension": "let x = [i for i in range(3)",
    "deep parentheses": "(" * 100_000 + "1" + ")" * 100_000,
    "deep brackets": "[" * 100_000,
    "deep unary": "print(" + "-" * 100_000 + "1)",
    "deep blocks": "{" * 50_000,
    "deep ifs": "if true { " * 5_000 + "1" + " }" * 5_000,
    "deep lambdas": "fn(x) => " * 20_000 + "1",
    "long chain": "print(" + "1 + " * 200_000 + "x)",
    "long calls": "f" + "(1)" * 50_000,
    "long fields": "x" + ".a" * 50_000,
    "huge integer": "let x = " + "9" * 10_000,
    "huge exponent": "let x = 1e999999999999",
    "huge int for a type": "let x = 300u8",
    "huge shape": "print(sum(zeros(f32[1_000_000, 1_000_000])))",
    "overflowing shape": "print(zeros(f32[9_000_000_000, 9_000_000_000, 9_000_000_000]))",
    "overflowing size": "let n = 9_000_000_000_000_000_000\nprint(zeros(f32[n * n]))",
    "overflowing sum of sizes": "let n = 9_223_372_036_854_775_807\nprint(zeros(f32[n + 1]))",
    "overflowing arange": "print(arange(9_223_372_036_854_775_807))",
    "huge broadcast": "let x = arange(100_000)\nprint(sum(x[:, none, none] + x[none, :, none] + x[none, none, :]))",
    "huge reshape": "print(reshape(arange(4), (9_223_372_036_854_775_807, 2)))",
    "huge pad": "print(pad(arange(4), ((0, 9_223_372_036_854_775_800),)))",
    "huge repeat": "print(sum(tile(arange(1000), 9_000_000_000_000)))",
    "negative size": "print(zeros(f32[-1]))",
    "invalid utf-8": b"let x = \xff\xfe\xfa\nprint(x)",
    "invalid utf-8 in a string": b'print("\xc3\x28")',
    "nul bytes": b"let x = 1\x00\x00print(x)",
    "control characters": b"\x1b[2J\x07let",
    "binary": bytes(range(256)) * 20,
    "recursion": "def f(x) = f(x)\nprint(f(1))",
    "recursion declared": "def f(x: i32) -> i32 = f(x + 1)\nprint(f(1))",
    "mutual recursion": "def f(x: i32) -> i32 = g(x)\ndef g(x: i32) -> i32 = f(x)\nprint(f(1))",
    "growing recursion": "def f(x) = f((x, x))\nprint(f(1))",
    "self application": "let w = fn(f) => f(f)\nprint(w(w))",
    "growing type": "def f(x) = f(concat((x, x)))\nprint(f(arange(2)))",
    "import of itself": 'import "script.uni" as me\nprint(me.x)',
    "import of nothing": 'import "not_there.uni" as it\nprint(it.x)',
    "import of a folder": 'import "/" as root\nprint(root.x)',
    "missing file": 'print(load("not_there.npy"))',
    "missing folder to save": 'save("no/such/folder/x.npy", arange(3))',
    "index out of bounds": "let x = arange(3)\nprint(x[7])",
    "index computed": "let x = arange(3)\nvar i = 0\nfor k in range(9) { i += k }\nprint(x[i])",
    "division by zero": "var z = 1\nz -= 1\nprint(7 // z)",
    "bad perm": "print(transpose(zeros(f32[2, 3]), (0, 5)))",
    "out of devices": "print(pmap(fn(x) => x, over=devices(99))(arange(99)))",
    "too many unrolled turns": "var s = 0\nfor i in unrolled(1_000_000_000) { s += 1 }\nprint(s)",
    "huge string": 'let s = "' + "a" * 70_000_000 + '"',
    "many mistakes": "x\n" * 2_000_000,
    "many calls": "f();" * 1_000_000,
    "many items": "let x = 1\nlet y = [" + "x, " * 1_300_000 + "]",
    "many arguments": "def f(*, a=1) = 1\nf(" + "1," * 2_000_000 + ")",
    "many indexes": "arange(3)[" + "0," * 2_000_000 + "]",
    "many sums": "let x = arange(3)\nlet y = (" + "x+1," * 1_000_000 + ")",
    "many decorators": "@f\n" * 1_300_000,
    "many interpolations": 'let s = "' + "{x}" * 1_300_000 + '"',
    "many statements": "let x = 1\n" * 400_000 + "y",
    "many turns": "var s = 0\nfor i in unrolled(10_000) { for j in unrolled(10_000) { s += 1 } }",
    "many turns compiled": "def f(x) {\n  var s = x\n  for i in unrolled(10_000) { for j in unrolled(10_000) { s += 1 } }\n"
                           "  s\n}\nprint(jit(f)(1))",
    "doubling text": 'var s = "a"\nfor i in unrolled(60) { s = "{s}{s}" }',
    "doubling tuple": "var s = (1, 2)\nfor i in unrolled(60) { s = (s, s) }",
    "deepening field": "var s = (1, 2)\nfor i in unrolled(300) { s.0 = s }",
    "doubling array": "var s = arange(2)\nfor i in unrolled(60) { s = concat((s, s)) }",
    "recursion with a second call": "def f(x) {\n  let a = f(concat((x, x)))\n  let b = f(x[1:])\n  a\n}\nprint(f(arange(5)))",
    "recursion of a default": "def f(x = f()) = x\nprint(f())",
    "recursion of types": "type A = (b: B)\ntype B = (a: A)\ndef f(x: A) = x",
    "fixed point": "let y = fn(f) => (fn(x) => f(x(x)))(fn(x) => f(x(x)))\nprint(y(fn(g) => g))",
    "huge comprehension": "print([i + j for i in range(1_000_000), j in range(1_000_000)])",
    "huge width": 'print("{3:2000000000}")',
    "comparison chain": "print(1 < 2 < 3)",
    "nonsense words": "for while if let def ) ( ] [",
    "keywords alone": "let let = let",
    "statement soup": "@@@ ### $$$ %%% ^^^",
}
SCRIPTS.update({f"corrupted {name}": f'print(load("{name}"))' for name in FILES
                if name != "good.npy"})
SCRIPTS["not the declared type"] = 'print(load("good.npy") as f32[4])'


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(unisono, folder, name, text):
    script = folder / "script.uni"
    script.write_bytes(text if isinstance(text, bytes) else text.encode())
    with open(folder / "err", "w+b") as err, open(os.devnull, "w") as out:
        child = subprocess.Popen([unisono, "run", "script.uni"], cwd=folder, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=err, preexec_fn=limit)
        end = time.time() + SECONDS
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.time() > end:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                return f"no end after {SECONDS} s"
            time.sleep(0.002)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        message = err.read(20_000).decode(errors="replace")
    if child.returncode != 1:
        return f"status {child.returncode}, expected 1\n{message[:500]}"
    if usage.ru_maxrss * 1024 > MEMORY:
        return f"{usage.ru_maxrss >> 10} MiB of memory"
    if usage.ru_utime + usage.ru_stime > PROCESSOR_SECONDS:
        return f"{usage.ru_utime + usage.ru_stime:.1f} s of a processor"
    if not re.search(r"^error\[U\d{4}\]: .+\n +--> [^\n]+:\d+:\d+$", message, re.M):
        return f"no located error\n{message[:500]}"
    if (folder / "pwned").exists():
        return "loading a file ran code"
    return None


def main():
    unisono = os.path.abspath(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, data in FILES.items():
            (folder / name).write_bytes(data)
        for name, text in SCRIPTS.items():
            problem = run(unisono, folder, name, text)
            if problem:
                failed += 1
                print(f"{name}: {problem}")
    print(f"{len(SCRIPTS)} scripts, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
