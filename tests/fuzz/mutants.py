#!/usr/bin/env python3
"""Mutants of the repository's own programs neither crash, nor hang, nor differ between executors.

usage: tests/fuzz/mutants.py UNISONO [--seed SEED] [--count N] [--first N] [--jobs N] [--sim]
       tests/fuzz/mutants.py UNISONO --seed SEED --only N     one mutant, with all that its runs print
       tests/fuzz/mutants.py UNISONO --file FILE [--devices N]     a program, as if it were one

Each is checked, and run by the reference evaluator and as compiled code on CPU devices; each tenth (--sim: every one) on simulated
GPUs, too. Demanded are: no death by a signal and no internal error; an answer to Ctrl-C within a second of processor time, where
a run takes longer than its limit; mistakes that are located and have a code; what `check` finds is what `run` says before it
runs; and the same output, messages and exit status from all executors. Without --seed it is the commit's. Mutants that fail are
made smaller and kept in `fuzz/` of the build folder.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mutate

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import sanitizers

SLOW = sanitizers.slow()
PROCESSOR = 1.5 * SLOW  # seconds of processor time until Ctrl-C
GRACE = 2.0 * SLOW  # from then on: what millions of members hold is given back
WALL = sanitizers.limit()  # seconds without an end, whatever the processor does
OUTPUT = 4 << 20  # bytes that are compared
ADDRESSES = 6 << 30  # bytes of addresses that a process gets; sanitizers take all that there are
SHRINK, SHRINK_SECONDS = 250, 60  # tries to make a mutant smaller, and how long they take at most
ATTEMPTS = 4  # to find a mutant that `check` accepts
# What depends on memory and time, or on which executor has what: not compared.
OWN = re.compile(r"error\[U0504\]|error\[U0505\]|error\[U0506\]")


class Watch:
    """Interrupts children that take too long, and ends those that do not listen."""

    def __init__(self):
        self.children, self.lock = {}, threading.Lock()
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        tick = os.sysconf("SC_CLK_TCK")
        while True:
            time.sleep(0.1)
            with self.lock:
                for pid, child in self.children.items():
                    try:
                        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    except OSError:
                        continue
                    used, now = (int(fields[11]) + int(fields[12])) / tick, time.time()
                    if child["asked"] is None and (used > PROCESSOR or now > child["start"] + WALL):
                        child["asked"], child["at"] = used, now
                        os.kill(pid, signal.SIGINT)
                    elif child["asked"] is not None and (used > child["asked"] + GRACE or now > child["at"] + WALL):
                        child["killed"] = True
                        os.kill(pid, signal.SIGKILL)

    def run(self, words, folder, environment):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
                                       restore_signals=False)
            child = {"start": time.time(), "asked": None, "killed": False}
            with self.lock:
                self.children[process.pid] = child
            limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 64 << 20}
            if SLOW == 1:
                limits[resource.RLIMIT_AS] = ADDRESSES
            for limit, value in limits.items():
                resource.prlimit(process.pid, limit, (value, value))  # it is there until somebody waits for it
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with self.lock:  # its number is still its own
                del self.children[process.pid]
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            read = lambda file: (file.seek(0), file.read(OUTPUT).decode(errors="replace"))[1]
            return Ran(process.returncode, read(out), read(err), child, usage.ru_maxrss << 10)


class Ran:
    def __init__(self, status, out, err, child, memory):
        self.status, self.out, self.err, self.memory = status, out, err, memory
        self.interrupted, self.killed = child["asked"] is not None, child["killed"]
        if self.interrupted and status == -signal.SIGINT:
            self.status = 130  # Ctrl-C came when it was at its end, where the system's own answer to it is in force again

    def seen(self):
        plain = lambda text: text.replace("sim:", "cpu:")
        return self.status, by_device(plain(self.out)), plain(self.err)


class Problem:
    """What is wrong, and a short name of it that stays when the program gets smaller."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text


def sign(text):
    """A line of a death without what depends on the place."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", text)[:120]


def own_problem(ran):
    """What is wrong with one run for itself."""
    told = f"status {ran.status}\n{ran.err[-3000:]}"
    if ran.killed:
        return Problem("hang", f"does not hear Ctrl-C\n{told}")
    if ran.status < 0:
        last = next((line for line in reversed(ran.err.splitlines()) if re.search(r"CHECK|internal|ERROR:|rror: |Assert|WARNING:", line)), "")
        return Problem(f"death {signal.Signals(-ran.status).name} {sign(last)}", told)
    if line := re.search(r"^(?! *\d+ \|).*(?:U0702|internal error|CHECK failed).*", ran.err, re.M):
        line = line[0]
        return Problem(f"internal {sign(line)}", told)
    if "Sanitizer" in ran.err or "runtime error:" in ran.err:
        return Problem(f"sanitizer {sign(re.search(r'.*(?:Sanitizer|runtime error:).*', ran.err)[0])}", told)
    if ran.status not in (0, 1, 130):
        return Problem(f"status {ran.status}", told)
    if ran.status == 130 and not ran.interrupted:
        return Problem("stopped by itself", told)
    if ran.status == 1 and not re.search(r"^error\[U\d{4}\]: .*\n +--> .*:\d+:\d+$", ran.err, re.M):
        return Problem("no located error", told)
    if ran.status == 0 and re.search(r"^error", ran.err, re.M):
        return Problem("an error with status 0", told)
    return None


def by_device(out):
    """Neighbouring lines of devices, `[cpu:1] ...`, device after device: where nothing is asked of a collective, compiled
    code leaves it out, and its members do not meet there as those of the reference evaluator do."""
    lines, block = [], []
    for line in out.splitlines() + [""]:
        if device := re.match(r"\[\w+:(\d+)\] ", line):
            block.append((int(device[1]), line))
            continue
        lines += [text for _, text in sorted(block, key=lambda item: item[0])] + [line]
        block = []
    return "\n".join(lines)


def failed_check(ran):
    """The check that a run says has failed: code, place, and member."""
    found = re.search(r"^error\[(U0501|U0502|U0503|U0550)\].*\n +--> (.*)", ran.err, re.M)
    return found and (found[1], found[2], *re.findall(r"^ +\S* *= (on \S+.*)$", ran.err, re.M))


def another_check(one, other):
    """Whether two runs failed at different checks or members, which is all that may differ (docs/language.md, section 10)."""
    a, b = failed_check(one), failed_check(other)
    return a and b and a != b and one.seen()[:2] == other.seen()[:2]


def difference(name, one, other):
    if one.interrupted or other.interrupted or OWN.search(one.err) or OWN.search(other.err):
        return None
    a, b = one.seen(), other.seen()
    cut = max(len(ran.out.encode(errors="replace")) for ran in (one, other)) >= OUTPUT  # these may be different parts
    if a == b or (cut and a[::2] == b[::2]) or another_check(one, other):
        return None
    codes = lambda ran: ",".join(sorted(set(re.findall(r"^\w+\[(U\d+)\]", ran.err, re.M))))
    kind = f"{name}: {one.status} {codes(one)} and {other.status} {codes(other)}"
    return Problem(f"difference {kind}", f"status {a[0]}\n{a[1][-2500:]}{a[2][-2500:]}--- and\nstatus {b[0]}\n{b[1][-2500:]}{b[2][-2500:]}")


class Fuzzer:
    def __init__(self, unisono, keep, sim):
        self.unisono, self.keep, self.every, self.watch = unisono, keep, sim, Watch()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("UNISONO_CACHE")}
        self.environment["UNISONO_CACHE"] = "off"
        self.counts = collections.Counter()

    def execute(self, words, text, folder, environment=()):
        """One run, in a folder of its own with the files that the program may read."""
        with tempfile.TemporaryDirectory() as own:
            if folder and re.search(r'\b(?:import|load|save|visualize|plot|heatmap|image)\b', text):
                for path in pathlib.Path(folder).iterdir():
                    if path.is_file():
                        shutil.copy(path, own)
            (pathlib.Path(own) / "mutant.uni").write_text(text, errors="surrogateescape")
            return self.watch.run([self.unisono, *words], own, {**self.environment, **dict(environment)})

    def choose(self, mutator, lock, seed, number):
        """A mutant. Most have mistakes that `check` finds, so several are tried."""
        for attempt in range(ATTEMPTS):
            with lock:
                mutant = mutator.mutant(seed, number, attempt)
            check = self.check(mutant.text, mutant.folder, mutant.devices)
            self.counts["checked"] += 1
            if check.status != 1 or own_problem(check):
                break
        return mutant

    def check(self, text, folder, devices):
        return self.execute(["check", "mutant.uni", "--devices", f"cpu:{devices}"], text, folder)

    def problem(self, text, folder, devices, simulated, every, ask=None):
        """The first thing that is wrong with a program. `ask` gets each run."""
        on = ["mutant.uni", "--devices", f"cpu:{devices}"]
        check = self.check(text, folder, devices)
        ask and ask("check", check)
        if found := own_problem(check):
            return found
        reference = self.execute(["run", *on, "--reference"], text, folder)
        ask and ask("reference", reference)
        if found := own_problem(reference):
            return found
        self.counts["interrupted"] += reference.interrupted
        self.counts["run"] += check.status == 0
        self.counts["run to the end"] += reference.status == 0
        if check.status == 1:  # and then nothing depends on who would have run it
            # Words that are not known to `check` are known to be none here.
            return None if "args()" in text else difference("check and run", check, reference)
        if check.status == 0 and check.err and not reference.interrupted and not reference.err.startswith(check.err):
            return Problem("warnings of check are not those of run", f"{check.err}---\n{reference.err}")
        runs = [(f"cpu:{devices}", {"UNISONO_COMPILE_FROM": "0"} if every else {})]
        if simulated:
            runs.append((f"sim:{devices}", {"SIMCUDA": "peers=" + ("all", "none", "ring")[devices % 3]}))
        for kind, environment in runs:
            ran = self.execute(["run", "mutant.uni", "--devices", kind], text, folder, environment)
            ask and ask(kind, ran)
            if found := own_problem(ran) or difference(f"reference and {kind[:3]}", reference, ran):
                return found
        return None

    def way(self, mutant, number):
        """The number of devices, whether simulated GPUs run the mutant, too, and whether all is compiled, however small."""
        return mutant.devices, self.every or number % 10 == 0, number % 2 == 0

    def smaller(self, text, folder, way, kind):
        """A smaller program with the same kind of problem."""
        left, end = SHRINK, time.time() + SHRINK_SECONDS

        def fails(candidate):
            nonlocal left
            left = left - 1 if time.time() < end else 0
            found = self.problem(candidate, folder, *way)
            return found is not None and found.kind == kind

        for cut in (lambda t: t.splitlines(keepends=True), lambda t: [token[1] for token in mutate.tokens_of(t)]):
            pieces = cut(text)
            step = max(len(pieces) // 2, 1)
            while left > 0:
                at, shrunk = 0, False
                while at < len(pieces) and left > 0:
                    rest = pieces[:at] + pieces[at + step:]
                    if rest and fails("".join(rest)):
                        pieces, shrunk = rest, True
                    else:
                        at += step
                if step == 1 and not shrunk:
                    break
                step = max(step // 2, 1)
            text = "".join(pieces)
        return text

    def one(self, mutant, number):
        """None, or the text that tells what is wrong with a mutant."""
        text, told, folder, way = mutant.text, mutant.told, mutant.folder, self.way(mutant, number)
        found = self.problem(text, folder, *way)
        if not found:
            return None
        again = self.problem(text, folder, *way)  # what depends on time alone does not come twice
        if not again or again.kind != found.kind:
            again2 = self.problem(text, folder, *way)
            if not again and not again2:
                self.counts["once only"] += 1
                return f"(once only, not twice: {found.kind})", told, found, text
        return found.kind, told, found, text


def seed_of_commit():
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "0"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("unisono")
    parser.add_argument("--seed", default=None)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int)
    parser.add_argument("--file")
    parser.add_argument("--devices", type=int, default=3)
    parser.add_argument("--sim", action="store_true")
    options = parser.parse_args()
    unisono, seed = os.path.abspath(options.unisono), options.seed or seed_of_commit()
    keep = pathlib.Path(unisono).parent / "fuzz"
    fuzzer = Fuzzer(unisono, keep, options.sim)
    mutator = mutate.Mutator()

    lock = threading.Lock()
    if options.only is not None or options.file:
        if options.file:
            path = pathlib.Path(options.file).resolve()
            mutant = mutate.Mutant(path.read_text(errors="surrogateescape"), path.parent, options.devices, path.name)
        else:
            mutant = fuzzer.choose(mutator, lock, seed, options.only)
        print(f"# {mutant.told}, {mutant.devices} devices\n{mutant.text}")
        ask = lambda name, ran: print(f"---- {name}: status {ran.status}, {ran.memory >> 20} MiB{', interrupted' if ran.interrupted else ''}\n{ran.out}{ran.err}")
        found = fuzzer.problem(mutant.text, mutant.folder, *fuzzer.way(mutant, options.only or 0), ask)
        print(f"==== {found.kind}" if found else "==== nothing is wrong")
        return 1 if found else 0

    start, kinds, failed = time.time(), collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        numbers = iter(range(options.first, options.first + options.count))

        def work():
            results = []
            while True:
                with lock:
                    n = next(numbers, None)
                    if n is None:
                        return results
                mutant = fuzzer.choose(mutator, lock, seed, n)
                if result := fuzzer.one(mutant, n):
                    with lock:
                        known = kinds[result[0]]
                        kinds[result[0]] += 1
                    tell(n, mutant, *result, known)
                    results.append(n)

        def tell(n, mutant, kind, told, found, text, known):
            keep.mkdir(exist_ok=True)
            path = keep / f"{seed}_{n}.uni"
            path.write_text(text, errors="surrogateescape")
            small = text if known or kind.startswith("(once") else fuzzer.smaller(text, mutant.folder, fuzzer.way(mutant, n), found.kind)
            path.with_suffix(".small.uni").write_text(small, errors="surrogateescape")
            print(f"FAIL mutant {n}: {kind}\nof {told}\nagain: tests/fuzz/mutants.py {options.unisono} --seed {seed} --only {n}"
                  + (f"\n{small}\n{found.text}\n" if not known else "\n"), flush=True)

        futures = [pool.submit(work) for _ in range(options.jobs)]
        failed = sum(len(f.result()) for f in futures)
    counts = ", ".join(f"{v} {k}" for k, v in sorted(fuzzer.counts.items()))
    print(f"{options.count} mutants of seed {seed}, {failed} failed; {counts}; {time.time() - start:.1f} s")
    for kind, times in kinds.most_common():
        print(f"{times:6} {kind}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
