"""The extension `linalg`."""
import builtins
import math

from . import _dtypes
from ._array import Array, call, cast, scalar
from ._dtypes import result_type
from ._elementwise import matmul
from ._functions import (_axes, _total_dtype, broadcast_shapes, broadcast_to,
                         expand_dims, matrix_transpose, moveaxis, sum,
                         tensordot, vecdot)
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
    if ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"matrix_norm knows no ord={ord!r}")
    return call("matrix_norm", x, keepdims=keepdims,
                ord=ord if isinstance(ord, str) else float(ord))


def cholesky(x, /, *, upper=False):
    _matrices(x, "cholesky", square=True)
    factor = call("cholesky", x, upper=upper)
    if call("any", call("is_nan", factor)) and \
            not call("any", call("is_nan", x)):
        raise ValueError("a matrix is not positive definite")
    return factor


def slogdet(x, /):
    """The sign of the determinant, and the logarithm of its absolute value."""
    return Slogdet(*call("slogdet", _matrices(x, "slogdet", square=True)))


def det(x, /):
    return call("det", _matrices(x, "det", square=True))


def _regular(found, x):
    """What a matrix was solved or inverted to, if it is not singular."""
    if found.size and not call("all", call("is_finite", found)) and \
            call("is_singular", x):
        raise ValueError("a matrix is singular")
    return found


def inv(x, /):
    _matrices(x, "inv", square=True)
    return _regular(call("inv", x), x)


def solve(x1, x2, /):
    """x of x1 @ x = x2, where x2 is one vector, or matrices."""
    _matrices(x1, "solve", square=True)
    dtype = result_type(x1, x2)
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    return _regular(call("solve", x1, x2), x1)


def qr(x, /, *, mode="reduced"):
    _matrices(x, "qr")
    if mode not in ("reduced", "complete"):
        raise ValueError("mode is \"reduced\" or \"complete\"")
    return QR(*call("qr", x, mode=mode))


def eigh(x, /):
    return Eigh(*call("eigh", _matrices(x, "eigh", square=True)))


def eigvalsh(x, /):
    return call("eigvalsh", _matrices(x, "eigvalsh", square=True))


def svd(x, /, *, full_matrices=True):
    return SVD(*call("svd", _matrices(x, "svd"), full_matrices=full_matrices))


def svdvals(x, /):
    return call("svdvals", _matrices(x, "svdvals"))


def _relative_tolerance(x, rtol):
    """What singular values are compared with, relative to the largest of each
    matrix."""
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * _dtypes.finfo(x.dtype).eps
    if not isinstance(rtol, Array):
        return scalar(float(rtol), x.dtype)
    return expand_dims(cast(rtol, x.dtype), -1)


def matrix_rank(x, /, *, rtol=None):
    _matrices(x, "matrix_rank")
    return call("matrix_rank", x, _relative_tolerance(x, rtol))


def pinv(x, /, *, rtol=None):
    """The inverse on what x reaches, 0 elsewhere."""
    _matrices(x, "pinv")
    return call("pinv", x, _relative_tolerance(x, rtol))
