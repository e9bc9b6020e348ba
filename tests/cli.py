#!/usr/bin/env python3
"""The command line: what golden programs cannot show. Exit status 2, standard input and -e, files that an error
leaves alone, outputs that cannot be written, signals, and what `inspect` shows of every example.

usage: tests/cli.py UNISONO [--full]

With --full every example is run for every stage of `inspect` that shows what is compiled, else for one of them, in turn.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nvidia
import sanitizers

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNISONO = os.path.abspath(sys.argv[1])
SECONDS = sanitizers.limit()
NOBODY = 65534
PROBLEMS = []
PASSES = ["trace", "vmap", "join", "spmd", "pull", "simplify", "fold", "results", "cse", "captures", "narrow"]
COMMANDS = ["run", "launch", "check", "test", "bench", "fmt", "explain", "doc", "completion", "man", "devices", "lsp", "jupyter", "inspect"]


class Ran:
    def __init__(self, done):
        self.status = done.returncode
        self.out = (done.stdout or b"").decode(errors="replace")
        self.err = (done.stderr or b"").decode(errors="replace")

    def __str__(self):
        return f"status {self.status}\nout: {self.out[:1000]}\nerr: {self.err[:1000]}"


def run(*words, text=b"", folder=None, **more):
    if "stdin" not in more:
        more["input"] = text.encode() if isinstance(text, str) else text
    more.setdefault("stdout", subprocess.PIPE)
    return Ran(subprocess.run([UNISONO, *words], cwd=folder, stderr=subprocess.PIPE, timeout=SECONDS, **more))


def expect(name, ran, status, out=None, err=None):
    """`out` and `err` are patterns to be found, or "" for nothing at all."""
    def fits(pattern, text):
        return pattern is None or (text == "" if pattern == "" else re.search(pattern, text, re.M | re.S))
    if ran.status != status or not fits(out, ran.out) or not fits(err, ran.err):
        PROBLEMS.append(f"{name}: expected status {status}, out {out!r}, err {err!r}; got {ran}")


def usage_errors(folder):
    (folder / "fine.uni").write_text("print(args())\n")
    for name, words, said in (("UNISONO_TUNING", "lesat", r"expects least, most, seed:N or NAME=VALUE, with `,` between; got `lesat`"),
                              ("UNISONO_TUNING", "few=1", "has no row `few`"),
                              ("UNISONO_ORDERS", "reduce_chunk=65", "expects reduce_chunk from 256 to 4096; got `65`")):
        expect(f"{name}={words}", run("fine.uni", folder=folder, env={**os.environ, name: words}), 2, "", rf"^error: {name} {said}\n$")
    wrong = {
        "unknown command": ["frobnicate"],
        "unknown option": ["--frobnicate"],
        "-e without a word": ["-e"],
        "-e with two words": ["-e", "1", "2"],
        "run without a file": ["run"],
        "run with an unknown option": ["run", "fine.uni", "--fast"],
        "run --json": ["run", "fine.uni", "--json"],
        "check without a file": ["check"],
        "check with two files": ["check", "fine.uni", "fine.uni"],
        "fmt without a file": ["fmt"],
        "explain without a code": ["explain"],
        "explain of an unknown code": ["explain", "U9999"],
        "explain of nonsense": ["explain", "what?"],
        "explain of two": ["explain", "U0412", "U0413"],
        "devices with a file": ["devices", "fine.uni"],
        "inspect without a file": ["inspect"],
        "inspect of an unknown stage": ["inspect", "--emit=soup", "fine.uni"],
        "inspect after an unknown pass": ["inspect", "--after=soup", "fine.uni"],
        "inspect of types after a pass": ["inspect", "--emit=types", "--after=cse", "fine.uni"],
    }
    for devices in ("", "cpu", "cpu:", "cpu:0", "cpu:65", "cpu:-1", "cpu:4x", "cpu:99999999999999999999", "gpu:1", "4"):
        wrong[f"devices {devices!r}"] = ["run", "fine.uni", "--devices", devices]
        wrong[f"list of devices {devices!r}"] = ["devices", "--devices", devices]
    (folder / "folder").mkdir()
    (folder / "other.uni").write_text("print(2)\n")
    commands = {"run": ["fine.uni"], "check": ["fine.uni"], "inspect": ["fine.uni"], "devices": [], "-e": ["1"], "-": []}
    for devices in ("cpu:0", "cpu:65", "cpu:x", "cpu:1.5", "cpu:+4", "cpu: 4", "cpu:4 ", "cpu:0x4", "cpu:nan", "cpu:1e1", "CPU:4", "sim:-1", "sim:0",
                    "sim:65", "sim:x", "sim", "sim:", "cuda:", "cuda:-1", "cuda:x", "cuda:0,", ",cuda:0", "cuda:0,,cuda:1", "cuda:99999999999",
                    "cpu:2,cuda:0", "cuda:0,cpu:2", "cpu:2,cpu:2", "sim:2,cuda:0", ",".join(["cuda:0"] * 65), "\x1b[2J", "cpu:\n2"):
        for command, rest in commands.items():
            wrong[f"{command} --devices {devices!r}"] = [command, *rest, "--devices", devices]
    for watchdog in ("nan", "-nan", "inf", "-inf", "-1", "-0.001", "1e999", "1e10", "", " ", "x", "5s", "1,5", "0x10", "1e", "1 2", "٣", "--stats"):
        for command in ("run", "-e", "-"):
            wrong[f"{command} --watchdog {watchdog!r}"] = [command, *commands[command], "--watchdog", watchdog]
    for trace in ("", ".", "folder", "folder/", "nowhere/trace.json", "/dev/null", "fine.uni/trace.json"):
        wrong[f"--trace {trace!r}"] = ["run", "other.uni", "--trace", trace]
    for emit in ("", "IR", "soup", "ir,asm", "ir ", "0", "nan"):
        wrong[f"--emit {emit!r}"] = ["inspect", "fine.uni", "--emit", emit]
    for target in ("", "90", "sm_", "sm_0", "sm_70", "sm_-90", "sm_9x", "sm_nan", "sm_99999", "sm_99999999999999999999", "SM_90", "compute_90", "gfx90"):
        wrong[f"--target {target!r}"] = ["inspect", "fine.uni", "--emit=ptx", "--target", target]
    for after in ("", "soup", "CSE", "cse,trace", "1"):
        wrong[f"--after {after!r}"] = ["inspect", "fine.uni", "--after", after]
    wrong.update({
        "no value for --devices": ["run", "fine.uni", "--devices"],
        "no value for --watchdog": ["run", "fine.uni", "--watchdog"],
        "nothing after --trace=": ["run", "fine.uni", "--trace="],
        "nothing after --emit=": ["inspect", "fine.uni", "--emit="],
        "--emit= and a file": ["inspect", "--emit=", "fine.uni"],
        "a word for a flag": ["run", "fine.uni", "--reference=perhaps"],
        "two stages": ["inspect", "fine.uni", "--emit=ir", "--emit=asm"],
        "two passes": ["inspect", "fine.uni", "--after=cse", "--after=trace"],
        "two targets": ["inspect", "fine.uni", "--emit=ptx", "--target=sm_80", "--target=sm_90"],
        "two expressions": ["-e", "1", "-e", "2"],
        "an expression before check": ["-e", "1", "check", "fine.uni"],
        "standard input before run": ["-", "run", "fine.uni"],
        "--reference before fmt": ["--reference", "fmt", "fine.uni"],
        "--devices before fmt": ["--devices", "cpu:2", "fmt", "fine.uni"],
        "--watchdog before check": ["--watchdog", "5", "check", "fine.uni"],
        "check --reference": ["check", "fine.uni", "--reference"],
        "check --watchdog": ["check", "fine.uni", "--watchdog", "5"],
        "fmt --devices": ["fmt", "fine.uni", "--devices", "cpu:2"],
        "fmt --json": ["fmt", "fine.uni", "--json"],
        "fmt --check=perhaps": ["fmt", "--check=perhaps", "fine.uni"],
        "explain of an empty word": ["explain", ""],
        "explain of a long number": ["explain", "U" + "9" * 1000],
        "explain of a negative number": ["explain", "-1"],
        "explain of what a terminal obeys": ["explain", "\x1b[2J"],
        "explain --devices": ["explain", "U0412", "--devices", "cpu:1"],
        "an unknown option that a terminal obeys": ["run", "fine.uni", "--\x1b[2J"],
        "a command that is no text": [b"\xff\xfe\x1b[2J"],
        "inspect --json": ["inspect", "fine.uni", "--json"],
        "inspect of the AST after a pass": ["inspect", "--emit=ast", "--after=cse", "fine.uni"],
    })
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    for name, words in wrong.items():
        ran = run(*words, folder=folder)
        expect(name, ran, 2, "", r"^error: |^usage:")
        if not name.startswith("nothing") and not re.fullmatch(r"error: [^\n]+\n([^\n]*see `unisono[^\n]*\n)?", ran.err.replace("cpu:\n2", "")):
            PROBLEMS.append(f"{name}: one line was expected that says what is wrong; got {ran}")
        if "\x1b" in ran.err:
            PROBLEMS.append(f"{name}: an option that moves the cursor: {ran}")
    if before != {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}:
        PROBLEMS.append("a wrong command line changed files")
    for name, words, out in (("a program's argument that is a command's name", ["run", "fine.uni", "check", "fmt", "-", "run"],
                              r'^\("check", "fmt", "-", "run"\)$'),
                             ("arguments of standard input that are commands", ["run", "-", "run", "check"], r'^\("run", "check"\)$'),
                             ("--devices before run", ["--devices", "cpu:3", "run", "fine.uni"], r"^\(\)$"),
                             ("the smallest --watchdog", ["run", "fine.uni", "--watchdog", "1e-9"], r"^\(\)$"),
                             ("no --watchdog", ["run", "fine.uni", "--watchdog=0"], r"^\(\)$"),
                             ("--watchdog for 31 years", ["run", "fine.uni", "--watchdog", "1e9"], r"^\(\)$"),
                             ("the last --watchdog counts", ["run", "fine.uni", "--watchdog", "5", "--watchdog", "6"], r"^\(\)$"),
                             ("a trace in place of another one", ["run", "fine.uni", "--trace", "trace.json"], r"^\(\)$")):
        (folder / "trace.json").write_text("{}")
        expect(name, run(*words, folder=folder, text="print(args())"), 0, out, "")
    os.mkfifo(folder / "pipe.npy")
    (folder / "folder.npy").mkdir()
    expect("save in place of a pipe", run("-e", 'save("pipe.npy", [1])', folder=folder), 1, "", r"U0651.*not a regular file")
    expect("save in place of a folder", run("-e", 'save("folder.npy", [1])', folder=folder), 1, "", r"U0651.*it is a folder")
    if not pathlib.Path("/dev/null").is_char_device():
        PROBLEMS.append("/dev/null is gone")


def helps():
    expect("--help", run("--help"), 0, r"usage:.*unisono \[run\] FILE.*examples:.*exit status", "")
    expect("--version", run("--version"), 0, r"^unisono \d+\.\d+\.\d+( \([0-9a-f]{10}\+?\))?\n$", "")
    for command in COMMANDS:
        expect(f"{command} --help", run(command, "--help"), 0, rf"usage: unisono {command}", "")
        wide = [line for line in run(command, "--help").out.splitlines() if len(line) > 80]
        if wide:
            PROBLEMS.append(f"{command} --help is wider than 80 columns: {wide}")
    expect("devices", run("devices", "--devices", "cpu:3"), 0, r"^cpu:0\ncpu:1\ncpu:2\n", "")
    nowhere = {**os.environ, "UNISONO_CUDA_DRIVER": "/nowhere/libcuda.so"}
    for devices in ("cuda", "cuda:0,cuda:0", "sim:2"):
        expect(f"no driver for {devices}", run("-e", "1", "--devices", devices, env=nowhere), 1, "",
               r"^error: there is no CUDA driver: /nowhere/libcuda.so[^\n]*\n$")
    expect("devices without a driver", run("devices", env=nowhere), 0, r"^cpu:0\n.*there is no CUDA driver", "")
    expect("inspect --target", run("inspect", "--emit=ptx", "--target=sm_70", "/dev/null"), 2, "", r"^error: --target")
    expect("inspect --emit=ir --target", run("inspect", "--emit=ir", "--target=sm_90", "--shape", "x=f32[8]", "-", text="def f(x) = x + 1.0\n"),
           0, r"add %0, ", "")
    expect("inspect --emit=ptx says how kernels are launched",
           run("inspect", "--emit=ptx", "--target=sm_90", "--shape", "x=f32[4096]", "-", text="def f(x) = x + 1.0\n"),
           0, r"\n// kernel0: 16 blocks of 256 threads\n", "")
    for code in ("U0412", "u0412", "0412", "412"):
        expect(f"explain {code}", run("explain", code), 0, r"^# U0412: ", "")
    table = (ROOT / "lang/source/diagnostics.def").read_text()
    for code in re.findall(r"^DIAGNOSTIC(?:_OF_SIZES)?\((U\d{4})", table, re.M):
        expect(f"explain {code}", run("explain", code), 0, rf"^# {code}: .*Wrong:.*Right:", "")


def programs(folder):
    (folder / "args.uni").write_text("print(args())\n")
    expect("arguments", run("run", "args.uni", "a", "--devices", "cpu:2", "b c", folder=folder), 0,
           r'^\("a", "b c"\)$', "")
    expect("arguments after --", run("run", "args.uni", "--", "-v", "--devices", folder=folder), 0,
           r'^\("-v", "--devices"\)$', "")
    for name, words, seen in (("on both sides of --", ["run", "args.uni", "a", "--", "-v"], r'^\("a", "-v"\)$'),
                              ("and options", ["run", "args.uni", "--devices", "cpu:2", "a", "--", "--devices", "b"],
                               r'^\("a", "--devices", "b"\)$'),
                              ("that are numbers", ["run", "args.uni", "-3", "4"], r'^\("-3", "4"\)$'),
                              ("behind a second --", ["run", "args.uni", "--", "a", "--"], r'^\("a", "--"\)$'),
                              ("of a file behind --", ["run", "--", "args.uni", "-v"], r'^\("-v",\)$'),
                              ("none behind --", ["run", "args.uni", "--"], r"^\(\)$"),
                              ("without run", ["args.uni", "a", "run", "--devices", "cpu:2", "--", "-v"],
                               r'^\("a", "run", "-v"\)$'),
                              ("behind options", ["--devices", "cpu:2", "args.uni", "a"], r'^\("a",\)$'),
                              ("of -e", ["-e", "args()", "--", "a", "-v"], r'^\("a", "-v"\)$'),
                              ("of run -e", ["run", "-e", "args()", "--", "a"], r'^\("a",\)$')):
        expect(f"arguments {name}", run(*words, folder=folder), 0, seen, "")
    word = os.fsdecode(b"caf\xe9")  # as other systems and old files have it: a byte that is no UTF-8 is a character
    code = """let word = args()[0]
print(len(word), word[3:] == word[-1], word == word[:3] + word[3], len(word + word))
for c in word { print(len(c)) }
print(jit(fn(i) => ("abc"[i] == word[3], "abc"[i] != word[3]))([0, 1][0]))
"""
    expect("arguments that are no UTF-8", run("run", "-e", code, "--", word), 0,
           r"^4 true true 8\n1\n1\n1\n1\n\(false, true\)$", "")
    expect("arguments that are no UTF-8, as code", run("run", "-e", "jit(fn(i) => args()[0][i] == \"c\")([0, 1][0])", "--", word),
           1, "", r"U0320.*the index of a `str` depends on an array's elements")
    expect("no command", run("frobnicate", folder=folder), 2, "", r"^error: there is no command and no file `frobnicate`")
    expect("no file", run("nowhere.uni", folder=folder), 1, "", r"nowhere\.uni")
    for words in (["-", "a", "--", "-v"], ["run", "-", "a", "--", "-v"]):
        expect("arguments of standard input", run(*words, text="print(args())"), 0, r'^\("a", "-v"\)$', "")
    (folder / "number.uni").write_text("print(zeros(f32[int(args()[0])]))\n")
    expect("check with unknown arguments", run("check", "number.uni", folder=folder), 0, "", "")
    expect("check with good arguments", run("check", "number.uni", "--", "3", folder=folder), 0, "", "")
    expect("check with bad arguments", run("check", "number.uni", "--", "x", folder=folder), 1, "", r"U0385")
    alone = folder / "alone"
    alone.mkdir()
    shutil.copy(UNISONO, alone / "unisono")
    expect("simulated GPUs without their library",
           Ran(subprocess.run([alone / "unisono", "-e", "1", "--devices", "sim:2"], capture_output=True, timeout=SECONDS,
                              env={k: v for k, v in os.environ.items() if k != "UNISONO_CUDA_DRIVER"})), 1, "",
           r"libsimcuda\.so, which is not beside.*\./dev build simcuda")
    expect("unknown option says where arguments go", run("run", "args.uni", "-v", folder=folder), 2, "", r"after --")
    expect("last --devices counts", run("run", "-", "--devices", "cpu:2", "--devices", "cpu:3",
                                        text="print(device_count())"), 0, r"^3\n$", "")
    fault = {**os.environ, "SIMCUDA": "peers=ring;seed=4;fail=cuLaunchKernel:13:719:sticky"}
    expect("a device that is lost, alone", run("tests/programs/maps/donate.uni", "--devices", "sim:3", env=fault), 1, None,
           r"^error\[U0506\]: launching a kernel on sim:0: a kernel failed \(CUDA error 719\)\n([^\n]*\n){4}"
           r"simcuda: device 0: error 719 .a kernel failed.: planned fault in cuLaunchKernel\n$")
    product = "let x = ones(f32[512, 512])\nprint(sum(jit(fn(x) => x @ x)(x)))\n"
    library = {**os.environ, "UNISONO_CUBLASLT": os.path.join(os.path.dirname(UNISONO), "libsimcublaslt.so")}
    for flags in ([], ["--no-cublas"]):
        expect(f"a large product with {flags}", run("-", "--devices", "sim:1", *flags, text=product, env=library), 0,
               r"^1\.3421773e\+08\n$", "")
    cached = {**os.environ, "UNISONO_CACHE": str(folder / "cache")}
    entries = lambda: len(list((folder / "cache").glob("*.entry")))
    for flags, found in ((["--no-cache"], 0), ([], 2), ([], 2)):
        expect(f"kernels on disk with {flags}",
               run("-", "--devices", "sim:1", "--no-cublas", *flags, text=product, env=cached), 0, r"^1\.3421773e\+08\n$", "")
        if (entries() > 0) != (found > 0):
            PROBLEMS.append(f"kernels on disk with {flags}: {entries()} entries")
    before = entries()
    for compiled in (r"compiled 1 program, [12] kernels?, ", r"compiled 1 program, 0 kernels \([12] more on disk\), "):
        expect("kernels of a CPU on disk", run("-", "--stats", text="print(jit(fn(x) => sum(x))(arange(100_000)))\n", env=cached), 0, r"^704982704\n$", compiled)
        if entries() != before + 1:
            PROBLEMS.append(f"kernels of a CPU on disk: {entries() - before} entries")
    # What code on disk calls for rare arguments lies elsewhere in each process.
    for compiled in (r"compiled 1 program, 1 kernel, ", r"compiled 1 program, 0 kernels \(1 more on disk\), "):
        expect("rare functions of code on disk",
               run("-", "--stats", text="print(sum(jit(fn(x) => sin(x))(1e300f64 * arange(64, f64))))\n", env=cached), 0,
               r"^1\.9197921223860617\n$", compiled)
    before = entries()
    for compiled in (r"compiled 1 program, [12] kernels?, ", r"compiled 1 program, 0 kernels \([12] more on disk\), "):
        expect("kernels on disk are of one tuning",
               run("-", "--stats", text="print(jit(fn(x) => sum(x))(arange(100_000)))\n", env={**cached, "UNISONO_TUNING": "few_sharers=3"}), 0, r"^704982704\n$", compiled)
    if entries() != before + 1:
        PROBLEMS.append(f"kernels on disk are of one tuning: {entries() - before} entries")
    for entry in (folder / "cache").glob("*.entry"):
        entry.write_bytes(entry.read_bytes()[:-100] + bytes(100))
    expect("damaged kernels on disk", run("-", "--stats", text="print(jit(fn(x) => sum(x))(arange(100_000)))\n", env=cached), 0, r"^704982704\n$",
           r"compiled 1 program, [12] kernels?, ")
    simulator = {**cached, "UNISONO_CUDA_DRIVER": os.path.join(os.path.dirname(UNISONO), "libsimcuda.so")}
    expect("where kernels are kept", run("devices", env=simulator), 0, "compiled kernels are kept in .*/cache\n", "")
    (folder / "cache").chmod(0o755)
    expect("where kernels are not kept", run("devices", env=simulator), 0, "kernels are not kept: .*700 is needed", "")
    expect("kernels of a cache that is open", run("-", "--devices", "sim:1", text=product, env=cached), 0,
           r"^1\.3421773e\+08\n$", r"^note: no kernels are kept in UNISONO_CACHE=.*/cache: others may enter it .*700 is needed\)\n$")
    expect("kernels of a cache that is open, quietly", run("-", "--quiet", text="print(1)\n", env=cached), 0, r"^1\n$", "")
    expect("no cache", run("devices", env={**simulator, "UNISONO_CACHE": "off"}), 0, "kernels are not kept\n", "")
    loops = ("let a = ones(f32[100, 100])\nvar y = a\nfor i in range(30) { y = a @ y * 0.01 }\n"
             "var t = 0\nfor i in range(30) { t += i }\nvar s = \"\"\nfor i in range(30) { s = \"{[i]}\" + s }\nprint(t)\n")
    expect("loops that go on as code, and none of large arrays or of their text", run("-", "--stats", text=loops), 0, r"^435\n$",
           r"turns +loop ms  loop that went on as code\n +29 +[\d.]+  <stdin>:5:1 for i in range\(30\) \{ t \+= i \}\ncopied")
    again = ("def fit(x, y) {\n  let near = fn(w) => w * x - y\n  var w = 0.0\n"
             "  for _ in range(9) { w = w - 0.1 * grad(fn(w) => mean(near(w) ** 2))(w) }\n  w\n}\n"
             "let x = arange(3, f32)\nlet a = fit(x, 2.0 * x) + fit(2.0 * x, 3.0 * x)\n"
             "def total(xs, k) = fold(fn(c, x) => c + k * x, 0.0, xs)\n"
             "let b = total([1.0, 2.0], [3.0, 4.0][0]) + total([2.0, 3.0], [5.0, 6.0][1])\nprint(1)\n")
    expect("functions that are made again compile nothing", run("-", "--stats", text=again), 0, r"^1\n$",
           r"compiled 3 programs, .*; 16 calls found theirs")
    for words in (["-"], ["run", "-"], ["run", "/dev/stdin"]):
        expect(f"standard input as {words}", run(*words, text="print(1 + 2)\n"), 0, r"^3\n$", "")
        expect(f"empty standard input as {words}", run(*words), 0, "", "")
    expect("a mistake on standard input", run("-", text="print(x)"), 1, "", r"U0201.*--> <stdin>:1:7")
    expect("a missing file", run("run", "nowhere.uni", folder=folder), 1, "", r"^error\[U0650\].*`nowhere\.uni`")
    expect("a folder", run("run", ".", folder=folder), 1, "", r"^error\[U0650\].*folder")
    expect("no name", run("run", "", folder=folder), 2, "", r"^error: there is no file")
    expect("a file without end", run("run", "/dev/zero"), 1, "", r"U0119.*--> /dev/zero:1:1")
    expect("a mistake on the last line", run("-", text="print(1)\nprint(y)"), 1, "", r"U0201")
    expect("output before an error", run("-", text="print(1)\nlet i = argmax([1, 2]) + 1\nprint([1, 2][i])"), 1,
           r"^1\n$", r"U0502.*<stdin>:3:7")
    expect("crlf", run("-", text="let x = 1\r\nprint(x)\r\nprint(y)\r\n"), 1, "", r"<stdin>:3:7\n.*print\(y\)\n")

    expect("-e", run("-e", "sum(arange(10))"), 0, r"^45\n$", "")
    expect("-e on devices", run("-e", "device_count()", "--devices", "cpu:3"), 0, r"^3\n$", "")
    expect("-e of a statement", run("-e", "let x = 3"), 0, "", "")
    expect("-e of several", run("-e", "let x = 3\nx * x"), 0, r"^9\n$", "")
    expect("-e of nothing", run("-e", ""), 0, "", "")
    expect("-e prints once", run("-e", "print(3)"), 0, r"^3\n$", "")
    expect("-e with a mistake", run("-e", "1 +"), 1, "", r"U0102.*--> <expression>:1:4")


def compiled_once(folder):
    """Another value of a literal, of an int that is only a number, and of a var compiles nothing."""
    program = folder / "once.uni"
    program.write_text("var rate = 0.5\nlet f = jit(fn(x, k, c) => x * k + c * rate)\nlet x = arange(4, f32)\n"
                       "for k in (1, 2, 3) { print(f(x, k, 0.1 * k)); rate = rate * 0.5 }\n")
    ran = run("run", "--stats", str(program))
    expect("compiled once", ran, 0, out=r"\[0.0375 3.0375 6.0375 9.0375\]", err="compiled 1 program,")
    program.write_text("let f = jit(fn(x, p, rate) => x ** p * rate)\nlet x = arange(4, f32)\n"
                       "for k in (1.0, 2.0, 3.0) { print(f(x, 3.0, 0.1 * k)) }\n")
    ran = run("run", "--stats", str(program))
    expect("compiled once for an exponent", ran, 0, out=r"\[0\. +0\.3 +2\.4 +8\.1", err="compiled 1 program,")


def checks(folder):
    (folder / "wrong.uni").write_text('print("never")\nlet x = f32[2](3)\nprint(α)\n')
    expect("check", run("check", "wrong.uni", folder=folder), 1, "", r"--> wrong\.uni:3:7")
    expect("check of a good program", run("check", "-", text="print(1)"), 0, "", "")
    ran = run("check", "--json", "wrong.uni", folder=folder)
    expect("check --json", ran, 1, r"^\{", "")
    answer = json.loads(ran.out)
    keys = ["code", "severity", "message", "where", "label", "notes", "facts", "help"]
    last = answer["messages"][-1]
    where = {"file": "wrong.uni", "line": 3, "column": 7, "end_line": 3, "end_column": 8, "begin": 39, "end": 41}
    if list(answer) != ["version", "ok", "messages"] or answer["version"] != 1 or answer["ok"] is not False:
        PROBLEMS.append(f"check --json: {ran}")
    if list(last) != keys or last["code"] != "U0201" or last["where"] != where:
        PROBLEMS.append(f"check --json: {last}")
    ran = run("check", "--json", "-", text="print(1)")
    if ran.status != 0 or json.loads(ran.out) != {"version": 1, "ok": True, "messages": []}:
        PROBLEMS.append(f"check --json of a good program: {ran}")
    ran = run("check", "--json", "nowhere.uni", folder=folder)
    if ran.status != 1 or json.loads(ran.out)["messages"][0]["where"] is not None:
        PROBLEMS.append(f"check --json of a missing file: {ran}")
    name = os.fsencode(folder) + b"/n\xff\x1b[2J.uni"
    pathlib.Path(os.fsdecode(name)).write_text("print(x)\n")
    ran = run("check", "--json", os.fsdecode(name))
    if ran.status != 1 or json.loads(ran.out)["messages"][0]["code"] != "U0201":
        PROBLEMS.append(f"check --json of a path that is no text: {ran}")
    ran = run("check", os.fsdecode(name))
    expect("a path that is no text", ran, 1, "", r"U0201")
    if "\x1b" in ran.err:
        PROBLEMS.append(f"a path that moves the cursor: {ran}")


def formats(folder):
    ugly, pretty, wrong = "let   x=1\n", "let x = 1\n", "let x = = 1\n"
    for name, text in (("ugly", ugly), ("pretty", pretty), ("wrong", wrong)):
        (folder / f"{name}.uni").write_text(text)
    read = lambda name: (folder / name).read_text()
    expect("fmt --check", run("fmt", "--check", "ugly.uni", "pretty.uni", folder=folder), 1,
           r"^ugly\.uni: not formatted[^\n]*\n$", "")
    expect("fmt --check of good files", run("fmt", "--check", "pretty.uni", folder=folder), 0, "", "")
    if read("ugly.uni") != ugly:
        PROBLEMS.append("fmt --check wrote the file")
    expect("fmt of a wrong file", run("fmt", "wrong.uni", "nowhere.uni", "ugly.uni", folder=folder), 1, "",
           r"wrong\.uni:1:9.*`nowhere\.uni`")
    if read("wrong.uni") != wrong or read("ugly.uni") != pretty:
        PROBLEMS.append("fmt: a wrong file is left alone, the others are formatted")
    expect("fmt of standard input", run("fmt", "-", text=ugly), 0, r"^let x = 1\n$", "")
    expect("fmt --check of standard input", run("fmt", "--check", "-", text=ugly), 1, r"^<stdin>: not formatted", "")
    expect("fmt of wrong standard input", run("fmt", "-", text=wrong), 1, "", r"<stdin>:1:9")
    expect("fmt of a folder", run("fmt", ".", folder=folder), 1, "", r"U0650")

    target, link = folder / "target.uni", folder / "link.uni"
    target.write_text(ugly)
    target.chmod(0o640)
    link.symlink_to("target.uni")
    expect("fmt of a link", run("fmt", "link.uni", folder=folder), 0, "", "")
    if not link.is_symlink() or target.read_text() != pretty or target.stat().st_mode & 0o777 != 0o640:
        PROBLEMS.append("fmt of a link keeps the link, and the file's mode")
    locked = folder / "locked"
    locked.mkdir()
    (locked / "ugly.uni").write_text(ugly)
    (locked / "ugly.uni").chmod(0o666)
    locked.chmod(0o555)
    other = {"user": NOBODY} if os.geteuid() == 0 else {}
    expect("fmt in a folder that cannot be written", run("fmt", "ugly.uni", folder=locked, **other), 1, "", r"U0651")
    ran = run("-", text='save("x.npy", arange(3))', folder=locked, **other)
    expect("save in a folder that cannot be written", ran, 1, "", r"U0651.*<stdin>:1:")
    if os.listdir(locked) != ["ugly.uni"] or (locked / "ugly.uni").read_text() != ugly:
        PROBLEMS.append("fmt or save left something in a folder that cannot be written")
    locked.chmod(0o755)
    left = [p for p in os.listdir(folder) if re.search(r"\.\w{6}$", p)]
    if left:
        PROBLEMS.append(f"temporary files are left: {left}")


def outputs():
    full = open("/dev/full", "w")
    many = "for i in range(100_000) { print(i) }"
    for name, words in {"-e": ["-e", "1"], "explain": ["explain", "U0101"], "--help": ["--help"],
                        "check --json": ["check", "--json", "/dev/null"], "devices": ["devices"]}.items():
        expect(f"{name} to a full device", run(*words, stdout=full), 1, None, r"cannot write standard output")
    expect("many lines to a full device", run("-e", many, stdout=full), 1, None, r"cannot write standard output")
    for ignore in (False, True):  # SIGPIPE
        child = subprocess.Popen([UNISONO, "-e", many], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 restore_signals=not ignore)
        child.stdout.readline()
        child.stdout.close()
        if child.wait(SECONDS) != (1 if ignore else -signal.SIGPIPE):
            PROBLEMS.append(f"reader gone, SIGPIPE {'ignored' if ignore else 'not ignored'}: {child.returncode}")
        child.stderr.close()
    ran = Ran(subprocess.run(["sh", "-c", '"$0" -e 1 >&-', UNISONO], capture_output=True, timeout=SECONDS))
    expect("closed standard output", ran, 1, "", r"cannot write standard output")
    ran = Ran(subprocess.run(["sh", "-c", '"$0" run - <&-', UNISONO], capture_output=True, timeout=SECONDS))
    expect("closed standard input", ran, 1, "", r"U0650")


def limits(folder):
    """`ulimit`, streams that are closed, and what a process that was killed while it wrote leaves behind."""
    def limited(limit, *words, text=""):
        command = ["sh", "-c", f'{limit}; exec "$@"', "sh", UNISONO, *words]
        return Ran(subprocess.run(command, cwd=folder, input=text.encode(), capture_output=True, timeout=SECONDS))
    parts = lambda: [p.name for p in folder.iterdir() if p.name.endswith(".unisono-part")]
    old = run("-", text='save("big.npy", arange(10))', folder=folder)
    expect("save", old, 0, "", "")
    before = (folder / "big.npy").read_bytes()
    saves = ['save("big.npy", arange(100000))', 'save("big.npz", (a = arange(100000)))']
    draws = ['visualize(arange(10), "big.svg")', 'plot(arange(10), "big.svg")']
    if pathlib.Path(UNISONO).parent.name.endswith("threads"):
        draws = []  # ThreadSanitizer writes a file of its own when a process starts
    for program in saves + draws:
        ran = limited("ulimit -f 0" if program in draws else "ulimit -f 8", "-", text=program)
        expect(f"a file beyond the limit: {program}", ran, 1, "", r"U0651.*File too large.*<stdin>:1:")
    if (folder / "big.npy").read_bytes() != before or (folder / "big.npz").exists() or parts():
        PROBLEMS.append(f"a save beyond the limit leaves things as they were: {os.listdir(folder)}")
    ran = Ran(subprocess.run(["sh", "-c", 'ulimit -f 8; exec "$0" -e "[i for i in range(100000)]" > many.txt',
                              UNISONO], cwd=folder, capture_output=True, timeout=SECONDS))
    expect("output within the limit", ran, 0, "", "")
    ran = Ran(subprocess.run(["sh", "-c", 'ulimit -f 8; exec "$0" -e "for i in range(10000) { print(i) }" > many.txt',
                              UNISONO], cwd=folder, capture_output=True, timeout=SECONDS))
    expect("output beyond the limit", ran, 1, "", r"cannot write standard output")
    ugly = folder / "limit.uni"
    ugly.write_text("let  x=1\n" * 3000)
    expect("fmt beyond the limit", limited("ulimit -f 8", "fmt", "limit.uni"), 1, "", r"U0651.*File too large")
    if ugly.read_text() != "let  x=1\n" * 3000 or parts():
        PROBLEMS.append("fmt beyond the limit leaves the file as it was")

    (folder / "deep.uni").write_text("print(" + "(" * 150 + "1" + ")" * 150 + ")\n"
                                     "def f(n: int) -> int = if n == 0 { 0 } else { 1 + f(n - 1) }\n"
                                     "print(f(900), sum(jit(fn(x) => sort(x * 2.0))(arange(20000, f32))))\n")
    for size in (64, 96, 256, 1024):
        stack = f"ulimit -s {size}"
        expect(f"run, stack of {size} KiB", limited(stack, "run", "--devices", "cpu:3", "deep.uni"), 0, r"900 3.9998e\+08", "")
        expect(f"check, stack of {size} KiB", limited(stack, "check", "deep.uni"), 0, "", "")
        expect(f"fmt, stack of {size} KiB", limited(stack, "fmt", "--check", "deep.uni"), 1, r"not formatted", "")
        expect(f"-e, stack of {size} KiB", limited(stack, "-e", "1 + 1"), 0, r"^2$", "")

    saving = 'let x = arange(20_000_000)\nwhile true { save("killed.npy", x) }'
    child = subprocess.Popen([UNISONO, "-"], stdin=subprocess.PIPE, cwd=folder)
    child.stdin.write(saving.encode())
    child.stdin.close()
    end = time.time() + SECONDS
    while not parts() and time.time() < end:
        time.sleep(0.001)
    saved = lambda: (folder / "killed.npy").stat().st_ino if (folder / "killed.npy").exists() else None
    before = saved()
    expect("a save while another process writes", run("-", text='save("other.npy", arange(3))', folder=folder), 0, "", "")
    while child.poll() is None and saved() == before and time.time() < end:
        time.sleep(0.001)
    if child.poll() is not None:  # with an error, as its file was gone
        PROBLEMS.append("a save removes what another process writes")
    child.kill()
    child.wait()
    if not parts():  # it was between two
        (folder / "killed.npy.0123456789abcdef.unisono-part").write_text("half")
    expect("a save after a killed one", run("-", text='save("other.npy", arange(3))', folder=folder), 0, "", "")
    if parts():
        PROBLEMS.append(f"what a killed process left is still there: {parts()}")
    (folder / "limit.uni.0123456789abcdef.unisono-part").write_text("half")
    expect("fmt after a killed one", run("fmt", "limit.uni", folder=folder), 0, "", "")
    if parts():
        PROBLEMS.append(f"what a killed fmt left is still there: {parts()}")

    (folder / "prints.uni").write_text('print("first")\nsave("kept.npy", arange(3))\nprint(load("kept.npy") as i32[3])\n')
    ran = Ran(subprocess.run(["sh", "-c", '"$0" run prints.uni <&- >&-', UNISONO], cwd=folder, capture_output=True,
                             timeout=SECONDS))
    expect("closed standard output beside files", ran, 1, "", r"cannot write standard output")
    expect("what was saved", run("-e", 'load("kept.npy") as i32[3]', folder=folder), 0, r"\[0 1 2\]", "")
    ran = Ran(subprocess.run(["sh", "-c", '"$0" run prints.uni 2>&-', UNISONO], cwd=folder, capture_output=True,
                             timeout=SECONDS))
    expect("closed standard error", ran, 0, r"first\n\[0 1 2\]", "")
    for command, status in (('"$0" -e 1 >&- 2>&-', 1), ('"$0" nope 2>/dev/full', 2), ('"$0" --watchdog x -e 1 2>&-', 2),
                            ('"$0" --help >/dev/full 2>&-', 1), ('"$0" --devices sim:99 -e 1 2>&-', 2)):
        ran = Ran(subprocess.run(["sh", "-c", command, UNISONO], cwd=folder, capture_output=True, timeout=SECONDS))
        expect(f"{command}", ran, status, "", "")


def interrupts(folder):
    endless = {
        "a loop of the host": "while true { }",
        "compiled code": "def f(x) {\n  var y = x\n  while y > 0.0 { y = y * 0.5 + 1.0 }\n  y\n}\nprint(jit(f)(3.0))",
        "members that meet": "def f(x) {\n  var y = x\n  while pmax(y) > 0.0 { y = psum(y) * 0.5 + 1.0 }\n  y\n}\n"
                             "print(pmap(f)(ones(f32[4])))",
        "recursion": "def f(x: i32) -> i32 = if x == 0 { 1 } else { f(x - 1) + f(x - 1) }\nprint(f(100))",
    }
    for name, program in endless.items():
        for options in ([], ["--reference"]):
            begun = folder / "begun.npy"
            begun.unlink(missing_ok=True)
            child = subprocess.Popen([UNISONO, "-", "--devices", "cpu:4", *options], cwd=folder, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            child.stdin.write(f'print("before")\nsave("begun.npy", [1.0])\n{program}\n'.encode())
            child.stdin.close()
            sanitizers.comes(begun.exists, child)
            time.sleep(0.2)  # in the midst of it, most of the times
            if child.poll() is not None:
                PROBLEMS.append(f"{name} {options}: ended by itself\n{child.stderr.read().decode()}")
            child.send_signal(signal.SIGINT)
            try:
                child.wait(SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            out, err = child.stdout.read(), child.stderr.read()
            ran = Ran(subprocess.CompletedProcess([], child.wait(), out, err))
            expect(f"Ctrl-C in {name} {options}", ran, 130, r"^before\n$", r"^error\[U0505\]: stopped\n.*<stdin>:\d+:\d+")


def memory():
    program = "let x = ones(f64[30_000_000_000])\nprint(1)\nprint(x, x + 1.0, x + 2.0, x + 3.0)\n"
    expect("more memory than there is", run("-", text=program), 1, r"^1\n$", r"^error\[U0504\]: .*<stdin>:\d:\d+")


STAGES = {
    "tokens": r"^\d+:\d+ (Identifier|Print|Let|Def|Import|Axis) ",
    "ast": r"^(LetStmt|DefStmt|AxisStmt|ImportStmt) .*@\d+:\d+$",
    "types": r"^\S+:\d+:\d+: \w+: ",
    "ir": r"^# graph 1.*\n%0: .* = .*^return %\d+",
    "kernels": r"^# graph 1.*\n.*^kernel\(",
    "llvm": r"^; graph 1.*\n; ModuleID.*^define void @kernel0",
    "asm": r"^# graph 1.*\n.*^kernel0:",
}
COMPILED = ("ir", "kernels", "llvm", "asm")
NOTHING = r"^[#;] nothing is compiled"


def inspections(folder):
    for turn, path in enumerate(sorted((ROOT / "examples").glob("*.uni"))):
        held = ROOT / "examples/expected" / (path.stem + ".txt")
        devices = re.search(r"^# run(?:-compiled)?:.*?(cpu:\d+)", held.read_text(), re.M) if held.exists() else None
        options = ["--devices", devices[1] if devices else "cpu:2"]
        steps = ["--", "1"] if path.stem == "gpt" else []  # of a thousand
        for stage, pattern in STAGES.items():
            words = ["inspect", f"--emit={stage}", f"examples/{path.name}", *options]
            if stage not in COMPILED:
                expect(f"inspect {stage} {path.name}", run(*words, folder=ROOT), 0, pattern, "")
                continue
            if "--full" in sys.argv or stage == COMPILED[turn % len(COMPILED)]:
                expect(f"inspect --run {stage} {path.name}", run(*words, "--run", *steps, folder=ROOT), 0, f"{pattern}|{NOTHING}", "")
            ran = run(*words, *steps, folder=ROOT)
            if ran.status not in (0, 1) or (ran.status == 1 and "[U0509]" not in ran.err):
                PROBLEMS.append(f"inspect {stage} {path.name}: {ran}")
            elif not re.search(f"{pattern}|{NOTHING}", ran.out, re.M | re.S):
                PROBLEMS.append(f"inspect {stage} {path.name}: {ran}")
    loop = "let f = jit(fn(x) => x * 1.0 + 0.0 * 2.0)\nprint(f(arange(4, f32)))\n"
    shown = {p: run("inspect", "--emit=ir", f"--after={p}", "-", text=loop) for p in ("trace", "vmap", "spmd", "simplify", "cse", "narrow")}
    for name, ran in shown.items():
        expect(f"inspect after {name}", ran, 0, STAGES["ir"], "")
    if not len(shown["trace"].out) > len(shown["cse"].out):
        PROBLEMS.append(f"inspect --after: passes do nothing\n{shown['trace']}{shown['cse']}")
    if shown["narrow"].out != run("inspect", "-", text=loop).out:
        PROBLEMS.append("inspect shows the IR after the last pass")
    expect("inspect of a wrong program", run("inspect", "-", text="print(x)"), 1, "", r"U0201")
    expect("inspect tokens of a wrong program", run("inspect", "--emit=tokens", "-", text="let = 3"), 1,
           r"^1:1 Let", r"U0101")
    expect("inspect does not show the program's output", run("inspect", "--emit=types", "-", text="print(1)"), 0, "", "")
    nothing_runs(folder)
    functions()
    tools(folder)


def nothing_runs(folder):
    """Effects, loops that never end, values that only running tells."""
    effects = ("save(\"effect.npy\", ones(f32[9]))\nsave(\"effect.npz\", (a=ones(f32[9])))\n"
               "visualize(ones(f32[4]), \"effect.svg\")\nprint(\"seen\", ones(f32[3]))\nassert(1.0 > 2.0)\n"
               "let y = load(\"effect.npy\") + 1.0\nprint(jit(fn(x) => x * 2.0)(y))\n")
    (folder / "effects.uni").write_text(effects)
    for stage in COMPILED:
        expect(f"inspect {stage} without effects", run("inspect", f"--emit={stage}", "effects.uni", folder=folder), 0,
               "graph 1", "")
    if list(folder.glob("effect.*")):
        PROBLEMS.append("inspect writes files")
    expect("inspect --run", run("inspect", "--run", "effects.uni", folder=folder), 1, None, r"U0550")
    if not (folder / "effect.npz").exists():
        PROBLEMS.append("inspect --run does not write files")
    endless = "let f = jit(fn(x) => x * 2.0)\nvar x = ones(f32[64])\nwhile sum(f(x)) > 0.0 { x = f(x) }\n"
    expect("inspect of a loop", run("inspect", "-", text=endless), 1, r"# graph 1.*mul", r"U0509.*--run")
    counted = "let f = jit(fn(x) => x * 2.0)\nvar x = ones(f32[64])\nfor i in range(1000) { x = f(x)\n print(\"{i}: {x}\") }\n"
    ran = run("inspect", "-", text=counted)
    expect("inspect of a counted loop", ran, 0, r"# graph 1", "")
    if "graph 2" in ran.out:
        PROBLEMS.append(f"inspect of a counted loop shows one graph\n{ran}")
    long = "let f = jit(fn(x) => x * 2.0)\nfor i in range(1_000_000_000) { f(1.0) }\n"
    expect("inspect of a long loop", run("inspect", "-", text=long), 1, r"# graph 1", r"U0")
    for use in ("int(sum(x))", "if x[0] > 1.0 { 1 } else { 2 }", "x[x > 0.5]", "range(i32(x[0]))[0]", "int(\"{x[0]}\")"):
        text = f"let x = ones(f32[100_000])\nlet y = {use}\n"
        if run("check", "-", text=text).status == 0:
            expect(f"inspect of {use}", run("inspect", "-", text=text), 1, None, r"U0509.*<stdin>:2:\d+.*--run")
    large = "let x = pmap(fn(r) => r * 1.0)(ones(f32[64, 1000]))\nprint(sum(x), x[3], sharding(x), x @ transpose(x))\n"
    expect("inspect of arrays on devices", run("inspect", "--devices", "cpu:4", "-", text=large), 0, r"# graph 1", "")
    maps = "axis dev = devices()\nprint(pmap(fn(x) => psum(x), over=dev)(ones(f32[4, 100_000])))\n"
    expect("inspect of a map", run("inspect", "--devices", "cpu:4", "-", text=maps), 0, r"all_reduce", "")
    leaves = ("let f = pmap(fn(p, x) => tree_map(fn(w) => psum(w * x), p), in_axes=(none, 0), out_axes=none)\n"
              "print(f((1.0, [2.0, 3.0], [[4.0]]), arange(4, f32)))\n")
    for after, count in (("vmap", 3), ("join", 1), ("cse", 1)):
        ran = run("inspect", "--devices", "cpu:4", f"--after={after}", "-", text=leaves)
        expect(f"inspect of several leaves after {after}", ran, 0, r"all_reduce", "")
        if ran.out.count("= all_reduce") != count:
            PROBLEMS.append(f"leaves meet {count} times after {after}\n{ran}")
    donated = "let f = jit(fn(x) => x + 1.0, donate=0)\nprint(f(ones(f32[100_000])))\n"
    if run("check", "-", text=donated).status == 0:
        expect("inspect of what is given away", run("inspect", "-", text=donated), 0, r"# graph 1", "")


def functions():
    """Definitions that nothing calls, and --shape."""
    text = ("def known(x: f32[128, 64]) -> f32[64] = sum(x * 2.0, axis=0)\ndef sizes(x: f32[n], y: f32[n]) -> f32[n] = x / y\n"
            "def free(w, k=2.0) = exp(w) * k\ndef host(x: f32[8]) { print(x)\n save(\"x.npy\", x) }\n"
            "@jit\ndef fast(z: f32[32]) -> f32[32] = z + 1.0\n")
    expect("definitions", run("inspect", "-", text=text), 0,
           r"# graph 1 of `known` at 1:5\n.*f32\[128, 64\].*# graph 2 of `fast`.*`sizes` is not shown: `x` is f32\[n\]"
           r".*`free` is not shown: the type of `w`.*`host` is not shown: .*save", "")
    given = run("inspect", "--shape", "sizes.x=f32[12]", "--shape", "w=f64[3, 4]", "-", text=text)
    expect("--shape", given, 0, r"of `sizes`.*f32\[12\].*of `free`.*f64\[3, 4\]", "")
    expect("--shape of another type", run("inspect", "--shape", "known.x=f64[128, 64]", "-", text=text), 0,
           r"`known` is not shown: .*f64", "")
    expect("--shape without a parameter", run("inspect", "--shape", "q=f32[3]", "-", text=text), 1, None, r"U0252.*`q`")
    expect("--shape that is no type", run("inspect", "--shape", "x=f32[", "-", text=text), 1, None, r"error\[U0")
    expect("--shape and more", run("inspect", "--shape", "w=f32[3]; print(7)", "-", text=text), 1, None,
           r"U0101\]: expected the end of the type, found `print\(7\)`")
    parts = "def parts(x: f32[2], (b, c): (f32, f32), k = 2, *, d: f32) -> f32[2] = x * b * k + c * d\n"
    expect("definitions with patterns", run("inspect", "-", text=parts), 0, r"^# graph 1 of `parts`", "")
    expect("--graph by name", run("inspect", "--emit=llvm", "--graph", "known", "-", text=text), 0,
           r"^; graph 1 of `known`[^\n]*\n; ModuleID", "")
    expect("--graph by number", run("inspect", "--graph", "2", "-", text=text), 0, r"^# graph 2 of `fast`", "")
    expect("--graph that is not there", run("inspect", "--graph", "9", "-", text=text), 1, "", r"no graph `9`")
    for words in (["--shape", "x"], ["--shape", "=f32[3]"], ["--shape", "x="], ["--emit=ast", "--run"],
                  ["--emit=types", "--shape", "x=f32[3]"], ["--run", "--shape", "x=f32[3]"], ["--emit=tokens", "--out", "o"],
                  ["--graph", "1", "--out", "o"]):
        expect(f"inspect {words}", run("inspect", *words, "-", text=text), 2, "", r"^error: ")


def tools(folder):
    """Modules that others read."""
    text = ("def one(x: f32[4096, 512]) -> f32[512] = sum(tanh(x) % 0.5, axis=0)\n"
            "def two(x: f32[4096], i: i32[100]) -> f32[100] = sort(cumsum(x))[i]\n"
            "print(jit(fn(x) => x @ x)(ones(f64[64, 64])))\n")
    readers = {"llvm": ["llc-19", "-filetype=null"], "nvvm": ["opt-19", "-passes=verify", "-disable-output"],
               "ptx": [nvidia.tool("ptxas") or "ptxas", "-arch=sm_80", "-o", "/dev/null"], "asm": ["clang-19", "-c", "-o", "/dev/null"]}
    endings = {"llvm": "ll", "nvvm": "ll", "ptx": "ptx", "asm": "s"}
    for stage, reader in readers.items():
        if not shutil.which(reader[0]):
            print(f"inspect --emit={stage}: {reader[0]} is not installed, nothing reads it")
            continue
        target = ["--target=sm_80"] if stage in ("nvvm", "ptx") else []
        out = folder / f"out-{stage}"
        expect(f"--out {stage}", run("inspect", f"--emit={stage}", *target, "--out", str(out), "-", text=text), 0, "", "")
        files = sorted(out.glob(f"graph*.{endings[stage]}"))
        if len(files) < 3:
            PROBLEMS.append(f"--out {stage}: {files}")
        whole = folder / f"all.{endings[stage]}"
        whole.write_text(run("inspect", f"--emit={stage}", *target, "-", text=text).out)
        for file in (*files, whole):
            done = subprocess.run([*reader, str(file)], capture_output=True, text=True, timeout=SECONDS)
            if done.returncode != 0:
                PROBLEMS.append(f"{reader[0]} of {file.name}, {stage}: {done.stderr[:2000]}")


def manual_page():
    """It has every command and option, and the tools that read such pages have nothing to say."""
    page = run("man").out
    plain = page.replace("\\-", "-")
    options = {word for command in [(), *((c,) for c in COMMANDS)] for word in re.findall(r"^  (--?[a-z-]+)", run(*command, "--help").out, re.M)}
    for word in sorted(options) + [f"unisono {command}" for command in COMMANDS]:
        if word not in plain:
            PROBLEMS.append(f"the manual page has no {word}")
    for reader in (["mandoc", "-T", "lint", "-W", "style"], ["groff", "-man", "-Tutf8", "-ww", "-z"]):
        if shutil.which(reader[0]):
            done = subprocess.run(reader, input=page.encode(), capture_output=True)
            if done.returncode or done.stdout or done.stderr:
                PROBLEMS.append(f"{reader[0]} of the manual page: {done.stdout} {done.stderr}")
    expect("man with a word", run("man", "run"), 2, "", "^error: ")


def completes(shell, command):
    """What a real shell offers behind words."""
    if not shutil.which(shell):
        return
    path = {**os.environ, "PATH": f"{os.path.dirname(UNISONO)}:{os.environ['PATH']}"}
    for typed, wanted in (("insp", {"inspect"}), ("inspect --emit=nv", {"--emit=nvvm"}), ("explain U041", {f"U041{digit}" for digit in range(10)}),
                          ("check --js", {"--json"}), ("completion f", {"fish"})):
        done = subprocess.run(command(typed), capture_output=True, text=True, timeout=SECONDS, env=path)
        found = {line.split("\t")[0] for line in done.stdout.splitlines()}
        if not wanted <= found:
            PROBLEMS.append(f"{shell} completes {typed!r}: {found} {done.stderr}")


def completions():
    """The scripts know every command and option that the help knows."""
    def of_bash(*words):
        line = "COMP_WORDS=(unisono " + " ".join(words) + "); COMP_CWORD=" + str(len(words)) + "; _unisono"
        return subprocess.run(["bash", "-c", f'source /dev/stdin; {line}; printf "%s\n" "${{COMPREPLY[@]}}"'],
                              input=script.encode(), capture_output=True).stdout.decode().split()
    script = run("completion", "bash").out
    commands = COMMANDS
    options = re.findall(r"^  (--[a-z-]+)", run("--help").out, re.M)
    for words, wanted in (((r"''",), commands), (("run", "--"), options + ["--help"]), (("run", "--pro"), ["--profile-kernels"]),
                          (("ch",), ["check"]), (("completion", "z"), ["zsh"]), (("check", "--j"), ["--json"]),
                          (("inspect", "--emit", "ll"), ["llvm"]), (("inspect", "--emit", "=", "n"), ["nvvm"]), (("inspect", "--after", "="), PASSES),
                          (("explain", "U041"), [f"U041{digit}" for digit in range(10)]), (("run", "--trace", "x"), [])):
        if sorted(of_bash(*words)) != sorted(wanted):
            PROBLEMS.append(f"bash completes {words}: {of_bash(*words)}")
    for shell in ("zsh", "fish"):
        script = run("completion", shell).out
        for word in commands + [option.lstrip("-") for option in options]:
            if word not in script:
                PROBLEMS.append(f"completion of {shell} has no {word}")
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", "/dev/stdin"], input=script.encode(), capture_output=True)
            if done.returncode or done.stderr:
                PROBLEMS.append(f"{shell} does not read its completion: {done.stderr}")
    completes("fish", lambda typed: ["fish", "-c", 'unisono completion fish | source; complete -C "unisono $argv"', typed])
    expect("completion of another shell", run("completion", "csh"), 2, "", r"^error: there are scripts for bash, zsh and fish")


def profiles():
    """--profile-kernels: each kernel's line, with its address and size; another process's old file is replaced, no link followed."""
    text = "let f = jit(fn(x) => sum(sin(x) * 2.0))\nprint(f(ones(f32[200000])))\n"
    child = subprocess.Popen([UNISONO, "run", "-", "--profile-kernels"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    path = pathlib.Path(f"/tmp/perf-{child.pid}.map")
    out, err = child.communicate(text.encode())
    try:
        if child.returncode or not re.search(r"^[0-9a-f]+ [1-9a-f][0-9a-f]* <stdin>:1:22 sum\(sin\(x\) \* 2.0\)$", path.read_text(), re.M):
            PROBLEMS.append(f"--profile-kernels: {out} {err} {path.read_text()}")
    finally:
        path.unlink(missing_ok=True)


def large():
    """Positions that f32 does not count to: too much for simulated GPUs, which run golden programs."""
    many = "import stats\nlet x = arange(33554435)\nprint(stats.quantile(f64(x), 0.5))\n"
    expect("the middle of many", run("-", text=many), 0, r"^16777217\.0\n$", "")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        folder.chmod(0o755)
        for part in (usage_errors, programs, compiled_once, checks, formats, limits, inspections, interrupts):
            part(folder)
    for part in (helps, manual_page, completions, profiles, outputs, memory, large):
        part()
    print("\n\n".join(PROBLEMS) or "the command line does what its page says")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
