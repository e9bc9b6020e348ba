"""The tunings that tests go through besides the ordinary one (runtime/tuning/, docs/testing.md): thresholds at their ends and at
random, so that arrays of some hundred elements cross them, and the parts of sums small. No tuning changes what a program prints;
where the parts of sums are small, the reference evaluator says what that is."""
import simulated

SEED = 31  # of the random tuning that each run of the tests takes
# With least_compiled_bytes at 0 each statement is compiled, of which a hundred take seconds; and a loop is, whose turns took less.
LEAST = {"UNISONO_TUNING": "least,least_compiled_bytes=2048,long_run_microseconds=3000"}
MOST = {"UNISONO_TUNING": "most"}
COMPILED = {"UNISONO_TUNING": "most_evaluated_share=0"}  # statements of some size are compiled when they come first
SMALL = {"UNISONO_TUNING": "least", "UNISONO_ORDERS": "small"}  # for graphs, which are all compiled

# Programs whose output names kernels, times, bytes or compilations, or where arrays lie.
EXEMPT = {
    "tests/programs/maps/stays_on_mesh.uni": "it prints where arrays lie: small ones are computed by all devices",
    "tests/programs/maps/stays_split.uni": "it prints where arrays lie",
}


def at_random(seed, orders=True):
    """A random tuning, with small parts of sums in each second one, unless `orders` says no."""
    return {"UNISONO_TUNING": f"seed:{seed}", **({"UNISONO_ORDERS": "small"} if seed % 2 and orders else {})}


def of_program(seed, orders=True):
    """For the random programs: each third one has the ordinary tuning. `orders`: sums may have small parts, too."""
    environment = dict(({}, {**LEAST, "UNISONO_ORDERS": "small"}, at_random(seed))[seed % 3])
    if not orders:
        environment.pop("UNISONO_ORDERS", None)
    return environment


def of_simulation(golden, seed):
    """For runs on simulated GPUs, whose seeds are 0 to 7: of two of them. At random a host's loop may be a launch a turn there, which
    takes minutes."""
    return LEAST if seed % 4 == 1 and golden.name not in EXEMPT else {}


def runs(golden, count):
    """(options, environment) of more runs of a golden program: of its first compiled run with all at their least, of its last one
    at random; `count` random tunings if that is not 0."""
    own = [options for options in golden.runs if "--reference" not in options]
    # The evaluator says what other sums are, unless it takes too long, or too much memory.
    evaluated = lambda options: [*options, "--reference"] in golden.runs
    if golden.name in EXEMPT or golden.command != ["run"] or not own:
        return
    if count:
        yield own[0], MOST
        for seed in range(count):
            yield own[seed % len(own)], at_random(seed, evaluated(own[seed % len(own)]))
        return
    if golden.holder.name not in simulated.FEW | simulated.LEFT_OUT:
        yield own[0], LEAST
    yield own[-1], at_random(SEED, evaluated(own[-1]))


def check(golden, count=0):
    """What is wrong with them, or nothing."""
    strip = lambda text: "".join(line.rstrip() + "\n" for line in text.splitlines())
    for options, environment in runs(golden, count):
        label = " ".join([*(f"{name}={words}" for name, words in environment.items()), *options])
        try:
            status, out, err = golden.execute(options, environment)
            expected = golden.expected
            if strip(out) != strip(expected) and "UNISONO_ORDERS" in environment:
                expected = golden.execute([*options, "--reference"], environment)[1]
        except golden.too_long as late:
            return f"[{label}] no end after {late.timeout} s"
        if status != golden.status:
            return f"[{label}] status {status}, expected {golden.status}\n{out}{err}"
        if strip(out) != strip(expected):
            return f"[{label}] expected:\n{expected}got:\n{out}{err if not golden.status else ''}"
    return None
