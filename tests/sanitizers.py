"""What tests need to know of a build with sanitizers: how many times slower it is than an optimised one, and the options with
which it runs. tests/run sets both for the tests that it starts."""
import os
import pathlib
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The build folders of the presets, and UNISONO_SLOW in each.
FOLDERS = {"build-sanitize": 8, "build-threads": 20}


def slow():
    """Time limits are so many times longer."""
    return float(os.environ.get("UNISONO_SLOW", "1"))


def limit():
    """Seconds by the clock after which a process hangs that has not ended, or said what it should: many times what a quiet machine
    takes, as one with much other work takes that."""
    return 300 * slow()


def comes(condition, process):
    """Whether `condition()` is true at last, while the process goes on: what a test does to it next finds it there, also on a machine
    that is busy."""
    end = time.monotonic() + limit()
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def prepare(folder):
    """The environment of tests of what is built in `folder`."""
    os.environ.setdefault("UNISONO_SLOW", str(FOLDERS.get(pathlib.Path(folder).name, 1)))
    # Of random graphs with derivatives (tests/unit/jit/derivative/random_test.cpp).
    if slow() > 1:
        os.environ.setdefault("UNISONO_GRAPHS", "200")
    # Of a build that counts branches (tests/coverage.py): processes add to one of four files.
    cache = pathlib.Path(folder) / "CMakeCache.txt"
    if cache.exists() and "UNISONO_COVERAGE:BOOL=ON" in cache.read_text():
        os.environ.setdefault("LLVM_PROFILE_FILE", f"{folder}/profiles/%4m.profraw")
    # Each run compiles what it needs, but where a test says otherwise.
    os.environ.setdefault("UNISONO_CACHE", "off")
    # A child of the tests that a limit of memory is set for dies on purpose: no report of what is too large, and no core.
    os.environ.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1:detect_stack_use_after_return=1")
    os.environ.setdefault("LSAN_OPTIONS", f"suppressions={ROOT}/tests/suppressions/leaks.txt:print_suppressions=0")
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    os.environ.setdefault("TSAN_OPTIONS", f"suppressions={ROOT}/tests/suppressions/threads.txt:second_deadlock_stack=1")
