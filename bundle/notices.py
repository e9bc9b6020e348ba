#!/usr/bin/env python3
"""The notices and licences of what is inside of our programs and is not ours.

usage: notices.py PROGRAM ... [-- LIBRARY ...]

For each PROGRAM of a build folder the linker has listed its archives in
PROGRAM.inputs, and in PROGRAM.archives how much of each it took: what it took
from one that is not ours has a notice, or this ends with an error. So has what
our sources include from libraries that are headers alone, and each shared
LIBRARY that is packed beside the programs. Texts are those of Debian's packages.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What is compiled into programs that are given away, but for the kernel of
# notebooks, which is not.
SOURCES = ("runtime", "jit", "lang", "host", "embed", "simcuda", "bundle",
           "tests/conformance", "tests/unit/jit/random_graph.cpp", "bench/gpu")
NOT_SOURCES = ("host/notebook/", "host/jupyter_main.cpp")
# Declarations of the system alone.
SYSTEM = re.compile(r"libc6-dev|linux-libc-dev|libstdc\+\+-\d+-dev|libgcc-\d+-dev|"
                    r"libcrypt-dev|clang-.*|libclang-.*")
# Texts that the packages refer to.
COMMON = ("Apache-2.0", "GPL-3")


def archives(program):
    """The archives of others that the linker took something from."""
    inputs = pathlib.Path(f"{program}.inputs").read_text()
    listed = set(re.findall(r"\S+\.a\b", inputs))
    taken = {}
    for line in pathlib.Path(f"{program}.archives").read_text().splitlines()[1:]:
        _, count, path = line.split("\t")
        taken[path] = taken.get(path, 0) + int(count)  # it may be looked at twice
    build = pathlib.Path(program).resolve().parent
    # One that is taken whole is not counted.
    return {str(path) for path in map(lambda a: (build / a).resolve(), listed)
            if taken.get(str(path), taken.get(path.name, 1)) > 0
            and build not in path.parents}


def headers():
    """What is included from /usr/include."""
    files = subprocess.run(["git", "ls-files", "--", *SOURCES], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout
    named = set()
    for file in files.split():
        if re.search(r"\.(h|cpp|cc)$", file) and not file.startswith(NOT_SOURCES):
            named |= set(re.findall(r"^\s*#\s*include <([^>]+)>",
                                    (ROOT / file).read_text(), re.M))
    return {str(path) for name in named
            if (path := pathlib.Path("/usr/include") / name).is_file()}


def owners(paths):
    """The packages that files belong to."""
    # A package may name a file by a path that a link leads to, or from.
    names = {path: {path, str(pathlib.Path(path).resolve()),
                    re.sub("^/lib/", "/usr/lib/", path),
                    re.sub("^/usr/lib/", "/lib/", path)} for path in paths}
    asked = sorted(set().union(*names.values())) or ["/usr"]
    said = subprocess.run(["dpkg", "-S", *asked], capture_output=True,
                          text=True).stdout
    of = {line.split(": ")[-1]: re.split("[:,]", line)[0]
          for line in said.splitlines() if not line.startswith("diversion")}
    found = {path: next((of[name] for name in names[path] if name in of), None)
             for path in paths}
    for path in sorted(paths):
        if not found[path]:
            sys.exit(f"notices.py: {path} belongs to no package, so there is no "
                     "notice of it")
    return found


def notice(package):
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    if not path.exists():
        sys.exit(f"notices.py: {package} has no {path}")
    return path.resolve().read_text(errors="replace").strip()


def main():
    words = sys.argv[1:]
    libraries = words[words.index("--") + 1:] if "--" in words else []
    programs = words[:len(words) - len(libraries) - ("--" in words)]
    if not programs:
        sys.exit(__doc__)
    inside = {package for package in owners(headers()).values()
              if not SYSTEM.fullmatch(package)}
    inside |= set(owners(set().union(*map(archives, programs))).values())
    inside |= set(owners(libraries).values())
    by_text = {}  # several packages of one source have one text
    for package in sorted(inside):
        by_text.setdefault(notice(package), []).append(package)
    line = "=" * 80
    print("Unisono is under the licence in LICENSE. It has parts of these "
          "libraries inside or\nbeside it; names are those of Debian's packages, "
          "from which the notices are.\n")
    for packages in by_text.values():
        print("  " + ", ".join(packages))
    for text, packages in by_text.items():
        print(f"\n{line}\n{', '.join(packages)}\n{line}\n\n{text}")
    said = "\n".join(by_text)
    for name in COMMON:
        path = pathlib.Path("/usr/share/common-licenses") / name
        if re.search(rf"common-licenses/{re.escape(name)}\b", said) and path.exists():
            print(f"\n{line}\n{path}\n{line}\n\n{path.read_text().strip()}")


if __name__ == "__main__":
    main()
