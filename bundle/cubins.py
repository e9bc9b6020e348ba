#!/usr/bin/env python3
"""Machine code of the kernels that are the same in all programs, for GPUs that the bundle is likely to meet.

usage: cubins.py BUILD FOLDER

Where ptxas is found (PTXAS names another one), each module of BUILD/kernel_library becomes a cubin for sm_80 and one for
sm_90 in FOLDER, under the name by which runtime/cuda/ready_cubins.h finds it. Without ptxas there is no folder: drivers
translate the PTX, as they do for all other GPUs.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PTXAS = os.environ.get("PTXAS") or shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
CAPABILITIES = (80, 90)


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def modules(folder):
    """(path, capability) of the module that a GPU of each capability gets: the newest that is not newer, of two the exact one."""
    texts = {}
    for path in folder.glob("*.ptx"):
        name, capability, exact = re.fullmatch(r"(.*)-(\d+)(a?)", path.stem).groups()
        texts.setdefault(name, {})[int(capability), exact] = path
    for of in texts.values():
        for capability in CAPABILITIES:
            yield of[max((known, exact) for known, exact in of if known == capability or not exact and known < capability)], capability


def assemble(path, capability, out):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as made:
        exact = "a" if path.stem.endswith("a") else ""
        subprocess.run([PTXAS, "-O3", f"-arch=sm_{capability}{exact}", path, "-o", made.name], check=True)
        code = pathlib.Path(made.name).read_bytes()
    target = out / f"{fnv(path.read_bytes()):016x}-sm_{capability}.cubin"
    target.write_bytes(b"UNICUBIN" + struct.pack("<Q", fnv(code)) + code)
    return len(code)


def main():
    build, out = map(pathlib.Path, sys.argv[1:])
    if not shutil.which(PTXAS):
        print("cubins.py: there is no ptxas: the bundle has PTX alone", file=sys.stderr)
        return
    out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = list(pool.map(lambda job: assemble(*job, out), modules(build / "kernel_library")))
    print(f"{len(sizes)} cubins, {sum(sizes) / 1e6:.1f} MB")


main()
