"""Values: what programs and Python hand each other."""
import ctypes
import math
import operator
from ctypes import byref, c_int64, c_size_t, c_ssize_t, c_void_p, py_object

from . import _library
from ._elements import (BY_FORMAT, BY_NAME, DTYPES, flatten, literal_dtype,
                        nest, pack, unpack)
from ._library import Release, Tensor, alive, c, for_ever, made

_api = ctypes.pythonapi


class _Buffer(ctypes.Structure):
    """Py_buffer of Python's C interface."""
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t),
                ("itemsize", c_ssize_t), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.POINTER(c_ssize_t)),
                ("strides", ctypes.POINTER(c_ssize_t)),
                ("suboffsets", c_void_p), ("internal", c_void_p)]


_PYBUF_STRIDED = 0x18 | 0x4  # PyBUF_STRIDES | PyBUF_FORMAT; may be read-only


def _foreign(name, result, *arguments):
    function = getattr(_api, name)
    function.restype, function.argtypes = result, arguments
    return function


_get_buffer = _foreign("PyObject_GetBuffer", ctypes.c_int, py_object,
                       ctypes.POINTER(_Buffer), ctypes.c_int)
_release_buffer = _foreign("PyBuffer_Release", None, ctypes.POINTER(_Buffer))
_capsule_new = _foreign("PyCapsule_New", py_object, c_void_p, ctypes.c_char_p,
                        c_void_p)
_capsule_pointer = _foreign("PyCapsule_GetPointer", c_void_p, py_object,
                            ctypes.c_char_p)
_capsule_rename = _foreign("PyCapsule_SetName", ctypes.c_int, py_object,
                           ctypes.c_char_p)
# While a capsule is destroyed it must not be counted: it goes by address.
_dying_is = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api))
_dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api))

_lent = {}  # address of a _Buffer -> it, while Unisono reads what it tells of


@for_ever
@Release
def _give_back(address, lent=_lent, release=_release_buffer, byref=byref):
    buffer = lent.pop(address, None)
    if buffer is not None:
        release(byref(buffer))


class Value:
    """A value of a program; one that Python has no type for: a type, a device,
    an axis. It never changes and may be used by any thread."""
    __slots__ = ("_pointer", "_session")

    def __init__(self, pointer, session=None):
        self._pointer = pointer
        self._session = session

    def __del__(self, release=c.value_release, alive=alive):
        if alive:
            release(getattr(self, "_pointer", None))

    @property
    def type(self):
        """As `typeof` says it: "f32[3]"."""
        text = ctypes.c_char_p()
        c.value_type(self._pointer, text)
        return text.value.decode()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"<unisono {self.type}> cannot be pickled: it belongs "
                        "to this process. Let the other one make a Session "
                        "and run the program that gives it; arrays, numbers "
                        "and texts can be sent")

    def __repr__(self):
        return f"<unisono {self.type}>"


class Function(Value):
    """A function. It is called with values of Python, which become Unisono's
    (see `Session`); keyword arguments go by name. Arrays are not copied, and
    must not be changed by others meanwhile."""
    __slots__ = ()

    @property
    def signature(self):
        """ "def clip(x: f32[n], most: f32) -> f32[n]" """
        text = ctypes.c_char_p()
        c.function_signature(self._pointer, text)
        return text.value.decode()

    def __call__(self, *arguments, **named):
        return self._session._call(self, arguments, named)

    def __repr__(self):
        return f"<unisono {self.signature}>"


class Array(Value):
    """An array. NumPy (`numpy.asarray(a)`), and whatever knows DLPack,
    sees its elements without a copy, read-only. It is pickled as its
    elements."""
    __slots__ = ("_type", "__weakref__")

    def _tensor(self):
        tensor = Tensor()
        c.value_get_tensor(self._pointer, byref(tensor))
        return tensor

    def _array_type(self):
        try:
            return self._type
        except AttributeError:
            tensor = Tensor()
            c.value_get_array_type(self._pointer, byref(tensor))
            self._type = (DTYPES[tensor.dtype],
                          tuple(tensor.shape[:tensor.rank]))
            return self._type

    @property
    def dtype(self):
        """The name of the element type: "f32"."""
        return self._array_type()[0].name

    @property
    def shape(self):
        return self._array_type()[1]

    @property
    def ndim(self):
        return len(self._array_type()[1])

    @property
    def size(self):
        return math.prod(self._array_type()[1])

    def __len__(self):
        if not self.shape:
            raise TypeError("an array of no axis has no length")
        return self.shape[0]

    def _bytes(self):
        """The elements, in the order of a C array."""
        return ctypes.string_at(self._tensor().data or 0,
                                self.size * self._array_type()[0].bytes)

    def tolist(self):
        """The elements as numbers in nested lists; of no axis, the number."""
        dtype, shape = self._array_type()
        return nest(unpack(self._bytes(), dtype), shape)

    def __reduce__(self):
        dtype, shape = self._array_type()
        return restored, (self._bytes(), dtype.name, shape)

    def item(self):
        """The only element, as a number."""
        if self.size != 1:
            raise TypeError(f"an array of {self.size} elements is no number")
        return flatten(self.tolist())[0][0]

    def _scalar(self):
        if self.shape:
            raise TypeError("only an array of no axis is a number")
        return self.item()

    def __bool__(self):
        return bool(self._scalar())

    def __int__(self):
        return int(self._scalar())

    def __float__(self):
        return float(self._scalar())

    def __index__(self):
        return operator.index(self._scalar())

    def __array__(self, dtype=None, copy=None):
        import numpy
        array = numpy.asarray(_Interface(self))
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("another element type needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None,
                   copy=None):
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("elements are handed over in the host's memory")
        if max_version is None or max_version[0] < 1:
            if copy is False:  # the older form cannot say "read-only"
                raise BufferError("this form of DLPack is always a copy")
            tensor = made(c.value_to_dlpack_unversioned, self._pointer)
            return _capsule_new(tensor, _DLTENSOR, _destroy_dltensor)
        tensor = made(c.value_to_dlpack, self._pointer, 1 if copy else 0)
        return _capsule_new(tensor, _VERSIONED, _destroy_versioned)

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU

    def __repr__(self):
        shown = f"{self.tolist()}, " if self.size <= 100 else ""
        return f"unisono.Array({shown}{self.type})"


class _Interface:
    """The elements of a value in the array interface's words."""

    def __init__(self, array):
        dtype, shape = array._array_type()
        self.value = Value(c.value_retain(array._pointer))  # NumPy keeps this
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.typestr,
            "data": (array._tensor().data or 0, True)}  # True: read-only


# A capsule keeps the address of its name: these stay.
_DLTENSOR, _VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {_DLTENSOR: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
_Deleter = ctypes.PYFUNCTYPE(None, c_void_p)


def _destructor(name, place):
    """The destructor of a capsule: what nobody took is deleted, by the function
    whose address stands in its structure, so many words from the start."""
    @for_ever
    @_Deleter
    def destroy(capsule):
        if alive and _dying_is(capsule, name):
            tensor = _dying_pointer(capsule, name)
            words = ctypes.cast(tensor, ctypes.POINTER(c_void_p))
            ctypes.CFUNCTYPE(None, c_void_p)(words[place])(tensor)
    return destroy


# DLManagedTensor is a DLTensor of 48 bytes, the context, the deleter;
# DLManagedTensorVersioned the version, the context, the deleter, ...
_keep_dltensor = _destructor(_DLTENSOR, 7)
_keep_versioned = _destructor(_VERSIONED, 2)
_destroy_dltensor = ctypes.cast(_keep_dltensor, c_void_p)
_destroy_versioned = ctypes.cast(_keep_versioned, c_void_p)


def _sizes(values):
    return (c_int64 * max(len(values), 1))(*values)


def array(numbers, dtype=None):
    """An array of a number, or of nested lists of numbers: as `[...]` in a
    program, or with an element type ("f64")."""
    flat, shape = flatten(numbers)
    element = BY_NAME[dtype] if dtype else literal_dtype(flat)
    return copied(pack(flat, element), element, shape)


def copied(data, dtype, shape):
    """An array with a copy of some bytes."""
    tensor = Tensor(ctypes.cast(data, c_void_p), _sizes(shape), None,
                    len(shape), dtype.number)
    return Array(made(c.value_copy, byref(tensor)))


def restored(data, dtype, shape):
    """An array that was pickled."""
    return copied(data, BY_NAME[dtype], shape)


def borrowed(thing):
    """An array whose elements stay where they are, of what has the buffer
    protocol or DLPack; None if `thing` has neither."""
    try:
        memoryview(thing)
    except (TypeError, ValueError, BufferError):
        if hasattr(thing, "__dlpack__"):
            return _from_dlpack(thing)
        return None
    buffer = _Buffer()
    _get_buffer(thing, byref(buffer), _PYBUF_STRIDED)
    try:
        return _from_buffer(thing, buffer)
    finally:
        if ctypes.addressof(buffer) not in _lent:
            _release_buffer(byref(buffer))


def _from_buffer(thing, buffer):
    code = (buffer.format or b"B").decode()
    dtype = BY_FORMAT.get(code.lstrip("@=<"))
    if dtype is None:
        raise TypeError(f"no element type is `{code}` of the buffer protocol")
    shape = buffer.shape[:buffer.ndim] if buffer.ndim else []
    steps = buffer.strides[:buffer.ndim] if buffer.ndim else []
    if any(step % dtype.bytes for step in steps) or \
            (buffer.buf or 0) % dtype.bytes:
        return copied(memoryview(thing).tobytes(), dtype, shape)
    tensor = Tensor(buffer.buf, _sizes(shape),
                    _sizes([step // dtype.bytes for step in steps]),
                    len(shape), dtype.number)
    address = ctypes.addressof(buffer)
    _lent[address] = buffer
    try:
        return Array(made(c.value_borrow, byref(tensor), _give_back, address))
    except BaseException:
        del _lent[address]
        raise


def _from_dlpack(thing, **wishes):
    try:
        capsule = thing.__dlpack__(max_version=(1, 0), **wishes)
    except TypeError:  # who speaks the older form only
        capsule = thing.__dlpack__()
    for name, function in ((_VERSIONED, c.value_from_dlpack),
                           (_DLTENSOR, c.value_from_dlpack_unversioned)):
        if f'"{name.decode()}"' in repr(capsule):
            value = made(function, _capsule_pointer(capsule, name))
            _capsule_rename(capsule, _USED[name])
            return Array(value)
    raise TypeError("__dlpack__ gave no capsule of DLPack's")


def to_value(thing, session):
    """A value of Python as one of a program's: see `Session`."""
    if isinstance(thing, Value):
        return thing
    if thing is None:
        return Value(made(c.value_none))
    if isinstance(thing, bool):
        return Value(made(c.value_bool, thing))
    if isinstance(thing, int):
        if not -2**63 <= thing < 2**63:
            raise OverflowError("an `int` has 64 bits; for u64 pass "
                                "unisono.array(number, \"u64\")")
        return Value(made(c.value_int, thing))
    if type(thing) is float:
        if math.isfinite(thing):
            return Value(made(c.value_number, thing))
        return session._weak(thing)
    if isinstance(thing, str):
        data = thing.encode()
        return Value(made(c.value_text, data, len(data)))
    if isinstance(thing, tuple):
        items = [to_value(item, session) for item in thing]
        return Value(made(c.value_tuple, pointers(items), len(items)))
    if isinstance(thing, dict):
        if not all(isinstance(name, str) for name in thing):
            raise TypeError("the names of a record's fields are str")
        fields = [to_value(item, session) for item in thing.values()]
        return Value(made(c.value_record, texts(thing), pointers(fields),
                          len(fields)))
    if isinstance(thing, list):
        return array(thing)
    value = borrowed(thing)
    if value is None:
        raise TypeError(f"{type(thing).__name__} is nothing that a program "
                        "knows")
    return value


def pointers(values):
    return (c_void_p * len(values))(*[value._pointer for value in values])


def texts(names):
    return (ctypes.c_char_p * len(names))(*[name.encode() for name in names])


def text_of(pointer):
    text, length = c_void_p(), c_size_t()
    c.value_get_text(pointer, byref(text), byref(length))
    return ctypes.string_at(text.value, length.value).decode()


def _number(pointer, kind):
    if kind == _library.NUMBER:
        tensor = Tensor()
        c.value_get_array_type(pointer, byref(tensor))
        if DTYPES[tensor.dtype].kind is float:
            number = ctypes.c_double()
            c.value_get_number(pointer, number)
            return number.value
    number = c_int64()
    c.value_get_int(pointer, number)
    return number.value


def from_pointer(pointer, session):
    """A new reference to a value as what Python calls it: None, bool, int,
    float, str, tuple and dict; Array, Function and Value for all others."""
    kind = c.value_kind(pointer)
    if kind == _library.ARRAY:
        return session.array_class(pointer, session)
    if kind == _library.FUNCTION:
        return Function(pointer, session)
    owner = Value(pointer, session)
    if kind == _library.NONE:
        return None
    if kind == _library.BOOL:
        truth = ctypes.c_int()
        c.value_get_bool(pointer, truth)
        return bool(truth.value)
    if kind in (_library.INT, _library.NUMBER):
        return _number(pointer, kind)
    if kind == _library.TEXT:
        return text_of(pointer)
    if kind in (_library.TUPLE, _library.RECORD):
        items = [from_pointer(made(c.value_item, pointer, i), session)
                 for i in range(c.value_size(pointer))]
        if kind == _library.TUPLE:
            return tuple(items)
        return {c.value_field_name(pointer, i).decode(): item
                for i, item in enumerate(items)}
    return owner
