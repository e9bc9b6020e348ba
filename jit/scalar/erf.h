#pragma once
// The error function and its complement.
#include "jit/scalar/exp.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

// erfc(a) for a >= 0 is exp(-a^2) u P(u) with u = 1 / (a + K), where P is
// smooth and t = c - k u runs over [-1, 1] up to the a from which erfc is 0.

/// (P - first) / t as a polynomial of t, where `first` (ErfcConstants) is P's
/// constant term.
template <SingleValue V>
V erfc_polynomial(V t) {
  return horner(t, V(-0x1.505b52p-15f), V(0x1.73d338p-16f), 0x1.54052p-11f,
                -0x1.8a6b96p-10f, -0x1.bd760cp-8f, 0x1.d25836p-5f,
                -0x1.ac7d78p-3f, 0x1.0789cap-1f, -0x1.dec12ap-1f);
}
template <DoubleValue V>
V erfc_polynomial(V t) {
  return horner(
      t, V(0x1.b023f18eebbcp-34), V(-0x1.457a33a1786f5p-32),
      -0x1.86c8706e81064p-30, 0x1.2874b29b9d8e9p-28, 0x1.bb8bb0c49fa63p-27,
      -0x1.981aa2f87ac04p-25, -0x1.8c10b49d4f74ep-24, 0x1.1e6af5f6c81cdp-21,
      0x1.52d8287722e45p-22, -0x1.8e4d43fced262p-18, 0x1.eb3f3603fdce8p-18,
      0x1.a9643d8f9658cp-15, -0x1.dc286b3c2978ap-13, 0x1.f34554d8fb51p-14,
      0x1.569f729f248fp-9, -0x1.ec1e0691fd50bp-7, 0x1.a7e44a4468a71p-5,
      -0x1.13f9865b308cap-3, 0x1.249f46c6f6843p-2, -0x1.058d51075b60fp-1,
      0x1.9171e04b5e79bp-1, -0x1.0b1cb02b158ecp0);
}
template <class T>
struct ErfcConstants {
  static constexpr T end = 27.3, k_offset = 4, k = 0x1.1cb1f048p3,
                     c = 0x1.3ade4798p0, first = 0x1.35785b6e20a74p0;
};
template <>
struct ErfcConstants<float> {
  static constexpr float end = 10.06f, k_offset = 3, k = 0x1.e636d6p2f,
                         c = 0x1.899366p0f, first = 0x1.4b2b6ap0f;
};

template <FloatValue V>
V erfc(V x) {
  using C = ErfcConstants<ElementOf<V>>;
  constexpr ElementOf<V> one = 1, two = 2, zero = 0;
  V a = select(abs(x) > C::end, C::end, abs(x));
  V d = a + C::k_offset;
  V u = one / d;
  // The rounding errors of the sum, the quotient and the last step of P count.
  V rest = u * fma(-u, a - (d - C::k_offset), fma(-u, d, one));
  V t = fma(rest, -C::k, fma(u, -C::k, C::c));
  V q = erfc_polynomial(t);
  V p = fma(q, t, C::first);
  V low = fma(q, t, C::first - p);
  p = fma(p, u, fma(p, rest, low * u));
  V square = a * a;
  V rounding = fma(a, a, -square);
  WholeNumber<V> n = whole_exponent(-square);
  V e = exp_fraction(reduce_exp(-square, n) - rounding);
  V y = scale(fma(e, p, p), n);
  return select(x < zero, two - y, y);
}

template <SingleValue V>
V erf(V x) {
  V a = abs(x);
  // |x| <= 1: x + x p(x^2).
  V z = x * x;
  V p =
      horner(z, V(0x1.496a3p-14f), V(-0x1.a3f7p-11f), 0x1.5405b2p-8f,
             -0x1.b7f90ep-6f, 0x1.ce2cf8p-4f, -0x1.81273ep-2f, 0x1.06eba8p-3f);
  V small = fma(p, x, x);
  // Else 1 - q(a - 1)^2, where q is the root of erfc, which halves its error;
  // 1 from 3.92 on.
  V t = at_most(a, 3.94f) - 1.0f;
  V q = horner(t, V(-0x1.94c768p-17f), V(0x1.889ec8p-14f), 0x1.656ed2p-14f,
               -0x1.8f5194p-9f, 0x1.6119cp-7f, -0x1.42e7f4p-8f, -0x1.7a3974p-5f,
               0x1.ed2ff6p-5f, 0x1.6cc1b8p-3f, -0x1.0bf0dap-1f, 0x1.9620d8p-2f);
  // It is positive, so the sign is a bit more.
  constexpr uint32_t sign = 0x80000000;
  V large = bit_cast<float>(bits_of(fma(-q, q, 1.0f)) | (bits_of(x) & sign));
  return select(a > 1.0f, large, small);
}

template <DoubleValue V>
V erf(V x) {
  // |x| < 1: x + x p(x^2).
  V z = x * x;
  V p = horner(z, V(-0x1.b16ae99b004cp-31), V(0x1.d90005adbfff3p-27),
               -0x1.5c4b53584c0ffp-23, 0x1.b98a6dec1db14p-20,
               -0x1.f4cb4abed3d1bp-17, 0x1.f9a2c8fade789p-14,
               -0x1.c02db0b43ab0fp-11, 0x1.565bccfae8945p-8,
               -0x1.b82ce311f8d82p-6, 0x1.ce2f21a040748p-4,
               -0x1.812746b0379a9p-2, 0x1.06eba8214db68p-3);
  V large = copysign(1.0 - erfc(abs(x)), x);
  return select(abs(x) < 1.0, fma(p, x, x), large);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
