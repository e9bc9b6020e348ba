"""New arrays, shapes, reductions, orders."""
import builtins
import math

from . import _dtypes
from ._array import (Array, alias, asarray, call, cast, check_device, scalar,
                     scalar_like)
from ._dtypes import finfo, iinfo, isdtype, result_type

# ---- new arrays -------------------------------------------------------------


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(map(int, shape))


def full(shape, fill_value, *, dtype=None, device=None):
    check_device(device)
    if isinstance(fill_value, Array):
        value = fill_value if dtype is None else cast(fill_value, dtype)
    else:
        value = asarray(fill_value, dtype=dtype)
    return call("filled", value, _shape(shape))


def zeros(shape, *, dtype=None, device=None):
    return full(shape, False if dtype is _dtypes.bool else 0,
                dtype=dtype or _dtypes.float32, device=device)


def ones(shape, *, dtype=None, device=None):
    return full(shape, True if dtype is _dtypes.bool else 1,
                dtype=dtype or _dtypes.float32, device=device)


def empty(shape, *, dtype=None, device=None):
    """Zeros: memory is never read before it is written."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    return zeros(x.shape, dtype=dtype or x.dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    return ones(x.shape, dtype=dtype or x.dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    return zeros_like(x, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("the step of arange is 0")
    whole = all_of(isinstance(number, int) for number in (start, stop, step))
    dtype = dtype or (_dtypes.int32 if whole else _dtypes.float32)
    # In whole numbers exactly, else as NumPy has it.
    count = -((start - stop) // step) if whole else math.ceil(
        (stop - start) / step)
    wide, wrap = _dtypes.float64, lambda number: float(number)
    if dtype.kind == "unsigned integer":
        wide, wrap = _dtypes.uint64, lambda number: int(number) % 2 ** 64
    elif dtype.kind == "signed integer":
        wide, wrap = _dtypes.int64, int
    return call("count_from", max_of(count, 0), scalar(wrap(start), wide),
                scalar(wrap(step), wide), dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    check_device(device)
    parts = num - 1 if endpoint else num
    return call("spaced", num, scalar(float(start), _dtypes.float64),
                scalar(float(stop), _dtypes.float64), parts,
                dtype or _dtypes.float32)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    check_device(device)
    return call("unit", n_rows, n_rows if n_cols is None else n_cols, k,
                dtype or _dtypes.float32)


def tril(x, /, *, k=0):
    return call("tril", x, k)


def triu(x, /, *, k=0):
    return call("triu", x, k)


def meshgrid(*arrays, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing is \"xy\" or \"ij\"")
    sizes = [x.size for x in arrays]
    order = list(range(len(sizes)))
    if indexing == "xy" and len(sizes) > 1:
        order[:2] = 1, 0
    shape = tuple(sizes[i] for i in order)
    grids = []
    for i, x in enumerate(arrays):
        line = [1] * len(sizes)
        line[order.index(i)] = sizes[i]
        grids.append(broadcast_to(reshape(x, tuple(line)), shape))
    return grids


# ---- shapes -----------------------------------------------------------------


def _axis(axis, rank):
    """An axis counted from 0."""
    if not -rank <= axis < rank:
        raise IndexError(f"there is no axis {axis} of {rank}")
    return axis % rank


def _axes(axis, rank):
    """Axes as programs take them: None for all, or a tuple."""
    if axis is None:
        return None
    axes = (axis,) if isinstance(axis, int) else axis
    return tuple(_axis(one, rank) for one in axes)


def broadcast_to(x, /, shape):
    return call("broadcast_to", x, tuple(shape))


def broadcast_shapes(*shapes):
    result = []
    for sizes in zip(*(((1,) * (max_of(map(len, shapes)) - len(shape)) +
                        tuple(shape)) for shape in shapes)):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise ValueError(f"{shapes} cannot be broadcast")
        result.append(others.pop() if others else 1)
    return tuple(result)


def broadcast_arrays(*arrays):
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def concat(arrays, /, *, axis=0):
    dtype = result_type(*arrays)
    if axis is None:
        arrays, axis = [reshape(x, (-1,)) for x in arrays], 0
    axis = _axis(axis, arrays[0].ndim)
    return call("join", tuple(cast(x, dtype) for x in arrays), axis)


def stack(arrays, /, *, axis=0):
    dtype = result_type(*arrays)
    return call("stack", tuple(cast(x, dtype) for x in arrays),
                axis=_axis(axis, arrays[0].ndim + 1))


def unstack(x, /, *, axis=0):
    first = moveaxis(x, axis, 0)
    return tuple(first[i] for i in range(first.shape[0]))


def expand_dims(x, /, axis):
    return reshape(x, _with_ones(x.shape, axis))


def _with_ones(shape, axis):
    axes = _axes(axis, len(shape) + (1 if isinstance(axis, int) else len(axis)))
    sizes = list(shape)
    for one in sorted(axes):
        sizes.insert(one, 1)
    return tuple(sizes)


def squeeze(x, /, axis):
    axes = _axes(axis, x.ndim)
    if any_of(x.shape[one] != 1 for one in axes):
        raise ValueError(f"axes {axis} of {x.shape} have not size 1")
    return reshape(x, tuple(size for i, size in enumerate(x.shape)
                            if i not in axes))


def flip(x, /, *, axis=None):
    axes = _axes(axis, x.ndim)
    return call("flip", x, axis=axes) if x.ndim and axes != () else alias(x)


def permute_dims(x, /, axes):
    return call("transpose", x, _axes(tuple(axes), x.ndim))


def moveaxis(x, source, destination, /):
    source, destination = _axes(source, x.ndim), _axes(destination, x.ndim)
    order = [i for i in range(x.ndim) if i not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return permute_dims(x, order)


def repeat(x, repeats, /, *, axis=None):
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    if isinstance(repeats, int):
        return call("repeat", x, repeats, axis=axis)
    each = broadcast_to(repeats, (x.shape[axis],))
    if x.shape[axis] == 0:  # nothing can be taken from it
        return alias(x)
    return call("repeat_each", x, each, int(sum(each)), axis)


def reshape(x, /, shape, *, copy=None):
    shape = _shape(shape)
    if -1 in shape:
        rest = -math.prod(shape)
        if rest == 0 or x.size % rest:
            raise ValueError(f"{x.size} elements have no shape {shape}")
        shape = tuple(x.size // rest if size == -1 else size for size in shape)
    if math.prod(shape) != x.size:
        raise ValueError(f"{x.size} elements have no shape {shape}")
    return call("reshape", x, shape)


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return call("roll", x, shift if isinstance(shift, int) else
                    builtins.sum(shift)) if x.size else alias(x)
    axes = _axes(axis, x.ndim)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else shift
    for one, by in zip(axes, shifts):
        x = call("roll", x, by, axis=one)
    return x


def tile(x, repetitions, /):
    return call("tile", x, tuple(repetitions))


# ---- positions and orders ---------------------------------------------------


def take(x, indices, /, *, axis=None):
    if axis is None and x.ndim != 1:
        raise ValueError("take needs an axis, unless x has one only")
    return call("take", x, indices, axis=_axis(axis or 0, x.ndim))


def take_along_axis(x, indices, /, *, axis=-1):
    return call("take_along_axis", x, indices, axis=_axis(axis, x.ndim))


def argmax(x, /, *, axis=None, keepdims=False):
    return call("argmax", x, axis=axis, keepdims=keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return call("argmin", x, axis=axis, keepdims=keepdims)


def nonzero(x, /):
    if x.ndim == 0:
        raise ValueError("nonzero of an array of no axis")
    return call("nonzero", x)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    if sorter is not None:
        x1 = take(x1, sorter)
    dtype = result_type(x1, x2)
    return call("searchsorted", cast(x1, dtype), cast(x2, dtype), side=side)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return call("sort", x, axis=_axis(axis, x.ndim), descending=descending)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return call("argsort", x, axis=_axis(axis, x.ndim), descending=descending)


def unique_all(x, /):
    return _results().UniqueAll(*call("unique_all", x))


def unique_counts(x, /):
    values, _, _, counts = call("unique_all", x)
    return _results().UniqueCounts(values, counts)


def unique_inverse(x, /):
    values, _, inverse, _ = call("unique_all", x)
    return _results().UniqueInverse(values, inverse)


def unique_values(x, /):
    return call("unique_all", x)[0]


def _results():
    from . import _results as results
    return results


# ---- reductions -------------------------------------------------------------


def _total_dtype(x, dtype):
    """The element type in which elements are added up."""
    if dtype is not None:
        return dtype
    if isdtype(x.dtype, "integral") and x.dtype.bits < 32:
        return _dtypes.int32 if x.dtype.kind == "signed integer" else \
            _dtypes.uint32
    return x.dtype


def _reduce(name, x, axis, keepdims):
    return call(name, x, axis=_axes(axis, x.ndim), keepdims=keepdims)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    return _reduce("sum_as", cast(x, _total_dtype(x, dtype)), axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    return _reduce("prod_as", cast(x, _total_dtype(x, dtype)), axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    return _reduce("max", x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return _reduce("min", x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    return _reduce("mean", x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    return _reduce("any", cast(x, _dtypes.bool), axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    return _reduce("all", cast(x, _dtypes.bool), axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    return _reduce("count_nonzero", x, axis, keepdims)


def _spread(name, x, axis, correction, keepdims):
    axes = _axes(axis, x.ndim)
    count = math.prod(x.shape[one] for one in
                      (range(x.ndim) if axes is None else axes))
    return call(name, x, axes, keepdims,
                scalar(float(correction), _dtypes.float64), count)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    return _spread("spread", x, axis, correction, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return _spread("deviation", x, axis, correction, keepdims)


def _so_far(name, x, axis, dtype, first):
    if axis is None:
        if x.ndim != 1:
            raise ValueError("an axis is needed, unless x has one only")
        axis = 0
    axis = _axis(axis, x.ndim)
    total = call(name, cast(x, _total_dtype(x, dtype)), axis)
    if first is None:
        return total
    shape = total.shape[:axis] + (1,) + total.shape[axis + 1:]
    return concat((full(shape, first, dtype=total.dtype), total), axis=axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    return _so_far("total_so_far", x, axis, dtype,
                   0 if include_initial else None)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    return _so_far("product_so_far", x, axis, dtype,
                   1 if include_initial else None)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    axis = _axis(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    return call("diff", x, n, axis=axis) if n else alias(x)


# ---- products ---------------------------------------------------------------


def matrix_transpose(x, /):
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    if not isinstance(axes, int):
        axes = tuple(_axes(tuple(one), x.ndim)
                     for one, x in zip(axes, (x1, x2)))
    result_type(x1, x2)
    return call("tensordot", x1, x2, axes=axes)


def vecdot(x1, x2, /, *, axis=-1):
    rank = builtins.min(x1.ndim, x2.ndim)
    if not -rank <= axis < 0:
        raise ValueError("the axis of vecdot counts from the end")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"{x1.shape} and {x2.shape} differ along {axis}")
    result_type(x1, x2)
    return call("vecdot", x1, x2, axis)


all_of, any_of, max_of = builtins.all, builtins.any, builtins.max
FUNCTIONS = {name: thing for name, thing in list(globals().items())
             if getattr(thing, "__module__", None) == __name__ and
             not name.startswith("_")}
