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

/// erf of f32 by pieces. A row has the piece's centre, erf there, and the
/// coefficients of erf's slope from the centre on, the least power first.
/// Centres are floats whose erf is nearly one, too. At its end the last piece
/// is 1, of which erf differs by 0.74 units there.
struct ErfPieces {
  static constexpr float width = 0.484375f, end = 3.87f;
  // clang-format off
  static constexpr RowTable table = {{
    {{0, 0, 0x1.06eba8p-3f, -0x1.9f7486p-22f, -0x1.812062p-2f, -0x1.178848p-11f, 0x1.e12760p-4f, -0x1.2a2760p-6f}},
    {{0x1.f00cf0p-2f, 0x1.036f00p-1f, 0x1.c8e388p-1f, -0x1.baa7d0p-2f, -0x1.434cd2p-3f, 0x1.754df8p-3f, 0x1.97d49cp-7f, -0x1.93c5eap-5f}},
    {{0x1.f001f0p-1f, 0x1.a89d60p-1f, 0x1.c407cep-2f, -0x1.b5e93ep-2f, 0x1.08311ep-3f, 0x1.47ed2ap-4f, -0x1.16dcb8p-4f, 0x1.5bc514p-11f}},
    {{0x1.73f786p+0f, 0x1.eb9308p-1f, 0x1.17d610p-3f, -0x1.9699f2p-3f, 0x1.2c99eap-3f, -0x1.4b3808p-5f, -0x1.561f90p-6f, 0x1.4d0700p-6f}},
    {{0x1.efe18ap+0f, 0x1.fcd930p-1f, 0x1.b1dd82p-6f, -0x1.a434f6p-5f, 0x1.d66d96p-5f, -0x1.3b821ep-5f, 0x1.8f517cp-7f, 0x1.2ee030p-9f}},
    {{0x1.35f928p+1f, 0x1.ffaf58p-1f, 0x1.a3d12ap-9f, -0x1.fc5364p-8f, 0x1.775274p-7f, -0x1.71d702p-7f, 0x1.ed1606p-8f, -0x1.86c3a6p-9f}},
    {{0x1.740d3ap+1f, 0x1.fffad4p-1f, 0x1.fae22ep-13f, -0x1.7052aap-11f, 0x1.4f5a96p-10f, -0x1.aa5768p-10f, 0x1.986ce6p-10f, -0x1.121fc2p-10f}},
    {{0x1.c10ed4p+1f, 0x1.ffffe8p-1f, 0x1.562f74p-18f, -0x1.07e2f8p-16f, 0x1.50a300p-15f, -0x1.bb35dep-14f, 0x1.684ba0p-14f, 0x1.0b0be0p-13f}}}};
  // clang-format on
};

template <SingleValue V>
V erf(V x) {
  V a = at_most(abs(x), ErfPieces::end);
  auto [centre, there, slope, second, third, fourth, fifth, sixth] =
      lookup_row(ErfPieces::table, row_place(a, 1 / ErfPieces::width));
  V t = a - centre;
  V q = horner(t, sixth, fifth, fourth, third, second, slope);
  // The first row's centre is 0, and its slope is one less: t + q t, as what
  // erf is there is not a float times x.
  return copysign(fma(q, t, at_least(t, there)), x);
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
