"""Golden programs on simulated GPUs: on how many, how they reach each other,
and in which order their work is done. See docs/testing.md.

Nothing is chosen at random: a program's n-th run has always the same place in
the rotation, which `--sim=ROUND` shifts.
"""
import itertools
import re

import tunings

COUNTS = (1, 2, 3, 4, 8)
SEEDS = range(8)
HEAVY = {"heat.4.txt", "kmeans_digits.txt", "mlp_digits.txt"}  # a run takes many seconds, so these make few
FEW = HEAVY | {"regression.txt", "moments.uni", "declared_ints.uni", "nn_attention.uni", "functions_of_arrays.uni"}  # several seconds
LEFT_OUT = {"heat.1.txt", "heat.2.txt", "heat.8.txt",  # the same program as heat.4.txt
            "gpt.txt", "conv_digits.txt",  # 10^11 flops
            "nn_attention_long.uni",  # a million scores
            "fft_lengths.uni"}  # fft.uni with long transforms
EVERY = "same_"  # these hold every collective of every type to a loop: a run takes seconds, too
LONG = {"long_reductions.uni", "reductions_stay.uni", "stays_on_mesh.uni", "reduce.uni"}  # a run takes a second or two: each topology with two seeds
COLLECTIVE = ("tests/programs/maps/", "tests/programs/collectives/", "tests/programs/nested/", "tests/programs/members/")


def topologies(devices):
    """All that differ: two devices in a ring reach each other, three in a ring are a full mesh."""
    if devices == 1:
        return ["all"]
    kinds = ["all", "none"]
    if devices > 2:
        kinds.insert(1, f"islands:{(devices + 1) // 2}")
    if devices > 3:
        kinds.insert(1, "ring")
    return kinds


def keys(topology, seed, races):
    return f"peers={topology};seed={seed};reuse={seed % 2};races={'report' if races else 'off'}"


class Rotation:
    """Gives runs on so many devices one combination after the other."""

    def __init__(self, shift):
        self.shift = shift
        self.turns = {}

    def next(self, devices):
        turn = self.turns.get(devices, self.shift)
        self.turns[devices] = turn + 1
        pairs = list(itertools.product(topologies(devices), SEEDS))
        # A stride without a common factor: neighbours differ in both.
        return pairs[turn * 7 % len(pairs)] if len(pairs) % 7 else pairs[turn * 5 % len(pairs)]


def devices_of(options):
    for option, value in zip(options, options[1:]):
        if option == "--devices":
            return int(value.partition(":")[2])
    return 1


def on(options, kind, count=None):
    """The same run on other devices."""
    count = count or devices_of(options)
    options = list(options)
    if "--devices" in options:
        at = options.index("--devices")
        del options[at:at + 2]
    return [*options, "--devices", f"{kind}:{count}"]


class Simulated:
    """A golden program's runs on simulated GPUs, each compared with what it prints on as many CPU devices."""

    def __init__(self, golden):
        self.golden = golden
        self.own = [r for r in golden.runs if "--reference" not in r]
        self.known = {}  # (status, output) by options
        self.uses_device = None

    def expected(self, options):
        """What must be printed: the file says so for its own runs, else CPU devices show it."""
        cpu = on(options, "cpu")
        if any(on(own, "cpu") == cpu for own in self.own):
            return self.golden.status, self.golden.expected
        if str(cpu) not in self.known:
            status, out, _ = self.golden.execute(cpu)
            self.known[str(cpu)] = status, out
        return self.known[str(cpu)]

    def check(self, options, topology, seed):
        options = on(options, "sim")
        simulation = keys(topology, seed, races=self.golden.holder.name not in HEAVY)
        tuning = tunings.of_simulation(self.golden, seed)
        words = "".join(f"{name}={value} " for name, value in tuning.items())
        label = f"[{words}SIMCUDA='{simulation}' {' '.join(options)}]"
        try:
            want_status, want = self.expected(options)
            status, out, err = self.golden.execute(options, {"SIMCUDA": simulation, **tuning})
        except self.golden.too_long as late:
            return f"{label} no end after {late.timeout} s"
        strip = lambda text: "".join(l.rstrip() + "\n" for l in text.splitlines())
        out = re.sub(r"\bsim:(\d)", r"cpu:\1", out)
        if status != want_status:
            return f"{label} status {status}, expected {want_status}\n{out}{err}"
        if strip(out) != strip(want):
            return f"{label} expected:\n{want}got:\n{out}{err}"
        if "simcuda:" in err:
            return f"{label} the simulator found:\n{err}"
        return None

    def reaches_devices(self):
        """Whether it loads a kernel: with a driver that cannot, it then prints something else."""
        options = on(self.own[0], "sim")
        broken = {"SIMCUDA": "fail=module_load_data_ex:1:unknown:sticky"}
        return self.golden.execute(options, broken)[:2] != self.golden.execute(options)[:2]

    def runs_all(self):
        """The whole product; what takes seconds has each topology once, and what shall fail does so on its own number of devices."""
        if not self.reaches_devices():
            return
        few = self.golden.holder.name in FEW or self.golden.path.name.startswith(EVERY)
        seeds = itertools.cycle(SEEDS)
        for count in COUNTS if self.golden.status == 0 else sorted({devices_of(r) for r in self.own}):
            for topology in topologies(count):
                for seed in [next(seeds)] if few else SEEDS:
                    yield on(self.own[0], "sim", count), topology, seed


def covering(tests, rotation):
    """Every run of every program once, at its place in the rotation; programs once more on other numbers of devices; and those
    of collectives with every topology, and with half of the seeds."""
    counts, halves = itertools.cycle((3, 8, 2, 4)), itertools.cycle((SEEDS[:4], SEEDS[4:]))
    for test in tests:
        golden, name = test.golden, test.golden.name
        if golden.path.name.startswith(EVERY):
            for options in test.own:
                if 1 < devices_of(options) <= max(COUNTS):
                    yield test, options, *rotation.next(devices_of(options))
            continue
        few = golden.holder.name in FEW
        for options in test.own[-1:] if few else test.own:
            yield test, options, *rotation.next(devices_of(options))
        if golden.status == 0 and not few:
            count = next(counts)
            yield test, on(test.own[0], "sim", count), *rotation.next(count)
        if name.startswith(COLLECTIVE):
            own = {devices_of(r) for r in test.own} - {1}
            each = itertools.cycle(sorted(own) if len(own) == 1 else (3, 4, 8))
            seeds = (0, 5) if golden.path.name in LONG else next(halves)
            for kind, seed in itertools.product(range(4), seeds):
                count = next(each)
                kinds = topologies(count)
                yield test, on(test.own[0], "sim", count), kinds[kind % len(kinds)], seed


def jobs(goldens, mode):
    """(name, check) for each program; `mode` is "full" or the round of the rotation."""
    tests = [Simulated(g) for g in goldens if g.command == ["run"] and g.holder.name not in LEFT_OUT]
    if mode == "full":
        for test in tests:
            yield f"{test.golden.name} (sim)", lambda test=test: first(test.check(*run) for run in test.runs_all())
        return
    runs = {}
    for test, *run in covering(tests, Rotation(int(mode or 0))):
        runs.setdefault(test, []).append(run)
    for test, mine in runs.items():
        yield f"{test.golden.name} (sim)", lambda test=test, mine=mine: first(test.check(*run) for run in mine)


def first(problems):
    return next((p for p in problems if p), None)
