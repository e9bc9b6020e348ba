#!/usr/bin/env python3
"""Times what bench_gpu times, done by PyTorch, JAX and CuPy where they are installed.

usage: peers.py [--small] [--cpu] [--ours FILE] [--json FILE] [ROW ...]

--ours FILE: what `bench_gpu --json FILE` wrote; the table then has ratios.
--json FILE: the times measured here. --small: the sizes of `bench_gpu --small`.
--cpu: also where a library finds no GPU. ROW: rows whose names hold one of these.

As in bench_gpu each call is waited for; short work is repeated within a
measurement of a millisecond or more, after three calls that do not count; a
figure is the median of as many measurements as a second has, 7 at least, and
what four of five lie between.
"""
import functools
import json
import math
import os
import subprocess
import sys
import time

STEPS = 10000


class Sizes:
    def __init__(self, small):
        self.n, self.r, self.c, self.m = (1 << 12, 8, 256, 128) if small else (1 << 28, 32768, 8192, 8192)
        self.steps = 10 if small else STEPS
        self.budget = 0.05 if small else 1
        self.psum = [2, 1 << 10] if small else [2, 1 << 10, 1 << 18, 1 << 26]


def sixteen(x):
    return (((((((x * 1.1 + 0.1) * x - 0.2) * x + 0.3) * x - 0.4) * x + 0.5) * x - 0.6) * x + 0.7) * x - 0.8


def black_scholes(lib, s, k, t):
    def cdf(z):
        return 0.5 * (1.0 + lib.erf(z * 0.70710678))
    v = 0.2 * lib.sqrt(t)
    d1 = (lib.log(s / k) + (0.05 + 0.02) * t) / v
    d2 = d1 - v
    e = k * lib.exp(-0.05 * t)
    return s * cdf(d1) - e * cdf(d2), e * cdf(-d2) - s * cdf(-d1)


# ---- the libraries: each has `name`, arrays(sizes), wait(result), rows() ------
# A row is a function of no arguments whose result is waited for.


class Torch:
    """PyTorch as it is called without a compiler, with `compiled` by torch.compile."""

    def __init__(self, cpu, compiled):
        import torch
        self.torch = torch
        self.erf, self.sqrt, self.log, self.exp = torch.erf, torch.sqrt, torch.log, torch.exp
        self.compiled = compiled
        self.gpu = torch.cuda.is_available()
        if not self.gpu and not cpu:
            raise RuntimeError("finds no GPU")
        self.device = torch.device("cuda:0" if self.gpu else "cpu")
        where = torch.cuda.get_device_name(0) if self.gpu else "CPU"
        self.name = f"PyTorch {torch.__version__}{', torch.compile' if compiled else ''}"
        self.where = where

    def wait(self, _):
        if self.gpu:
            self.torch.cuda.synchronize()

    def rows(self, z):
        t = self.torch
        make = self.compile if self.compiled else lambda f: f
        x = t.sin(t.arange(z.n, dtype=t.float32, device=self.device) * 0.37)

        def on(f, *arguments):
            f = make(f)
            return lambda: f(*arguments)

        yield "1 operation", lambda: on(lambda x: x + 1.5, x)
        yield "16 operations", lambda: on(sixteen, x)
        yield "Black-Scholes", lambda: on(functools.partial(black_scholes, self), 100.0 + 5.0 * x, 100.0 - 3.0 * x, 1.5 + x * 0.5)
        yield "sum", lambda: on(lambda x: x.sum(), x)
        yield "mean and variance", lambda: on(lambda x: t.var_mean(x, correction=0), x)
        yield "max", lambda: on(lambda x: x.max(), x)
        yield "cumsum", lambda: on(lambda x: x.cumsum(0), x)

        def matrix():
            return t.sin(t.arange(z.r * z.c, dtype=t.float32, device=self.device) * 0.11).reshape(z.r, z.c)

        yield "softmax of rows", lambda: on(lambda y: t.softmax(y, 1), matrix())
        yield "layer norm of rows", lambda: on(lambda y: t.nn.functional.layer_norm(y, (z.c,)), matrix())
        yield "latency of a compiled call, 1 element", lambda: on(lambda x: x + 1.5, t.ones(1, device=self.device))
        thousand = t.ones(100000, device=self.device)
        yield "a step of a loop over 100,000 elements", lambda: self.steps(thousand, z.steps)
        a = t.sin(t.arange(z.m * z.m, dtype=t.float32, device=self.device) * 0.3).reshape(z.m, z.m).to(t.bfloat16)
        yield f"product of bf16, {z.m}×{z.m}×{z.m}", lambda: on(lambda a: a @ a, a)

    def compile(self, f):
        self.torch._dynamo.reset()
        return self.torch.compile(f)

    def steps(self, x, count):
        """One after the other; compiled: as a CUDA graph of 100 steps."""
        def some(y, n):
            for _ in range(n):
                y = y * 0.6 + y.flip(0) * 0.4
            return y
        if not self.compiled:
            return lambda: some(x, count)
        if not self.gpu:
            raise RuntimeError("no CUDA graphs without a GPU")
        t, at_once = self.torch, min(count, 100)
        y = x.clone()
        side = t.cuda.Stream()
        side.wait_stream(t.cuda.current_stream())
        with t.cuda.stream(side):
            y.copy_(some(y, at_once))
        t.cuda.current_stream().wait_stream(side)
        graph = t.cuda.CUDAGraph()
        with t.cuda.graph(graph):
            y.copy_(some(y, at_once))

        def run():
            y.copy_(x)
            for _ in range(count // at_once):
                graph.replay()
        return run


class Jax:
    def __init__(self, cpu):
        if cpu:  # two devices on the host, so that psum can be tried
            os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        import jax.numpy as jnp
        self.jax, self.jnp = jax, jnp
        self.erf, self.sqrt, self.log, self.exp = jax.scipy.special.erf, jnp.sqrt, jnp.log, jnp.exp
        platform = jax.default_backend()
        if platform not in ("gpu", "cuda") and not cpu:
            raise RuntimeError("finds no GPU")
        self.name = f"JAX {jax.__version__}, jit"
        self.where = jax.devices()[0].device_kind

    def wait(self, result):
        self.jax.block_until_ready(result)

    def rows(self, z):
        jax, jnp = self.jax, self.jnp
        x = jnp.sin(jnp.arange(z.n, dtype=jnp.float32) * 0.37)

        def on(f, *arguments):
            f = jax.jit(f)
            return lambda: f(*arguments)

        yield "1 operation", lambda: on(lambda x: x + 1.5, x)
        yield "16 operations", lambda: on(sixteen, x)
        yield "Black-Scholes", lambda: on(functools.partial(black_scholes, self), 100.0 + 5.0 * x, 100.0 - 3.0 * x, 1.5 + x * 0.5)
        yield "sum", lambda: on(jnp.sum, x)
        yield "mean and variance", lambda: on(lambda x: (jnp.mean(x), jnp.var(x)), x)
        yield "max", lambda: on(jnp.max, x)
        yield "cumsum", lambda: on(jnp.cumsum, x)

        def matrix():
            return jnp.sin(jnp.arange(z.r * z.c, dtype=jnp.float32) * 0.11).reshape(z.r, z.c)

        def layer_norm(y):
            d = y - jnp.mean(y, axis=1, keepdims=True)
            return d / jnp.sqrt(jnp.mean(d * d, axis=1, keepdims=True) + 1e-5)

        yield "softmax of rows", lambda: on(functools.partial(jax.nn.softmax, axis=1), matrix())
        yield "layer norm of rows", lambda: on(layer_norm, matrix())
        yield "latency of a compiled call, 1 element", lambda: on(lambda x: x + 1.5, jnp.ones(1))
        thousand = jnp.ones(100000)
        yield "a step of a loop over 100,000 elements", lambda: on(
            lambda x: jax.lax.fori_loop(0, z.steps, lambda _, y: y * 0.6 + y[::-1] * 0.4, x), thousand)
        a = jnp.sin(jnp.arange(z.m * z.m, dtype=jnp.float32) * 0.3).reshape(z.m, z.m).astype(jnp.bfloat16)
        yield f"product of bf16, {z.m}×{z.m}×{z.m}", lambda: on(jnp.matmul, a, a)
        if len(jax.devices()) >= 2:
            for size in z.psum:
                yield f"psum of {4 * size} bytes", lambda: self.psum(size)

    def psum(self, size):
        jax = self.jax
        f = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i", devices=jax.devices()[:2])
        x = jax.pmap(lambda x: x * 1.0, devices=jax.devices()[:2])(self.jnp.ones((2, size)))
        return lambda: f(x)


class Cupy:
    def __init__(self, cpu):
        import cupy
        self.cupy = cupy
        try:
            from cupyx.scipy.special import erf
        except ImportError:
            erf = None
        self.erf, self.sqrt, self.log, self.exp = erf, cupy.sqrt, cupy.log, cupy.exp
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise RuntimeError("finds no GPU")
        self.name = f"CuPy {cupy.__version__}, fuse"
        self.where = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def wait(self, _):
        self.cupy.cuda.get_current_stream().synchronize()

    def rows(self, z):
        c = self.cupy
        x = c.sin(c.arange(z.n, dtype=c.float32) * c.float32(0.37))

        def on(f, *arguments):
            return lambda: f(*arguments)

        yield "1 operation", lambda: on(c.fuse(lambda x: x + 1.5), x)
        yield "16 operations", lambda: on(c.fuse(sixteen), x)
        yield "Black-Scholes", lambda: on(c.fuse(functools.partial(black_scholes, self)), 100.0 + 5.0 * x, 100.0 - 3.0 * x, 1.5 + x * 0.5)
        yield "sum", lambda: on(c.sum, x)
        yield "mean and variance", lambda: on(lambda x: (c.mean(x), c.var(x)), x)
        yield "max", lambda: on(c.max, x)
        yield "cumsum", lambda: on(c.cumsum, x)

        def matrix():
            return c.sin(c.arange(z.r * z.c, dtype=c.float32) * c.float32(0.11)).reshape(z.r, z.c)

        def softmax(y):
            e = c.exp(y - c.max(y, axis=1, keepdims=True))
            return e / c.sum(e, axis=1, keepdims=True)

        def layer_norm(y):
            d = y - c.mean(y, axis=1, keepdims=True)
            return d / c.sqrt(c.mean(d * d, axis=1, keepdims=True) + c.float32(1e-5))

        yield "softmax of rows", lambda: on(softmax, matrix())
        yield "layer norm of rows", lambda: on(layer_norm, matrix())
        yield "latency of a compiled call, 1 element", lambda: on(c.fuse(lambda x: x + 1.5), c.ones(1, dtype=c.float32))
        thousand = c.ones(100000, dtype=c.float32)
        step = c.fuse(lambda y, x: y * 0.6 + x * 0.4)

        def steps():
            y = thousand
            for _ in range(z.steps):
                y = step(y, y[::-1])
        yield "a step of a loop over 100,000 elements", lambda: steps


LIBRARIES = {
    "PyTorch": lambda cpu: Torch(cpu, False),
    "torch.compile": lambda cpu: Torch(cpu, True),
    "JAX": Jax,
    "CuPy": Cupy,
}


def measure(work, wait, budget):
    def seconds(times):
        start = time.perf_counter()
        for _ in range(times):
            wait(work())
        return (time.perf_counter() - start) / times

    for _ in range(3):
        wait(work())
    inner = int(min(max(1e-3 / max(seconds(1), 1e-9), 1), 1000))
    found, end = [], time.perf_counter() + budget
    while len(found) < 7 or (time.perf_counter() < end and len(found) < 200):
        found.append(seconds(inner))
    found.sort()
    n = len(found)
    return {"median": found[n // 2], "low": found[n // 10], "high": found[n - 1 - n // 10]}


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def time_library(label, cpu, sizes, wanted):
    """What a library's rows took, and lines that say what it did not do."""
    found = {"who": label, "rows": [], "problems": []}

    def problem(text):
        found["problems"].append(f"{found['who']}: {text}")

    try:
        library = LIBRARIES[label](cpu)
    except ImportError as error:
        problem(f"not installed ({first_line(error)})")
        return found
    except Exception as error:  # whatever a library that does not start throws
        problem(first_line(error))
        return found
    found |= {"who": library.name, "where": library.where}
    try:
        for name, prepare in library.rows(sizes):
            if not wanted(name):
                continue
            try:
                seconds = measure(prepare(), library.wait, sizes.budget)
            except Exception as error:  # this one it cannot do
                problem(f"{name}: {first_line(error)}")
                continue
            if name.startswith("a step"):
                seconds = {k: v / sizes.steps for k, v in seconds.items()}
            print(f"{library.name:<36} {name:<44} {shown(seconds['median']):>10}", file=sys.stderr)
            found["rows"].append({"name": name, "seconds": seconds})
    except Exception as error:  # no memory for the arrays, say
        problem(first_line(error))
    return found


def shown(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"


def between(t):
    return f"{shown(t['median'])} ({shown(t['low'])} … {shown(t['high'])})"


def table(ours, peers):
    """Ratios are a peer's time by ours: above 1 we are faster."""
    def row_of(who, name):
        # Ours says on which devices: "psum of 8 bytes, cuda:0,cuda:1".
        return next((r["seconds"] for r in who["rows"] if name == r["name"] or name.startswith(r["name"] + ",")), None)

    names = [r["name"] for r in ours["rows"]] if ours else list(dict.fromkeys(r["name"] for p in peers for r in p["rows"]))
    head = ["what"] + ["Unisono"] * bool(ours)
    for p in peers:
        head += [p["who"]] + ["its time / ours"] * bool(ours)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    ratios = {p["who"]: [] for p in peers}
    for name in names:
        own = row_of(ours, name) if ours else None
        cells = [name] + ([between(own)] if ours else [])
        for p in peers:
            theirs = row_of(p, name)
            cells.append(between(theirs) if theirs else "")
            if ours:
                cells.append(f"{theirs['median'] / own['median']:.2f}" if theirs else "")
                ratios[p["who"]] += [theirs["median"] / own["median"]] if theirs else []
        if any(row_of(p, name) for p in peers):
            lines.append("| " + " | ".join(cells) + " |")
    for who, r in ratios.items():
        if r:
            lines.append(f"\n{who}: {math.exp(sum(map(math.log, r)) / len(r)):.2f} times our time (geometric mean of {len(r)} rows)")
    return "\n".join(lines)


def in_its_process(label, words):
    """Libraries bring CUDA libraries of different versions, and may crash."""
    done = subprocess.run([sys.executable, __file__, "--library", label, *words], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {"who": label, "rows": [], "problems": [f"{label}: ended with status {done.returncode}"]}
    return json.loads(done.stdout.splitlines()[-1])


def main():
    words, values, flags, names = sys.argv[1:], {}, [], []
    while words:
        word = words.pop(0)
        if word in ("--ours", "--json", "--library") and words:
            values[word] = words.pop(0)
        elif word in ("--small", "--cpu"):
            flags.append(word)
        elif word.startswith("-"):
            print(__doc__.split("\n\n")[1], file=sys.stderr)
            return 2
        else:
            names.append(word)
    if "--library" in values:
        wanted = lambda name: not names or any(n in name for n in names)
        print(json.dumps(time_library(values["--library"], "--cpu" in flags, Sizes("--small" in flags), wanted)))
        return 0
    ours = None
    if "--ours" in values:
        with open(values["--ours"], encoding="utf-8") as file:
            ours = json.load(file)
    all_of_them = [in_its_process(label, flags + names) for label in LIBRARIES]
    for p in all_of_them:
        for problem in p["problems"]:
            print(problem)
    peers = [p for p in all_of_them if p["rows"]]
    if "--json" in values:
        with open(values["--json"], "w", encoding="utf-8") as file:
            json.dump({"small": "--small" in flags, "peers": peers}, file, indent=1)
    if not peers:
        print("no peer was measured")
        return 0
    for p in peers:
        print(f"{p['who']} on {p['where']}")
    if ours and ours["small"] != ("--small" in flags):
        print("not of the same sizes: no ratios", file=sys.stderr)
        return 1
    print(f"\n{table(ours, peers)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
