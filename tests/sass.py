#!/usr/bin/env python3
"""Counts what the machine code of kernels for GPUs does, and estimates from
that how near to the roofline each kind of kernel comes, where NVIDIA's tools
are installed.

usage: tests/sass.py UNISONO [--explain] [ROW ...]

Each row is a small program. `unisono inspect` says what its kernels go over and
gives their PTX for sm_90, ptxas assembles it, nvdisasm takes it apart. A row
fails if its estimate falls below what ROWS notes for it, or if it spills more
than is noted. PTXAS and NVDISASM name other tools than those that are found; without
them it is skipped. --explain shows kernels one by one.

The model, of an H200: 132 multiprocessors at 1.75 GHz, 4.8 TB/s of memory, of
which an access takes 0.8 us to come back. A kernel takes as long as the slowest
of these, or a little more where two are near one another (a norm of order 4):

* memory: its bytes, at 4.8 TB/s, which is the memory's own peak, or as fast as
  the bytes in flight allow (bytes in flight / 0.8 us, by Little's law), the
  lesser of the two, joined in the same way. A copy, whose bytes all go through
  the second-level cache, so comes to 4.3 TB/s, which is what one reaches. In
  flight are the bytes that a thread asks for before it waits for the first of
  them, times the threads that are resident: by registers, shared memory and the
  number of blocks that there are;
* the second-level cache: all bytes that threads ask for, at 5.5 TB/s, but for
  elements right beside those that the same thread loads with a wider access:
  a neighbour's access of the same line has them in the first-level cache; what
  all lanes of a warp load from one place counts once;
* issue: four instructions of a warp in a cycle, of which 0.8 are reached;
* pipes: lanes in a cycle and multiprocessor as in PIPES. An access of memory of
  16 bytes takes as long as four of 4 bytes (128 bytes in a cycle), and so does
  one of what lies beside elements that the same thread loads with 16 bytes, as
  it meets as many lines.

What a jump goes over that calls and touches no memory but tables in shared
memory (quotients and roots out of the usual range) is rare, and not counted.

Between kernels lie 1.5 us. The share is the time of the bytes that the row's
inputs and outputs have, at 4.3 TB/s, in this sum: what bench_gpu measures as a
ratio to a copy. Loops are counted from the machine code: an innermost loop goes over all
elements of the kernel once, so many in a turn as it has bytes of them; all else
a thread does once. Loops of a scan's block are over blocks of its tree alone,
and are counted as one turn.

What the model does not know: that blocks which share a row begin with a load
and end without one, so that bytes are in flight for a part of the time only;
waiting at barriers, and of a scan's blocks for one another; which of a
multiprocessor's four parts a warp belongs to; conflicts of banks.

Sorts are counted by the kernels of the library, as all tiles are full, for 2^28
elements. Their share is of what a radix sort has to move that reads elements
once to count all digits, and once more for each digit. What tiles wait for one
another is not counted, and the loop in which they do is as one turn.

Products are counted by the loop of their kernel, which build/kernel_library
has, of the four layouts of operands the one that is worst: the share is what
the peak of the pipe that multiplies would take for a turn, in the norm of

* that pipe: matrix units reach 0.62 of their peak by mma.sync, 0.95 by wgmma;
* shared memory, which moves 128 bytes in a cycle for all four parts of a
  multiprocessor: loads and copies, and for wgmma the operands that it reads,
  once for four warps;
* the second-level cache: tiles that many blocks read at once come at 8 TB/s
  (published kernels of this shape without clusters take 8.2 on an H100);
* issue: as above; but where threads multiply (f32), an instruction is issued
  in each cycle, as all are independent of one another, except that a third
  operand in the same of two banks of registers takes one more, and that a
  block waits 60 cycles at the barrier of a turn, which other blocks of the
  multiprocessor share.

Of two ways that a turn may take, such as copies with and without an edge, the
shorter one counts.
"""
import argparse
import collections
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import nvidia

MULTIPROCESSORS, CLOCK, MEMORY, COPY, CACHE, LATENCY, BETWEEN = 132, 1.75e9, 4.8e12, 4.3e12, 5.5e12, 0.8e-6, 1.5e-6
THREADS, RESIDENT, RUN = 256, 2048, 64
# Lanes in a cycle, by the first letters of an instruction's name; the rest is
# on the pipe of integers.
PIPES = {
    "fma": (128, ("FFMA", "FMUL", "FADD", "HFMA2", "HADD2", "HMUL2")),
    "multiply": (64, ("IMAD",)),
    "alu": (64, ("F2FP", "F2IP", "I2FP")),
    "double": (64, ("DFMA", "DMUL", "DADD", "DSETP", "DMNMX")),
    "special": (16, ("MUFU", "F2F", "I2F", "F2I", "FRND", "POPC", "FLO", "BREV")),
    "memory": (32, ("LDG", "STG", "LDS", "STS", "LD.", "ST.", "ATOM", "RED", "SHFL", "LDL", "STL")),
    "matrix": (32, ("HMMA", "IMMA", "DMMA", "HGMMA")),
    "control": (64, ("BRA", "EXIT", "BSSY", "BSYNC", "BAR", "WARPSYNC", "CALL", "RET", "NOP", "BMOV", "BREAK", "YIELD", "DEPBAR")),
    "uniform": (64, ("UMOV", "ULDC", "UIADD", "ULOP", "USHF", "UISETP", "S2UR", "R2UR", "UIMAD", "ULEA", "UPRMT", "USEL", "USGXT", "UFLO", "UPOPC", "VOTEU")),
}

N = 1 << 28
CHAIN = "((((((((x * 1.1 + 0.1) * x - 0.2) * x + 0.3) * x - 0.4) * x + 0.5) * x - 0.6) * x + 0.7) * x - 0.8)"
BLACK_SCHOLES = """def cdf(z) = 0.5 * (1.0 + erf(z * 0.70710678))
def f(s: f32[n], k: f32[n], t: f32[n]) {
  let v = 0.2 * sqrt(t)
  let d1 = (log(s / k) + (0.05 + 0.02) * t) / v
  let d2 = d1 - v
  let e = k * exp(-0.05 * t)
  (s * cdf(d1) - e * cdf(d2), e * cdf(-d2) - s * cdf(-d1))
}"""
SOFTMAX = """def f(x) {
  let e = exp(x - max(x, axis=1, keepdims=true))
  e / sum(e, axis=1, keepdims=true)
}"""
LAYER_NORM = """def f(x) {
  let d = x - mean(x, axis=1, keepdims=true)
  d / sqrt(mean(d * d, axis=1, keepdims=true) + 1e-5)
}"""
ROLL = """def f(x) = 0.25 * (roll(x, 1, axis=0) + roll(x, -1, axis=0) + roll(x, 1, axis=1) + roll(x, -1, axis=1))"""
STENCIL = """def f(x) {
  let inner = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
  pad(inner, ((1, 1), (1, 1)))
}"""

# Of ptxas, with which the rows' numbers were noted.
RELEASE = "13.0"
Row = collections.namedtuple("Row", "name goal noted needed shapes program")
# name, goal, what the estimate must not fall below, bytes of inputs and outputs for an element of the first parameter, types
# of the parameters, program.
ROWS = [
    Row("one operation", 0.93, 0.98, 8, f"x=f32[{N}]", "def f(x) = x + 1.5"),
    Row("16 operations", 0.93, 0.96, 8, f"x=f32[{N}]", f"def f(x) = {CHAIN}"),
    Row("16 operations, f16", 0.93, 0.96, 4, f"x=f16[{N}]", f"def f(x) = {CHAIN}"),
    Row("16 operations, bf16", 0.93, 0.96, 4, f"x=bf16[{N}]", f"def f(x) = {CHAIN}"),
    Row("Black-Scholes", 0.85, 0.85, 20, f"s=f32[{N}] k=f32[{N}] t=f32[{N}]", BLACK_SCHOLES),
    Row("sum", 0.93, 0.96, 4, f"x=f32[{N}]", "def f(x) = sum(x)"),
    Row("max", 0.93, 0.96, 4, f"x=f32[{N}]", "def f(x) = max(x)"),
    Row("mean and variance", 0.93, 0.93, 4, f"x=f32[{N}]", "def f(x) = (mean(x), var(x))"),
    Row("argmax", 0.93, 0.94, 4, f"x=f32[{N}]", "def f(x) = argmax(x)"),
    Row("sum of thin columns", 0.93, 0.94, 4, f"x=f32[{N >> 3}, 8]", "def f(x) = sum(x, axis=0)"),
    Row("softmax", 0.9, 0.95, 8, "x=f32[32768, 8192]", SOFTMAX),
    Row("softmax, bf16", 0.9, 0.70, 4, "x=bf16[32768, 8192]", SOFTMAX),
    Row("softmax, short rows", 0.9, 0.95, 8, "x=f32[262144, 1024]", SOFTMAX),
    Row("softmax, long rows", 0.9, 0.59, 8, "x=f32[4096, 65536]", SOFTMAX),
    Row("layer norm", 0.9, 0.96, 8, "x=f32[32768, 8192]", LAYER_NORM),
    Row("cumsum", 0.85, 0.95, 8, f"x=f32[{N}]", "def f(x) = cumsum(x)"),
    Row("stencil", 0.9, 0.96, 8, "x=f32[16384, 16384]", STENCIL),
    Row("stencil with roll", 0.9, 0.96, 8, "x=f32[16384, 16384]", ROLL),
    Row("transpose", 0.93, 0.98, 8, "x=f32[16384, 16384]", "def f(x) = x.T + 1.0"),
]


Product = collections.namedtuple("Product", "name goal noted module kernel unit cycles reached blocks")
# name, goal (0.75 of the peak is taken for cuBLASLt), what the estimate must not fall below; module and kernel; what multiplies, cycles
# that a part of a multiprocessor takes for one at its peak, and how much of the peak can be reached; blocks on a multiprocessor.
PRODUCTS = [
    Product("product, bf16", 0.64, 0.64, "dot_wide_bf16-90a", "dot_wide_bf16", "HGMMA", 128, 0.95, 1),
    Product("product, f16", 0.64, 0.64, "dot_wide_f16-90a", "dot_wide_f16", "HGMMA", 128, 0.95, 1),
    Product("product, f32", 0.9, 0.90, "dot_wide_f32-80", "dot_wide_f32", "FFMA", 1, 1, 1),
    Product("bf16 without wgmma", 0.36, 0.50, "dot_wide_bf16-80", "dot_wide_bf16", "HMMA", 4, 0.62, 1),
    Product("bf16, squares of 128", 0.36, 0.40, "dot_bf16-80", "dot_bf16_128", "HMMA", 4, 0.62, 2),
    Product("f32, squares of 128", 0.75, 0.77, "dot_f32-80", "dot_f32_128", "FFMA", 1, 1, 2),
]
TILES, AT_BARRIER = 8e12, 60  # bytes in a second, cycles


Sort = collections.namedtuple("Sort", "name goal noted element passes kernels spills", defaults=(0,))
Pass = collections.namedtuple("Pass", "name times each read written")
# name, goal (what the quickest radix sort that is published reaches of that), what the estimate must not fall below; bytes of an
# element; of each kernel: how often it is played, elements of a thread in a turn of it, and bytes that it reads and writes for an element;
# bytes that may be spilled: 18 words of a thread, which has 24 elements, in the first pass of an argsort.
# A tile of 6,144 tells 256 numbers of 4 bytes, and clears as many, which are 0.33 bytes for an element; those of some eight others are
# read, and come from the second-level cache.
SORTS = [
    Sort("sort, f32", 0.68, 0.69, 4, 4, [
        Pass("radix_clear_32", 1, 24, 0, 0.17), Pass("radix_totals_32", 1, 24, 4, 0), Pass("sort_move_32", 4, 24, 4, 4.33)]),
    Sort("argsort, f32", 0.68, 0.89, 8, 4, [
        Pass("radix_clear_32", 1, 24, 0, 0.17), Pass("radix_totals_32", 1, 24, 4, 0), Pass("argsort_first_32", 1, 24, 4, 8.33),
        Pass("argsort_move_32", 3, 24, 8, 8.33)], 72),
]


# ---- what kernels go over, from `inspect --emit=kernels` ----------------------

SIZES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}


class Kernel:
    """A kernel as text: bytes that it must move, and points of its largest nest."""

    def __init__(self, lines):
        self.text = "\n".join(lines)
        self.linked = "linked by" in self.text
        dtypes = {name: SIZES[dtype] for name, dtype in re.findall(r"(a\d+): (\w+)", lines[0])}
        self.read, self.written, self.points, self.all_points = 0, 0, 1, 0
        # Bytes for an element of what each lane of a warp asks for that another one does, too: loads of a row's own place, of
        # rows that a warp does.
        self.same = 0.0
        extents, reduced, seen = {}, set(), {}
        by_warps = "by lanes" in self.text
        for line in lines[1:]:
            if line.startswith("  for "):
                extents = {axis: int(size) for axis, size in re.findall(r"(i\d+) < (\d+)", line)}
                self.points = max(self.points, math.prod(extents.values()))
                self.all_points += math.prod(extents.values())
                reduced = set(re.findall(r"(i\d+) < \d+ \(reduced\)", line))
            # Elements are counted once, however many loops read them, or neighbours of them.
            for kind, name, at in re.findall(r"(load|store|scan|gather) (a\d+)\[([^\]]*)\]", line):
                axes = set(re.findall(r"i\d+", at))
                count = math.prod(size for axis, size in extents.items() if axis in axes) * dtypes[name]
                if "totals of runs" in line and kind == "scan":
                    count //= RUN
                if by_warps and kind == "load" and not axes & reduced:
                    self.same += dtypes[name] * 31 / math.prod(extents[axis] for axis in reduced)
                key = (kind in ("load", "gather"), name, tuple(extents.items()))
                seen[key] = max(seen.get(key, 0), count)
        whole = collections.defaultdict(int)
        for (is_load, name, _), count in seen.items():
            whole[is_load, name] += count
        self.read += sum(count for (is_load, _), count in whole.items() if is_load)
        self.written += sum(count for (is_load, _), count in whole.items() if not is_load)


def kernels_of(text):
    parts = []
    for line in text.splitlines():
        if line.startswith("kernel("):
            parts.append([])
        if parts and line.strip() and not line.startswith("#"):
            parts[-1].append(line)
    return [Kernel(part) for part in parts]


# ---- machine code -------------------------------------------------------------

Instruction = collections.namedtuple("Instruction", "predicate name operands target")
ACCESS = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def access_bytes(name):
    """Bytes of a lane's access: LDG.E.128, LDS.U16, STG.E."""
    parts = name.split(".")[1:]
    for part in parts:
        if part in ("U8", "S8"):
            return 1
        if part in ("U16", "S16"):
            return 2
        if part in ("64", "128"):
            return ACCESS[part]
    return 4


def functions_of(sass):
    """Name of each kernel: its instructions, with numbers of instructions as targets of jumps."""
    out = {}
    for part in re.split(r"^//-+ \.text\.", sass, flags=re.M)[1:]:
        name, places, rows = part.split()[0], {}, []
        for line in part.splitlines():
            if label := re.match(r"(\.L_x_\d+|\S+):$", line.strip()):
                places[label[1]] = len(rows)
            if found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+)?\s*([A-Z][\w.]*)\s*([^;]*);", line):
                rows.append((found[1], found[2], found[3].strip()))
        code = []
        for predicate, opcode, operands in rows:
            jump = re.search(r"`\((\.L_x_\d+|\S+?)\)", operands)
            code.append(Instruction(predicate, opcode, operands, places.get(jump[1]) if jump and opcode.startswith(("BRA", "CALL")) else None))
        out[name] = code
    return out


def pipe_of(name):
    for pipe, (_, names) in PIPES.items():
        if name.startswith(names) and names:
            return pipe
    return "alu"


def registers_of(text):
    return set(re.findall(r"\bR\d+\b", text))


def wide_registers(instruction):
    """The registers that a load fills."""
    first = re.match(r"R(\d+)", instruction.operands)
    if not first:
        return set()
    return {f"R{int(first[1]) + i}" for i in range(max(access_bytes(instruction.name) // 4, 1))}


def in_flight(code):
    """The most bytes that a thread asks of memory before it needs the first of them."""
    most, flying = 0, {}
    for instruction in code:
        is_load = instruction.name.startswith("LDG")
        used = registers_of(instruction.operands.split(",", 1)[1] if is_load and "," in instruction.operands else instruction.operands)
        if any(used & registers for registers, _ in flying.values()) or instruction.name.startswith("BAR"):
            flying = {}
        if is_load:
            flying[len(flying)] = (wide_registers(instruction), access_bytes(instruction.name))
        most = max(most, sum(size for _, size in flying.values()))
    return most


def loops_of(code):
    """Innermost loops, as (begin, end); jumps back to where nothing is loaded or stored do not count."""
    spans = sorted({(i.target, at) for at, i in enumerate(code) if i.target is not None and i.name.startswith("BRA") and i.target < at})
    touches = lambda span: any(pipe_of(i.name) == "memory" and not i.name.startswith("SHFL") for i in code[span[0]:span[1] + 1])
    spans = [span for span in spans if touches(span)]
    return [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]


def moved(code, start):
    return sum(access_bytes(i.name) for i in code if i.name.startswith(start))


def beside_wide(code):
    """(bytes of it, of the wider one) for each load of what lies beside a wider load of the same registers."""
    loads = []
    for instruction in code:
        if at := instruction.name.startswith("LDG") and re.search(r"\[(R\d+(?:\.\w+)*)(?:\+(-?0x[0-9a-f]+))?\]", instruction.operands):
            loads.append((at[1].split(".")[0], int(at[2] or "0", 16), access_bytes(instruction.name)))
    beside = lambda one, wide: one[0] == wide[0] and one[2] < wide[2] and one[1] in (wide[1] - one[2], wide[1] + wide[2])
    found = ((load[2], max((wide[2] for wide in loads if beside(load, wide)), default=0)) for load in loads)
    return [(own, wide) for own, wide in found if wide]


def memory_turns(code):
    """Cycles for which a warp's accesses take a multiprocessor's path to its memory."""
    accesses = sum(max(access_bytes(i.name) / 4, 1) for i in code if pipe_of(i.name) == "memory")
    return accesses + sum(wide / 4 - 1 for _, wide in beside_wide(code))


def parts_of(code):
    """The code of nests, which blocks choose from, as (begin, end): each ends with EXIT, and stores. What follows is rare."""
    parts, begin = [], 0
    for at, instruction in enumerate(code):
        if instruction.name == "EXIT" and not instruction.predicate:
            parts.append((begin, at + 1))
            begin = at + 1
    return [(a, b) for a, b in parts if moved(code[a:b], "STG")] or [(0, len(code))]


def rare_of(code):
    """Instructions that a jump goes over, which call and touch no memory but tables: quotients and roots of numbers out of the usual range."""
    rare = set()
    for at, jump in enumerate(code):
        if jump.target is None or not jump.predicate or not jump.name.startswith("BRA") or jump.target <= at + 1:
            continue
        inside = code[at + 1:jump.target]
        if any(i.name.startswith("CALL") for i in inside) and not any(pipe_of(i.name) == "memory" and i.name != "LDS.128" for i in inside):
            rare |= set(range(at + 1, jump.target))
    return rare


def one_warp_of(code):
    """Instructions that only the first warp of a block does: a jump goes over them where the thread's number is above 31."""
    threads = {i.operands.split(",")[0] for i in code if i.name.startswith("S2R") and i.operands.endswith("SR_TID.X")}
    found = set()
    for at, jump in enumerate(code):
        if jump.target is None or not jump.predicate or not jump.name.startswith("BRA") or jump.target <= at + 1:
            continue
        sets = rf"{jump.predicate.lstrip('@')}, PT, "
        # The upper half of a number of 64 bits, which is 0, is compared after the lower one.
        tests = [i for i in code[:at] if i.name.startswith("ISETP") and i.operands.startswith(sets) and not i.name.endswith(".EX")]
        said = re.match(r"ISETP\.GT\.U32\.AND P\d, PT, (R\d+)(?:\.reuse)?, 0x1f, PT", f"{tests[-1].name} {tests[-1].operands}") if tests else None
        if said and said[1] in threads:
            found |= set(range(at + 1, jump.target))
    return found


def loads_of_few(code):
    """Loads that only the first half of a warp does, such as of a table that a block copies: they ask memory for next to nothing."""
    threads = {i.operands.split(",")[0] for i in code if i.name.startswith("S2R") and i.operands.endswith("SR_TID.X")}
    few, predicates = set(), set()
    for instruction in code:
        if instruction.name.startswith("LDG") and instruction.predicate in predicates:
            few.add(instruction)
        if sets := re.match(r"(P\d), PT, (R\d+)(?:\.reuse)?, (\S+), PT", instruction.operands):
            predicates.discard("@!" + sets[1])
            if instruction.name == "ISETP.GT.U32.AND" and sets[2] in threads and sets[3] == "0xf":
                predicates.add("@!" + sets[1])
    return few


class Counted:
    """What a thread of a kernel does for one element."""

    def __init__(self, code, kernel, unit, blocks):
        parts = parts_of(code)
        # The part that moves most is what most blocks do.
        begin, end = max(parts, key=lambda part: moved(code[slice(*part)], "STG") + moved(code[slice(*part)], "LDG"))
        self.few = loads_of_few(code)
        self.pipes, self.asked, self.turns = collections.Counter(), 0.0, 0.0
        self.flight = in_flight([i for i in code[begin:end] if i not in self.few])
        loops = [(a, b) for a, b in loops_of(code) if begin <= a and b < end and not kernel.linked]
        rare, alone = rare_of(code), one_warp_of(code)
        each = kernel.all_points / (blocks * THREADS)  # elements of a thread
        if not loops and len(parts) > 1:
            each = moved(code[begin:end], "STG") / unit
        for a, b in loops:
            # Elements of a turn: by the bytes of what it moves most.
            turn = code[a:b + 1]
            elements = max(moved(turn, kind) for kind in ("LDG", "STG", "LDS", "STS")) / unit
            self.add([code[at] for at in range(a, b + 1) if at not in rare], elements)
        once = [at for at in range(begin, end) if at not in rare and not any(a <= at <= b for a, b in loops)]
        self.add([code[at] for at in once if at not in alone], each)
        self.add([code[at] for at in once if at in alone], each * THREADS / 32)
        self.loops = len(loops)

    def add(self, instructions, elements):
        for instruction in instructions:
            self.pipes[pipe_of(instruction.name)] += 1 / elements
        self.turns += memory_turns(instructions) / elements
        instructions = [i for i in instructions if i not in self.few]
        self.asked += (moved(instructions, "LDG") - sum(own for own, _ in beside_wide(instructions)) + moved(instructions, "STG")) / elements

    def instructions(self):
        return sum(self.pipes.values())


def norm(*times):
    return sum(t ** 4 for t in times) ** 0.25


Estimate = collections.namedtuple("Estimate", "seconds bytes flight instructions pipes registers spills resident counted bound")


def estimate(kernel, code, unit, registers, shared, spills, blocks):
    rounded = (registers + 7) // 8 * 8
    resident = min(65536 // (rounded * THREADS), (228 << 10) // (shared + 1024), RESIDENT // THREADS) * THREADS
    threads = min(blocks * THREADS, MULTIPROCESSORS * resident)
    counted = Counted(code, kernel, unit, blocks)
    elements = max(kernel.points, 1)
    busy = min(blocks, MULTIPROCESSORS)
    total = kernel.read + kernel.written
    # Stores are not waited for: reads are what has to be in flight.
    latency = total / max(threads * max(counted.flight, 1) / LATENCY * (total / max(kernel.read, 1)), 1) if kernel.read else 0
    memory = norm(total / MEMORY, latency)
    cache = (counted.asked - kernel.same) * elements / CACHE
    issue = elements * counted.instructions() / (busy * 4 * 32 * CLOCK * 0.8)
    lanes = {**counted.pipes, "memory": counted.turns}
    pipes = max((elements * n / (busy * PIPES[p][0] * CLOCK) for p, n in lanes.items()), default=0)
    times = {"bandwidth": total / MEMORY, "bytes in flight": latency, "cache": cache, "issue": issue, "a pipe": pipes}
    return Estimate(norm(memory, cache, issue, pipes), total, threads * counted.flight / MULTIPROCESSORS, counted.instructions(),
                    counted.pipes, registers, spills, resident, counted, max(times, key=times.get))


# ---- rows ---------------------------------------------------------------------

def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr + done.stdout)[-1000:]}")
    return done.stdout + done.stderr


def look_at(row, unisono, ptxas, nvdisasm, folder):
    """Estimates of a row's kernels, and the bytes that its inputs and outputs have."""
    program = pathlib.Path(folder, "row.uni")
    program.write_text(row.program + "\n")
    shapes = [part for shape in re.findall(r"\w+=\w+\[[^\]]*\]", row.shapes) for part in ("--shape", "f." + shape)]
    inspect = lambda stage: run(unisono, "inspect", f"--emit={stage}", "--target=sm_90", *shapes, str(program))
    kernels = kernels_of(inspect("kernels"))
    text = inspect("ptx")
    text = text[text.index(".version"):]
    blocks = {name: int(count) for name, count in re.findall(r"^// (kernel\d+): (\d+) blocks", text, re.M)}
    ptx, cubin = pathlib.Path(folder, "row.ptx"), pathlib.Path(folder, "row.cubin")
    ptx.write_text(text)
    said = run(ptxas, "-v", "-arch=sm_90", str(ptx), "-o", str(cubin))
    parts = re.split(r"Compiling entry function '(\w+)'", said)
    number = lambda pattern, part: sum(int(n) for n in re.findall(pattern, part))
    resources = {name: (number(r"Used (\d+) registers", part), number(r"(\d+) bytes smem", part), number(r"(\d+) bytes spill", part))
                 for name, part in zip(parts[1::2], parts[2::2])}
    code = functions_of(run(nvdisasm, "-c", str(cubin)))
    unit = SIZES[re.search(r"=(\w+)\[", row.shapes)[1]]
    estimates, names = [], {}
    for kernel in kernels:  # those with the same text have the same code
        name = names.setdefault(kernel.text, f"kernel{len(names)}")
        estimates.append(estimate(kernel, code[name], unit, *resources[name], blocks[name]))
    elements = math.prod(int(size) for size in re.search(r"\[([^\]]*)\]", row.shapes)[1].split(","))
    return estimates, row.needed * elements


def shorter_way(code):
    """The code without the longer one of two ways that both load from memory: of a tile that is not full."""
    for at, jump in enumerate(code):
        if not (jump.target and jump.predicate and jump.name.startswith("BRA") and jump.target > at + 1):
            continue
        last = code[jump.target - 1]  # of the way that does not jump
        if last.predicate or last.target is None or not last.name.startswith("BRA") or last.target <= jump.target:
            continue
        ways = code[at + 1:jump.target], code[jump.target:last.target]
        if all(moved(way, "LDG") for way in ways):
            return code[:at + 1] + min(ways, key=len) + code[last.target:]
    return code


def look_at_sort(row, library, ptxas, nvdisasm, folder):
    """Share, seconds of each kernel of a pass with what binds it, instructions for an element of a pass, registers and spills."""
    cubin = pathlib.Path(folder, "row.cubin")
    said = run(ptxas, "-v", "-arch=sm_90", str(library / "radix-75.ptx"), "-o", str(cubin))
    code = functions_of(run(nvdisasm, "-c", str(cubin)))
    seconds, shown, instructions, most_registers, spills = 0, [], 0, 0, 0
    for kernel in row.kernels:
        part = re.search(rf"Compiling entry function '{kernel.name}'(.*?)(?=Compiling entry|\Z)", said, re.S)[1]
        number = lambda pattern: sum(int(n) for n in re.findall(pattern, part))
        registers, shared = number(r"Used (\d+) registers"), number(r"(\d+) bytes smem")
        spills += number(r"(\d+) bytes spill")
        way = shorter_way(code[kernel.name])
        each = len(way) / kernel.each
        resident = min(65536 // ((registers + 7) // 8 * 8 * THREADS), (228 << 10) // (shared + 1024), RESIDENT // THREADS) * THREADS
        latency = N * kernel.read / (MULTIPROCESSORS * resident * max(in_flight(way), 1) / LATENCY)
        total = N * (kernel.read + kernel.written)
        lanes = collections.Counter(pipe_of(i.name) for i in way)
        lanes["memory"] = memory_turns(way)
        cache = total / CACHE
        times = {"bandwidth": total / MEMORY, "bytes in flight": latency * (kernel.read + kernel.written) / (kernel.read or 1),
                 "issue": N * each / (MULTIPROCESSORS * 4 * 32 * CLOCK * 0.8),
                 "a pipe": max(N * n / kernel.each / (MULTIPROCESSORS * PIPES[p][0] * CLOCK) for p, n in lanes.items())}
        took = norm(norm(times["bandwidth"], times["bytes in flight"]), cache, times["issue"], times["a pipe"]) + BETWEEN
        seconds += kernel.times * took
        shown.append(f"{kernel.name} {took * 1e6:.0f} us ({max(times, key=times.get)})")
        instructions += each * kernel.times / row.passes
        most_registers = max(most_registers, registers)
    needed = N * (row.element // 2 if row.name.startswith("argsort") else row.element) + row.passes * 2 * N * row.element
    return needed / COPY / seconds, shown, instructions, most_registers, spills


def shared_bytes(instruction):
    """Bytes of shared memory that a lane reads or writes; of wgmma, a lane's part of what four warps read together."""
    name = instruction.name
    if name.startswith("HGMMA"):
        rows, columns, deep = map(int, re.search(r"\.(\d+)x(\d+)x(\d+)", name).groups())
        return (rows + columns) * deep * 2 / 128
    if name.startswith("LDSM"):  # matrices of 128 bytes
        return 4 * next((n for n in (4, 2) if f".{n}" in name), 1)
    if instruction.predicate == "@!PT":  # does nothing
        return 0
    return access_bytes(name) if name.startswith(("LDS", "STS", "LDGSTS")) else 0


def shorter_ways(code, begin, end):
    """The instructions of a turn, of two ways through it the shorter one."""
    out, at = [], begin
    while at < end:
        jump = code[at]
        out.append(jump)
        at += 1
        if not (jump.predicate and jump.name.startswith("BRA") and jump.target is not None and at < jump.target < end):
            continue
        last = code[jump.target - 1]
        if last.predicate or not last.name.startswith("BRA") or not (last.target and jump.target < last.target <= end):
            continue
        ways = (at, jump.target), (jump.target, last.target)
        out += code[slice(*min(ways, key=lambda way: way[1] - way[0]))]
        at = last.target
    return out


def conflicts(code):
    """How many FFMA have three operands in one bank of registers, of which none was kept by the instruction before."""
    count, kept = 0, {}
    for instruction in code:
        if not instruction.name.startswith("FFMA"):
            continue
        read = {place: found for place, text in enumerate(instruction.operands.split(",")[1:4]) if (found := re.search(r"\bR(\d+)(\.reuse)?", text))}
        banks = collections.Counter(int(found[1]) % 2 for place, found in read.items() if kept.get(place) != found[1])
        count += max(banks.values(), default=0) > 2
        kept = {place: found[1] for place, found in read.items() if found[2]}
    return count


def turn_cycles(row, turn):
    """Cycles of a part of the multiprocessor for a warp's turn, by what takes them."""
    shared = sum(shared_bytes(i) for i in turn)
    copied = sum(access_bytes(i.name) for i in turn if i.name.startswith("LDGSTS"))
    peak = sum(i.name.startswith(row.unit) for i in turn) * row.cycles
    cycles = {"the pipe": peak / row.reached, "the cache": 4 * 32 * copied * MULTIPROCESSORS * CLOCK / TILES}
    if row.unit == "FFMA":  # threads of a warp read the same elements, each of them twice at most
        cycles["issue"] = len(turn) + conflicts(turn) + AT_BARRIER / (2 * row.blocks)
        cycles["shared memory"] = 32 * shared / 128
        del cycles["the pipe"]  # each is an instruction that is issued
    else:
        cycles["issue"] = len(turn) / 0.8
        cycles["shared memory"] = 4 * 32 * shared / 128
    return peak, cycles


def look_at_product(row, library, ptxas, nvdisasm, folder):
    """Share of the peak, what binds, and of the loop: instructions and bytes of shared memory for what multiplies; spills."""
    cubin = pathlib.Path(folder, "row.cubin")
    arch = "sm_90a" if row.module.endswith("a") else "sm_90"
    said = run(ptxas, "-v", f"-arch={arch}", str(library / f"{row.module}.ptx"), "-o", str(cubin))
    if "serialized" in said:
        raise RuntimeError(f"{row.module}: {said}")
    part = re.search(rf"Compiling entry function '{row.kernel}'(.*?)(?=Compiling entry|\Z)", said, re.S)[1]
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
    code = functions_of(run(nvdisasm, "-c", str(cubin)))[row.kernel]
    units = lambda instructions: sum(i.name.startswith(row.unit) for i in instructions)
    turns = [shorter_ways(code, i.target, at + 1) for at, i in enumerate(code) if i.target is not None and i.name.startswith("BRA") and i.target < at]
    most = max(map(units, turns))
    found = []
    for turn in turns:
        if units(turn) == most:
            peak, cycles = turn_cycles(row, turn)
            bound = max(cycles, key=cycles.get)
            found.append((peak / norm(*cycles.values()), bound, len(turn) / most, sum(map(shared_bytes, turn)) / most, spills))
    return min(found)


def main():
    parser = argparse.ArgumentParser(usage="tests/sass.py UNISONO [--explain] [ROW ...]")
    parser.add_argument("unisono")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_intermixed_args()
    ptxas, nvdisasm = map(nvidia.tool, ("ptxas", "nvdisasm"))
    if missing := [name for name, path in (("ptxas", ptxas), ("nvdisasm", nvdisasm)) if not path]:
        nvidia.skip(f"no {' and no '.join(missing)} here, so no machine code was counted (tests/nvidia.py brings them)")
    unisono = str(pathlib.Path(arguments.unisono).resolve())
    wanted = [row for row in ROWS if not arguments.rows or any(part in row.name for part in arguments.rows)]
    problems = []
    print(f"{'row':<22} {'goal':>5} {'noted':>5} {'share':>5} {'kernels':>7} {'moved':>5} {'KiB in flight':>13} {'instructions':>12} "
          f"{'registers':>9} {'spills':>6}  bound by")
    for row in wanted:
        with tempfile.TemporaryDirectory() as folder:
            estimates, needed = look_at(row, unisono, ptxas, nvdisasm, folder)
        seconds = sum(e.seconds for e in estimates) + BETWEEN * len(estimates)
        share = needed / COPY / seconds
        slowest = max(estimates, key=lambda e: e.seconds)
        spills = sum(e.spills for e in estimates)
        print(f"{row.name:<22} {row.goal:>5.2f} {row.noted:>5.2f} {share:>5.2f} {len(estimates):>7} {sum(e.bytes for e in estimates) / needed:>5.2f} "
              f"{slowest.flight / 1024:>13.1f} {slowest.instructions:>12.1f} {max(e.registers for e in estimates):>9} {spills:>6}  {slowest.bound}")
        if arguments.explain:
            for number, e in enumerate(estimates):
                pipes = ", ".join(f"{pipe} {count:.2f}" for pipe, count in sorted(e.pipes.items()))
                print(f"    kernel {number}: {e.seconds * 1e6:.1f} us, {e.bytes / 1e6:.1f} MB, {e.flight / 1024:.1f} KiB in flight on each of {MULTIPROCESSORS}, "
                      f"{e.registers} registers, {e.resident} threads, {e.counted.loops} loops; of an element: {pipes}; {e.bound}")
        if share < row.noted - 0.005:
            problems.append(f"{row.name}: an estimated {share:.2f} of the roofline, where {row.noted:.2f} is noted")
        if spills:
            problems.append(f"{row.name}: {spills} bytes are spilled")
    library = pathlib.Path(unisono).parent / "kernel_library"
    sorts = [row for row in SORTS if not arguments.rows or any(part in row.name for part in arguments.rows)]
    for row in sorts:
        with tempfile.TemporaryDirectory() as folder:
            share, shown, instructions, registers, spills = look_at_sort(row, library, ptxas, nvdisasm, folder)
        print(f"{row.name:<22} {row.goal:>5.2f} {row.noted:>5.2f} {share:>5.2f} {3 * row.passes:>7} {'':>5} {'':>13} {instructions:>12.1f} "
              f"{registers:>9} {spills:>6}  {', '.join(shown)}")
        if share < row.noted - 0.005:
            problems.append(f"{row.name}: an estimated {share:.2f} of a radix sort, where {row.noted:.2f} is noted")
        if spills > row.spills:
            problems.append(f"{row.name}: {spills} bytes are spilled")
    products = [row for row in PRODUCTS if not arguments.rows or any(part in row.name for part in arguments.rows)]
    if products:
        print(f"\n{'row':<22} {'goal':>5} {'noted':>5} {'share':>5} {'instructions':>12} {'shared bytes':>12} {'spills':>6}  bound by")
    for row in products:
        with tempfile.TemporaryDirectory() as folder:
            share, bound, instructions, shared, spills = look_at_product(row, library, ptxas, nvdisasm, folder)
        print(f"{row.name:<22} {row.goal:>5.2f} {row.noted:>5.2f} {share:>5.2f} {instructions:>12.1f} {shared:>12.1f} {spills:>6}  {bound}")
        if share < row.noted - 0.005:
            problems.append(f"{row.name}: an estimated {share:.2f} of the peak, where {row.noted:.2f} is noted")
        if spills:
            problems.append(f"{row.name}: {spills} bytes are spilled")
    release = re.search(r"release (\d+\.\d+)", run(ptxas, "--version"))
    print("\n".join(problems) or f"{len(wanted) + len(sorts) + len(products)} rows, none below what is noted")
    if problems and (not release or release[1] != RELEASE):
        print(f"that was noted with release {RELEASE} of ptxas: with another one it may be so")
        return 0
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
