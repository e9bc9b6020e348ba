"""Element types, and elements as Python's numbers. Packing and unpacking is
struct's work, so that NumPy is not needed."""
import math
import struct
from collections import namedtuple

# `format` is struct's and the buffer protocol's, `typestr` the array
# interface's; those of bf16, which neither has, are of its bits.
Dtype = namedtuple("Dtype", "number name bytes format typestr kind")
DTYPES = tuple(Dtype(number, *row) for number, row in enumerate((
    ("bool", 1, "?", "|b1", bool), ("i8", 1, "b", "|i1", int),
    ("i16", 2, "h", "<i2", int), ("i32", 4, "i", "<i4", int),
    ("i64", 8, "q", "<i8", int), ("u8", 1, "B", "|u1", int),
    ("u16", 2, "H", "<u2", int), ("u32", 4, "I", "<u4", int),
    ("u64", 8, "Q", "<u8", int), ("f16", 2, "e", "<f2", float),
    ("bf16", 2, "H", "<V2", float), ("f32", 4, "f", "<f4", float),
    ("f64", 8, "d", "<f8", float))))  # by UnisonoDtype
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
BY_FORMAT = {dtype.format: dtype for dtype in DTYPES if dtype.name != "bf16"}
BY_FORMAT.update(l=BY_NAME["i64"], L=BY_NAME["u64"])  # of 64-bit machines


def pack(numbers, dtype):
    """The bytes of some numbers. OverflowError for one that does not fit."""
    if dtype.name == "bf16":
        numbers = [_bf16_bits(float(number)) for number in numbers]
    elif dtype.kind is int and not all(isinstance(n, int) for n in numbers):
        raise TypeError(f"{dtype.name} cannot hold floats")
    try:
        return struct.pack(f"<{len(numbers)}{dtype.format}", *numbers)
    except struct.error:
        raise OverflowError(f"{dtype.name} cannot hold these numbers") from None


def unpack(data, dtype):
    """The numbers in some bytes."""
    numbers = struct.unpack(f"<{len(data) // dtype.bytes}{dtype.format}", data)
    if dtype.name == "bf16":
        bits = struct.pack(f"<{len(numbers)}I", *(n << 16 for n in numbers))
        return struct.unpack(f"<{len(numbers)}f", bits)
    return numbers


def _bf16_bits(number):
    if math.isnan(number):
        return 0x7fc0
    try:
        bits, = struct.unpack("<I", struct.pack("<f", number))
    except OverflowError:
        return 0x7f80 if number > 0 else 0xff80
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16  # ties to even


def flatten(nested):
    """(numbers, shape) of a number or of nested lists and tuples of numbers."""
    if not isinstance(nested, (list, tuple)):
        return [nested], ()
    if not nested:
        return [], (0,)
    numbers, shapes = [], set()
    for item in nested:
        inside, shape = flatten(item)
        numbers += inside
        shapes.add(shape)
    if len(shapes) != 1:
        raise ValueError("rows of an array must have the same shape")
    return numbers, (len(nested),) + shapes.pop()


def nest(numbers, shape):
    """The numbers as nested lists; of no axis, the number."""
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return list(numbers)
    step = math.prod(shape[1:])
    return [nest(numbers[i * step:(i + 1) * step], shape[1:])
            for i in range(shape[0])]


def literal_dtype(numbers):
    """The element type of `[...]` in a program."""
    kinds = {type(number) for number in numbers}
    if not kinds <= {bool, int, float}:
        other = (kinds - {bool, int, float}).pop()
        raise TypeError(f"an array holds numbers, not {other.__name__}")
    if kinds == {bool}:
        return BY_NAME["bool"]
    return BY_NAME["f32" if float in kinds or not kinds else "i32"]
