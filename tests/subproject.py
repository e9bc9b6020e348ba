#!/usr/bin/env python3
"""A project that has Unisono as a part of it, by FetchContent, which is add_subdirectory of a folder: builds examples/embed/evaluate.cpp
in build-subproject, and compares what it prints.
"""
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(host CXX C)
include(FetchContent)
FetchContent_Declare(unisono SOURCE_DIR {ROOT})
FetchContent_MakeAvailable(unisono)
add_executable(evaluate {ROOT}/examples/embed/evaluate.cpp)
target_link_libraries(evaluate PRIVATE unisono::unisono)
"""


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(map(str, words))}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def main():
    build = ROOT / "build-subproject"
    build.mkdir(exist_ok=True)
    (build / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-G", "Ninja", "-S", build, "-B", build / "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=clang-19",
        "-DCMAKE_CXX_COMPILER=clang++-19")
    if sys.argv[1:] == ["--configure"]:
        return
    run("cmake", "--build", build / "build", "--target", "evaluate")
    expected = (ROOT / "examples/embed/expected/evaluate.txt").read_text()
    if (seen := run(build / "build/evaluate")) != expected:
        raise SystemExit(f"evaluate printed\n{seen}\nand should have printed\n{expected}")


if __name__ == "__main__":
    main()
