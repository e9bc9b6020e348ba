#!/usr/bin/env python3
"""Programs whose sizes and places only running tells, beside NumPy in one run: a line must cost what its work costs, although each
turn has a size or place that was never seen. The values are compared, too.

usage: bench/dynamic.py [--build build] [--rounds 3] [NAME ...]      NAME: a part of a row's name

A row's time is the least of so many runs, each in a process of its own that has compiled nothing. It should be at most twice
NumPy's, or three times where NumPy takes less than a millisecond; status 1 where a row is not. Rows that are known to be behind say
why, and are shown only.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    sys.exit(f"bench/dynamic.py: {sys.executable} has no NumPy (Debian: python3-numpy, for /usr/bin/python3)")

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What all rows begin with, in Unisono and in NumPy.
OURS = """let x = sin(arange(1_000_000, f64)) |> f32
let q = reshape(x[:262_144], (512, 512))
let m = reshape(x, (1000, 1000))
let emb = reshape(x[:640_000], (10_000, 64))
var s = 0.0f64
"""
X = np.sin(np.arange(1_000_000, dtype=np.float64)).astype(np.float32)
Q, M, EMB = X[:262_144].reshape(512, 512), X.reshape(1000, 1000), X[:640_000].reshape(10_000, 64)


def total(values):
    """The sum of f32 values in f64, of one number for each turn."""
    return float(sum(float(value) for value in values))


def tiles():
    q = Q.copy()
    for k in range(64):
        q[k * 3:k * 3 + 96, k * 5:k * 5 + 96] += np.ones((96, 96), np.float32)
    return total(q[k, k] for k in range(0, 512, 7))


def rows_written():
    w = np.zeros((2000, 1000), np.float32)
    for k in range(1000):
        w[k] = X[k:k + 1000] * 2
    return total(w[k, k] for k in range(0, 1000, 13))


def added_at():
    w = np.zeros(400_000, np.float32)
    for k in range(50):
        w[(np.arange(10_000) * 37 + k) % 400_000] += 1
    return total(w[::997])


def grown(parts):
    out = X[:10]
    for k in range(parts):
        out = np.concatenate((out, X[k:k + 10]))
    return total(out[::101])


def queue():
    w, values = X[:20_000], []
    for _ in range(100):
        w = w[1:]
        values.append(w[0])
    return total(values)


def cholesky_rows():
    return total(np.sum(Q[i, :j] * Q[j, :j]) for i in range(0, 120, 4) for j in range(1, 120, 4))


def shrinking():
    w, turns = X.copy(), 0
    while len(w) > 10:
        w = w[w > np.float32(-1 + turns * 0.05)]
        turns += 1
    return turns


# NAME: (our lines, NumPy's, why it is behind or nothing)
ROWS = {
    "strides x[i::8]": ("for i in range(100) { s += f64(x[i::8][7]) + f64(len(x[i::8])) }",
                        lambda: total(X[i::8].copy()[7] + len(X[i::8]) for i in range(100)), ""),
    "negative steps": ("for i in range(1, 41) { s += f64(sum(x[i * 1000::-1] * x[:i * 1000 + 1])) }",
                       lambda: total(np.sum(X[i * 1000::-1] * X[:i * 1000 + 1]) for i in range(1, 41)), ""),
    "windows": ("for i in range(20) { for j in range(20) { s += f64(sum(q[i * 20:i * 20 + 96, j * 20:j * 20 + 96])) } }",
                lambda: total(np.sum(Q[i * 20:i * 20 + 96, j * 20:j * 20 + 96]) for i in range(20) for j in range(20)), ""),
    "masks": ("for i in range(40) { s += f64(mean(sqrt(x[x > f32(i) * 0.02]))) }",
              lambda: total(np.mean(np.sqrt(X[X > np.float32(i) * np.float32(0.02)])) for i in range(40)), ""),
    "groups": ("for i in range(20) { let r = x[i32(floor(x * 10.0)) == i - 10]\n  if len(r) > 0 { s += f64(max(r)) } }",
               lambda: total(np.max(r) for i in range(20) if len(r := X[np.floor(X * 10).astype(np.int32) == i - 10])), ""),
    "prefixes": ("for i in range(1000, 1200) { s += f64(sum(x[:i * 100] * 2.0)) }",
                 lambda: total(np.sum(X[:i * 100] * 2) for i in range(1000, 1200)), ""),
    "queue x = x[1:]": ("var w = x[:20_000]\nfor i in range(100) { w = w[1:]\n  s += f64(w[0]) }", queue, ""),
    "a concat that grows": ("var g = x[:10]\nfor i in range(2000) { g = concat((g, x[i:i + 10])) }\nfor v in g[::101] { s += f64(v) }",
                            lambda: grown(2000), ""),
    "products of growing size": ("for n in range(100, 300, 10) { s += f64((q[:n, :n] @ q[:n, :n])[n - 1, n - 1]) }",
                                 lambda: total((Q[:n, :n] @ Q[:n, :n])[n - 1, n - 1] for n in range(100, 300, 10)),
                                 "a product once is the evaluator's"),
    "sorts of growing size": ("for i in range(20_000, 20_020) { s += f64(sort(x[:i])[3]) }",
                              lambda: total(np.sort(X[:i])[3] for i in range(20_000, 20_020)), "the evaluator compares positions"),
    "lags": ("for k in range(1, 21) { s += f64(sum(x[k:] * x[:1_000_000 - k])) }",
             lambda: total(np.sum(X[k:] * X[:-k]) for k in range(1, 21)), ""),
    "cumsum of growing size": ("for i in range(50) { s += f64(cumsum(x[i:i + 20_000])[7]) }",
                               lambda: total(np.cumsum(X[i:i + 20_000])[7] for i in range(50)), ""),
    "exp of growing size": ("for i in range(50) { s += f64(sum(exp(x[:50_000 + i]))) }",
                            lambda: total(np.sum(np.exp(X[:50_000 + i])) for i in range(50)), ""),
    "mean and std of windows": ("for i in range(50) { s += f64(mean(x[i:i + 50_000]) + std(x[i:i + 50_000])) }",
                                lambda: total(np.mean(X[i:i + 50_000]) + np.std(X[i:i + 50_000]) for i in range(50)), ""),
    "argmax of growing size": ("for i in range(50) { s += f64(argmax(x[i:i + 50_000])) }",
                               lambda: total(np.argmax(X[i:i + 50_000]) for i in range(50)), ""),
    "rows m[j, 1:]": ("for j in range(900) { s += f64(sum(m[j, 1:])) }", lambda: total(np.sum(M[j, 1:]) for j in range(900)), ""),
    "columns m[:, j]": ("for j in range(300) { s += f64(sum(m[:, j])) }", lambda: total(np.sum(M[:, j]) for j in range(300)), ""),
    "rows of a matrix": ("for r in m[:300] { s += f64(sum(r)) }", lambda: total(np.sum(r) for r in M[:300]), ""),
    "rows of Cholesky": ("for i in range(0, 120, 4) { for j in range(1, 120, 4) { s += f64(sum(q[i, :j] * q[j, :j])) } }",
                         cholesky_rows, ""),
    "embedding rows": ("for i in range(50) { s += f64(sum(emb[(arange(640) * 7 + i) % 10_000])) }",
                       lambda: total(np.sum(EMB[(np.arange(640) * 7 + i) % 10_000]) for i in range(50)), ""),
    "elements at positions": ("for i in range(50) { s += f64(sum(x[(arange(20_000) * 37 + i) % 1_000_000])) }",
                              lambda: total(np.sum(X[(np.arange(20_000) * 37 + i) % 1_000_000]) for i in range(50)), ""),
    "blocks of a matrix": ("for k in range(100) { s += f64(max(m[k:k + 300, k * 2:k * 2 + 300])) }",
                           lambda: total(np.max(M[k:k + 300, k * 2:k * 2 + 300]) for k in range(100)), ""),
    "sums along axes": ("for k in range(1, 41) { s += f64(sum(m[:k * 10], axis=0)[3]) }",
                        lambda: total(np.sum(M[:k * 10], axis=0)[3] for k in range(1, 41)), ""),
    "differences of prefixes": ("for i in range(50) { let y = x[:40_000 + i]\n  s += f64(max(abs(y[1:] - y[:-1]))) }",
                                lambda: total(np.max(np.abs(np.diff(X[:40_000 + i]))) for i in range(50)), ""),
    "reversed prefixes": ("for i in range(50) { s += f64(x[:40_000 + i][::-1][3]) }",
                          lambda: total(X[:40_000 + i][::-1].copy()[3] for i in range(50)), ""),
    "where of windows": ("for i in range(50) { let y = x[i:i + 40_000]\n  s += f64(sum(where(y > 0.0, y, 0.0))) }",
                         lambda: total(np.sum(np.where(X[i:i + 40_000] > 0, X[i:i + 40_000], 0)) for i in range(50)), ""),
    "outer of growing size": ("for n in range(100, 150) { s += f64(sum(x[:n, none] * x[none, :n])) }",
                              lambda: total(np.sum(X[:n, None] * X[None, :n]) for n in range(100, 150)), ""),
    "a mask until little is left": ("var w = x\nvar t = 0\nwhile len(w) > 10 { w = w[w > -1.0 + f32(t) * 0.05]\n  t += 1 }\ns = f64(t)",
                                    shrinking, ""),
    "normalised batches": ("for i in range(0, 9_000, 100) { let b = emb[i:i + 100]\n  s += f64(sum((b - mean(b, axis=0)) ** 2)) }",
                           lambda: total(np.sum((EMB[i:i + 100] - np.mean(EMB[i:i + 100], axis=0)) ** 2) for i in range(0, 9_000, 100)), ""),
    "the last batch is short": ("for i in range(0, 10_000, 96) { let b = emb[i:i + 96]\n  s += f64(sum(b @ emb[0])) }",
                                lambda: total(np.sum(EMB[i:i + 96] @ EMB[0]) for i in range(0, 10_000, 96)), ""),
    "pairs of slices": ("for i in range(100) { s += f64(x[i:i + 20_000] @ x[i + 5:i + 20_005]) }",
                        lambda: total(X[i:i + 20_000] @ X[i + 5:i + 20_005] for i in range(100)), "the evaluator packs operands"),
    "sizes of 4 KB": ("for n in range(900, 1100) { s += f64(sum(x[:n] * 2.0 + 1.0)) }",
                      lambda: total(np.sum(X[:n] * 2 + 1) for n in range(900, 1100)), ""),
    "tiles q[i:, j:] += e": ("var w = q + 0.0\nfor k in range(64) { w[k * 3:k * 3 + 96, k * 5:k * 5 + 96] += ones(f32[96, 96]) }\n"
                             "for k in range(0, 512, 7) { s += f64(w[k, k]) }", tiles, ""),
    "rows w[i] = e": ("var w = zeros(f32[2000, 1000])\nfor k in range(1000) { w[k] = x[k:k + 1000] * 2.0 }\n"
                      "for k in range(0, 1000, 13) { s += f64(w[k, k]) }", rows_written, ""),
    "x[idx] += 1": ("var w = zeros(f32[400_000])\nfor k in range(50) { w[(arange(10_000) * 37 + k) % 400_000] += 1.0 }\n"
                    "for v in w[::997] { s += f64(v) }", added_at, ""),
    "one size that recurs": ("var y = x[:100_000]\nfor i in range(500) { y = y * 0.5 + x[:100_000] }\ns = f64(y[77])",
                             lambda: recurring(), ""),
}


def recurring():
    y = X[:100_000]
    for _ in range(500):
        y = y * np.float32(0.5) + X[:100_000]
    return float(y[77])


def ours(build, lines):
    """Seconds, and the value."""
    with tempfile.NamedTemporaryFile("w", suffix=".uni") as file:
        file.write(f"{OURS}let begun = clock()\n{lines}\nlet took = clock() - begun\nprint(\"{{took}} {{s}}\")\n")
        file.flush()
        done = subprocess.run([ROOT / build / "unisono", "run", "--quiet", file.name], capture_output=True, text=True, check=False,
                              env={**os.environ, "UNISONO_CACHE": "off"})
    if done.returncode:
        sys.exit(f"{lines}\n{done.stdout}{done.stderr}")
    took, value = done.stdout.split()
    return float(took), float(value)


def timed(run):
    begun = time.perf_counter()
    value = run()
    return time.perf_counter() - begun, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    behind = 0
    print(f"{'ms':32} {'Unisono':>9} {'NumPy':>9} {'ratio':>7}")
    for name, (lines, numpy, why) in ROWS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        own, peer = [], []
        for _ in range(options.rounds):
            seconds, value = ours(options.build, lines)
            own.append(seconds)
            seconds, expected = timed(numpy)
            peer.append(seconds)
            if abs(value - expected) > 1e-3 * max(1, abs(expected)):
                sys.exit(f"{name}: {value}, and NumPy has {expected}")
        ratio, most = min(own) / min(peer), 3 if min(peer) < 1e-3 else 2
        late = ratio > most
        behind += late and not why
        print(f"{name:32} {min(own) * 1e3:9.2f} {min(peer) * 1e3:9.2f} {ratio:7.2f}{'  behind' if late else ''}"
              f"{': ' + why if late and why else ''}", flush=True)
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
