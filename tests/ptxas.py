#!/usr/bin/env python3
"""Has NVIDIA's assembler translate what is generated for GPUs, where it is installed.

usage: tests/ptxas.py UNISONO [--all] [FOLDER ...]
       tests/ptxas.py UNISONO --registers [BENCH_GPU]

Every program of the folders (the test-suite's by default) gives its PTX for
one of the targets, in turn, of which those modules are read and translated,
without optimisation, that have a form of an instruction or of a declaration
that no module before them has; with --all, all modules of all programs for each
of them, and optimised. The kernels that are the same in
all programs are those of build/kernel_library, for all targets.

--registers tells what each kernel of the GPU bench and of the library takes of
a multiprocessor, as ptxas says: registers of a thread, shared memory, stack and
spills, and how many of its threads fit at once for that.

PTXAS names another ptxas than the one that is found.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import nvidia
import sanitizers

ROOT = pathlib.Path(__file__).resolve().parent.parent
PTXAS = nvidia.tool("ptxas")
TARGETS = ("sm_75", "sm_80", "sm_90")
FOLDERS = ("tests/programs", "examples")
LEFT_OUT = {"nn_attention_long.uni"}  # 800 modules like those of nn_attention.uni


def modules(unisono, program, target):
    """The PTX of each graph that running the program compiles."""
    count = re.search(r"^# run.*cpu:(\d+)|^# devices: \d+\.\.(\d+)", program.read_text(), re.M)
    devices = f"cpu:{(count[1] or count[2]) if count else 2}"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([unisono, "inspect", "--run", "--emit=ptx", f"--target={target}", "--devices", devices,
                               "--out", folder, program.name],
                              cwd=program.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=sanitizers.limit())
        if done.returncode not in (0, 1) or "kernel for a GPU" in done.stderr:  # other errors are the program's
            raise RuntimeError(f"{program}: {done.stderr[-2000:]}")
        return [file.read_text() for file in sorted(pathlib.Path(folder).glob("*.ptx"))]


def without_comments(text):
    """What makes a module's code: comments name its program's lines."""
    return re.sub(r"//[^\n]*", "", text)


def form(line):
    """Of a line what is not the name of a register or a label, and no number."""
    return re.sub(r"%\w+|(?<![.\w])[$\w]*\d\w*", "#", line).strip()


def with_new_forms(texts):
    """Of modules those with a line of a form that no line before has."""
    known = set()
    for text in texts:
        forms = {form(line) for line in without_comments(text).splitlines()}
        if not forms <= known:
            known |= forms
            yield text


def architecture(text, target):
    """The one of two, sm_90 and sm_90a, that a module for `target` is written for."""
    return target + re.search(r"^\.target sm_\d+(a?)", text, re.M)[1]


def is_for(text, target):
    number, exact = re.search(r"^\.target sm_(\d+)(a?)", text, re.M).groups()
    return f"sm_{number}" == target if exact else int(number) <= int(target[3:])


def assemble(text, target, level):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([PTXAS, f"-O{level}", f"-arch={architecture(text, target)}", file.name, "-o", "/dev/null"], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr + done.stdout)[-2000:]


def resources(text, target):
    """(kernel, registers, shared bytes, bytes of stack, of spills) of a module."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([PTXAS, "-v", f"-arch={architecture(text, target)}", file.name, "-o", "/dev/null"],
                              capture_output=True, text=True, check=True)
    parts = re.split(r"Compiling entry function '(\w+)'", done.stderr + done.stdout)
    number = lambda pattern, part: sum(int(n) for n in re.findall(pattern, part))
    for kernel, part in zip(parts[1::2], parts[2::2]):
        yield (kernel, number(r"Used (\d+) registers", part), number(r"(\d+) bytes smem", part),
               number(r"(\d+) bytes stack frame", part), number(r"(\d+) bytes spill", part))


def report(unisono, bench):
    """A table for the newest target."""
    target, threads = TARGETS[-1], 256
    text = subprocess.run([bench, "--program"], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "bench.uni")
        program.write_text(text)
        # Each graph that is compiled, in the order of the calls.
        texts = [(f"program {i}", t) for i, t in enumerate(modules(unisono, program, target))]
    for path in sorted(pathlib.Path(unisono).parent.glob("kernel_library/*.ptx")):
        texts.append((path.stem, path.read_text()))
    print(f"{'module':<16} {'kernel':<22} {'registers':>9} {'shared':>7} {'stack':>6} {'spills':>6} {'threads':>8}")
    for name, text in texts:
        for kernel, registers, shared, stack, spills in resources(text, target):
            rounded = (registers + 7) // 8 * 8  # a warp's are given out in units of 256
            blocks = min(65536 // (rounded * threads), (228 << 10) // (shared + 1024), 2048 // threads)
            print(f"{name:<16} {kernel:<22} {registers:>9} {shared:>7} {stack:>6} {spills:>6} {blocks * threads:>8}")
    return 0


def main():
    unisono = str(pathlib.Path(sys.argv[1]).resolve())
    if not PTXAS:
        nvidia.skip("no ptxas here, so nothing was assembled (tests/nvidia.py brings it)")
    if sys.argv[2:3] == ["--registers"]:
        return report(unisono, sys.argv[3] if len(sys.argv) > 3 else str(pathlib.Path(unisono).with_name("bench_gpu")))
    everything = sys.argv[2:3] == ["--all"]
    programs = [p for folder in sys.argv[3 if everything else 2:] or FOLDERS for p in sorted((ROOT / folder).rglob("*.uni"))
                if not p.name.startswith("_") and (everything or p.name not in LEFT_OUT)]
    library = [p.read_text() for p in sorted(pathlib.Path(unisono).parent.glob("kernel_library/*.ptx"))]
    problems, count = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for turn, target in enumerate(TARGETS):
            texts = {without_comments(text): text for text in library if is_for(text, target)}
            for found in pool.map(lambda p: modules(unisono, p, target), programs if everything else programs[turn::len(TARGETS)]):
                texts.update((without_comments(text), text) for text in found)
            chosen = list(texts.values() if everything else with_new_forms(texts.values()))
            count += len(chosen)
            problems += [p for p in pool.map(lambda t: assemble(t, target, 3 if everything else 0), chosen) if p]
    print("\n".join(problems) or f"{count} modules assembled for {', '.join(TARGETS)}")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
