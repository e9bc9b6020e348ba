#pragma once
// Logarithms: x = 2^e (1 + f) with 1 + f near 1, and a polynomial or series for
// log(1 + f).
#include <limits>

#include "jit/scalar_exp.h"

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
  auto bits = bits_of(select(subnormal, x * up, x)) + (one - lowest);
  // The biased exponent as a float: in the low bits of 2^mantissa.
  V exponent = bit_cast<T>((bits >> Bits::mantissa) |
                           __builtin_bit_cast(Unsigned, shift));
  V bias = select(subnormal, shift + (Bits::bias + Bits::mantissa + 1),
                  V(shift + Bits::bias));
  return {exponent - bias, bit_cast<T>((bits & low_bits) + lowest)};
}

/// `y`, the logarithm of a positive finite x, or what else x asks for.
template <FloatValue V>
V log_limits(V x, V y) {
  V outside = select(x == ElementOf<V>{0}, -infinity<V>, V(not_a_number<V>));
  y = select(x < infinity<V>, y, x);
  return select(x > ElementOf<V>{0}, y, outside);
}

/// log(1 + f) - f, for 1 + f a mantissa from `lowest_mantissa` up.
template <SingleValue V>
V log1p_tail(V f) {
  V p = horner(f, V(-0x1.0920fcp-3f), V(0x1.1e8f74p-3f), -0x1.f29a02p-4f,
               0x1.1ecf8cp-3f, -0x1.55a192p-3f, 0x1.99d088p-3f, -0x1.fffedep-3f,
               0x1.555506p-2f, -0.5f);
  return p * (f * f);
}
/// f^2 / 2 is the first term of the series, and `high` is f less that; the rest
/// is log(1 + f) - high.
template <DoubleValue V>
V log1p_rest(V f, V high) {
  // log(1 + f) = 2 s + s R(s^2), and 2 s = f - s f.
  V s = f / (f + 2.0);
  V z = s * s;
  V r = horner(z, V(0x1.2f116f90c25bfp-3), V(0x1.39a09703193fbp-3),
               0x1.746649a22b089p-3, 0x1.c71c51d809515p-3, 0x1.249249422a099p-2,
               0x1.999999997f9fbp-2, 0x1.5555555555593p-1);
  V half_square = f * f * 0.5;
  return ((f - high) - half_square) + s * fma(r, z, half_square);
}
template <DoubleValue V>
V log1p_tail(V f) {
  return log1p_rest(f, f);
}

template <FloatValue V>
constexpr typename FloatBits<ElementOf<V>>::Unsigned lowest_mantissa =
    SingleValue<V> ? 0x3f2aaaab            // 2/3
                   : 0x3fe6a09e667f3bcdu;  // sqrt(1/2)

/// x = 2^exponent (1 + fraction).
template <FloatValue V>
struct LogParts {
  V exponent;
  V fraction;
};
template <FloatValue V>
LogParts<V> log_parts(V x) {
  auto [exponent, mantissa] = split(x, lowest_mantissa<V>);
  return {exponent, mantissa - number<V>(1)};
}

/// e ln 2 + log(1 + f).
template <SingleValue V>
V log_sum(V e, V f) {
  return fma(e, 0x1.62e43p-1f, f + log1p_tail(f));
}
template <DoubleValue V>
V log_sum(V e, V f) {
  V low = fma(e, 0x1.ef35793c7673p-45, log1p_tail(f));
  return fma(e, 0x1.62e42fefa38p-1, f + low);
}

template <FloatValue V>
V log(V x) {
  auto [e, f] = log_parts(x);
  return log_limits(x, log_sum(e, f));
}

template <SingleValue V>
V log2(V x) {
  auto [e, f] = log_parts(x);
  V low = fma(f, 0x1.4ae0cp-26f, log1p_tail(f) * 0x1.715476p0f);
  // e and f may cancel: the rounding of their sum is kept.
  V high = fma(f, 0x1.715476p0f, e);
  low = low + fma(f, 0x1.715476p0f, e - high);
  return log_limits(x, high + low);
}
template <DoubleValue V>
V log2(V x) {
  auto [e, f] = log_parts(x);
  V first = f - f * f * 0.5;
  V rest = log1p_rest(f, first);
  V high = fma(first, 0x1.71547652b82fep0, e);
  V low = fma(first, 0x1.71547652b82fep0, e - high);
  low = fma(first, 0x1.777d0ffda0d24p-56, low);
  low = fma(rest, 0x1.71547652b82fep0, low);
  return log_limits(x, high + low);
}

template <SingleValue V>
V log10(V x) {
  auto [e, f] = log_parts(x);
  V low = fma(log1p_tail(f), 0x1.bcb7b2p-2f, e * 0x1.3509f8p-18f);
  low = fma(f, -0x1.5b235ep-27f, low);
  return log_limits(x, fma(e, 0x1.344p-2f, fma(f, 0x1.bcb7b2p-2f, low)));
}
template <DoubleValue V>
V log10(V x) {
  auto [e, f] = log_parts(x);
  V first = f - f * f * 0.5;
  V rest = log1p_rest(f, first);
  V whole = e * 0x1.34413509f8p-2;  // exact
  V high = fma(first, 0x1.bcb7b1526e50ep-2, whole);
  V low = fma(first, 0x1.bcb7b1526e50ep-2, whole - high);
  low = fma(first, 0x1.95355baaafad3p-57, low);
  low = fma(e, -0x1.80433b83b532ap-44, low);
  low = fma(rest, 0x1.bcb7b1526e50ep-2, low);
  return log_limits(x, high + low);
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
