#pragma once
// Exponentials: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial for exp(r),
// and an exact scaling by 2^n that also rounds into the subnormals once.
#include <limits>

#include "jit/scalar/ops.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// first * x^k + ... + last, as k chained fmas.
template <FloatValue V>
V horner(V, V last) {
  return last;
}
template <FloatValue V, class... C>
V horner(V x, V first, V second, C... rest) {
  return horner(x, fma(first, x, second), V(rest)...);
}

/// An integer n as a float, and n + shift, whose low bits are n's: no
/// conversion, and no value for which it would be undefined.
template <FloatValue V>
struct WholeNumber {
  V n;
  V shifted;
};
template <FloatValue V>
constexpr ElementOf<V> whole_shift =
    std::same_as<ElementOf<V>, float> ? ElementOf<V>(0x1.8p23)
                                      : ElementOf<V>(0x1.8p52);
/// The integer nearest to x * y, |x * y| < 2^22 (2^51 for double).
template <FloatValue V>
WholeNumber<V> nearest_whole(V x, V y) {
  const ElementOf<V> shift = whole_shift<V>;
  V shifted = fma(x, y, shift);
  return {shifted - shift, shifted};
}

/// p * 2^n, rounded once, for 0.25 < p < 4 and |n| <= 160 (1100 for double).
template <FloatValue V>
V scale(V p, WholeNumber<V> n) {
  if constexpr (requires { native_scale(p, n.n, n.shifted); }) {
    if (auto scaled = native_scale(p, n.n, n.shifted)) return *scaled;
  }
  using Bits = FloatBits<ElementOf<V>>;
  using Unsigned = typename Bits::Unsigned;
  // 2^n in two factors: p * 2^(n +- k) by its exponent, which stays normal, and
  // 2^(-+k), which rounds.
  constexpr int k = std::same_as<ElementOf<V>, float> ? 32 : 80;
  constexpr ElementOf<V> two_to_k = std::same_as<ElementOf<V>, float>
                                        ? ElementOf<V>(0x1p32)
                                        : ElementOf<V>(0x1p80);
  constexpr Unsigned step = Unsigned{k} << Bits::mantissa;
  auto negative = bit_cast<typename Bits::Signed>(n.n) < 0;
  auto exponent = bits_of(n.shifted) << Bits::mantissa;
  auto moved = bits_of(p) + exponent +
               select(negative, step, decltype(exponent)(0 - step));
  // The exponent's arithmetic destroys a NaN; n - n brings it back.
  return fma(bit_cast<ElementOf<V>>(moved),
             select(negative, 1 / two_to_k, V(two_to_k)), n.n - n.n);
}

/// 2^n for a normal result.
template <FloatValue V>
V power_of_two(WholeNumber<V> n) {
  using Bits = FloatBits<ElementOf<V>>;
  constexpr auto one = typename Bits::Unsigned{Bits::bias} << Bits::mantissa;
  return bit_cast<ElementOf<V>>((bits_of(n.shifted) << Bits::mantissa) + one);
}

/// x where low <= x <= high, else the nearer of them; NaN stays.
template <FloatValue V>
V clamp(V x, ElementOf<V> low, ElementOf<V> high) {
  if constexpr (requires { native_clamp(x, low, high); }) {
    if (auto clamped = native_clamp(x, low, high)) return *clamped;
  }
  x = select(x < low, low, x);
  return select(x > high, high, x);
}

/// x, but no more than `most`; NaN stays.
template <FloatValue V>
V at_most(V x, ElementOf<V> most) {
  if constexpr (requires { native_at_most(x, most); }) {
    if (auto least = native_at_most(x, most)) return *least;
  }
  return select(x > most, most, x);
}
/// x, but no less than `least`, and that where x is NaN.
template <FloatValue V>
V at_least(V x, V least) {
  if constexpr (requires { native_at_least(x, least); }) {
    if (auto most = native_at_least(x, least)) return *most;
  }
  return select(x > least, x, least);
}

template <class V>
concept SingleValue = std::same_as<typename V::Element, float>;
template <class V>
concept DoubleValue = std::same_as<typename V::Element, double>;

/// The place of row n for lookup_row, where n is the integer nearest to
/// x * rows, 0 <= x * rows < 8, and at most 7; a NaN may be in any row. A place
/// is 2^-31 less a step for each row that follows, so that low bits tell n, and
/// shifted by 4 are the distance in bytes from the last row of a GPU's table:
/// nothing else is left of the exponent. Above 2^-31 steps are twice as long,
/// so the last row is 1.5 as long as others. GPUs make a NaN 0.
template <SingleValue V>
V row_place(V x, float rows) {
  constexpr float last = 0x1p-31f, step = 0x1p-55f;
  if constexpr (requires { native_fraction(x, rows, rows); }) {
    if (auto place = native_fraction(x, rows * step, last - 7 * step))
      return *place;
  }
  return fma(x, V(rows * step), V(last - 7 * step));
}

/// A constant of V's element type.
template <FloatValue V>
constexpr ElementOf<V> number(double value) {
  return static_cast<ElementOf<V>>(value);
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2.
template <SingleValue V>
V exp_tail(V r) {
  return horner(r, V(0x1.6ac164p-10f), V(0x1.123da8p-7f), 0x1.555858p-5f,
                0x1.55548cp-3f, 0x1.fffffcp-2f);
}
template <DoubleValue V>
V exp_tail(V r) {
  return horner(r, V(0x1.aee3cc426186cp-26), V(0x1.28a333aef306dp-22),
                0x1.71de3f90e7ed6p-19, 0x1.a019a5cf32014p-16,
                0x1.a01a0191716f4p-13, 0x1.6c16c17f7b8e7p-10,
                0x1.11111111150dep-7, 0x1.5555555552036p-5,
                0x1.5555555555544p-3, 0x1.0000000000005p-1);
}

/// Where exp is 0, where it is infinite, and below what it is no more than half
/// an ulp of 1.
template <class T>
struct ExpRange {
  static constexpr T zero = -746, infinite = 710, nothing = -38;
};
template <>
struct ExpRange<float> {
  static constexpr float zero = -104.5f, infinite = 89, nothing = -19;
};
template <FloatValue V>
using ExpRangeOf = ExpRange<ElementOf<V>>;

/// exp(x) = 2^n (1 + p), for x of moderate size.
template <FloatValue V>
struct ExpParts {
  WholeNumber<V> n;
  V p;
};
/// exp(r) - 1, where `r` is x less n ln 2.
template <FloatValue V>
V exp_fraction(V r) {
  return fma(exp_tail(r), r * r, r);
}
template <SingleValue V>
V reduce_exp(V x, WholeNumber<V> n) {
  V r = fma(n.n, -0x1.62e4p-1f, x);
  return fma(n.n, -0x1.7f7d1cp-20f, r);
}
template <DoubleValue V>
V reduce_exp(V x, WholeNumber<V> n) {
  V r = fma(n.n, -0x1.62e42fefa39efp-1, x);
  return fma(n.n, -0x1.abc9e3b39803fp-56, r);
}
template <FloatValue V>
WholeNumber<V> whole_exponent(V x) {
  return nearest_whole(x, V(number<V>(0x1.71547652b82fep0)));
}
template <FloatValue V>
ExpParts<V> exp_parts(V x) {
  WholeNumber<V> n = whole_exponent(x);
  return {n, exp_fraction(reduce_exp(x, n))};
}

/// exp(r), where `r` is x less n ln 2.
template <FloatValue V>
V exp_of_rest(V r) {
  V one = number<V>(1);
  return fma(fma(exp_tail(r), r, one), r, one);
}

template <FloatValue V>
V exp(V x) {
  using Range = ExpRangeOf<V>;
  x = clamp(x, Range::zero, Range::infinite);
  WholeNumber<V> n = whole_exponent(x);
  return scale(exp_of_rest(reduce_exp(x, n)), n);
}

/// 2^(r + low) - 1 for |r| <= 1/2 and a tiny `low`.
template <DoubleValue V>
V exp2_fraction(V r, V low) {
  V u = r * 0x1.62e42fefa39efp-1;
  V rest = fma(r, 0x1.62e42fefa39efp-1, -u);
  rest = fma(low, 0x1.62e42fefa39efp-1, fma(r, 0x1.abc9e3b39803fp-56, rest));
  V tail = exp_tail(u) * (u * u);
  return u + fma(u + tail, rest, tail + rest);
}

template <SingleValue V>
V exp2(V x) {
  V clamped = clamp(x, -151.0f, 129.0f);
  auto n = nearest_whole(clamped, V(1.0f));
  V r = clamped - n.n;
  V p = horner(r, V(0x1.41a40ap-13f), V(0x1.5f06ap-10f), 0x1.3b2dbp-7f,
               0x1.c6af84p-5f, 0x1.ebfbdcp-3f, 0x1.62e43p-1f, 1.0f);
  return scale(p, n);
}
template <DoubleValue V>
V exp2(V x) {
  V clamped = clamp(x, -1076.0, 1025.0);
  auto n = nearest_whole(clamped, V(1.0));
  V r = clamped - n.n;
  return scale(exp2_fraction(r, r - r) + 1.0, n);
}

/// 2^(n-1), which does not overflow where 2^n does.
template <FloatValue V>
V half_power_of_two(WholeNumber<V> n) {
  return power_of_two(WholeNumber<V>{n.n, n.shifted - number<V>(1)});
}

template <FloatValue V>
V expm1(V x) {
  using Range = ExpRangeOf<V>;
  auto [n, p] = exp_parts(clamp(x, Range::nothing, Range::infinite));
  V half = half_power_of_two(n);
  V sum = fma(half, p, half - number<V>(0.5));
  constexpr ElementOf<V> tiny =
      std::numeric_limits<ElementOf<V>>::epsilon() / 2;
  return select(abs(x) < tiny, x, sum + sum);
}

template <FloatValue V>
V tanh(V x) {
  // -tanh |x| = t / (t + 2) with t = exp(-2 |x|) - 1, between -1 and 0.
  constexpr ElementOf<V> two = 2, one = 1, nothing = ExpRangeOf<V>::nothing;
  V twice = abs(x) * -two;
  auto [n, p] = exp_parts(select(twice < nothing, nothing, twice));
  V power = power_of_two(n);
  V t = fma(power, p, power - one);
  return copysign(t / (t + two), x);
}

/// exp |x| / 2, without overflow before its end.
template <FloatValue V>
V half_exp(V x) {
  V a = abs(x);
  constexpr ElementOf<V> infinite = ExpRangeOf<V>::infinite + 2;
  auto [n, p] = exp_parts(select(a > infinite, infinite, a));
  n = {n.n - number<V>(1), n.shifted - number<V>(1)};
  return scale(p + number<V>(1), n);
}

template <FloatValue V>
V cosh(V x) {
  V half = half_exp(x);
  return half + number<V>(0.25) / half;
}

/// (sinh(x) - x) / x^3 in z = x^2, for |x| <= 1.
template <SingleValue V>
V sinh_tail(V z) {
  return horner(z, V(0x1.75a6f4p-19f), V(0x1.a02156p-13f), 0x1.1110e2p-7f,
                0x1.555556p-3f);
}
template <DoubleValue V>
V sinh_tail(V z) {
  return horner(z, V(0x1.b5bb6621dc245p-41), V(0x1.61171d15f676fp-33),
                0x1.ae646f97a036cp-26, 0x1.71de3a3b6a822p-19,
                0x1.a01a01a036c68p-13, 0x1.111111111102p-7,
                0x1.5555555555556p-3);
}

template <FloatValue V>
V sinh(V x) {
  V z = x * x;
  V small = fma(sinh_tail(z) * z, x, x);
  V half = half_exp(x);
  V large = copysign(half - number<V>(0.25) / half, x);
  return select(abs(x) < number<V>(1), small, large);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
