"""Functions of each element, and the operators that are them."""
from . import _dtypes
from ._array import (Array, alias, become, call, cast, operands, scalar,
                     scalar_like)
from ._dtypes import isdtype, promote

# The standard's name, ours, and the kind of elements that it takes.
_UNARY = """
abs abs numeric|acos acos floating|acosh acosh floating|asin asin floating
asinh asinh floating|atan atan floating|atanh atanh floating
bitwise_invert bit_not bits|cos cos floating|cosh cosh floating
exp exp floating|expm1 expm1 floating|isfinite is_finite numeric
isinf is_inf numeric|isnan is_nan numeric|log log floating
log10 log10 floating|log1p log1p floating|log2 log2 floating
logical_not logical_not bool|negative neg numeric
reciprocal reciprocal floating|sign sign numeric|signbit signbit floating
sin sin floating|sinh sinh floating|sqrt sqrt floating
square square numeric|tan tan floating|tanh tanh floating
"""
_BINARY = """
add add numeric|atan2 atan2 floating|bitwise_and bit_and bits
bitwise_left_shift shift_left integral|bitwise_or bit_or bits
bitwise_right_shift shift_right integral|bitwise_xor bit_xor bits
copysign copysign floating|divide div floating|equal eq any
floor_divide floor_div numeric|greater gt numeric|greater_equal ge numeric
hypot hypot floating|less lt numeric|less_equal le numeric
logaddexp logaddexp floating|logical_and logical_and bool
logical_or logical_or bool|logical_xor logical_xor bool
maximum maximum numeric|minimum minimum numeric|multiply mul numeric
not_equal ne any|pow pow numeric|remainder mod numeric|subtract sub numeric
"""
# These leave whole numbers as they are.
_ROUNDING = ("ceil", "floor", "round", "trunc")
_KINDS = {"floating": "real floating", "bits": ("bool", "integral"),
          "any": ("bool", "numeric")}


def _rows(table):
    return [row.split() for line in table.split("\n") if line
            for row in line.split("|")]


def _check(x, kind, name):
    if not isinstance(x, Array):
        raise TypeError(f"{name} takes arrays, not {type(x).__name__}")
    if not isdtype(x.dtype, _KINDS.get(kind, kind)):
        raise TypeError(f"{name} is not of {x.dtype.name}")


def _named(function, name, ours):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{ours}` of each element."
    return function


# Programs write these for truth values, and refuse the bits' names.
_OF_TRUTH = dict(bit_and="logical_and", bit_or="logical_or",
                 bit_xor="logical_xor", bit_not="logical_not")


# Zeros and infinities are not everywhere as the standard has them.
_OF_FLOATS = dict(sign="sign_of", floor_div="whole_quotient")


def _chosen(ours, x):
    if x.dtype is _dtypes.bool:
        return _OF_TRUTH.get(ours, ours)
    if x.dtype.kind == "real floating":
        return _OF_FLOATS.get(ours, ours)
    return ours


def _unary(name, ours, kind):
    def function(x, /):
        _check(x, kind, name)
        return call(_chosen(ours, x), x)
    return _named(function, name, ours)


def _binary(name, ours, kind):
    def function(x1, x2, /):
        x1, x2 = operands(x1, x2)
        _check(x1, kind, name)
        _check(x2, kind, name)
        return call(_chosen(ours, x1), x1, x2)
    return _named(function, name, ours)


def _rounding(name):
    def function(x, /):
        _check(x, "numeric", name)
        return call(name, x) if x.dtype.kind == "real floating" else alias(x)
    return _named(function, name, name)


FUNCTIONS = {name: _unary(name, ours, kind)
             for name, ours, kind in _rows(_UNARY)}
FUNCTIONS.update({name: _binary(name, ours, kind)
                  for name, ours, kind in _rows(_BINARY)})
FUNCTIONS.update({name: _rounding(name) for name in _ROUNDING})


def positive(x, /):
    _check(x, "numeric", "positive")
    return alias(x)


def real(x, /):
    """x, as there are no complex numbers."""
    return positive(x)


def conj(x, /):
    """x, as there are no complex numbers."""
    return positive(x)


def imag(x, /):
    """Zeros, as there are no complex numbers."""
    _check(x, "numeric", "imag")
    return call("zeros_like", x)


def nextafter(x1, x2, /):
    """The next number after x1 towards x2."""
    x1, x2 = operands(x1, x2)
    _check(x1, "floating", "nextafter")
    dtype = promote(x1.dtype, x2.dtype)
    digits, exponent = _dtypes._FLOATS[dtype]
    return call("nextafter", cast(x1, dtype), cast(x2, dtype), digits,
                1 - exponent)


def clip(x, /, min=None, max=None):
    """x cut to the interval from `min` to `max`."""
    _check(x, "numeric", "clip")
    if min is None and max is None:
        return alias(x)
    low = min if min is None or isinstance(min, Array) else _bound(min, x)
    high = max if max is None or isinstance(max, Array) else _bound(max, x)
    if high is None:
        return call("at_least", x, low)
    if low is None:
        return call("at_most", x, high)
    return call("clip_to", x, low, high)


def _bound(number, x):
    """A bound as an array; one beyond the element type is its limit."""
    if isdtype(x.dtype, "integral"):
        limits = _dtypes.iinfo(x.dtype)
        return scalar(sorted((limits.min, number, limits.max))[1], x.dtype)
    return scalar_like(number, x)


def where(condition, x1, x2, /):
    x1, x2 = operands(x1, x2)
    return call("where", condition, x1, x2)


# Python's operators: __add__, __radd__ and __iadd__ are `add`, and so on.
_OPERATORS = dict(
    add="add", sub="subtract", mul="multiply", truediv="divide",
    floordiv="floor_divide", mod="remainder", pow="pow", matmul="matmul",
    lshift="bitwise_left_shift", rshift="bitwise_right_shift",
    xor="bitwise_xor")
_OPERATORS["and"], _OPERATORS["or"] = "bitwise_and", "bitwise_or"
_COMPARISONS = dict(eq="equal", ne="not_equal", lt="less", le="less_equal",
                    gt="greater", ge="greater_equal")
_SIGNS = dict(abs="abs", neg="negative", pos="positive",
              invert="bitwise_invert")


def _matmul(x1, x2, /):
    if not isinstance(x1, Array) or not isinstance(x2, Array):
        raise TypeError("matmul takes arrays")
    _check(x1, "numeric", "matmul")
    _check(x2, "numeric", "matmul")
    promote(x1.dtype, x2.dtype)
    return call("matmul", x1, x2)


def _method(name, function):
    def method(self, other, /):
        if not isinstance(other, (Array, int, float)):
            return NotImplemented
        return function(self, other)
    return _named(method, f"__{name}__", function.__name__)


def _reflected(name, function):
    def method(self, other, /):
        if not isinstance(other, (Array, int, float)):
            return NotImplemented
        return function(other, self)
    return _named(method, f"__r{name}__", function.__name__)


def _in_place(name, function):
    def method(self, other, /):
        if not isinstance(other, (Array, int, float)):
            return NotImplemented
        new = function(self, other)
        if (new.dtype, new.shape) != (self.dtype, self.shape):
            raise TypeError(f"{self!r} cannot become an array of "
                            f"{new.dtype.name} and shape {new.shape}")
        become(self, new)
        return self
    return _named(method, f"__i{name}__", function.__name__)


def _sign(name, function):
    def method(self, /):
        return function(self)
    return _named(method, f"__{name}__", function.__name__)


matmul = FUNCTIONS["matmul"] = _named(_matmul, "matmul", "matmul")
for _own in (positive, real, conj, imag, nextafter, clip, where):
    FUNCTIONS[_own.__name__] = _own
for _name, _function in _OPERATORS.items():
    for _make, _prefix in ((_method, ""), (_reflected, "r"), (_in_place, "i")):
        setattr(Array, f"__{_prefix}{_name}__",
                _make(_name, FUNCTIONS[_function]))
for _name, _function in _COMPARISONS.items():
    setattr(Array, f"__{_name}__", _method(_name, FUNCTIONS[_function]))
for _name, _function in _SIGNS.items():
    setattr(Array, f"__{_name}__", _sign(_name, FUNCTIONS[_function]))
