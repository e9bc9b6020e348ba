"""Element types, their limits, and how they are promoted."""
from dataclasses import dataclass

_Truth = type(True)  # `bool` is an element type here


class DType:
    """An element type."""

    def __init__(self, name, element, kind, bits):
        self.name = name
        self.element = element  # what it is called in programs
        self.kind = kind  # as `isdtype` has it
        self.bits = bits

    def __repr__(self):
        return f"unisono.{self.name}"

    def __reduce__(self):  # copied or pickled, it is the one of its name
        return self.name


bool = DType("bool", "bool", "bool", 8)
int8 = DType("int8", "i8", "signed integer", 8)
int16 = DType("int16", "i16", "signed integer", 16)
int32 = DType("int32", "i32", "signed integer", 32)
int64 = DType("int64", "i64", "signed integer", 64)
uint8 = DType("uint8", "u8", "unsigned integer", 8)
uint16 = DType("uint16", "u16", "unsigned integer", 16)
uint32 = DType("uint32", "u32", "unsigned integer", 32)
uint64 = DType("uint64", "u64", "unsigned integer", 64)
float32 = DType("float32", "f32", "real floating", 32)
float64 = DType("float64", "f64", "real floating", 64)
# Not of the standard.
float16 = DType("float16", "f16", "real floating", 16)
bfloat16 = DType("bfloat16", "bf16", "real floating", 16)

STANDARD = (bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
            float32, float64)
BY_ELEMENT = {dtype.element: dtype
              for dtype in STANDARD + (float16, bfloat16)}

_INTEGRAL = ("signed integer", "unsigned integer")
_NUMERIC = _INTEGRAL + ("real floating",)
KINDS = {"bool": ("bool",), "signed integer": ("signed integer",),
         "unsigned integer": ("unsigned integer",), "integral": _INTEGRAL,
         "real floating": ("real floating",), "complex floating": (),
         "real numeric": _NUMERIC, "numeric": _NUMERIC}


def isdtype(dtype, kind):
    """Whether an element type is, or is of a kind, or of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"unknown kind of element type: {kind!r}")
        return dtype.kind in KINDS[kind]
    return dtype is kind


def _signed(bits):
    return {8: int8, 16: int16, 32: int32, 64: int64}[bits]


def promote(a, b):
    """The element type that two meet in."""
    if a is b:
        return a
    if a.bits == b.bits == 16 and a.kind == b.kind == "real floating":
        return float32  # one has more digits, the other a wider range
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    if isdtype(a, "integral") and isdtype(b, "integral"):
        signed, unsigned = (a, b) if a.kind == "signed integer" else (b, a)
        if unsigned.bits < 64:
            return _signed(max(signed.bits, 2 * unsigned.bits))
    raise TypeError(f"{a.name} and {b.name} have no common element type")


def scalar_fits(scalar, dtype):
    """Whether a number of Python may meet an element type."""
    if isinstance(scalar, _Truth):
        return dtype is bool
    if isinstance(scalar, int):
        return dtype is not bool
    return isinstance(scalar, float) and dtype.kind == "real floating"


@dataclass(frozen=True)
class finfo_object:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class iinfo_object:
    bits: int
    max: int
    min: int
    dtype: DType


# Bits after the point, and the largest exponent.
_FLOATS = {float16: (10, 15), bfloat16: (7, 127), float32: (23, 127),
           float64: (52, 1023)}


def _dtype_of(type):
    return type if isinstance(type, DType) else type.dtype


def finfo(type, /):
    """What the numbers of a floating element type are like."""
    dtype = _dtype_of(type)
    if dtype not in _FLOATS:
        raise TypeError(f"{dtype.name} is not floating")
    digits, exponent = _FLOATS[dtype]
    most = (2.0 - 2.0 ** -digits) * 2.0 ** exponent
    return finfo_object(dtype.bits, 2.0 ** -digits, most, -most,
                        2.0 ** (1 - exponent), dtype)


def iinfo(type, /):
    """What the numbers of an integer element type are like."""
    dtype = _dtype_of(type)
    if dtype.kind == "signed integer":
        most = 2 ** (dtype.bits - 1) - 1
        return iinfo_object(dtype.bits, most, -most - 1, dtype)
    if dtype.kind == "unsigned integer":
        return iinfo_object(dtype.bits, 2 ** dtype.bits - 1, 0, dtype)
    raise TypeError(f"{dtype.name} is not integral")


def can_cast(from_, to, /):
    """Whether promotion may make one element type the other."""
    try:
        return promote(_dtype_of(from_), to) is to
    except TypeError:
        return False


def result_type(*arrays_and_dtypes):
    """The element type that arrays, element types and numbers meet in."""
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (int, float))]
    dtypes = [_dtype_of(x) for x in arrays_and_dtypes
              if not isinstance(x, (int, float))]
    if not dtypes:
        raise ValueError("result_type needs an array or an element type")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for number in numbers:
        if not scalar_fits(number, result):
            raise TypeError(f"{number!r} cannot be {result.name}")
    return result
