#!/usr/bin/env python3
"""Writes tests/programs/library/linalg_square.npz and linalg_rectangular.npz: what NumPy and SciPy give, in f64, for 200
random and 40 awkward matrices, to which linalg_scipy.uni holds the functions of linalg. It needs SciPy, which the tests do
not: python3 tests/linalg_data.py
"""
import pathlib

import numpy as np
import scipy.linalg

FOLDER = pathlib.Path(__file__).resolve().parent / "programs/library"
SHAPES = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 7), (3, 2), (2, 3), (6, 4), (4, 7)]  # 20 matrices each


def each(f, a, shape):
    """f of each matrix of a batch, which gives an array of this shape."""
    out = np.zeros(a.shape[:-2] + shape)
    for i in np.ndindex(a.shape[:-2]):
        out[i] = f(a[i])
    return out


def everywhere(a):
    """What is compared of every batch of matrices, in the order in which linalg_scipy.uni reads it."""
    m, n = a.shape[-2:]
    b = np.cos(np.arange(1.0, m + 1))
    return {
        "a": a,
        "s": np.linalg.svd(a, compute_uv=False),
        "pinv": np.linalg.pinv(a, rcond=10 * max(m, n, 1) * np.finfo(a.dtype).eps),
        "lstsq": each(lambda x: np.linalg.lstsq(x, b, rcond=None)[0], a, (n,)),
        "rank": np.linalg.matrix_rank(a).astype(np.int32),
        "nuclear": np.linalg.norm(a, "nuc", axis=(-2, -1)) if m and n else np.zeros(a.shape[:-2]),
    }


def of_square(a):
    """The same of square ones alone. An exponential that overflows is nan."""
    n = a.shape[-1]
    transposed = np.swapaxes(a, -1, -2)
    sign, log = np.linalg.slogdet(a)
    small = np.abs(a).max(initial=0) < 1e3
    b = np.cos(np.arange(1.0, n + 1))[:, None]
    # Of a singular matrix there is no solution, of an ill-conditioned one any.
    regular = (np.linalg.cond(a) if n else np.ones(a.shape[:-2])) < 1e8
    return {
        "w": np.linalg.eigvalsh((a + transposed) / 2),
        "det": np.linalg.det(a),
        "sign": sign,
        "log": log,
        "expm": each(scipy.linalg.expm, a, (n, n)) if small else np.full(a.shape, np.nan),
        "cholesky": np.linalg.cholesky(a @ transposed + np.eye(n)) if small else np.full(a.shape, np.nan),
        "solve": each(lambda x: np.linalg.solve(x, b), np.where(regular[..., None, None], a, np.eye(n)), (n, 1)),
        "regular": regular,
    }


def random():
    rng = np.random.default_rng(2026)
    for m, n in SHAPES:
        yield f"random_{m}_{n}", rng.standard_normal((20, m, n))


def awkward():
    """Matrices with a word for what is awkward about them."""
    rng = np.random.default_rng(7)
    eye = np.eye
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    line = rng.standard_normal((5, 1))
    yield "zero_1", np.zeros((1, 1))
    yield "zero_3", np.zeros((3, 3))
    yield "zero_wide", np.zeros((2, 4))
    yield "unit", eye(4)
    yield "minus_unit", -eye(3)
    yield "permutation", eye(5)[[2, 0, 1, 4, 3]]
    yield "exchange", np.array([[0.0, 1.0], [1.0, 0.0]])
    yield "rank_1", line @ line.T
    yield "rank_1_tall", line @ rng.standard_normal((1, 3))
    yield "rank_1_wide", rng.standard_normal((2, 1)) @ line.T
    yield "rank_2", rng.standard_normal((4, 2)) @ rng.standard_normal((2, 4))
    yield "singular_counted", np.arange(9.0).reshape(3, 3)
    yield "singular_exact", np.array([[1.0, 2.0], [2.0, 4.0]])
    yield "zero_row", np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.5]])
    yield "zero_column", np.array([[1.0, 0.0, 3.0], [2.0, 0.0, 1.0], [4.0, 0.0, 6.5]])
    yield "jordan_2", np.array([[2.0, 1.0], [0.0, 2.0]])
    yield "jordan_3", 0.5 * eye(3) + eye(3, k=1)
    yield "jordan_0", eye(4, k=1)
    yield "nilpotent_full", np.array([[1.0, -1.0], [1.0, -1.0]])
    yield "rotation", np.array([[0.0, -3.0], [3.0, 0.0]])
    yield "equal_values", turn @ np.diag([1.0, 1.0, 2.0, 2.0]) @ turn.T
    yield "close_values", turn @ np.diag([1.0, 1.0 + 1e-9, 2.0, 3.0]) @ turn.T
    yield "opposite_values", turn @ np.diag([-1.0, 1.0, -2.0, 2.0]) @ turn.T
    yield "hilbert_5", scipy.linalg.hilbert(5)
    yield "vandermonde", np.vander(np.linspace(0.0, 1.0, 5))
    yield "large", 1e150 * eye(2) + 1e149
    yield "small", 1e-150 * (eye(2) + 0.5)
    yield "graded", np.diag([1e8, 1.0, 1e-8]) + 1e-10
    yield "graded_columns", rng.standard_normal((4, 3)) * [1e6, 1.0, 1e-6]
    yield "upper", np.triu(np.ones((4, 4)))
    yield "lower", np.tril(np.ones((4, 4))) * 2.0
    yield "one_row", np.array([[3.0, -4.0, 0.0]])
    yield "one_column", np.array([[3.0], [-4.0], [12.0]])
    yield "negative", np.array([[-2.5]])
    yield "expm_large", 20.0 * rng.standard_normal((3, 3))
    yield "stochastic", np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]])
    yield "empty", np.zeros((0, 0))
    yield "no_batch", np.zeros((0, 3, 3))
    yield "batch_of_kinds", np.stack([eye(2), np.zeros((2, 2)), np.ones((2, 2)), np.array([[0.0, 1.0], [0.0, 0.0]])])
    yield "batch_2", rng.standard_normal((2, 3, 2, 2))


def main():
    cases = list(random())
    assert sum(len(a) for _, a in cases) == 200
    cases += awkward()
    assert len(cases) == len(SHAPES) + 40
    for kind, is_square in ("square", True), ("rectangular", False):
        out = {}
        for name, a in cases:
            if (a.shape[-1] == a.shape[-2]) == is_square:
                found = everywhere(a) | (of_square(a) if is_square else {})
                out |= {f"{name}_{key}": value for key, value in found.items()}
        path = FOLDER / f"linalg_{kind}.npz"
        np.savez_compressed(path, **out)
        print(path, path.stat().st_size, [name[:-2] for name in out if name.endswith("_a")])


if __name__ == "__main__":
    main()
