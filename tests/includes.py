#!/usr/bin/env python3
"""Fails on an #include that runs up a floor, on LLVM or CUDA headers outside
their floor, and on a cycle between the folders of a floor."""
import collections
import pathlib
import re
import sys

FLOORS = ["runtime", "jit", "lang", "host"]  # from the ground up
ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def main():
    problems, arrows = [], collections.defaultdict(set)
    for floor, name in enumerate(FLOORS):
        for path in sorted((ROOT / name).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".def", ".hpp"):
                continue
            place = path.relative_to(ROOT)
            for target in INCLUDE.findall(path.read_text()):
                top = target.split("/")[0]
                if top in FLOORS and FLOORS.index(top) > floor:
                    problems.append(f"{place}: {name} includes {target}, which is above it")
                if top in ("llvm", "llvm-c") and name != "jit":
                    problems.append(f"{place}: {target} outside jit/")
                if top in ("cuda.h", "cuda_runtime.h") and name != "runtime":
                    problems.append(f"{place}: {target} outside runtime/")
                folder = "/".join(place.parts[:-1])
                to = "/".join(target.split("/")[:-1])
                if top in FLOORS and to != folder:
                    arrows[folder].add(to)
    for start in list(arrows):
        seen, todo = set(), list(arrows[start])
        while todo:
            folder = todo.pop()
            if folder == start:
                # jit/ is the page above its parts; the parts may not know it,
                # except for the few interfaces that lie in jit/ itself.
                if start.split("/")[0] == "jit":
                    continue
                problems.append(f"folders in a cycle through {start}")
                break
            if folder not in seen:
                seen.add(folder)
                todo += arrows.get(folder, ())
    print("\n".join(sorted(set(problems))), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
