#pragma once
// Arithmetic that follows from the algebra's primitives (see scalar.h), for
// every value type V: integer division and powers, shifts, extrema,
// conversions, exact remainders of floats.
#include <limits>
#include <tuple>
#include <type_traits>

#include "jit/scalar/scalar.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

template <class V>
using ElementOf = typename V::Element;
template <class V>
concept FloatValue = FloatElement<typename V::Element>;
template <class V>
concept IntegerValue = IntegerElement<typename V::Element>;
template <class V>
concept SignedValue = IntegerValue<V> && std::is_signed_v<typename V::Element>;
template <class V>
concept BoolValue = std::same_as<typename V::Element, bool>;

/// How a float of type T is laid out.
template <class T>
struct FloatBits;
template <>
struct FloatBits<float> {
  using Unsigned = uint32_t;
  using Signed = int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr Unsigned sign = 0x80000000u, infinity = 0x7f800000u;
};
template <>
struct FloatBits<double> {
  using Unsigned = uint64_t;
  using Signed = int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr Unsigned sign = 0x8000000000000000u,
                            infinity = 0x7ff0000000000000u;
};

template <class V>
using UnsignedOf =
    typename V::template Rebind<typename FloatBits<ElementOf<V>>::Unsigned>;

template <FloatValue V>
auto bits_of(V x) {
  return bit_cast<typename FloatBits<ElementOf<V>>::Unsigned>(x);
}

// ---- classes and signs ---------------------------------------------------

template <FloatValue V>
auto is_nan(V x) {
  return x != x;
}
template <FloatValue V>
auto is_inf(V x) {
  return abs(x) == std::numeric_limits<ElementOf<V>>::infinity();
}
template <FloatValue V>
auto is_finite(V x) {
  return abs(x) < std::numeric_limits<ElementOf<V>>::infinity();
}

template <IntegerValue V>
V abs(V x) {
  if constexpr (SignedValue<V>)
    return select(x < 0, -x, x);
  else
    return x;
}

/// Zeros keep their sign, NaN stays NaN.
template <class V>
V sign(V x) {
  using T = ElementOf<V>;
  if constexpr (FloatValue<V> || SignedValue<V>)
    return select(x > T{0}, T{1}, select(x < T{0}, T(-1), x));
  else
    return select(x != T{0}, T{1}, x);
}

/// NaN wins, and -0 < +0: of equal operands the signs are combined, so that the
/// order of operands does not matter.
template <class V>
V maximum(V x, V y) {
  if constexpr (FloatValue<V>) {
    V equal = bit_cast<ElementOf<V>>(bits_of(x) & bits_of(y));
    V larger = select(x == y, equal, select(x > y, x, y));
    return select(is_nan(x), x, larger);
  } else {
    return select(x > y, x, y);
  }
}
template <class V>
V minimum(V x, V y) {
  if constexpr (FloatValue<V>) {
    V equal = bit_cast<ElementOf<V>>(bits_of(x) | bits_of(y));
    V smaller = select(x == y, equal, select(x < y, x, y));
    return select(is_nan(x), x, smaller);
  } else {
    return select(x < y, x, y);
  }
}

// ---- integers --------------------------------------------------------------

/// The divisor made harmless: 1 where it is 0 (a checked error), or where the
/// quotient would overflow.
template <IntegerValue V>
V safe_divisor(V x, V y) {
  using T = ElementOf<V>;
  raise(y == 0, Fault::integer_division_by_zero, y);
  auto harmful = y == 0;
  if constexpr (SignedValue<V>)
    harmful = harmful | ((x == std::numeric_limits<T>::min()) & (y == -1));
  return select(harmful, T{1}, y);
}

/// The quotient rounded down; the smallest / -1 wraps to itself.
template <IntegerValue V>
V floor_div(V x, V y) {
  using T = ElementOf<V>;
  V divisor = safe_divisor(x, y);
  V q = quotient(x, divisor);
  if constexpr (SignedValue<V>) {
    V r = x - q * divisor;
    q = select((r != 0) & ((r ^ divisor) < 0), q - 1, q);
  }
  return select(y == 0, T{0}, q);
}

/// x - floor_div(x, y) * y.
template <IntegerValue V>
V floor_mod(V x, V y) {
  using T = ElementOf<V>;
  V divisor = safe_divisor(x, y);
  V r = remainder(x, divisor);
  if constexpr (SignedValue<V>)
    r = select((r != 0) & ((r ^ divisor) < 0), r + divisor, r);
  return select(y == 0, T{0}, r);
}

/// Whether a shift by `count` leaves something: 0 <= count < width.
template <IntegerValue V>
auto shift_fits(V count) {
  using Unsigned = std::make_unsigned_t<ElementOf<V>>;
  return bit_cast<Unsigned>(count) < std::numeric_limits<Unsigned>::digits;
}
/// Bits moved up; 0 from the width on, and for negative counts.
template <IntegerValue V>
V shift_left(V x, V count) {
  using T = ElementOf<V>;
  auto fits = shift_fits(count);
  return select(fits, x << select(fits, count, T{0}), T{0});
}
/// Bits moved down; the sign (or 0) from the width on, and for negative counts.
template <IntegerValue V>
V shift_right(V x, V count) {
  using T = ElementOf<V>;
  constexpr T last = std::numeric_limits<std::make_unsigned_t<T>>::digits - 1;
  auto fits = shift_fits(count);
  V shifted = x >> select(fits, count, last);
  if constexpr (SignedValue<V>)
    return shifted;
  else
    return select(fits, shifted, T{0});
}

/// By repeated squaring; wraps. A negative exponent is a checked error.
template <IntegerValue V>
V pow(V x, V y) {
  using T = ElementOf<V>;
  V exponent = y;
  if constexpr (SignedValue<V>) {
    raise(y < 0, Fault::negative_exponent, y);
    exponent = select(y < 0, T{0}, y);
  }
  auto powers = iterate(
      std::tuple(x, exponent, V(T{1})),
      [](auto& state) { return std::get<1>(state) != 0; },
      [](auto& state) {
        auto [square, rest, product] = state;
        return std::tuple(square * square, rest >> 1,
                          select((rest & 1) != 0, product * square, product));
      });
  V result = std::get<2>(powers);
  if constexpr (SignedValue<V>) result = select(y < 0, T{0}, result);
  return result;
}

// ---- 16-bit floats ----------------------------------------------------------

/// The value of IEEE half bits; exact.
template <class V>  // uint16_t
auto float_of_half(V half) {
  auto bits = convert<uint32_t>(half);
  auto magnitude = (bits & 0x7fff) << 13;
  // Bits shifted into place are the value times 2^-112, subnormals too.
  auto value = bits_of(bit_cast<float>(magnitude) * 0x1p112f);
  value = select(magnitude >= (0x7c00u << 13), magnitude | 0x7f800000, value);
  return bit_cast<float>(value | ((bits & 0x8000) << 16));
}

/// Half bits nearest to x, ties to even.
template <class V>  // float
auto half_of_float(V x) {
  auto bits = bits_of(x);
  auto magnitude = bits & 0x7fffffff;
  // Subnormal halves: adding 0.5 rounds at their last bit, 2^-24.
  auto small = bits_of(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  auto odd = (magnitude >> 13) & 1;
  auto normal = (magnitude + odd + (0xfff - (112u << 23))) >> 13;
  auto result = select(magnitude < (113u << 23), small, normal);
  result = select(magnitude >= (143u << 23), 0x7c00u, result);
  result = select(magnitude > 0x7f800000u, 0x7e00u, result);
  return convert<uint16_t>(result | ((bits >> 16) & 0x8000));
}

template <class V>  // uint16_t
auto float_of_bfloat(V half) {
  return bit_cast<float>(convert<uint32_t>(half) << 16);
}

/// bfloat16 bits nearest to x, ties to even.
template <class V>  // float
auto bfloat_of_float(V x) {
  auto bits = bits_of(x);
  auto rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return convert<uint16_t>(select(is_nan(x), (bits >> 16) | 0x40, rounded));
}

// ---- conversions ------------------------------------------------------------

/// To float, inexact values to the neighbour whose last bit is 1. Rounding that
/// to 16 bits equals rounding x once.
template <class V>  // double
auto round_to_odd(V x) {
  auto nearest = convert<float>(x);
  auto bits = bits_of(nearest);
  auto away = abs(convert<double>(nearest)) > abs(x);
  auto exact = (convert<double>(nearest) == x) | is_nan(x);
  auto odd = select(away, bits - 1, bits) | 1;
  return bit_cast<float>(select(exact, bits, odd));
}

/// To double as above (a sticky last bit).
template <IntegerValue V>
auto sticky_double(V x) {
  using T = ElementOf<V>;
  if constexpr (sizeof(T) < 8) {
    return convert<double>(x);
  } else {
    auto magnitude = bit_cast<uint64_t>(abs(x));
    auto low = magnitude & 0x7ff;
    auto big = magnitude >= (uint64_t{1} << 53);
    auto head =
        (magnitude >> 11) | select(low != 0, uint64_t{1}, decltype(low)(0));
    auto value = convert<double>(select(big, head, magnitude)) *
                 select(big, 2048.0, decltype(convert<double>(x))(1.0));
    if constexpr (SignedValue<V>) value = select(x < 0, -value, value);
    return value;
  }
}

/// Saturates; NaN gives 0.
template <IntegerElement T, FloatValue V>
auto saturate(V x) {
  using F = ElementOf<V>;
  using Limits = std::numeric_limits<T>;
  // 2^digits: one above the largest, and exact in F.
  constexpr F above = static_cast<F>(Limits::max() / 2 + 1) * F{2};  // NOLINT
  constexpr F lowest = static_cast<F>(Limits::min());
  auto fits = (x >= lowest) & (x < above);
  auto inside = convert<T>(select(fits, x, F{0}));
  inside = select(x < lowest, Limits::min(), inside);
  return select(x >= above, Limits::max(), inside);
}

/// The value of `x` as `T`, a computation type. `sixteen_bits` says that the
/// result is going to be rounded to a 16-bit float.
template <class T, class V>
auto cast_to(V x, bool sixteen_bits = false) {
  using From = ElementOf<V>;
  using Result = typename V::template Rebind<T>;
  if constexpr (std::same_as<T, From>) {
    return x;
  } else if constexpr (std::same_as<T, bool>) {
    return x != From{0};
  } else if constexpr (std::same_as<From, bool>) {
    return select(x, T{1}, Result(T{0}));
  } else if constexpr (FloatElement<From> && IntegerElement<T>) {
    return saturate<T>(x);
  } else if constexpr (std::same_as<T, float> && sizeof(From) >= 4) {
    if (!sixteen_bits) return convert<float>(x);
    if constexpr (FloatElement<From>)
      return round_to_odd(x);
    else
      return round_to_odd(sticky_double(x));
  } else {
    return convert<T>(x);
  }
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
