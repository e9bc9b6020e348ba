#!/usr/bin/env python3
"""Installs the library and builds hosts against what was installed: those of
examples/embed by find_package, one in C by pkg-config, one that links another
LLVM. Each prints what is expected. Also: nothing but unisono_* is visible.

    tests/embed.py BUILD [--static]     --static: one with the static library, too
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "examples/embed/expected"


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(map(str, words))}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def expect(name, seen, expected):
    if seen != expected:
        raise SystemExit(f"{name} printed\n{seen}\nand should have printed\n{expected}")


def visible(library):
    """What other programs could collide with."""
    names = {line.split()[-1].partition("@")[0] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    wrong = sorted(n for n in names if not n.startswith("unisono_"))
    declared = set(re.findall(r"\b(unisono_\w+)\(", (ROOT / "embed/unisono.h").read_text())) - {"unisono_init"}
    if wrong:
        raise SystemExit(f"{library} shows {wrong[:10]}")
    if missing := sorted(declared - names):
        raise SystemExit(f"{library} lacks {missing}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    cache = (build / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    c_compiler = re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", cache, re.M)[1]
    with tempfile.TemporaryDirectory() as folder:
        prefix, hosts = pathlib.Path(folder, "prefix"), pathlib.Path(folder, "hosts")
        for component in ("library", *(["static"] if "--static" in sys.argv else [])):
            run("cmake", "--install", build, "--prefix", prefix, "--component", component)
        library = next(prefix.glob("lib*/**/libunisono.so"))
        visible(library)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "LC_ALL": "C"}
        run("cmake", "-G", "Ninja", "-S", ROOT / "examples/embed", "-B", hosts, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror",
            *(["-DUNISONO_STATIC=ON"] if "--static" in sys.argv else []))
        run("cmake", "--build", hosts)
        for host in sorted(EXPECTED.glob("*.txt")):
            expect(host.stem, run(hosts / host.stem), host.read_text())
        if "--static" in sys.argv:
            expect("evaluate_static", run(hosts / "evaluate_static"), (EXPECTED / "evaluate.txt").read_text())

        flags_of = lambda *words: run("pkg-config", "--cflags", "--libs", *words, "unisono",
                                      env={**environment, "PKG_CONFIG_PATH": str(next(prefix.rglob("pkgconfig")))}).split()
        flags = flags_of()
        plain = [c_compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", ROOT / "tests/embed/plain.c", "-o"]
        if "--static" in sys.argv:  # where there is no shared library beside it
            alone = pathlib.Path(folder, "static")
            alone.mkdir()
            shutil.copy(next(prefix.rglob("libunisono.a")), alone)
            run(*plain, hosts / "plain_static", f"-L{alone}", *flags_of("--static"))
            expect("plain.c, static", run(hosts / "plain_static"), "hello\n10\n")
        run(*plain, hosts / "plain", *flags)
        expect("plain.c", run(hosts / "plain", env=environment), "hello\n10\n")

        other = sorted(pathlib.Path("/usr/lib").glob("*/libLLVM-1[45].so.1"))
        if not other:
            raise SystemExit("there is no LLVM 14 or 15 here: install libllvm14")
        run(compiler, "-std=c++20", ROOT / "tests/embed/other_llvm.cpp", "-o", hosts / "other_llvm", other[0], *flags)
        expect("other_llvm.cpp", run(hosts / "other_llvm", env=environment), "9\n27\n16\n64\n")


if __name__ == "__main__":
    main()
