#!/usr/bin/env python3
"""clang-tidy (see .clang-tidy) on what a change touches.

usage: tests/tidy.py BUILD [--all | --since COMMIT | FILE ...]

Without more, the C++ files that differ from the branch's beginning (the merge
base with origin/main; without one, the last commit's), at most MOST of them,
those first that change most: half a minute of a processor for each.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 4


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def changed(since):
    """The sources that differ from `since`, those that change most first."""
    fields = iter(git("diff", "--numstat", "-z", "-M", "--diff-filter=d", since).split("\0"))
    found = []
    for field in fields:
        if not field:
            continue
        added, gone, path = field.split("\t")
        if not path:  # it was moved: then both names follow
            next(fields)
            path = next(fields)
        if path.endswith(".cpp") and added != "-":
            found.append((int(added) + int(gone), path))
    return [path for _, path in sorted(found, reverse=True)]


def begin():
    base = git("merge-base", "HEAD", "origin/main").strip()
    same = base == git("rev-parse", "HEAD").strip()
    return base if base and not same else "HEAD~1"


def check(build, path):
    done = subprocess.run(["clang-tidy-19", "-p", str(build), "--quiet", path], cwd=ROOT, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if re.search(r": (warning|error): ", line)]
    return "\n".join(found) if done.returncode else ""


def main():
    build, words = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    if not shutil.which("clang-tidy-19"):
        print("clang-tidy-19 is not installed", file=sys.stderr)
        return 1
    known = {os.path.relpath(os.path.join(row["directory"], row["file"]), ROOT)
             for row in json.loads((build / "compile_commands.json").read_text())}
    if words == ["--all"]:
        files = sorted(known)
    elif words[:1] == ["--since"]:
        files = changed(words[1])
    else:
        files = words or changed(begin())[:MOST]
    files = [f for f in files if f in known and not f.startswith("build")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(lambda f: check(build, f), files) if p]
    print("\n".join(sorted(set("\n".join(problems).splitlines()))), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
