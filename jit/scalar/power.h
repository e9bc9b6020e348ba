#pragma once
// Powers, roots, and the exact remainder of floats.
#include "jit/scalar/log.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

// ---- powers -----------------------------------------------------------------

/// A number as the unevaluated sum of two floats.
template <FloatValue V>
struct Pair {
  V high;
  V low;
};

/// The base-2 logarithm of a positive finite x to about 2^-66.
template <DoubleValue V>
Pair<V> log2_pair(V x) {
  auto [e, f, total] = log_parts(x);
  // s = f / (2 + f), z = s^2, log(1 + f) = 2 s + s z (2/3 + z q(z)).
  V d = f + 2.0;
  V inverse = 1.0 / d;
  V s = f * inverse;
  V s_low = inverse * fma(-s, f - (d - 2.0), fma(-s, d, f));
  V z = s * s;
  V z_low = fma(s, s, -z) + (s + s) * s_low;
  V q =
      horner(z, V(0x1.01769d753156p-3), V(0x1.dad2b0c0fdb9cp-4),
             0x1.113a04af6b90ap-3, 0x1.3b1299176b0c8p-3, 0x1.745d1bc2c2276p-3,
             0x1.c71c71bc7838cp-3, 0x1.2492492498d3cp-2, 0x1.9999999999968p-2) *
      z;
  V c = q + 0x1.5555555555555p-1;
  V c_low = ((0x1.5555555555555p-1 - c) + q) + 0x1.5555555555555p-55;
  V cube = s * z;
  V cube_low = fma(s, z, -cube) + fma(s_low, z, s * z_low);
  V t = cube * c;
  V t_low = fma(cube, c, -t) + fma(cube, c_low, cube_low * c);
  V sum = (s + s) + t;
  V rest = (((s + s) - sum) + t) + ((s_low + s_low) + t_low);
  V p = sum * 0x1.71547652b82fep0;
  V p_low = fma(sum, 0x1.71547652b82fep0, -p);
  p_low =
      fma(sum, 0x1.777d0ffda0d24p-56, fma(rest, 0x1.71547652b82fep0, p_low));
  V high = e + p;
  return {high, ((e - high) + p) + p_low};
}

/// What pow gives where x is negative, zero, infinite or NaN, or y is;
/// `magnitude` is |x|^y where both are finite and x is not 0.
template <FloatValue V>
V power_limits(V x, V y, V magnitude) {
  constexpr ElementOf<V> zero = 0, one = 1, half = 0.5;
  auto whole = trunc(y) == y;
  auto odd = whole & (trunc(y * half) != y * half);
  V a = abs(x);
  // Infinite y, and x of 0 or infinity: 0 or infinity by two signs.
  auto grows = (a > one) == (y > zero);
  V limit = select(grows, infinity<V>, V(zero));
  auto extreme = is_inf(y) | (a == zero) | (a == infinity<V>);
  V result = select(extreme, limit, magnitude);
  result = select((a == one) & is_inf(y), one, result);
  auto minus = bit_cast<typename FloatBits<ElementOf<V>>::Signed>(x) < 0;
  result = select(minus & odd, -result, result);
  auto undefined = (x < zero) & ~whole & (x > -infinity<V>);
  undefined = undefined | is_nan(x) | is_nan(y);
  result = select(undefined, not_a_number<V>, result);
  return select((x == one) | (y == zero), one, result);
}

template <DoubleValue V>
V pow(V x, V y) {
  auto [g, g_low] = log2_pair(abs(x));
  V h = y * g;
  V h_low = fma(y, g, -h) + y * g_low;
  auto far = abs(h) > 1100.0;
  h = select(far, copysign(V(1100.0), h), h);
  h_low = select(far, 0.0, h_low);
  auto n = nearest_whole(h, V(1.0));
  V magnitude = scale(exp2_fraction(h - n.n, h_low) + 1.0, n);
  return power_limits(x, y, magnitude);
}

/// In double, to about 2^-37 of the exponent.
template <SingleValue V>
V pow(V x, V y) {
  auto [e, f, total] = log_parts(abs(x));
  auto g = convert<double>(f);
  auto s = g / (g + 2.0);
  auto z = s * s;
  // log2(1 + f) = s (2 + z R(z)) / ln 2.
  auto r =
      horner(z, decltype(z)(0x1.29daeddfb3bb9p-2),
             decltype(z)(0x1.46f1a57156949p-2), 0x1.a61ea63afd9eep-2,
             0x1.2776bc424a2e3p-1, 0x1.ec709dcb6803cp-1, 0x1.71547652b7e8ap1);
  auto h = convert<double>(y) * fma(s, r, convert<double>(e));
  h = clamp(h, -160.0, 160.0);
  auto n = nearest_whole(h, decltype(h)(1.0));
  auto u = h - n.n;
  auto p = horner(u, decltype(h)(0x1.41d4f171921bcp-13),
                  decltype(h)(0x1.5f457dd93797ep-10), 0x1.3b2db9cd13eccp-7,
                  0x1.c6aed493f9f02p-5, 0x1.ebfbdadea6b92p-3,
                  0x1.62e430c8039e3p-1, 0x1.0000000260d5ap0);
  V magnitude = convert<float>(p * power_of_two(n));
  return power_limits(x, y, magnitude);
}

// ---- roots ------------------------------------------------------------------

template <FloatValue V>
V rsqrt(V x) {
  return number<V>(1) / sqrt(x);
}

/// 1 / cbrt(m) for m in [1, 2), to 2^-12 and 2^-14.7.
template <FloatValue V>
V inverse_cbrt_estimate(V m) {
  if constexpr (SingleValue<V>) {
    return horner(m, V(-0x1.9914d2p-5f), V(0x1.4561ep-2f), -0x1.9eb2f2p-1f,
                  0x1.8ab912p0f);
  } else {
    return horner(m, V(0x1.d4705c9f5b0c2p-6), V(-0x1.c5190eb3336fbp-3),
                  0x1.6416b35040c47p-1, -0x1.2c421325abacap0,
                  0x1.ab85a1f1a7866p0);
  }
}

template <FloatValue V>
V cbrt(V x) {
  using T = ElementOf<V>;
  constexpr T one = 1, three = 3, third = T(1) / T(3);
  auto [e, mantissa] =
      split(abs(x), typename FloatBits<T>::Unsigned{FloatBits<T>::bias}
                        << FloatBits<T>::mantissa);
  // e = 3 n + left, left in 0, 1, 2: the root is 2^n cbrt(m) for m in [1, 8).
  auto n = nearest_whole(e - one, V(third));
  V left = fma(n.n, -three, e);
  V m = mantissa * select(left == one, T(2), select(left > one, T(4), V(one)));
  // Newton for 1 / cbrt(m), then one step on the root itself.
  V w = inverse_cbrt_estimate(mantissa) *
        select(left == one, T(0x1.965fea53d6e3dp-1),
               select(left > one, T(0x1.428a2f98d728bp-1), V(one)));
  w = fma(w * third, fma(m * w, -(w * w), one), w);
  if constexpr (DoubleValue<V>)
    w = fma(w * third, fma(m * w, -(w * w), one), w);
  V y = m * w * w;
  V square = y * y;
  V residual = fma(-square, y, m) - fma(y, y, -square) * y;
  y = fma(residual * third, w * w, y);
  V root = copysign(y * power_of_two(n), x);
  return select((x == T(0)) | ~is_finite(x), x, root);
}

template <SingleValue V>
V hypot(V x, V y) {
  auto a = convert<double>(x), b = convert<double>(y);
  V root = convert<float>(sqrt(fma(a, a, b * b)));
  return select(is_inf(x) | is_inf(y), infinity<V>, root);
}
template <DoubleValue V>
V hypot(V x, V y) {
  V a = abs(x), b = abs(y);
  V large = select(a > b, a, b), small = select(a > b, b, a);
  auto huge = large > 0x1p500, tiny = large < 0x1p-500;
  V factor = select(huge, 0x1p-600, select(tiny, 0x1p600, V(1.0)));
  V back = select(huge, 0x1p600, select(tiny, 0x1p-600, V(1.0)));
  large = large * factor;
  small = small * factor;
  V root = sqrt(fma(large, large, small * small)) * back;
  root = select(is_nan(x) | is_nan(y), not_a_number<V>, root);
  return select(is_inf(x) | is_inf(y), infinity<V>, root);
}

// ---- remainders -------------------------------------------------------------

/// a modulo b for 0 < b <= a, both finite, where the quotient has more bits
/// than a float: done in steps of as many bits as keep each step exact.
struct LongRemainder {
  static constexpr const char* name = "long_remainder";

  /// b times a power of two, such that `rest` / it has few enough bits.
  template <FloatValue V>
  static V divisor(V rest, V b) {
    using T = ElementOf<V>;
    using Bits = FloatBits<T>;
    using Signed = typename Bits::Signed;
    constexpr Signed most = Bits::mantissa - 2;
    constexpr Signed low_bits = (Signed{1} << Bits::mantissa) - 1;
    constexpr T up = Signed{1} << (Bits::mantissa + 1);
    auto subnormal = b < std::numeric_limits<T>::min();
    auto bits = bit_cast<Signed>(select(subnormal, b * up, b));
    auto exponent = bits >> Bits::mantissa;
    exponent = select(subnormal, exponent - (Bits::mantissa + 1), exponent);
    auto top = bit_cast<Signed>(rest) >> Bits::mantissa;
    auto target = select(top > most, top - most, Signed{1});
    auto moved = bit_cast<T>((bits & low_bits) | (target << Bits::mantissa));
    return select((top >= 2) & (target > exponent), moved, b);
  }

  template <FloatValue V>
  std::tuple<V> operator()(V a, V b) const {
    auto [rest, same] = iterate(
        std::tuple(a, b),
        [](auto& state) { return std::get<0>(state) >= std::get<1>(state); },
        [](auto& state) {
          constexpr ElementOf<V> zero = 0;
          auto [rest, modulus] = state;
          V step = divisor(rest, modulus);
          V next = fma(-trunc(rest / step), step, rest);
          return std::tuple(select(next < zero, next + step, next), modulus);
        });
    return rest;
  }
};

/// C's fmod: exact, with the sign of x; NaN for an infinite x or y = 0.
template <FloatValue V>
V truncated_remainder(V x, V y) {
  using T = ElementOf<V>;
  constexpr T zero = 0;
  constexpr T limit = typename FloatBits<T>::Unsigned{1}
                      << FloatBits<T>::mantissa;
  V a = abs(x), b = abs(y);
  V quotient = a / b;
  // The quotient may have been rounded up to a whole number.
  V r = fma(-trunc(quotient), b, a);
  r = select(r < zero, r + b, r);
  r = select(a < b, a, r);
  auto many = (quotient >= limit) & (b > zero) & is_finite(a);
  std::tie(r) = rare<LongRemainder>(many, std::tuple(r), a, b);
  return copysign(r, x);
}

/// x - floor(x / y) * y as Python computes it: exact but for one rounding, with
/// the sign of y.
template <FloatValue V>
V floor_mod(V x, V y) {
  constexpr ElementOf<V> zero = 0;
  V r = truncated_remainder(x, y);
  V moved = select((r < zero) != (y < zero), r + y, r);
  return select(r == zero, copysign(V(zero), y), moved);
}

/// floor(x / y) as Python computes it, from the exact remainder; x / y where y
/// is 0.
template <FloatValue V>
V floor_div(V x, V y) {
  constexpr ElementOf<V> zero = 0, half = 0.5, one = 1;
  V r = truncated_remainder(x, y);
  V quotient = (x - r) / y;
  auto opposite = (r != zero) & ((r < zero) != (y < zero));
  quotient = select(opposite, quotient - one, quotient);
  V down = floor(quotient);
  down = select(quotient - down > half, down + one, down);
  V ratio = x / y;
  down = select(quotient == zero, copysign(V(zero), ratio), down);
  return select(y == zero, ratio, down);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
