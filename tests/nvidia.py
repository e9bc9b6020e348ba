#!/usr/bin/env python3
"""NVIDIA's tools for the tests that read machine code: where they are, and how they come here.

usage: tests/nvidia.py    (brings what is missing, and tells where all are)

None of them is needed to build or to use Unisono, so that a test without them is skipped (it ends with SKIPPED),
which tests/run tells beside what has passed and failed.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "build" / "nvidia"  # where they are put, each in a folder of its own: pip replaces what packages share
SKIPPED = 77  # what others that run tests take for it, too
# Tools, and the packages of Python that have them. The numbers of tests/sass.py are of this ptxas; the oldest nvdisasm
# that is there reads its cubins.
PACKAGES = {"ptxas": "nvidia-cuda-nvcc==13.0.88", "nvdisasm": "nvidia-cuda-nvdisasm==13.2.51"}


def tool(name):
    """The path of a tool, or None. A variable with its name in capitals names another one than that which is found."""
    if named := os.environ.get(name.upper()):
        return shutil.which(named) or sys.exit(f"{name.upper()} names {named}, which cannot be run")
    found = [shutil.which(name), f"/usr/local/cuda/bin/{name}"]
    for folder in [HERE / name, *map(pathlib.Path, filter(None, sys.path))]:
        found += sorted(map(str, folder.glob(f"nvidia/*/bin/{name}")))
    return next((path for path in found if path and os.access(path, os.X_OK) and not os.path.isdir(path)), None)


def install():
    """Brings what is missing from the registry of Python's packages, into the folder of the build; tells what could not be had."""
    problems = []
    for name, package in PACKAGES.items():
        if tool(name):
            continue
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--retries=1", "--timeout=15",
                               f"--target={HERE / name}", "--upgrade", package], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not tool(name):
            problems.append(f"{name} is not installed, and {package} did not bring it: {(done.stderr or done.stdout).strip()[-500:]}")
    return "\n".join(problems)


def skip(what):
    """Says why a test was not done, and ends it."""
    print(f"skipped: {what}")
    sys.exit(SKIPPED)


if __name__ == "__main__":
    print(install() or "\n".join(f"{name}: {tool(name)}" for name in PACKAGES))
