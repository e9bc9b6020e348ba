#!/usr/bin/env python3
"""Programs in several processes read and write files as one does: the same bytes, each process its part of them, nothing half
written where one is killed, and an error where they do not see the same. A test beside processes.py, whose command line it has.

usage: tests/process_files.py UNISONO [--full] [files]
"""
import re
import shutil
import sys

import sanitizers
from processes import OPTIONS, UNISONO, check, has_mpi, launcher, run, run_parts

FILES = """
let x = reshape(arange(240, f32), (24, 10))
let y = pmap(fn(v) => v * 2.0, in_axes=split(0), out_axes=split(0))(x)
save("PATH/y.npy", y)
let z = load("PATH/y.npy") as f32[24, 10]
print(sum(z), exists("PATH/y.npy"), exists("PATH/no.npy"))
save("PATH/tree.npz", (a = y, b = (x, sum(y))))
let t = load("PATH/tree.npz") as (a: f32[24, 10], b: (f32[24, 10], f32))
print(t.a[23, 9], t.b.1)
write_csv("PATH/t.csv", (n = y[:, 0], m = y[:, 1]))
print(clock() > 0.0)
"""


# Arrays of many blocks, along several axes, and what every process has; then the same on other devices.
WRITES = """
axis dev = devices()
let x = reshape(arange(120000, f32), (24, 5000))
let rows = pmap(fn(v) => v * 2.0, in_axes=split(0), out_axes=split(0))(x)
let columns = pmap(fn(v) => v + 1.0, in_axes=split(1), out_axes=split(1))(x)
let copied = pmap(fn(v) => psum(v, dev), in_axes=split(0), out_axes=none, over=dev)(reshape(x, (device_count(), 24 // device_count(), 5000)))
save("PATH/rows.npy", rows)
save("PATH/columns.npy", columns)
let tree = (rows = rows, b = (columns, sum(copied)), copied = copied, flags = x[:, 0] < 50.0, halves = cast(columns, f16))
save("PATH/tree.npz", tree)
save("PATH/tree.safetensors", tree)
print(sum(copied), copied[0, 1], mean(rows))
"""
READS = """
axis dev = devices()
let x = load("PATH/rows.npy") as f32[24, 5000]
let total = pmap(fn(v) => sum(v), in_axes=split(0), over=dev)
print(total(x), sum(x), x[3, 7], sharding(x) == sharding(zeros(f32[3])))
print(pmap(fn(v) => sum(v), in_axes=split(1), over=dev)(load("PATH/columns.npy") as f32[24, 5000]))
let like = (rows = pmap(fn(v) => v * 0.0, in_axes=split(1), out_axes=split(1))(zeros(f32[24, 5000])), b = (zeros(f32[24, 5000]), 0.0),
            copied = zeros(f32[1, 6, 5000]), flags = full(24, false), halves = zeros(f16[24, 5000]))
for file in ("PATH/tree.npz", "PATH/tree.safetensors") {
  let t = load(file, like=like)
  print(sharding(t.rows), t.rows[23, 4999], sum(t.b[0]), t.b[1], t.copied[0, 0, 9], sum(cast(t.flags, i32)), t.halves[1, 2])
}
"""


def peak_of(command, cwd):
    """Peak memory in MB of the largest process of a run that succeeds; the output."""
    program = ("import os, resource, subprocess, sys\nout = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
               "print(out.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, out.stdout, out.stderr)")
    status, out, err = run([sys.executable, "-c", program, *map(str, command)], cwd=cwd)
    first = out.split(maxsplit=2)
    return (int(first[1]) if status == 0 and first[0] == "0" else None), out + err


def memory(folder):
    """Of what is loaded for a map, and saved, a process has the part of its devices."""
    if sanitizers.slow() > 1:
        return  # their memory is another
    rows, columns = 16, 1 << 20  # 64 MiB
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    (folder / "large.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + b"\x00\x00\x80\x3f" * (rows * columns))
    program = folder / "memory.uni"
    text = ('axis dev = devices()\nlet x = load("large.npy")\n'
            "let y = pmap(fn(v) => v + 1.0, in_axes=split(0), out_axes=split(0))(x)\n")
    for save in ("", 'save("copy.npy", y)\n', 'save("copy.npz", (y = y,))\n'):
        program.write_text(text + save)
        peak, out = peak_of(launcher(8, False) + [program], folder)
        # Two blocks of 8 MiB, and what a process has anyway; the whole would be 64 MiB more.
        check(f"memory {save}", peak is not None and peak < 75, peak, out)
    copied = folder / "copy.npy"
    check("memory", copied.exists() and copied.read_bytes()[128:] == b"\x00\x00\x00\x40" * (rows * columns))


def damaged(folder):
    """An array of an .npz whose bytes have changed is not read as if they had not."""
    path, program = folder / "damaged.npz", folder / "damaged.uni"
    program.write_text(f'save("{path}", (a = ones(f32[4]), b = arange(50000, f32)))\n')
    made = run([UNISONO, "run", program])
    program.write_text(f'let t = load("{path}")\nprint(sum(t.a))\nprint(sum(t.b))\n')
    whole = run(launcher(2, False) + [program])
    data = bytearray(path.read_bytes())
    data[-1000] ^= 4
    path.write_bytes(data)
    got = run(launcher(2, False) + [program])
    check("damaged", made[0] == 0 and whole[0] == 0 and got[:2] == (1, "4.0\n") and "array `b`: its checksum is wrong" in got[2]
          and got[2].count("error[") == 1, made, whole, got)


DIFFERENT_WAYS = """
axis dev = devices()
print("before")
if load("n.npy")[0] > 1.0 {
  print(pmap(fn(x) => psum(x, dev), over=dev)(arange(4, f32)))
} else {
  print(pmap(fn(x) => pmax(x, dev), over=dev)(arange(4, f32)))
}
"""
DIFFERENT_SIZES = """
axis dev = devices()
print("before")
print(pmap(fn(x) => psum(x, dev), over=dev)(load("rows.npy")))
"""


def apart(folder):
    """Processes that do not see the same folder."""
    if not has_mpi():
        return
    for name in ("here", "there"):
        (folder / name).mkdir()
    program = folder / "apart.uni"
    program.write_text('let x = pmap(fn(v) => v + 1.0)(arange(4, f32))\nprint("before")\nsave("x.npy", x)\nprint("after")\n')
    one = ["-n", "1", UNISONO, "run", "--devices", "cpu:2", program]
    got = run(["mpirun", "-wdir", folder / "here", *one, ":", "-wdir", folder / "there", *one])
    check("apart", got[0] == 1 and got[1] == "before\n" and re.search(
        r'error\[U\d+\]: cannot write "x.npy": process 1 on \S+ does not see there what process 0 on \S+ has begun to write', got[2])
        and got[2].count("error[") == 1 and not list((folder / "here").iterdir()), *got)
    # One lacks the program.
    (folder / "here" / "own.uni").write_text("print(1)\n")
    one_own = [*one[:-1], "own.uni"]
    got = run(["mpirun", "-wdir", folder / "here", *one_own, ":", "-wdir", folder / "there", *one_own])
    check("apart, the program", got[:2] == (1, "") and got[2].count("error[U0650]: cannot read `own.uni`") == 1
          and re.search(r"help: all processes must see the same files; this is what process 1 on \S+ finds", got[2]), *got)
    # What they load is not the same: they go different ways, or one's array is larger.
    for place, value in (("here", 1), ("there", 2)):
        made = run([UNISONO, "run", "-e", f'save("n.npy", [{value}.0]); save("rows.npy", ones(f32[4, {value}]))'], cwd=folder / place)
        check("apart, files", made[0] == 0, *made)
    for number, (text, expected) in enumerate(((DIFFERENT_WAYS, r"process 1 is at \S+:5:9, and process 0 at \S+:7:9: every process must do the same"),
                                               (DIFFERENT_SIZES, r"process 1 and process 0 do different things at \S+:4:7"))):
        program.write_text(text)
        got = run(["mpirun", "-wdir", folder / "here", *one, ":", "-wdir", folder / "there", *one])
        check(f"apart, {number}", got[0] == 1 and got[1] == "before\n" and got[2].count("error[U0503]") == 1
              and len(re.findall(r"(?m)^error", got[2])) == 1 and re.search(expected, got[2]), *got)


def files(folder):
    kinds = [("one", [UNISONO, "run", "--devices", "cpu:4"]), ("two", launcher(2, False) + ["--devices", "cpu:2"]),
             ("four", launcher(4, False) + ["--devices", "cpu:1"])]
    for text in (FILES, WRITES):
        outputs = []
        for name, command in kinds:
            place = folder / name
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            program = folder / f"files_{name}.uni"
            program.write_text(text.replace("PATH", str(place)))
            result = run([*command, program])
            written = {p.name: p.read_bytes() for p in sorted(place.iterdir())}
            outputs.append((result, written))
        check("files", outputs[0][0][0] == 0 and outputs[1] == outputs[0] and outputs[2] == outputs[0],
              *[(r, list(w)) for r, w in outputs])
    # Written by four processes, read by others.
    program = folder / "reads.uni"
    program.write_text(READS.replace("PATH", str(folder / "four")))
    for devices, processes in ((4, (2, 4)), (2, (2,)), (8, (2, 4, 8))):
        alone = run([UNISONO, "run", "--devices", f"cpu:{devices}", program])
        for n in processes:
            got = run(launcher(n, False) + ["--devices", f"cpu:{devices // n}", program])
            check(f"read by {n} with {devices}", alone[0] == 0 and got == alone, alone, got)
    # One that is killed while all write leaves what was there before.
    before = (folder / "four/tree.npz").read_bytes()
    program.write_text(WRITES.replace("PATH", str(folder / "four")).replace("* 2.0", "* 3.0"))
    for message in range(2, 60, 19 if not OPTIONS.full else 1):
        got = run(launcher(4, False) + [program], {"UNISONO_FAULTS": f"die 2 {message}"})
        whole = [f.name for f in (folder / "four").iterdir() if f.suffix not in (".npy", ".npz", ".safetensors")]
        now = (folder / "four/tree.npz").read_bytes()
        check(f"die at {message}", (got[0] == 0 or "process 2 is gone" in got[2]) and not whole and len(now) == len(before), *got, whole)
    memory(folder)
    damaged(folder)
    apart(folder)


if __name__ == "__main__":
    sys.exit(run_parts({"files": files}))
