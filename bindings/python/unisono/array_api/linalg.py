"""The extension `linalg`."""
import builtins
import math

from . import _dtypes
from ._array import Array, call, cast, named_value, scalar
from ._dtypes import result_type
from ._elementwise import matmul
from ._functions import (_axes, _axis, _reduce, _total_dtype, broadcast_shapes,
                         broadcast_to, concat, expand_dims, flip, full,
                         matrix_transpose, moveaxis, reshape, sum, tensordot,
                         vecdot)
from ._results import Eigh, QR, Slogdet, SVD


def _matrices(x, name, square=False):
    """x, whose last two axes are matrices of floats."""
    if not isinstance(x, Array) or x.ndim < 2:
        raise ValueError(f"{name} takes arrays of two axes or more")
    if x.dtype.kind != "real floating":
        raise TypeError(f"{name} is not of {x.dtype.name}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name} takes square matrices, not {x.shape[-2:]}")
    return x


def outer(x1, x2, /):
    result_type(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("outer takes arrays of one axis")
    return call("outer", x1, x2)


def diagonal(x, /, *, offset=0):
    """Elements i, i + offset of the last two axes."""
    return call("diagonals", x, offset)


def trace(x, /, *, offset=0, dtype=None):
    return sum(diagonal(cast(x, _total_dtype(x, dtype)), offset=offset),
               axis=-1)


def cross(x1, x2, /, *, axis=-1):
    rank = builtins.max(x1.ndim, x2.ndim)
    if not -builtins.min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError("the axis of cross counts from the end")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("cross is of vectors of three elements")
    dtype = result_type(x1, x2)
    shape = broadcast_shapes(x1.shape, x2.shape)
    a, b = (moveaxis(broadcast_to(cast(x, dtype), shape), axis, -1)
            for x in (x1, x2))
    return moveaxis(call("cross", a, b), -1, axis % rank)


def matrix_power(x, n, /):
    _matrices(x, "matrix_power", square=True)
    return call("matrix_power", inv(x) if n < 0 else x, builtins.abs(n))


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    if x.dtype.kind != "real floating":
        raise TypeError(f"vector_norm is not of {x.dtype.name}")
    return call("norm", x, ord=float(ord), axis=_axes(axis, x.ndim),
                keepdims=keepdims)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of matrices; `ord` is "fro", "nuc", 1, -1, 2, -2, inf, -inf."""
    _matrices(x, "matrix_norm")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        sums = sum(call("abs", x), axis=-2 if ord in (1, -1) else -1)
    elif ord in ("nuc", 2, -2):
        sums = svdvals(x)
    else:
        raise ValueError(f"matrix_norm knows no ord={ord!r}")
    name = "sum_as" if ord == "nuc" else "max" if ord > 0 else "min"
    norm = _reduce(name, sums, -1, False)
    return expand_dims(expand_dims(norm, -1), -1) if keepdims else norm


def cholesky(x, /, *, upper=False):
    _matrices(x, "cholesky", square=True)
    lower = _each("cholesky", x)
    if call("any", call("is_nan", lower)) and \
            not call("any", call("is_nan", x)):
        raise ValueError("a matrix is not positive definite")
    return lower.mT if upper else lower


def slogdet(x, /):
    """The sign of the determinant, and the logarithm of its absolute value."""
    return Slogdet(*_each("slogdet", _matrices(x, "slogdet", square=True)))


def det(x, /):
    return _each("determinant", _matrices(x, "det", square=True))


def inv(x, /):
    _matrices(x, "inv", square=True)
    unit = call("unit", x.shape[-1], x.shape[-1], 0, x.dtype)
    return solve(x, broadcast_to(unit, x.shape))


def solve(x1, x2, /):
    """x of x1 @ x = x2, where x2 is one vector, or matrices."""
    _matrices(x1, "solve", square=True)
    dtype = result_type(x1, x2)
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    right = expand_dims(x2, -1) if x2.ndim == 1 else x2
    batch = broadcast_shapes(x1.shape[:-2], right.shape[:-2])
    found = _each("solve", broadcast_to(x1, batch + x1.shape[-2:]),
                  broadcast_to(right, batch + right.shape[-2:]))
    if found.size and not call("all", call("is_finite", found)) and \
            call("any", _each("is_singular", x1)):
        raise ValueError("a matrix is singular")
    return found[..., 0] if x2.ndim == 1 else found


def qr(x, /, *, mode="reduced"):
    _matrices(x, "qr")
    if mode not in ("reduced", "complete"):
        raise ValueError("mode is \"reduced\" or \"complete\"")
    q, r = _each("qr", x)
    if mode == "complete":
        return QR(q, r)
    few = builtins.min(x.shape[-2:])
    return QR(q[..., :, :few], r[..., :few, :])


def eigh(x, /):
    return Eigh(*_each("eigh", _matrices(x, "eigh", square=True)))


def eigvalsh(x, /):
    return eigh(x).eigenvalues


def svd(x, /, *, full_matrices=True):
    _matrices(x, "svd")
    rows, columns = x.shape[-2:]
    if rows < columns:
        u, s, vh = svd(x.mT, full_matrices=full_matrices)
        return SVD(vh.mT, s, u.mT)
    u, s, v = _each("svd", x)
    return SVD(u if full_matrices else u[..., :, :columns], s, v.mT)


def svdvals(x, /):
    return svd(x, full_matrices=False).S


def _tolerance(x, s, rtol):
    """What singular values are compared with: those of each matrix."""
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * _dtypes.finfo(x.dtype).eps
    if not isinstance(rtol, Array):
        rtol = scalar(float(rtol), x.dtype)
    most = call("max", s, axis=-1)
    return expand_dims(call("mul", most, cast(rtol, x.dtype)), -1)


def matrix_rank(x, /, *, rtol=None):
    s = svdvals(_matrices(x, "matrix_rank"))
    if s.shape[-1] == 0:
        return full(s.shape[:-1], 0, dtype=_dtypes.int32)
    return call("count_nonzero", call("gt", s, _tolerance(x, s, rtol)),
                axis=-1)


def pinv(x, /, *, rtol=None):
    """The inverse on what x reaches, 0 elsewhere."""
    u, s, vh = svd(_matrices(x, "pinv"), full_matrices=False)
    if s.shape[-1] == 0:
        return x.mT
    return call("pseudo_inverse", u, s, vh, _tolerance(x, s, rtol))


def _each(name, *arrays):
    """A function of matrices, over all axes before the last two."""
    batch = arrays[0].shape[:-2]
    if not batch:
        return call(name, *arrays)
    flat = [reshape(x, (math.prod(batch),) + x.shape[-2:]) for x in arrays]
    if math.prod(batch) == 0:  # of no matrix: the shapes are those of one
        flat = [full((1,) + x.shape[1:], 1, dtype=x.dtype) for x in flat]
    found = call("each_of_" + str(len(arrays)), named_value(name), *flat)
    together = found if isinstance(found, tuple) else (found,)
    if math.prod(batch) == 0:
        together = [x[:0] for x in together]
    shaped = tuple(reshape(x, batch + x.shape[1:]) for x in together)
    return shaped if isinstance(found, tuple) else shaped[0]

