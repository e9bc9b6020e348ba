#!/usr/bin/env python3
"""Runs the standard's test suite (https://github.com/data-apis/array-api-tests)
against unisono.array_api, and prints a table of what passes.

usage: array_api_suite.py SUITE [--examples N] [GROUP ...]

SUITE is a checkout; it needs pytest, pytest-json-report, hypothesis, ndindex.
The suite does not start for a library without complex numbers: in a copy of it
the widest complex type is then float64. The extension `fft`, which is of complex
numbers, is left out. --examples is how many inputs each test draws (20).
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WITHOUT_COMPLEX = ("[(dt, dtype_nbits[dt]) for dt in complex_dtypes], "
                   "key=lambda x: x[1]\n)")


def prepared(suite, folder):
    copy = folder / "suite"
    shutil.copytree(suite, copy)
    helpers = copy / "array_api_tests/dtype_helpers.py"
    text = helpers.read_text()
    if WITHOUT_COMPLEX not in text:
        sys.exit("array_api_suite.py: the suite is not as expected")
    helpers.write_text(text.replace(
        WITHOUT_COMPLEX,
        WITHOUT_COMPLEX[:-2] + ",\n    default=(xp.float64,)\n)"))
    return copy


def run(copy, group, examples):
    report = copy / f"{group}.json"
    log = (copy / f"{group}.log").open("w")
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "--max-examples", str(examples), "--hypothesis-disable-deadline",
         "--disable-extension", "fft", "-o", "addopts=", "--json-report",
         f"--json-report-file={report}", f"array_api_tests/test_{group}.py"],
        cwd=copy, stdout=log, stderr=subprocess.STDOUT,
        env={**os.environ, "ARRAY_API_TESTS_MODULE": "unisono.array_api",
             "ARRAY_API_TESTS_SKIP_DTYPES": "complex64,complex128",
             "PYTHONPATH": str(HERE)})
    return json.loads(report.read_text())["tests"]


def outcome(test):
    """"passed", "skipped", "complex" (numbers, or `fft`), or "failed"."""
    if test["outcome"] in ("passed", "skipped"):
        return test["outcome"]
    said = json.dumps(test.get("call", {}))
    needs = "complex" in said and "TypeError" in said or \
        "has no attribute 'fft'" in said
    return "complex" if needs else "failed"


def row(group, count):
    return (f"| {group} | {count['passed']} | {count['complex']} | "
            f"{count['failed']} | {count['skipped']} |")


def main():
    arguments, examples = sys.argv[1:], 20
    if "--examples" in arguments:
        at = arguments.index("--examples")
        examples = int(arguments[at + 1])
        del arguments[at:at + 2]
    if not arguments:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        copy = prepared(pathlib.Path(arguments[0]), pathlib.Path(folder))
        groups = arguments[1:] or sorted(
            path.stem[5:] for path in copy.glob("array_api_tests/test_*.py")
            if path.stem != "test_fft")
        total, failures = collections.Counter(), []
        print("| group | passed | needs complex numbers | failed | skipped |\n"
              "|---|---|---|---|---|")
        for group in groups:
            tests = run(copy, group, examples)
            count = collections.Counter(map(outcome, tests))
            total += count
            failures += [test["nodeid"] for test in tests
                         if outcome(test) == "failed"]
            print(row(group, count), flush=True)
        print(row("all", total))
        for name in failures:
            print(re.sub(r"^array_api_tests/", "", name))


if __name__ == "__main__":
    main()
