"""The array object, and the session in which its functions are computed."""
import functools
import math
import operator
import pathlib
import threading

import unisono
from unisono import _elements, _value
from unisono._value import _from_dlpack, borrowed

from . import _dtypes
from ._dtypes import BY_ELEMENT, DType, isdtype, promote, scalar_fits

API_VERSION = "2024.12"
DEVICE = "cpu"


class Array(unisono.Array):
    """An array of the standard: elements of one type on a shape. What it holds
    never changes but by `x[key] = value`, and by operators like `+=`, which
    others that were made of it do not see."""
    __slots__ = ()
    __hash__ = None

    def __array_namespace__(self, /, *, api_version=None):
        if api_version not in (None, "2021.12", "2022.12", "2023.12",
                               API_VERSION):
            raise ValueError(f"this is version {API_VERSION} of the standard, "
                             f"not {api_version}")
        import unisono.array_api
        return unisono.array_api

    @property
    def dtype(self):
        return BY_ELEMENT[self._array_type()[0].name]

    @property
    def device(self):
        return DEVICE

    def to_device(self, device, /, *, stream=None):
        check_device(device)
        return self

    @property
    def T(self):
        if self.ndim != 2:
            raise ValueError("x.T is of matrices; see x.mT and permute_dims")
        return call("transpose", self)

    @property
    def mT(self):
        if self.ndim < 2:
            raise ValueError("x.mT needs two axes")
        return call("swapaxes", self, -1, -2)

    def __complex__(self):
        return complex(self._scalar())

    def __copy__(self):
        return alias(self)  # `x[key] = value` changes one of the two

    def __deepcopy__(self, memo):
        return alias(self)

    def __reduce__(self):
        return restored, super().__reduce__()[1]

    def __repr__(self):
        shown = f"{self.tolist()}, " if self.size <= 100 else ""
        return f"Array({shown}shape={self.shape}, dtype={self.dtype.name})"

    def __getitem__(self, key, /):
        if _is_truth(key):
            return self[None][:1 if key else 0]
        parts, arguments = _index(self, key)
        if not parts:
            return alias(self)
        return _compiled(f"x[{', '.join(parts)}]", len(arguments))(
            self, *arguments)

    def __setitem__(self, key, value, /):
        if _is_truth(key):
            if key:
                self[...] = value
            return
        if not isinstance(value, Array):
            value = scalar_like(value, self)
        elif value.dtype is not self.dtype:
            if promote(value.dtype, self.dtype) is not self.dtype:
                raise TypeError(f"{self.dtype.name} cannot hold "
                                f"{value.dtype.name}")
            value = cast(value, self.dtype)
        parts, arguments = _index(self, key)
        if isinstance(key, Array) and key.dtype is _dtypes.bool and \
                value.ndim == 0:
            axes = key.shape + (1,) * (self.ndim - key.ndim)
            new = call("where", call("reshape", key, axes), value, self)
        elif not parts:
            new = call("broadcast_to", value, self.shape)
        else:
            new = _compiled("{ var y = x; y[" + ", ".join(parts) +
                            "] = value; y }", len(arguments), "value")(
                                self, value, *arguments)
        become(self, new)


def _is_truth(key):
    """Whether an index is one truth value: of all, or of nothing."""
    return isinstance(key, bool) or (
        isinstance(key, Array) and key.dtype is _dtypes.bool and key.ndim == 0)


def _index(x, key):
    """An index of Python's as one of a program: the texts of its parts, and the
    arguments `k0`, `k1`, ... that stand in them."""
    keys = key if isinstance(key, tuple) else (key,)
    mask = [k for k in keys if isinstance(k, Array) and k.dtype is _dtypes.bool]
    if mask and len(keys) > 1:
        raise IndexError("a mask is the only index")
    used = sum(mask[0].ndim if k in mask else 1 for k in keys
               if k is not None and k is not Ellipsis) if not mask else \
        mask[0].ndim
    if used > x.ndim:
        raise IndexError(f"{used} indices for {x.ndim} axes")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index has one `...`")
    parts, arguments, axis = [], [], 0
    for k in keys:
        if k is None:
            parts.append("none")
        elif k is Ellipsis:
            parts.append("...")
            axis += x.ndim - used
        elif isinstance(k, slice):
            parts.append(_slice(k, x.shape[axis], arguments))
            axis += 1
        elif isinstance(k, Array) and k.dtype is _dtypes.bool:
            arguments.append(k)
            parts.append(f"k{len(arguments) - 1}")
        elif isinstance(k, Array) and k.ndim > 0:
            if not isdtype(k.dtype, "integral"):
                raise IndexError("an index is of integers or a mask")
            arguments.append(k)
            parts.append(f"k{len(arguments) - 1}")
            axis += 1
        else:
            position = operator.index(k)
            if not -x.shape[axis] <= position < x.shape[axis]:
                raise IndexError(f"index {position} of an axis of "
                                 f"{x.shape[axis]}")
            arguments.append(position)
            parts.append(f"k{len(arguments) - 1}")
            axis += 1
    return parts, arguments


def _slice(key, size, arguments):
    start, stop, step = key.indices(size)
    if step < 0 and stop < 0:
        stop = None  # to the first element, which no number says
    if len(range(size)[key]) == 0:
        start, stop, step = 0, 0, 1
    texts = []
    for bound in (start, stop, step):
        texts.append("" if bound is None else f"k{len(arguments)}")
        if bound is not None:
            arguments.append(bound)
    return ":".join(texts)


class _Session(unisono.Session):
    array_class = Array


_lock = threading.RLock()  # a session is used by one thread at a time
_session = _Session()
_session.run(pathlib.Path(__file__).with_name("array_api.uni").read_text(),
             "array_api.uni")


@functools.lru_cache(maxsize=4096)
def _compiled(body, count, *names):
    """The function of x, `names` and k0, k1, ... that is `body`."""
    parameters = ["x", *names] + [f"k{i}" for i in range(count)]
    return _evaluated(f"fn({', '.join(parameters)}) => {body}")


@functools.lru_cache(maxsize=None)
def _caller(name, count, named):
    """A function of the library, or of array_api.uni, for so many arguments and
    some with names."""
    parameters = [f"x{i}" for i in range(count)]
    arguments = parameters + [f"{key}={key}_given" for key in named]
    parameters += [f"{key}_given" for key in named]
    return _evaluated(f"fn({', '.join(parameters)}) => "
                      f"{name}({', '.join(arguments)})")


@functools.lru_cache(maxsize=None)
def named_value(name):
    """What a name means in programs: an element type, a function."""
    with _lock:
        return _session.run(name)


def _evaluated(text):
    with _lock:
        function = _session.run(text)

    def locked(*arguments):
        with _lock:
            return function(*arguments)
    return locked


def call(name, *arguments, **named):
    """What a function of the library, or of array_api.uni, gives."""
    given = [named_value(a.element) if isinstance(a, DType) else a
             for a in arguments]
    return _caller(name, len(given), tuple(named))(*given, *named.values())


def cast(x, dtype):
    return x if x.dtype is dtype else call("as_type", x, dtype)


def adopt(array):
    """An array of the package as one of the standard."""
    new = Array(array._pointer, _session)
    array._pointer = None
    return new


def restored(*elements):
    """An array that was pickled."""
    return adopt(_value.restored(*elements))


def alias(x):
    """Another array with the same elements."""
    return call("identity", x)


def become(x, new):
    """x holds the elements of `new` from now on."""
    x._pointer, new._pointer = new._pointer, x._pointer


def check_device(device):
    if device not in (None, DEVICE):
        raise ValueError(f"there is no device {device!r}, only {DEVICE!r}")


def scalar(number, dtype):
    """An array of no axis."""
    return adopt(unisono.array(number, dtype.element))


def scalar_like(number, x):
    """A number of Python's that x meets, as an array."""
    if not scalar_fits(number, x.dtype):
        raise TypeError(f"{x.dtype.name} cannot meet {number!r}")
    return scalar(number, x.dtype)


def operands(x1, x2):
    """Two arrays, or an array and a number, as arrays."""
    if not isinstance(x1, Array):
        if not isinstance(x2, Array):
            raise TypeError("one of the two must be an array")
        return scalar_like(x1, x2), x2
    if not isinstance(x2, Array):
        return x1, scalar_like(x2, x1)
    promote(x1.dtype, x2.dtype)  # or it is an error
    return x1, x2


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of an array, a number, nested lists of numbers, or of what has
    the buffer protocol or DLPack, whose elements are borrowed, unless `copy`
    is true: then they must not change as long as the array is used."""
    check_device(device)
    if isinstance(obj, Array):
        if dtype not in (None, obj.dtype):
            if copy is False:
                raise ValueError("another element type needs a copy")
            return cast(obj, dtype)
        return alias(obj) if copy else obj
    if isinstance(obj, (bool, int, float, list, tuple)):
        if copy is False:
            raise ValueError("numbers of Python need a copy")
        numbers, shape = _elements.flatten(obj)
        if numbers and isinstance(numbers[0], Array):
            numbers = [number.item() for number in numbers]
            dtype = dtype or _dtypes.result_type(*_elements.flatten(obj)[0])
        element = _elements.BY_NAME[dtype.element] if dtype else None
        return adopt(unisono.array(_elements.nest(numbers, shape),
                                   element and element.name))
    if isinstance(obj, complex):
        raise TypeError("there are no complex numbers")
    if copy:
        obj = memoryview(obj)
        return cast_or_not(adopt(_copied(obj)), dtype)
    found = borrowed(obj)
    if found is None:
        raise TypeError(f"{type(obj).__name__} is no array")
    return cast_or_not(adopt(found), dtype)


def cast_or_not(x, dtype):
    return x if dtype is None else cast(x, dtype)


def _copied(view):
    element = _elements.BY_FORMAT.get(view.format.lstrip("@=<"))
    if element is None:
        raise TypeError(f"no element type is `{view.format}`")
    return _value.copied(view.tobytes(), element, view.shape)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of what speaks DLPack; borrowed, unless `copy` is true."""
    check_device(device)
    if isinstance(x, Array):
        return alias(x)
    wishes = {} if copy is None else {"copy": copy}
    return adopt(_from_dlpack(x, **wishes))


def astype(x, dtype, /, *, copy=True, device=None):
    check_device(device)
    if x.dtype is dtype:
        return alias(x) if copy else x
    return cast(x, dtype)
