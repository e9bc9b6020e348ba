#!/usr/bin/env python3
"""What NVIDIA's tools see of a program, on simulated GPUs: ranges (NVTX) that lie within one another and name lines of the
program, by a library as a tool has one (tests/tools/nvtx_probe.cpp); and the lines that code says it computes, in PTX, and
in machine code where ptxas and nvdisasm are installed.

usage: tests/gpu_tools.py UNISONO
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import nvidia
import sanitizers

UNISONO = pathlib.Path(sys.argv[1]).resolve()
PROBE = UNISONO.parent / "libnvtxprobe.so"

PROGRAM = """let x = arange(100_000, f32)
let f = jit(fn(x) => {
  let y = sin(x)
  y * 2.0 + x
})
for i in range(3) {
  print(sum(f(x)) > 0.0)
}
let g = jit(fn(x, i) => x[i])
print(g(x, 7))
"""
FAILING = PROGRAM + "let far = arange(200_000)[150_000]\nprint(g(x, far))\nprint(g(x, 1))\n"


def run(program, *options, **environment):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "train.uni"
        file.write_text(program)
        return subprocess.run([UNISONO, "run", "--devices", "sim:2", *options, file], capture_output=True, text=True,
                              timeout=sanitizers.limit(), env={**os.environ, **environment})


def ranges(program, status, **environment):
    """The names of all ranges, after a look at how they lie."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        log.touch()
        done = run(program, NVTX_INJECTION64_PATH=str(PROBE), NVTX_PROBE_LOG=str(log), **environment)
        assert done.returncode == status, done.stderr
        open_now, names = [], []
        for line in log.read_text().splitlines():
            if line == "pop":
                assert open_now, "more ranges end than begin"
                open_now.pop()
            else:
                assert line.startswith("push "), line
                open_now.append(line[5:])
                names.append(" > ".join(open_now))
        assert not open_now, open_now
        return names, done


def check_ranges():
    plain = run(PROGRAM)
    names, done = ranges(PROGRAM, 0)
    assert done.stdout == plain.stdout and not done.stderr, done
    text = "\n".join(names)
    statement = [n for n in names if re.search(r"train\.uni:6:1 for i in range\(3\) \{ > .*train\.uni:7:3 print\(sum\(f\(x\)\) > 0\.0\)$", n)]
    assert len(statement) == 3, text
    kernels = [n for n in names if re.search(r"train\.uni:7:3 print.* > .*train\.uni:4:3 y \* 2\.0$", n)]
    assert len(kernels) == 3, text
    names, done = ranges(FAILING, 1)
    assert "error[U0502]" in done.stderr and "train.uni:9:25" in done.stderr, done.stderr
    assert done.stdout == plain.stdout, done.stdout
    assert not any("train.uni:13" in n for n in names), names
    # A tool that does not want to, and one that is not there, change nothing.
    names, done = ranges(PROGRAM, 0, NVTX_PROBE_REFUSES="1")
    assert names == [] and done.stdout == plain.stdout, (names, done)
    assert run(PROGRAM, NVTX_INJECTION64_PATH="/nowhere.so").stdout == plain.stdout


def lines_of(text):
    """(file, line) of each `.loc`, by kernel in the order of the text."""
    files = dict(re.findall(r'^\s*\.file\s+(\d+) "([^"]*)"', text, re.M))
    return {(files[f], int(line)) for f, line in re.findall(r"^\s*\.loc\s+(\d+) (\d+) \d+", text, re.M)}


def check_lines():
    with tempfile.TemporaryDirectory() as folder:
        plain, named = pathlib.Path(folder) / "plain", pathlib.Path(folder) / "named"
        for keep, options in ((plain, ()), (named, ("--profile-kernels",))):
            keep.mkdir()
            done = run(PROGRAM, *options, SIMCUDA=f"keep={keep}")
            assert done.returncode == 0, done.stderr
        assert not any(lines_of(file.read_text()) for file in plain.iterdir())
        texts = [file.read_text() for file in sorted(named.iterdir()) if "train.uni" in file.read_text()]
        lines = set().union(*(lines_of(text) for text in texts))
        own = {line for file, line in lines if file.endswith("/train.uni")}
        assert {3, 4, 9} <= own, lines
        assert all(pathlib.Path(file).is_absolute() or file.startswith("<stdlib>") for file, _ in lines), lines
        ptxas, nvdisasm = map(nvidia.tool, ("ptxas", "nvdisasm"))
        if not ptxas or not nvdisasm:
            print("lines of machine code were not looked at: no ptxas or no nvdisasm here (tests/nvidia.py brings them)")
        for text in texts if ptxas else ():
            source, cubin = pathlib.Path(folder) / "kernels.ptx", pathlib.Path(folder) / "kernels.cubin"
            source.write_text(text.rstrip("\0"))
            target = re.search(r"^\.target (\w+)", text, re.M)[1]
            subprocess.run([ptxas, "-lineinfo", f"-arch={target}", source, "-o", cubin], check=True)
            if not nvdisasm:
                continue
            shown = subprocess.run([nvdisasm, "-g", "-c", cubin], check=True, capture_output=True, text=True).stdout
            machine = {(file, int(line)) for file, line in re.findall(r'//## File "([^"]*)", line (\d+)', shown)}
            assert machine and machine <= lines_of(text), (machine, lines_of(text))


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


SORTS = "let x = jit(fn(x) => sort(-x))(arange(10_000, f32))\nprint(x[0], x[9_999])\n"  # by merging, as it is short


def check_cubins():
    """Code that is ready is preferred to PTX, unless the driver does not take it, or it is damaged (runtime/cuda/ready_cubins.h)."""
    for ptx in (UNISONO.parent / "kernel_library").glob("sort-*.ptx"):
        text = ptx.read_bytes()
        other = re.sub(rb"\.entry (\w+)", rb".entry another_\1", text)
        # The driver of the tests takes PTX for a cubin, too: one without the kernel that is asked for tells that it is taken.
        sealed = lambda code: b"UNICUBIN" + struct.pack("<Q", fnv(code)) + code
        damaged = bytearray(sealed(other))
        damaged[-100] ^= 1
        for name, content, taken in (("another", sealed(other), True), ("the same", sealed(text), False),
                                     ("no code", sealed(b"\x7fELF and so on"), False), ("damaged", bytes(damaged), False),
                                     ("cut", sealed(other)[:-100], False), ("empty", b"", False)):
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / f"{fnv(text):016x}-sm_90.cubin").write_bytes(content)
                done = run(SORTS, UNISONO_CUBINS=folder)
                if taken:
                    assert done.returncode == 1 and "looking for the kernel" in done.stderr, (name, done)
                else:
                    assert done.returncode == 0 and done.stdout == "-9999.0 -0.0\n", (name, done)


def check_memory():
    """`--memory-limit`, and what `--stats` says of a device's pool."""
    done = run(PROGRAM, "--memory-limit", "100K")
    assert done.returncode == 1 and "error[U0504]: out of memory on sim:0: 400000 bytes asked for, 0 in use, and 102400 may be" in done.stderr, done
    done = run(PROGRAM, "--memory-limit", "50%", "--stats")
    assert done.returncode == 0 and re.search(r"memory of sim:0: \d+\.\d{3} MB in use, \d+\.\d{3} MB held, limit \d+\.\d{3} MB", done.stderr), done
    assert "memory of" not in run(PROGRAM, "--stats", "--devices", "cpu:1").stderr
    for wrong in ("20X", "0", "-1G", "101%", "G", "1e400", "nan"):
        done = run(PROGRAM, f"--memory-limit={wrong}")
        assert done.returncode == 2 and "--memory-limit expects bytes" in done.stderr, (wrong, done)


check_ranges()
check_memory()
check_lines()
check_cubins()
