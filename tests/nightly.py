#!/usr/bin/env python3
"""All that takes long, one after the other, with a table at the end; ./dev nightly builds first.

usage: tests/nightly.py [NAME ...]      NAME: a part of a row's name
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def configured(folder, *options):
    """A build of `unisono` in a folder of its own, and what --quick says of it."""
    build = f"build-{folder}"
    configure = ["cmake", "-S", ".", "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options]
    return f"{' '.join(configure)} && cmake --build {build} && UNISONO_BUILD={build} tests/run --quick"


CLANG = ("-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19", "-DUNISONO_WERROR=ON")
ROWS = {
    "all tests, in full": "tests/run --full --times",
    "AddressSanitizer, UBSan": "./dev test --sanitize",
    "ThreadSanitizer": "./dev test --threads",
    "each file compiled by itself": configured("alone", *CLANG, "-DUNISONO_PRECOMPILED=OFF"),
    "a part of another project": "tests/subproject.py",
    "random programs": "tests/random_programs.py build/unisono 0 2000",
    "derivatives of random programs": "tests/derivative_programs.py build/unisono 0 1000",
    "mutants": "tests/fuzz/mutants.py build/unisono --seed nightly --count 20000",
    "fifty tunings": "tests/run --tunings=50",
    "uses of results at all sizes": "UNISONO_USES=full build/test_jit '-tc=uses of results*'",
    "forms of kernels on all machines": "UNISONO_FORMS=full build/test_jit '-sf=*kernel_forms_test.cpp'",
    "random shapes": "tests/shape_programs.py build/unisono 0 10000",
    "random indices": "tests/index_programs.py build/unisono 0 20000",
    "branches that no test takes": "./dev test --coverage",
    "decisions of the compiler, turned around": "tests/mutation.py",
    "bundle": "./dev bundle --check",
}


def main():
    rows = {name: command for name, command in ROWS.items() if len(sys.argv) < 2 or any(part in name for part in sys.argv[1:])}
    folder = ROOT / "build/nightly"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = []
    for name, command in rows.items():
        print(f"{name}: {command}", flush=True)
        start, log = time.time(), folder / (re.sub(r"\W+", "_", name) + ".log")
        with open(log, "w") as file:
            status = subprocess.run(["bash", "-c", command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                    env={**os.environ, "UNISONO_CACHE": "off"}).returncode
        said = log.read_text(errors="replace").strip().splitlines()
        table.append((name, status, time.time() - start, said[-1][:60] if said else "", log.relative_to(ROOT)))
    print(f"\n{'':42} {'':7} {'minutes':>8}")
    for name, status, seconds, said, log in table:
        print(f"{name:42} {'passed' if status == 0 else 'FAILED':7} {seconds / 60:8.1f}  {said if status == 0 else log}")
    return 1 if any(status for _, status, *_ in table) else 0


if __name__ == "__main__":
    sys.exit(main())
