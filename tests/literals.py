#!/usr/bin/env python3
"""Literals keep their digits: every function of the library, and every builtin with a default or a number among its
arguments, is called with f64 and with literals, and what it gives is compared with an exact result.

    tests/literals.py build/unisono [NAME ...]

A row of CALLS is a call and what it should give, by Python's fractions and floats, or by NumPy. `{0.1}` in it is a number
that is written once as a literal and once as an f64, in all combinations in which the call has an f64; all must be f64 and
right to the last digits. A function that is neither in a row nor in EXEMPT fails the test.
"""
import itertools
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from fractions import Fraction

DEBIAN = "/usr/bin/python3"  # which has NumPy from the distribution

try:
    import numpy as np
except ImportError:
    np = None
    if __name__ == "__main__" and os.path.exists(DEBIAN) and os.path.realpath(sys.executable) != os.path.realpath(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, __file__, *sys.argv[1:]])

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Numbers that f32 holds to 7 digits alone.
X = [0.1, 0.7, 0.3]
M = [[0.9, 0.2], [0.3, 0.8]]
TEXT = {"X": "[0.1f64, 0.7, 0.3]", "S": "[0.1f64, 0.3, 0.7]", "M": "[[0.9f64, 0.2], [0.3, 0.8]]", "N": "[0.1f64, nan, 0.7]",
        "K": "key(3)"}
S = sorted(X)
NORMAL = lambda x, m, s: -0.5 * ((x - m) / s) ** 2 - math.log(s) - 0.5 * math.log(2 * math.pi)
CDF = lambda x, m, s: 0.5 * math.erfc((m - x) / (s * math.sqrt(2)))
SIGMOID = lambda x: 1 / (1 + math.exp(-x))
ELU = lambda x, a: x if x > 0 else a * math.expm1(x)
SOFTPLUS = lambda x: math.log1p(math.exp(x))


def spaced(a, b, n, over=None):
    """n numbers from a on, the last of them b: exact, then rounded."""
    a, b = Fraction(a), Fraction(b)
    return [float(a + (b - a) * i / (over or n - 1)) for i in range(n)]


def mean(x):
    return math.fsum(x) / len(x)


def deviation(x, ddof=0):
    return math.sqrt(math.fsum((v - mean(x)) ** 2 for v in x) / (len(x) - ddof))


def softmax(x):
    total = math.fsum(map(math.exp, x))
    return [math.exp(v) / total for v in x]


def normed(x, gain=1, bias=0, eps=1e-5, centre=True):
    m = mean(x) if centre else 0
    root = math.sqrt(math.fsum((v - m) ** 2 for v in x) / len(x) + eps)
    return [(v - m) / root * gain + bias for v in x]


def adam(g, rate, b1, b2, eps, decay=0, p=0):
    """The first step."""
    mu, nu = (1 - b1) * g, (1 - b2) * g * g
    return -rate * (mu / (1 - b1) / (math.sqrt(nu / (1 - b2)) + eps) + decay * p)


def cosine(i, value, steps, alpha):
    return value * ((1 - alpha) * 0.5 * (1 + math.cos(math.pi * min(i, steps) / steps)) + alpha)


# name, and perhaps a word for another row of it: (call, what it gives). `None`: as with all numbers f64.
CALLS = {
    # ---- builtins
    "where": ("where(X > {0.2}, X, {0.6})", [0.6, 0.7, 0.3]),
    "clip": ("clip(X, {0.2}, {0.6})", [0.2, 0.6, 0.3]),
    "cast": ("cast({0.1}, f64)", 0.1),
    "round": ("round({0.123456789012}, 10)", 0.123456789),
    "fma": ("fma(X, {0.7}, {0.1})", [v * 0.7 + 0.1 for v in X]),
    "mean": ("mean(X)", mean(X)),
    "variance": ("variance(X, ddof=1)", deviation(X, 1) ** 2),
    "std": ("std(X, ddof=1)", deviation(X, 1)),
    "pad": ("pad(X, 1, {0.9})", [0.9, *X, 0.9]),
    "pad_to": ("pad_to(X, 4, value={0.9})", [*X, 0.9]),
    "full": ("(full(f64[2], {0.1}), full(2, {0.7}, f64), full((1,), {0.3}, dtype=f64))", [0.1, 0.1, 0.7, 0.7, 0.3]),
    "full_like": ("full_like(X, {0.7})", [0.7] * 3),
    "arange": ("arange(0.1, 0.6, 0.2, f64)", [0.1, 0.1 + 0.2, 0.1 + 0.4]),
    "linspace": ("(linspace({0.1}, {0.9}, 3, dtype=f64), linspace({0.1}, {0.7}, 2, endpoint=false, dtype=f64), "
                 "linspace(0, 20000001, 2, dtype=f64), linspace({0.1}, 1, 2, dtype=f64))",
                 [*spaced(0.1, 0.9, 3), *spaced(0.1, 0.7, 2, 2), 0, 20000001, 0.1, 1]),
    "uniform": ("uniform(K, f64[3], {0.1}, {0.7})", None),
    "stack": ("stack((X[0], {0.7}))", [0.1, 0.7]),
    "concat": ("concat((X, [{0.7}, X[0]]))", [*X, 0.7, 0.1]),
    "outer": ("outer(X, {0.7})", [v * 0.7 for v in X]),
    "dot": ("dot(X, {0.7})", [v * 0.7 for v in X]),
    "tensordot": ("tensordot(X, {0.7}, axes=0)", [v * 0.7 for v in X]),
    "einsum": ("einsum(\"i,->i\", X, {0.7})", [v * 0.7 for v in X]),
    "scatter_add": ("scatter_add(X, 1, {0.2})", [0.1, 0.7 + 0.2, 0.3]),
    "searchsorted": ("f64(searchsorted(S, {0.3}, side=\"right\") + 10 * searchsorted(S, {0.7}))", 22),
    "float": ("float(\"0.1\") * f64(1) + {0.7}", 0.1 + 0.7),
    "scan": ("scan(fn(c, x) => (c * x, c + x), f64({0.9}), X)", [0.9 * 0.1 * 0.7 * 0.3, 0.9 + 0.1, 0.9 * 0.1 + 0.7,
                                                               0.9 * 0.1 * 0.7 + 0.3]),
    "fold": ("fold(fn(c, x) => c * x, f64({0.9}), X)", 0.9 * 0.1 * 0.7 * 0.3),
    "map": ("map(fn(x) => x * {0.9}, X)", [v * 0.9 for v in X]),
    "vmap": ("vmap(fn(x, k) => x * k, in_axes=(0, none))(X, {0.9})", [v * 0.9 for v in X]),
    "jit": ("jit(fn(x, k) => x * k)(X, {0.9})", [v * 0.9 for v in X]),
    "grad": ("grad(fn(x) => {0.9} * x * x)(X[0])", 2 * 0.9 * 0.1),
    "value_and_grad": ("value_and_grad(fn(x) => {0.9} * x)(X[0])", [0.9 * 0.1, 0.9]),
    "jvp": ("jvp(fn(x) => {0.9} * x)(X[0], {0.7})", [0.9 * 0.1, 0.9 * 0.7]),
    "vjp": ("vjp(fn(x) => {0.9} * x)(X[0], {0.7})", [0.9 * 0.1, 0.9 * 0.7]),
    "jacobian": ("jacobian(fn(x) => {0.9} * x)(X[0])", 0.9),
    "hessian": ("hessian(fn(x) => {0.9} * x * x)(X[0])", 2 * 0.9),
    # ---- array
    "vstack": ("vstack((X[:1], {0.7}))", [0.1, 0.7]),
    "hstack": ("hstack(({0.9}, X, {0.7}))", [0.9, *X, 0.7]),
    "column_stack": ("column_stack((X[:1], {0.7}))", [0.1, 0.7]),
    "tri": ("tri(2, dtype=f64) * {0.1}", [0.1, 0, 0.1, 0.1]),
    "logspace": ("logspace({0.1}, {0.9}, 3, base={10.1})", [10.1 ** v for v in spaced(0.1, 0.9, 3)]),
    "logspace typed": ("logspace({0.1}, {0.9}, 3, dtype=f64)", [10 ** v for v in spaced(0.1, 0.9, 3)]),
    "geomspace": ("geomspace({0.1}, {0.9}, 3)", [0.1, math.sqrt(0.09), 0.9]),
    "geomspace typed": ("geomspace({0.1}, {0.9}, 2, dtype=f64)", [0.1, 0.9]),
    "histogram": ("f64(histogram(X, 2, low={0.1}, high={0.7}).0), histogram(X, 2, low={0.1}, high={0.7}).1",
                  [2, 1, 0.1, 0.4, 0.7]),
    "histogram weights": ("histogram(X, 2, range=({0.1}, {0.7}), weights=[{0.9}, X[0], {0.2}])", [1.1, 0.1, 0.1, 0.4, 0.7]),
    "histogram density": ("histogram(X, 2, range=({0.1}, {0.7}), density=true)", [2 / 0.9, 1 / 0.9, 0.1, 0.4, 0.7]),
    "bincount": ("bincount([0, 1, 1], weights=[{0.9}, X[0], {0.2}])", [0.9, 0.1 + 0.2]),
    "atleast_1d": ("atleast_1d(X[0])", 0.1), "atleast_2d": ("atleast_2d(X[0])", 0.1), "atleast_3d": ("atleast_3d(X[0])", 0.1),
    "meshgrid": ("(meshgrid(X, X[:1]).0, meshgrid(X, X[:1], X[1:2]).2)", [*X, 0.7, 0.7, 0.7]),
    "insert": ("(insert(X, 1, {0.9}), insert([X], 0, {0.9}, axis=0))", [0.1, 0.9, 0.7, 0.3, 0.9, 0.9, 0.9, *X]),
    "isin": ("(f64(isin(X, {0.7})), f64(isin({0.7}, X)), f64(isin(X, {0.7}, invert=true)))", [0, 1, 0, 1, 1, 0, 1]),
    "union1d": ("(union1d(X, {0.9}), union1d({0.9}, X))", [0.1, 0.3, 0.7, 0.9] * 2),
    "intersect1d": ("(intersect1d(X, {0.7}), intersect1d({0.7}, X))", [0.7, 0.7]),
    "setdiff1d": ("(setdiff1d(X, {0.7}), setdiff1d({0.9}, X))", [0.1, 0.3, 0.9]),
    "nansum": ("nansum(N)", 0.1 + 0.7), "nanmean": ("nanmean(N)", 0.4), "nanmax": ("nanmax(N)", 0.7),
    "nanmin": ("nanmin(N)", 0.1), "nanprod": ("nanprod(N)", 0.1 * 0.7),
    "nanvar": ("nanvar(N, ddof=1)", deviation([0.1, 0.7], 1) ** 2),
    "nanstd": ("nanstd(N, ddof=1)", deviation([0.1, 0.7], 1)),
    "average": ("average(X, weights=[{0.9}, {0.2}, X[0]])", (0.9 * 0.1 + 0.2 * 0.7 + 0.1 * 0.3) / (0.9 + 0.2 + 0.1)),
    "ptp": ("ptp(X)", 0.7 - 0.1), "diff": ("diff(X)", [0.7 - 0.1, 0.3 - 0.7]),
    "interp": ("(interp({0.2}, S, X), interp(X[0], S, X), interp([0.01f64, 9], S, X, left={0.9}, right={0.8}))",
               [0.1 + (0.2 - 0.1) / (0.3 - 0.1) * (0.7 - 0.1), 0.1, 0.9, 0.8]),
    "gradient": ("(gradient(X, {0.9}), gradient(X, {0.9}, edge_order=2))",
                 [0.6 / 0.9, 0.2 / 1.8, -0.4 / 0.9, (-1.5 * 0.1 + 2 * 0.7 - 0.5 * 0.3) / 0.9, 0.2 / 1.8,
                  (0.5 * 0.1 - 2 * 0.7 + 1.5 * 0.3) / 0.9]),
    "trapezoid": ("trapezoid(X, dx={0.9})", 0.9 * (0.1 / 2 + 0.7 + 0.3 / 2)),
    # ---- math
    "square": ("square({0.7}) + X", [0.49 + v for v in X]), "reciprocal": ("reciprocal({0.7}) + X", [1 / 0.7 + v for v in X]),
    "radians": ("radians(X)", [math.radians(v) for v in X]), "degrees": ("degrees(X)", [math.degrees(v) for v in X]),
    "logaddexp": ("(logaddexp({0.1}, X), logaddexp(X, {0.7}))",
                  [math.log(math.exp(0.1) + math.exp(v)) for v in X] + [math.log(math.exp(0.7) + math.exp(v)) for v in X]),
    "sinc": ("sinc(X)", [math.sin(math.pi * v) / (math.pi * v) for v in X]),
    "logsumexp": ("logsumexp(X)", math.log(math.fsum(map(math.exp, X)))),
    "softmax": ("softmax(X)", softmax(X)), "log_softmax": ("log_softmax(X)", list(map(math.log, softmax(X)))),
    "is_close": ("f64(is_close(X, {0.7}, rtol={0.1}, atol={0.01}))", [0, 1, 0]),
    "all_close": ("f64(all_close(X, X + {0.0001}, rtol={0.0001}, atol={0.0001}))", 1),
    "array_equal": ("f64(array_equal(X[1], {0.7}))", 1),
    "nan_to_num": ("nan_to_num([nan, X[0], inf, -inf], nan={0.3}, posinf={0.7}, neginf={-0.9})", [0.3, 0.1, 0.7, -0.9]),
    "factorial": ("factorial(5) * {0.1}", 12), "comb": ("comb(5, 2) * {0.1}", 1),
    "xlogy": ("(xlogy(X, {0.7}), xlogy({0.7}, X))", [v * math.log(0.7) for v in X] + [0.7 * math.log(v) for v in X]),
    "xlog1py": ("(xlog1py(X, {0.7}), xlog1py({0.7}, X))",
                [v * math.log1p(0.7) for v in X] + [0.7 * math.log1p(v) for v in X]),
    "logit": ("logit(X)", [math.log(v / (1 - v)) for v in X]),
    "heaviside": ("heaviside(X - X[0], {0.7})", [0.7, 1, 1]),
    # ---- groups
    "scatter_max": ("scatter_max(X, [0, 1], {0.2})", [0.2, 0.7, 0.3]),
    "scatter_min": ("scatter_min(X, [0, 1], {0.2})", [0.1, 0.2, 0.3]),
    "scatter_mul": ("scatter_mul(X, [0, 0], {0.2})", [0.1 * 0.2 * 0.2, 0.7, 0.3]),
    "segment_sum": ("segment_sum([{0.1}, X[1], {0.3}], [0, 0, 1], 2)", [0.1 + 0.7, 0.3]),
    "segment_prod": ("segment_prod([{0.1}, X[1], {0.3}], [0, 0, 1], 2)", [0.1 * 0.7, 0.3]),
    "segment_max": ("segment_max([{0.1}, X[1], {0.3}], [0, 0, 1], 2)", [0.7, 0.3]),
    "segment_min": ("segment_min([{0.1}, X[1], {0.3}], [0, 0, 1], 2)", [0.1, 0.3]),
    "associative_scan": ("associative_scan(fn(a, b) => a * b * {0.9}, X)", [0.1, 0.1 * 0.7 * 0.9, 0.1 * 0.7 * 0.9 * 0.3 * 0.9]),
    "median": ("median(X[:2])", 0.4),
    "quantile": ("(quantile(S, {0.3}), quantile(S, [{0.3}, X[1]]))",
                 [0.1 + 0.6 * 0.2, 0.1 + 0.6 * 0.2, 0.3 + 0.4 * 0.4]),
    "percentile": ("percentile(S, {30.3})", 0.1 + 0.606 * 0.2),
    # ---- stats
    "stats.standardize": ("stats.standardize(X)", [(v - mean(X)) / deviation(X) for v in X]),
    "stats.covariance": ("stats.covariance(M)", [0.18, -0.18, -0.18, 0.18]),
    "stats.correlation": ("stats.correlation(M)", [1, -1, -1, 1]), "stats.mode": ("stats.mode(X)", 0.1),
    "stats.skewness": ("stats.skewness(X)", mean([((v - mean(X)) / deviation(X)) ** 3 for v in X])),
    "stats.kurtosis": ("stats.kurtosis(X)", mean([((v - mean(X)) / deviation(X)) ** 4 for v in X]) - 3),
    "stats.ranks": ("stats.ranks(X) * {0.1}", [0.1, 0.3, 0.2]),
    "stats.rank_correlation": ("stats.rank_correlation(X, [0.1f64, 0.2, 0.3])", 0.5),
    "stats.normal_logpdf": ("(stats.normal_logpdf(X, {0.2}, {0.9}), stats.normal_logpdf(X))",
                            [NORMAL(v, 0.2, 0.9) for v in X] + [NORMAL(v, 0, 1) for v in X]),
    "stats.normal_cdf": ("(stats.normal_cdf(X, {0.2}, {0.9}), stats.normal_cdf(X))",
                         [CDF(v, 0.2, 0.9) for v in X] + [CDF(v, 0, 1) for v in X]),
    # ---- nn
    "nn.relu": ("nn.relu(X)", X), "nn.relu6": ("nn.relu6(10 * X)", [1, 6, 3]),
    "nn.leaky_relu": ("(nn.leaky_relu(-X, slope={0.3}), nn.leaky_relu(-X))", [-v * 0.3 for v in X] + [-v * 0.01 for v in X]),
    "nn.sigmoid": ("nn.sigmoid(X)", list(map(SIGMOID, X))), "nn.silu": ("nn.silu(X)", [v * SIGMOID(v) for v in X]),
    "nn.softplus": ("nn.softplus(X)", list(map(SOFTPLUS, X))),
    "nn.gelu": ("nn.gelu(X)", [v * CDF(v, 0, 1) for v in X]),
    "nn.elu": ("nn.elu(-X, alpha={0.7})", [ELU(-v, 0.7) for v in X]),
    "nn.celu": ("nn.celu(-X, alpha={0.7})", [0.7 * math.expm1(-v / 0.7) for v in X]),
    "nn.selu": ("nn.selu(-X)", [1.0507009873554805 * ELU(-v, 1.6732632423543772) for v in X]),
    "nn.hard_tanh": ("nn.hard_tanh(X)", X), "nn.hard_sigmoid": ("nn.hard_sigmoid(X)", [(v + 3) / 6 for v in X]),
    "nn.hard_silu": ("nn.hard_silu(X)", [v * (v + 3) / 6 for v in X]),
    "nn.log_sigmoid": ("nn.log_sigmoid(X)", [math.log(SIGMOID(v)) for v in X]),
    "nn.soft_sign": ("nn.soft_sign(X)", [v / (1 + v) for v in X]),
    "nn.glu": ("nn.glu(X[:2])", 0.1 * SIGMOID(0.7)), "nn.mish": ("nn.mish(X)", [v * math.tanh(SOFTPLUS(v)) for v in X]),
    "nn.layer_norm": ("(nn.layer_norm(X, {0.9}, {0.2}, eps={0.001}), nn.layer_norm(X))",
                      normed(X, 0.9, 0.2, 0.001) + normed(X)),
    "nn.rms_norm": ("(nn.rms_norm(X, {0.9}, eps={0.001}), nn.rms_norm(X))",
                    normed(X, 0.9, 0, 0.001, False) + normed(X, 1, 0, 1e-5, False)),
    "nn.one_hot": ("nn.one_hot([1, 0], 2, f64) * {0.1}", [0, 0.1, 0.1, 0]),
    "nn.cross_entropy": ("(nn.cross_entropy([X], [1]), nn.cross_entropy([X], [1], label_smoothing={0.1}))",
                         [-math.log(softmax(X)[1]),
                          -0.9 * math.log(softmax(X)[1]) - 0.1 * mean([math.log(v) for v in softmax(X)])]),
    "nn.cross_entropy of probabilities": (
        "nn.cross_entropy([X], [[{0.2}, 0f64, {0.8}]], label_smoothing={0.1})",
        -0.9 * (0.2 * math.log(softmax(X)[0]) + 0.8 * math.log(softmax(X)[2])) - 0.1 * mean([math.log(v) for v in softmax(X)])),
    "nn.binary_cross_entropy": ("nn.binary_cross_entropy(X, {0.7})",
                                mean([0.7 * SOFTPLUS(-v) + 0.3 * SOFTPLUS(v) for v in X])),
    "nn.huber": ("nn.huber(X, {0.2}, delta={0.3})", mean([0.5 * 0.1 ** 2, 0.3 * (0.5 - 0.15), 0.5 * 0.1 ** 2])),
    "nn.group_norm": ("(nn.group_norm([X], 1, {0.9}, {0.2}, eps={0.001}), nn.group_norm([X], 1))",
                      normed(X, 0.9, 0.2, 0.001) + normed(X)),
    "nn.lstm": ("nn.lstm((w = [[X[0], {0.7}, {0.3}, {0.9}]], u = zeros(f64[1, 4]), b = {0.2}), [[0.4f64]]).1.1",
                SIGMOID(0.4 * 0.1 + 0.2) * math.tanh(0.4 * 0.3 + 0.2)),
    "nn.lstm_init": ("tree_map(fn(w) => w * {0.1}, nn.lstm_init(K, 2, 2, dtype=f64))", None),
    "nn.mse": ("nn.mse(X, {0.2})", mean([(v - 0.2) ** 2 for v in X])),
    "nn.linear": ("nn.linear((w = M, b = {0.1}), M[0])", [0.9 * 0.9 + 0.2 * 0.3 + 0.1, 0.9 * 0.2 + 0.2 * 0.8 + 0.1]),
    "nn.dropout": ("nn.dropout(K, X, {0.3})", None),
    "nn.batch_norm_init": ("nn.batch_norm_init(1, dtype=f64).variance * {0.1}", 0.1),
    "nn.batch_norm": ("nn.batch_norm(M, nn.batch_norm_init(2, dtype=f64), {0.9}, {0.2}, momentum={0.7}, eps={0.001})",
                      [0.3 / math.sqrt(0.091) * 0.9 + 0.2, -0.3 / math.sqrt(0.091) * 0.9 + 0.2,
                       -0.3 / math.sqrt(0.091) * 0.9 + 0.2, 0.3 / math.sqrt(0.091) * 0.9 + 0.2,
                       0.3 * 0.6, 0.3 * 0.5, 0.7 + 0.3 * 0.09, 0.7 + 0.3 * 0.09]),
    "nn.attention": ("nn.attention([[[X]]], [[[X], [2 * X]]], [[[X], [-X]]], scale={0.9})", None),
    "nn.avg_pool": ("nn.avg_pool([[[[0.1f64], [0.7]], [[0.3], [0.9]]]], (2, 2))", 0.5),
    "nn.variance_scaling": ("nn.variance_scaling(K, f64[2, 2], {0.7}, \"fan_in\", \"normal\")", None),
    "nn.linear_init": ("tree_map(fn(w) => w * {0.1}, nn.linear_init(K, 2, 2, dtype=f64))", None),
    "nn.mlp_init": ("tree_map(fn(w) => w * {0.1}, nn.mlp_init(K, (2, 2), dtype=f64))", None),
    # ---- numeric
    "numeric.minimize": ("numeric.minimize(fn(x) => sum(square(x - {0.7})), [X[0], {0.4}], tol={0.001}).x", [0.7, 0.7]),
    "numeric.root": ("(numeric.root(fn(x) => x * x - {0.7}, X[0]), numeric.root(fn(x) => x * x - X[1], {0.3}, tol={0.0001}))",
                     [math.sqrt(0.7)] * 2),
    "numeric.find_root": ("numeric.find_root(fn(x) => x * x - {0.3}, {0.1}, {0.9})", math.sqrt(0.3)),
    "numeric.quad": ("numeric.quad(fn(x) => {0.9} * x, {0.1}, X[1], tol={0.001}).0", 0.9 * (0.49 - 0.01) / 2),
    "numeric.odeint": ("numeric.odeint(fn(y, t) => {0.3}, {0.1}, [X[0], {0.7}], rtol={0.001}, atol={0.001})",
                       [0.1, 0.1 + 0.3 * 0.6]),
    "numeric.cubic_spline": ("numeric.cubic_spline([{0.1}, X[2]], [{0.7}, 0.9f64]).c", [0, 0, 1, 0.7]),
    "numeric.spline_at": ("numeric.spline_at(numeric.cubic_spline(S[:2], X[:2]), {0.2})", 0.4),
    # ---- random
    "random.truncated_normal": ("random.truncated_normal(K, f64[3], {-0.3}, {0.7})", None),
    "random.gamma": ("random.gamma(K, f64[2], {0.7})", None), "random.beta": ("random.beta(K, f64[2], {0.7}, {0.9})", None),
    "random.poisson": ("random.poisson(K, f64[2], {0.7}) * f64(1)", None),
    "random.random_gamma_grad": ("random.random_gamma_grad({0.7}, {0.9})", None),
    # ---- optim
    "optim.global_norm": ("optim.global_norm((X, {0.9}))", math.sqrt(0.01 + 0.49 + 0.09 + 0.81)),
    "optim.apply_updates": ("optim.apply_updates((X, f64({0.9})), (X, f64({0.7})))", [0.2, 1.4, 0.6, 1.6]),
    "optim.clip_by_global_norm": ("optim.clip_by_global_norm({0.3}).update(X, ()).0",
                                  [v * 0.3 / math.sqrt(0.59) for v in X]),
    "optim.linear_schedule": ("optim.linear_schedule({0.1}, {0.7}, 10)(3f64)", 0.1 + 0.6 * 0.3),
    "optim.constant_schedule": ("optim.constant_schedule({0.1})(3) * X", [0.1 * v for v in X]),
    "optim.exponential_decay": ("optim.exponential_decay({0.1}, 10, {0.7}, end_value={0.01})(3f64)", 0.1 * 0.7 ** 0.3),
    "optim.cosine_decay_schedule": ("optim.cosine_decay_schedule({0.1}, 10, {0.3})(3f64)", cosine(3, 0.1, 10, 0.3)),
    "optim.warmup_cosine_decay_schedule": (
        "optim.warmup_cosine_decay_schedule({0.1}, {0.7}, 4, 10, {0.3})(f64([3, 7]))",
        [0.1 + 0.6 * 0.75, cosine(3, 0.7, 6, 0.3 / 0.7)]),
    "optim.join_schedules": ("optim.join_schedules((optim.constant_schedule({0.1}), optim.constant_schedule({0.7})), (3,))"
                             "([2, 4])", [0.1, 0.7]),
}


def step(name, arguments, gives, grads="X", params="X", more=""):
    """The first update of an optimiser."""
    CALLS[f"optim.{name}"] = (f"optim.{name}({arguments}).update({grads}, optim.{name}({arguments}).init({params}), {params}).0",
                              [gives(v) for v in X])


step("sgd", "{0.3}, momentum={0.9}, nesterov=true", lambda g: -0.3 * (g + 0.9 * g))
step("adam", "{0.3}, {0.8}, {0.99}, {0.001}", lambda g: adam(g, 0.3, 0.8, 0.99, 0.001))
step("adamw", "{0.3}, {0.8}, {0.99}, {0.001}, weight_decay={0.2}", lambda g: adam(g, 0.3, 0.8, 0.99, 0.001, 0.2, g))
step("rmsprop", "{0.3}, {0.8}, {0.001}, initial_scale={0.2}", lambda g: -0.3 * g / math.sqrt(0.8 * 0.2 + 0.2 * g * g + 0.001))
step("lion", "{0.3}, {0.8}, {0.7}, weight_decay={0.2}", lambda g: -0.3 * (1 + 0.2 * g))
step("scale_by_lion", "{0.8}, {0.7}", lambda g: 1.0)
step("lbfgs", "{0.3}", lambda g: -0.3 * g)
step("scale_by_lbfgs", "", lambda g: g)
step("scale", "{0.3}", lambda g: 0.3 * g)
step("scale_by_learning_rate", "{0.3}", lambda g: -0.3 * g)
step("trace", "{0.9}", lambda g: g)
step("scale_by_adam", "{0.8}, {0.99}, {0.001}", lambda g: -adam(g, 1, 0.8, 0.99, 0.001))
step("scale_by_rms", "{0.8}, {0.001}, initial_scale={0.2}", lambda g: g / math.sqrt(0.8 * 0.2 + 0.2 * g * g + 0.001))
step("add_decayed_weights", "{0.2}", lambda g: 1.2 * g)


def with_numpy():
    a, x = np.array(M), np.array(X)
    both = lambda z: [*z.real.ravel(), *z.imag.ravel()]
    fft = {name: (f"fft.{name}(X{more})", both(np.asarray(getattr(np.fft, name)(x)))) for name, more in
           (("fft", ""), ("ifft", ""), ("rfft", ""), ("fftn", ""), ("ifftn", ""), ("rfftn", ""))}
    fft["rfft"], fft["rfftn"] = (("fft.rfft(X)", both(np.fft.rfft(x))), ("fft.rfftn(X)", both(np.fft.rfftn(x))))
    fft.update({name: (f"fft.{name}(M)", both(np.asarray(getattr(np.fft, name)(a)))) for name in ("fft2", "ifft2", "rfft2")})
    for name in ("irfft", "irfftn"):
        fft[name] = (f"fft.{name}(X)", np.fft.irfft(x))
    fft["irfft2"] = ("fft.irfft2(M)", np.fft.irfft2(a))
    for name in ("fftfreq", "rfftfreq"):
        gives = getattr(np.fft, name)
        fft[name] = (f"fft.{name}(5, {{0.7}})", gives(5, 0.7))
        fft[name + " typed"] = (f"(fft.{name}(5, {{0.7}}, dtype=f64), fft.{name}(49, dtype=f64))", [*gives(5, 0.7), *gives(49)])
    fft["fftshift"] = ("fft.fftshift(X)", np.fft.fftshift(x))
    fft["ifftshift"] = ("fft.ifftshift(X)", np.fft.ifftshift(x))
    fft["convolve"] = ("fft.convolve(X, X)", np.convolve(x, x))
    b = a @ a.T
    w, v = np.linalg.eigh(b)
    linalg = {
        "norm": ("(linalg.norm(X), linalg.norm(X, ord=3))", [np.linalg.norm(x), np.linalg.norm(x, 3)]),
        "trace": ("linalg.trace(M)", 0.9 + 0.8), "vdot": ("linalg.vdot(X, X)", x @ x),
        "inner": ("linalg.inner(X, X)", x @ x), "cross": ("linalg.cross(X, S)", np.cross(x, S)),
        "kron": ("(linalg.kron(M, X), linalg.kron(X, {0.7}))", [*np.kron(a, x).ravel(), *(x * 0.7)]),
        "matrix_power": ("linalg.matrix_power(M, 3)", a @ a @ a),
        "convolve": ("linalg.convolve(X, X)", np.convolve(x, x)),
        "correlate": ("linalg.correlate(X, [{0.9}, X[1]])", np.correlate(x, [0.9, 0.7])),
        "polyval": ("(linalg.polyval(X, {0.7}), linalg.polyval([{0.1}, X[1]], S))",
                    [np.polyval(x, 0.7), *np.polyval([0.1, 0.7], S)]),
        "polyfit": ("linalg.polyfit(S, X, 1, w=[{0.9}, {0.2}, X[0]])", np.polyfit(S, x, 1, w=[0.9, 0.2, 0.1])),
        "cholesky": ("linalg.cholesky(M @ transpose(M))", np.linalg.cholesky(b)),
        "qr": ("abs(linalg.qr(M).1)", np.abs(np.linalg.qr(a)[1])), "eigh": ("linalg.eigh(M @ transpose(M)).0", w),
        "eigvalsh": ("linalg.eigvalsh(M @ transpose(M))", w), "svd": ("linalg.svd(M).1", np.linalg.svd(a)[1]),
        "svdvals": ("linalg.svdvals(M)", np.linalg.svd(a)[1]),
        "solve": ("linalg.solve(M, M[0])", np.linalg.solve(a, a[0])),
        "solve_triangular": ("linalg.solve_triangular(M, M[0])", np.linalg.solve(np.triu(a), a[0])),
        "inv": ("linalg.inv(M)", np.linalg.inv(a)), "det": ("linalg.det(M)", np.linalg.det(a)),
        "slogdet": ("linalg.slogdet(M).1", np.linalg.slogdet(a)[1]),
        "lstsq": ("linalg.lstsq(M, M[0], rcond={0.001}).0", np.linalg.solve(a, a[0])),
        "pinv": ("linalg.pinv(M, rtol={0.001})", np.linalg.inv(a)),
        "matrix_rank": ("f64(linalg.matrix_rank(M, rtol={0.999}))", 1),
        "matrix_norm": ("linalg.matrix_norm(M)", np.linalg.norm(a)), "cond": ("linalg.cond(M)", np.linalg.cond(a)),
        "expm": ("linalg.expm(M)", sum(np.linalg.matrix_power(a, k) / math.factorial(k) for k in range(30))),
    }
    z, y = 0.1 + 0.7j, 0.3 - 0.2j
    Z, Y = "(re = X[0], im = {0.7})", "(re = X[2], im = {-0.2})"
    pair = lambda w: [w.real, w.imag]
    complex_ = {"complex": ("complex.complex(X[0], {0.7})", pair(z)), "parts": (f"complex.parts({Z})", pair(z)),
                "polar": ("complex.polar(X[0], {0.7})", [0.1 * math.cos(0.7), 0.1 * math.sin(0.7)]),
                "real": (f"complex.real({Z}) + X[0]", 0.2), "imag": (f"complex.imag({Z}) + X[0]", 0.8),
                "conj": (f"complex.conj({Z})", pair(z.conjugate())), "abs": (f"complex.abs({Z})", abs(z)),
                "abs2": (f"complex.abs2({Z})", abs(z) ** 2), "angle": (f"complex.angle({Z})", math.atan2(0.7, 0.1)),
                "neg": (f"complex.neg({Z})", pair(-z)), "reciprocal": (f"complex.reciprocal({Z})", pair(1 / z)),
                "exp": (f"complex.exp({Z})", pair(np.exp(z))), "log": (f"complex.log({Z})", pair(np.log(z))),
                "sqrt": (f"complex.sqrt({Z})", pair(np.sqrt(z))), "power": (f"complex.power({Z}, {{0.3}})", pair(z ** 0.3)),
                "add": (f"complex.add({Z}, {Y})", pair(z + y)), "sub": (f"complex.sub({Z}, {Y})", pair(z - y)),
                "mul": (f"complex.mul({Z}, {Y})", pair(z * y)), "div": (f"complex.div({Z}, {Y})", pair(z / y)),
                "is_close": (f"f64(complex.is_close({Z}, {Z}, rtol={{0.1}}, atol={{0.1}}))", 1),
                "all_close": (f"f64(complex.all_close({Z}, {Z}, rtol={{0.1}}, atol={{0.1}}))", 1)}
    for module, rows in (("fft", fft), ("linalg", linalg), ("complex", complex_)):
        CALLS.update({f"{module}.{name}": row for name, row in rows.items()})


# Why a function has no row.
EXEMPT = {
    "takes no number but sizes, positions and keys, or gives none that is a float": """
        argmax argmin reshape transpose swapaxes moveaxis broadcast_to split mask_of flip roll repeat tile expand_dims squeeze
        zeros ones eye key split_key fold_in bits randint permutation matmul take take_along_axis sort argsort range
        assert count_nonzero diagonal tril triu diag rot90 delete unique argpartition top_k nanargmax nanargmin unravel_index
        argwhere lexsort tril_indices triu_indices gcd lcm fft.next_fast_len nn.embedding nn.mlp nn.conv1d nn.conv2d nn.max_pool
        optim.chain random.categorical complex.is_complex complex.sum complex.mean complex.matmul complex.vdot
        sparse.coo sparse.from_dense sparse.to_dense sparse.csr sparse.row_indices sparse.transposed sparse.matvec
        sparse.matmul""",
    "draws what its type says": "normal exponential gumbel choice bernoulli nn.glorot_uniform nn.glorot_normal nn.he_uniform "
                                "nn.he_normal nn.lecun_uniform nn.lecun_normal",
    "is of text, files, pictures, devices or maps": """
        iota strip lstrip rstrip pmap devices process_index sharding visualize psum pmean pmax pmin pargmax pargmin all_gather
        psum_scatter all_to_all pswapaxes ppermute pshuffle pbroadcast axis_index axis_size load read_csv write_csv batches
        progress plot heatmap image lapack size""",
}


def functions():
    """The builtins that have a default, and all functions of the library."""
    table = (ROOT / "lang/context/builtins.def").read_text()
    for name, signature in re.findall(r'^BUILTIN\((\w+), \w+, "([^"]*)"', table, re.M):
        if "=" in signature:
            yield name
    for path in sorted((ROOT / "stdlib").glob("*.uni")):
        module = "" if path.stem in ("array", "groups", "math") else path.stem + "."
        for name in re.findall(r"^def ([a-z]\w*)\(", path.read_text(), re.M):
            yield module + name


def written(call, as_f64):
    """The call with each number in braces as a literal, or as an f64."""
    choices = iter(as_f64)
    text = re.sub(r"\{(-?[0-9.]+)\}", lambda m: f"({m[1]}f64)" if next(choices) else f"({m[1]})", call)
    return re.sub(r"(?<![\w.\"])([XSMNK])(?![\w(])", lambda m: TEXT[m[1]], text)


def variants(call):
    """All ways to write the numbers that leave an f64 in the call, each number as an f64 first; of many, one number
    at a time."""
    count = len(re.findall(r"\{-?[0-9.]+\}", call))
    has_f64 = re.search(r"(?<![\w.\"])[XSMN](?![\w(])|f64", call) is not None
    ways = list(itertools.product((True, False), repeat=count)) if count <= 3 else \
        [(True,) * count, (False,) * count] + [tuple(i == j for j in range(count)) for i in range(count)]
    return [written(call, way) for way in ways if has_f64 or any(way)]


def numbers(text):
    return [float(n) for n in re.findall(r"-?(?:nan|inf\b|\d[\d.]*(?:e[+-]?\d+)?)", text)]


def near(a, b):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 4e-14 * max(abs(a), abs(b), 0.01)


def main():
    program, chosen = sys.argv[1], sys.argv[2:]
    if np is None:
        print("NumPy is not installed: what it computes is left out")
    else:
        with_numpy()
    exempt = {name for names in EXEMPT.values() for name in names.split()}
    all_names = set(functions())
    called = {name.partition(" ")[0] for name in CALLS}
    without = sorted(all_names - called - exempt) if np is not None else []
    wrong = [f"{name} has no row in CALLS, and no reason in EXEMPT" for name in without]
    wrong += [f"{name} is in CALLS and in EXEMPT" for name in sorted(exempt & called)]
    rows = [(name, *row) for name, row in CALLS.items() if not chosen or name.partition(" ")[0] in chosen]
    lines, expected = ["import fft\nimport stats\nimport linalg\nimport nn\nimport optim\nimport random\nimport complex\nimport numeric\n"], []
    for name, call, gives in rows:
        for i, text in enumerate(variants(call)):
            lines.append(f'{{\n  let found = tree_leaves(({text},))\n'
                         f'  print(len(found), tree_map(fn(x) => str(dtype(x * 1.0)), found), "{{tree_map(flatten, found):.17g}}")\n}}\n')
            expected.append((name, text, gives, i))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "literals.uni")
        path.write_text("".join(lines))
        done = subprocess.run([program, "run", path], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(done.stderr[-6000:])
    # An array may be printed over several lines.
    printed = re.split(r"\n(?=\d+ \()", done.stdout.strip())
    assert len(printed) == len(expected), (len(printed), len(expected))
    exact = None
    for (name, text, gives, i), line in zip(expected, printed):
        _, types, values = re.match(r"(\d+) (\(.*?\)) (.*)$", line, re.S).groups()
        found = numbers(values)
        if gives is not None:
            flat = np.ravel(gives).tolist() if np is not None else gives if isinstance(gives, list) else [gives]
            exact = [float(v) for v in flat]
        elif i == 0:
            exact = found
        if set(re.findall(r"\b\w+\b", types)) != {"f64"}:
            wrong.append(f"{name}: {text} is {types}, not f64")
        elif len(found) != len(exact) or not all(map(near, found, exact)):
            wrong.append(f"{name}: {text} gives {found}, and should give {exact}")
    for line in wrong:
        print(line)
    print(f"{len(rows)} functions, {len(expected)} calls, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
