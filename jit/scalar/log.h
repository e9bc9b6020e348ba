#pragma once
// Logarithms: x = 2^e (1 + f) with 1 + f near 1, and a polynomial or series for
// log(1 + f).
#include <limits>

#include "jit/scalar/exp.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

template <FloatValue V>
constexpr ElementOf<V> infinity = std::numeric_limits<ElementOf<V>>::infinity();
template <FloatValue V>
constexpr ElementOf<V> not_a_number =
    std::numeric_limits<ElementOf<V>>::quiet_NaN();

/// x = 2^exponent * mantissa, for positive finite x.
template <FloatValue V>
struct Split {
  V exponent;
  V mantissa;
};

/// The mantissa lies in [m, 2m), where m (below 1) has the bits `lowest`.
template <FloatValue V>
Split<V> split(V x, typename FloatBits<ElementOf<V>>::Unsigned lowest) {
  using T = ElementOf<V>;
  using Bits = FloatBits<T>;
  using Unsigned = typename Bits::Unsigned;
  constexpr Unsigned one = Unsigned{Bits::bias} << Bits::mantissa;
  constexpr Unsigned low_bits = (Unsigned{1} << Bits::mantissa) - 1;
  constexpr T up = Unsigned{1} << (Bits::mantissa + 1);
  constexpr T shift = Unsigned{1} << Bits::mantissa;
  auto subnormal = x < std::numeric_limits<T>::min();
  auto bits = bits_of(select(subnormal, x * up, x));
  if constexpr (std::same_as<T, float>) {
    // The exponent in its place is an integer that converts exactly.
    auto place = (bits - lowest) & ~low_bits;
    V shifted = select(subnormal, T{-(Bits::mantissa + 1)}, V(T{0}));
    V exponent = convert<T>(bit_cast<typename Bits::Signed>(place));
    return {fma(exponent, 1 / shift, shifted), bit_cast<T>(bits - place)};
  }
  bits = bits + (one - lowest);
  // The biased exponent as a float: in the low bits of 2^mantissa.
  V exponent = bit_cast<T>((bits >> Bits::mantissa) |
                           __builtin_bit_cast(Unsigned, shift));
  V bias = select(subnormal, shift + (Bits::bias + Bits::mantissa + 1),
                  V(shift + Bits::bias));
  return {exponent - bias, bit_cast<T>((bits & low_bits) + lowest)};
}

/// `y` where x is positive and finite, else the logarithm of zero, infinity, a
/// negative number or NaN.
template <FloatValue V>
V log_limits(V x, V y) {
  // x infinity + infinity is infinite for an infinite x, and NaN for the
  // others.
  y = select(bits_of(x) >= FloatBits<ElementOf<V>>::infinity,
             fma(x, infinity<V>, infinity<V>), y);
  return select(x == ElementOf<V>{0}, -infinity<V>, y);
}

/// (log(1 + f) - f + f^2 / 2) / f^3, for 1 + f in [3/4, 3/2).
template <SingleValue V>
V log1p_cubic(V f) {
  return horner(f, V(-0x1.71e3eep-5f), V(0x1.ad088ap-4f), -0x1.0da4b6p-3f,
                0x1.28848cp-3f, -0x1.54ed88p-3f, 0x1.99695ep-3f,
                -0x1.000046p-2f, 0x1.5555a4p-2f);
}
/// log(1 + f) - f.
template <SingleValue V>
V log1p_tail(V f) {
  return fma(log1p_cubic(f), f, -0.5f) * (f * f);
}
/// f^2 / 2 is the first term of the series, and `high` is f less that; the rest
/// is log(1 + f) - high.
template <DoubleValue V>
V log1p_rest(V f, V high) {
  // log(1 + f) = 2 s + s R(s^2), and 2 s = f - s f.
  V s = f / (f + 2.0);
  V z = s * s;
  V r = horner(z, V(0x1.3abeaa5d5ab3ap-3), V(0x1.3852c5a594e9ap-3),
               0x1.7474e3a0ca17cp-3, 0x1.c71c015e957a1p-3, 0x1.249249b22b8bcp-2,
               0x1.99999998f0b58p-2, 0x1.5555555555776p-1);
  V half_square = f * f * 0.5;
  return ((f - high) - half_square) + s * fma(r, z, half_square);
}
template <DoubleValue V>
V log1p_tail(V f) {
  return log1p_rest(f, f);
}

/// x = 2^exponent (1 + fraction), the mantissa 1 + fraction in [3/4, 3/2).
template <FloatValue V>
struct LogParts {
  V exponent;
  V fraction;
  /// Whether the parts of 0, negative, infinite x and NaN are such that the
  /// formula for positive finite ones gives the right logarithm.
  bool total = false;
};
template <FloatValue V>
constexpr auto lowest_mantissa =
    (typename FloatBits<ElementOf<V>>::Unsigned{FloatBits<ElementOf<V>>::bias}
     << FloatBits<ElementOf<V>>::mantissa) -
    (typename FloatBits<ElementOf<V>>::Unsigned{1}
     << (FloatBits<ElementOf<V>>::mantissa - 1));
template <FloatValue V>
LogParts<V> log_parts(V x) {
  if constexpr (requires { native_split(x); }) {
    if (auto parts = native_split(x))
      return {(*parts)[0], (*parts)[1] - number<V>(1), true};
  }
  auto [exponent, mantissa] = split(x, lowest_mantissa<V>);
  return {exponent, mantissa - number<V>(1)};
}

/// e ln 2 + log(1 + f).
template <SingleValue V>
V log_sum(V e, V f) {
  V y = fma(fma(log1p_cubic(f), f, -0.5f), f * f, f);
  return fma(e, 0x1.62e43p-1f, y);
}
template <DoubleValue V>
V log_sum(V e, V f) {
  V low = fma(e, 0x1.ef35793c7673p-45, log1p_tail(f));
  return fma(e, 0x1.62e42fefa38p-1, f + low);
}

template <FloatValue V>
V log(V x) {
  auto [e, f, total] = log_parts(x);
  V y = log_sum(e, f);
  return total ? y : log_limits(x, y);
}

/// As log_limits, where `total` parts are not enough: the formula for `y` fails
/// for an infinite exponent.
template <FloatValue V>
V log_result(V x, LogParts<V> parts, V y) {
  if (!parts.total) return log_limits(x, y);
  return select(is_inf(parts.exponent), parts.exponent + parts.fraction, y);
}

/// e + first * high part of log2(e) + rest: e and the product may cancel, so
/// the rounding of both is kept.
template <FloatValue V>
V log2_sum(V e, V first, V rest, ElementOf<V> log2_e) {
  V product = first * log2_e;
  V sum = e + product;
  V low = ((e - sum) + product) + fma(first, log2_e, -product);
  return sum + (low + rest);
}
template <SingleValue V>
V log2(V x) {
  LogParts<V> parts = log_parts(x);
  auto [e, f, total] = parts;
  V half = f * -0.5f;
  V first = fma(half, f, f);
  V rest = fma(log1p_cubic(f) * (f * f), f, fma(half, f, f - first));
  rest = fma(first, 0x1.4ae0cp-26f, rest * 0x1.715476p0f);
  return log_result(x, parts, log2_sum(e, first, rest, 0x1.715476p0f));
}
template <DoubleValue V>
V log2(V x) {
  LogParts<V> parts = log_parts(x);
  auto [e, f, total] = parts;
  V first = f - f * f * 0.5;
  V rest = log1p_rest(f, first) * 0x1.71547652b82fep0;
  rest = fma(first, 0x1.777d0ffda0d24p-56, rest);
  return log_result(x, parts, log2_sum(e, first, rest, 0x1.71547652b82fep0));
}

template <SingleValue V>
V log10(V x) {
  auto [e, f, total] = log_parts(x);
  V low = fma(log1p_tail(f), 0x1.bcb7b2p-2f, e * 0x1.3509f8p-18f);
  low = fma(f, -0x1.5b235ep-27f, low);
  V y = fma(e, 0x1.344p-2f, fma(f, 0x1.bcb7b2p-2f, low));
  return total ? y : log_limits(x, y);
}
template <DoubleValue V>
V log10(V x) {
  LogParts<V> parts = log_parts(x);
  auto [e, f, total] = parts;
  V first = f - f * f * 0.5;
  V rest = log1p_rest(f, first);
  V whole = e * 0x1.34413509f8p-2;  // exact
  V high = fma(first, 0x1.bcb7b1526e50ep-2, whole);
  V low = fma(first, 0x1.bcb7b1526e50ep-2, whole - high);
  low = fma(first, 0x1.95355baaafad3p-57, low);
  low = fma(e, -0x1.80433b83b532ap-44, low);
  low = fma(rest, 0x1.bcb7b1526e50ep-2, low);
  return log_result(x, parts, high + low);
}

/// log(1 + x) for -1 < x < infinity.
template <FloatValue V>
V log1p_inside(V x) {
  using Bits = FloatBits<ElementOf<V>>;
  using Unsigned = typename Bits::Unsigned;
  // 1 + x = 2^e (1 + f) with f = 2^-e x + (2^-e - 1); 2^-e by integer
  // arithmetic, on four times its value so that it is normal.
  constexpr Unsigned low_bits = (Unsigned{1} << Bits::mantissa) - 1;
  constexpr Unsigned one = Unsigned{Bits::bias} << Bits::mantissa;
  constexpr Unsigned four = Unsigned{Bits::bias + 2} << Bits::mantissa;
  constexpr ElementOf<V> shift = Unsigned{1} << Bits::mantissa;
  auto bits = bits_of(x + number<V>(1)) + (one - lowest_mantissa<V>);
  auto e = (bits & ~low_bits) - one;
  V scaled = bit_cast<ElementOf<V>>(bits_of(x) - e);
  V f = scaled +
        fma(bit_cast<ElementOf<V>>(four - e), number<V>(0.25), number<V>(-1));
  V exponent = bit_cast<ElementOf<V>>((bits >> Bits::mantissa) |
                                      __builtin_bit_cast(Unsigned, shift)) -
               (shift + Bits::bias);
  return log_sum(exponent, f);
}

template <FloatValue V>
V log1p(V x) {
  V y = select(x < infinity<V>, log1p_inside(x), x);
  V outside = select(x == number<V>(-1), -infinity<V>, V(not_a_number<V>));
  return copysign(select(x > number<V>(-1), y, outside), x);
}

// ---- inverse hyperbolic functions, in double -------------------------------

template <DoubleValue V>
V asinh(V x) {
  V a = abs(x);
  auto large = a > 0x1p60;
  V square = a * a;
  V root = sqrt(square + 1.0);
  V y = log1p(select(large, a, a + square / (root + 1.0)));
  return copysign(select(large, y + 0x1.62e42fefa39efp-1, y), x);
}

template <DoubleValue V>
V acosh(V x) {
  auto large = x > 0x1p60;
  V above = x - 1.0;
  V y = log1p(select(large, x, above + sqrt(fma(above, above, above + above))));
  y = select(large, y + 0x1.62e42fefa39efp-1, y);
  return select(x < 1.0, not_a_number<V>, y);
}

template <DoubleValue V>
V atanh(V x) {
  V a = abs(x);
  return copysign(log1p((a + a) / (1.0 - a)) * 0.5, x);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
