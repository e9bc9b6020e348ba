#!/usr/bin/env python3
"""Holds sizes, counts and times at which something changes its way to one table, runtime/tuning/tuning.def, and what decides
bits to orders.def beside it: fails on a new constant of that kind anywhere else, on a row that nobody reads, and on one that
no row of the bench moves though it says so. Prints the count, and of how many the tests must take both sides, which
`./dev test --coverage` measures (tests/coverage_thresholds.py)."""
import pathlib
import re
import sys

import coverage_thresholds

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLOORS = ("jit", "runtime", "lang")
WORD = r"(?:most|least|few|many|large|small|long|short|enough|worth)"
# A constant with such a name, or one of Google's; and a power of two from 32 on that something is compared with.
NAMED = re.compile(rf"\bconstexpr\b[^;=]*?[\s,]((?:{WORD}(?:_\w+)?|k[A-Z]\w*))\s*[={{]")
POWER = re.compile(r"(?<![<>-])[<>]=?\s*\(?((?:int64_t\{\d+\}|size_t\{\d+\}|uint64_t\{\d+\}|\d+)\s*<<\s*\d+|\d[\d']*)\b(?!\s*(?:<<|>>))")
ROW = re.compile(r"^THRESHOLD\((\w+), (\w+), .*, \"([^\"]*)\", \"[^\"]*\"\)$", re.M)
ORDER = re.compile(r"^(?:FIXED_)?ORDER\((\w+),", re.M)

# FILE: {constant: why it is no threshold}.
EXEMPT = {
    # Geometry of processors: bytes of registers, bits of types, lanes, places in memory.
    # How much of a program's text a message repeats.
    "lang/context/arguments.cpp": {"32": "characters of an argument"},
    "lang/walk/types.cpp": {"32": "characters of a quotient"},
    "jit/emit/dot.cpp": {"most_square": "registers of a transposition"},
    "jit/emit/dot_multiply.cpp": {"64": "bytes of a cache line"},
    "jit/emit/element_llvm.h": {"least_numerator": "a formula's bound", "most_numerator": "a formula's bound"},
    "jit/emit/grid.cpp": {"32": "bits of a register"},
    "jit/emit/grid_map.cpp": {"32": "bits of a register"},
    "jit/emit/reduce.cpp": {"64": "bytes of a register"},
    "jit/emit/scalar_llvm.cpp": {"512": "bits of a register"},
    "jit/kernel/packed_dot.cpp": {"64": "bytes of a register", "32": "bytes of a register"},
    "jit/kernel/grid_schedule.cpp": {"most_units": "numbers have 32 bits"},
    "jit/loops/known_turns.cpp": {"64": "bits of a number"},
    "jit/plan/gpu_tasks.cpp": {"most_of_line": "the kernels' counters hold no more", "most_for_radix": "the kernels' counters hold no more",
                               "large_tile": "kernels of the library", "small_tile": "kernels of the library"},
    "jit/plan/unroll.cpp": {"64": "bits of a number"},
    "jit/scalar/": {"*": "formulas"},
    "jit/sort/radix_sort.cpp": {"few_bits": "code of its own"},
    "jit/target/cpu.cpp": {"64": "bytes of a register", "32": "bytes of a register"},
    "jit/target/verify_grid.cpp": {"most_instructions": "a limit that is an error", "128": "bits of an access"},
    "jit/derivative/transpose.cpp": {"64": "bits of a set"},
    "runtime/cluster/cluster_device.cpp": {"64": "bits of a set"},
    "runtime/execute/execution.h": {"most_own": "bits of a set"},
    "runtime/execute/program.cpp": {"64": "bytes of a cache line; bits of a set"},
    "runtime/execute/queue_executor.cpp": {"most_phases": "bits of a number"},
    "runtime/kernel_library/": {"*": "kernels that are compiled with the program"},
    "runtime/lapack/kernels.h": {"small_triangle": "the length of arrays in registers"},
    "runtime/lapack/triangles.cpp": {"small": "the length of arrays in registers", "most": "the length of an array"},
    "runtime/cuda/rows.cpp": {"most_pitch": "what drivers take"},
    "runtime/cuda/cublas_products.cpp": {"most": "cuBLAS counts in 32 bits"},
    "lang/sizes/known_sizes.cpp": {"most_hashed_bytes": "beyond it nobody asks whether constants are equal",
                                   "most_symbols": "a bound on what a sum costs the check"},
    "lang/builtins/random.cpp": {"64": "bits of a number", "32": "bits of a number"},
    "lang/ops/range.cpp": {"64": "bits of a number", "most": "the largest number"},
    "lang/ops/positions.cpp": {"256": "entries of a table of bytes"},
    "lang/builtins/text.cpp": {"128": "ASCII"},
    # Lengths of arrays of the compiler's own.
    "jit/reference/nodes.cpp": {"most_map_operands": "the length of an array", "most_bytes": "a limit that is an error"},
    "jit/target/generate_cpu.cpp": {"most": "launches of a kernel, of a damaged entry"},
    "runtime/execute/thread_executor.cpp": {"most_straight_arguments": "the length of an array"},
    "runtime/pool.h": {"most_parts": "the length of an array"},
    "runtime/queue.h": {"most_sent": "the length of an array"},
    "runtime/cuda/queue.cpp": {"most_parcels": "the length of an array"},
    "lang/ops/small_work.cpp": {"most_operands": "the length of an array", "most_whole": "what all types hold", "most": "what all types hold"},
    # Limits beyond which there is an error, or what is damaged is not read.
    "jit/compile.cpp": {"most_bytes": "a limit that is an error"},
    "jit/ir/affine_view.cpp": {"most_moves": "a limit of what is looked at, beyond all programs"},
    "runtime/cluster/cluster.cpp": {"most_note_bytes": "a limit that is an error"},
    "runtime/cuda/ready_cubins.cpp": {"most_bytes": "a limit that is an error"},
    "runtime/files/": {"*": "limits of files, which are errors, and pieces that are read"},
    "runtime/lapack/lapack.h": {"most_rows": "a limit that is an error"},
    "runtime/recorder.h": {"most_events": "a limit of memory, which is told"},
    "lang/builtins/devices.cpp": {"64": "a limit that is an error"},
    "lang/builtins/host.cpp": {"most": "a limit that is an error"},
    "lang/builtins/shape.cpp": {"most": "a limit that is an error"},
    "lang/builtins/tree_names.cpp": {"most_steps": "trees nest less"},
    "lang/code/text_steps.cpp": {"most_elements": "a limit that is an error"},
    "lang/context/value.cpp": {"most": "a sum of two fits"},
    "lang/context/walk.h": {"most_depth": "a limit that is an error"},
    "lang/ops/text.cpp": {"most_characters": "a limit that is an error"},
    "lang/walk/call.cpp": {"most_passes": "a limit that is an error"},
    # What is shown.
    "lang/context/literals.cpp": {"most": "what a message shows"},
    "lang/ops/print_value.cpp": {"large_elements": "what `print` shows"},
    "lang/pictures/": {"*": "what pictures show"},
    "lang/syntax/parser_habits.cpp": {"32": "what a message shows"},
    "lang/walk/names.cpp": {"32": "what a message shows"},
    "lang/walk/walker.cpp": {"most": "what a message shows"},
    # Built by itself, against MPI's headers: it links nothing of ours.
    "runtime/cluster/mpi_library.cc": {"most_bytes": "MPI counts in int", "most_read": "a library of its own", "least_read": "a library of its own"},
    "runtime/nccl/nccl_mover.cpp": {"most_behind": "how long an error of NCCL may wait for its cause"},
    # Memory, of which nothing that is computed depends.
    "runtime/heap.cpp": {"*": "geometry of the allocator"},
    "lang/walk/pending.cpp": {"most": "memory that is kept", "most_sizes": "memory that is kept"},
    # lang/walk is about to be rebuilt.
    "lang/walk/comprehension.cpp": {"most": "about to be rebuilt"},
    "lang/walk/function_code.cpp": {"most_parameters": "about to be rebuilt"},
    "lang/walk/function_code.h": {"most_registers": "about to be rebuilt"},
    "lang/walk/function_compiler.cpp": {"most_functions": "about to be rebuilt", "most_tries": "about to be rebuilt"},
    "lang/walk/host_loop.cpp": {"most_nested_calls": "about to be rebuilt"},
}


def is_power(text):
    if "<<" in text:
        return True
    number = int(text.replace("'", ""))
    return number >= 32 and number & (number - 1) == 0


def found(path):
    """The constants of a file, with their lines."""
    text = path.read_text()
    code = re.sub(r"//[^\n]*", "", text)
    for match in NAMED.finditer(code):
        # All names of one declaration.
        end = code.find(";", match.start())
        for name in re.findall(rf"[\s,]((?:{WORD}(?:_\w+)?|k[A-Z]\w*))\s*[={{]", code[match.start():end + 1]):
            yield name, code.count("\n", 0, match.start()) + 1
    for match in POWER.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        if is_power(match[1]):
            yield re.sub(r"\s+", " ", match[1]), line


def sources():
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*")):
            if path.suffix in (".cpp", ".h", ".cc") and "tuning" != path.parent.name:
                yield path


def summary():
    """How many rows there are, and of how many the tests must take both sides; what coverage_thresholds.txt has that is not there."""
    rows = {name for _, name, _ in ROW.findall((ROOT / "runtime/tuning/tuning.def").read_text())}
    no_question, elsewhere, one_side = coverage_thresholds.told()
    problems = [f"tests/coverage_thresholds.txt: {name} is no row of tuning.def, or is told twice"
                for name in [*no_question, *elsewhere, *one_side]
                if name not in rows or (name in no_question) + (name in elsewhere or name in one_side) > 1]
    for name, places in elsewhere.items():
        for file, line in places:
            if not (ROOT / file).exists() or line not in map(str.strip, (ROOT / file).read_text().splitlines()):
                problems.append(f"tests/coverage_thresholds.txt: {name}: {file} has no line `{line}`")
    asked = len(rows) - len(no_question)
    return f"{len(rows)} thresholds, of {asked - len(one_side)} of {asked} that branches ask for `./dev test --coverage` wants both sides", \
        problems


def main():
    problems, exempt, unused = [], 0, {(f, n) for f, names in EXEMPT.items() for n in names}
    texts = {path: path.read_text() for path in sources()}
    for path in texts:
        name = str(path.relative_to(ROOT))
        here = next((names for prefix, names in EXEMPT.items() if name.startswith(prefix)), {})
        for constant, line in found(path):
            key = next((k for k in (constant, "*") if k in here), None)
            if key is None:
                problems.append(f"{name}:{line}: `{constant}` decides by size: it belongs into runtime/tuning/tuning.def, "
                                "or into EXEMPT of tests/thresholds.py with a reason")
            else:
                exempt += 1
                unused -= {(f, key) for f in EXEMPT if name.startswith(f)}
    problems += [f"tests/thresholds.py: {f} has no `{n}`" for f, n in sorted(unused)]
    table = (ROOT / "runtime/tuning/tuning.def").read_text()
    orders = ORDER.findall((ROOT / "runtime/tuning/orders.def").read_text())
    rows = ROW.findall(table)
    if len(rows) != table.count("\nTHRESHOLD("):
        problems.append("runtime/tuning/tuning.def: a row is not one line with eight columns")
    everything = "\n".join(texts.values()) + "".join(p.read_text() for p in (ROOT / "host").rglob("*.[ch]*"))
    benches = "\n".join(p.read_text() for p in [*(ROOT / "bench").glob("*.cpp"), ROOT / "bench/RESULTS.md"])
    for _, name, bench in rows:
        if not re.search(rf"tuning\(\)\s*\.{name}\b", everything):
            problems.append(f"runtime/tuning/tuning.def: nobody reads {name}")
        if bench not in ("none", "gpu") and bench not in benches:
            problems.append(f"runtime/tuning/tuning.def: {name}: the bench has no row `{bench}`")
    for name in orders:
        if not re.search(rf"(?:orders\(\)\s*\.|Orders::){name}\b", everything):
            problems.append(f"runtime/tuning/orders.def: nobody reads {name}")
    text, wrong = summary()
    problems += wrong
    print("\n".join(problems), file=sys.stderr)
    print(f"{text}; {len(orders)} orders, {exempt} constants beside them with a reason")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
