#pragma once
// Sine, cosine, tangent: x = n pi/2 + r with |r| <= pi/4 (a little more at the
// end of the fast range), by fmas with pi/2 in parts that make the first of
// them exact; where x is large, by multiplying x with the bits of 2/pi that
// matter (Payne and Hanek).
#include <array>
#include <tuple>

#include "jit/scalar/log.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// Entry j holds bits 32 j ... 32 j + 63 of 2/pi after 64 zeros.
inline constexpr std::array<uint64_t, 38> two_over_pi = {
    0x0000000000000000, 0x00000000a2f9836e, 0xa2f9836e4e441529,
    0x4e441529fc2757d1, 0xfc2757d1f534ddc0, 0xf534ddc0db629599,
    0xdb6295993c439041, 0x3c439041fe5163ab, 0xfe5163abdebbc561,
    0xdebbc561b7246e3a, 0xb7246e3a424dd2e0, 0x424dd2e006492eea,
    0x06492eea09d1921c, 0x09d1921cfe1deb1c, 0xfe1deb1cb129a73e,
    0xb129a73ee88235f5, 0xe88235f52ebb4484, 0x2ebb4484e99c7026,
    0xe99c7026b45f7e41, 0xb45f7e413991d639, 0x3991d639835339f4,
    0x835339f49c845f8b, 0x9c845f8bbdf9283b, 0xbdf9283b1ff897ff,
    0x1ff897ffde05980f, 0xde05980fef2f118b, 0xef2f118b5a0a6d1f,
    0x5a0a6d1f6d367ecf, 0x6d367ecf27cb09b7, 0x27cb09b74f463f66,
    0x4f463f669e5fea2d, 0x9e5fea2d7527bac7, 0x7527bac7ebe5f17b,
    0xebe5f17b3d0739f7, 0x3d0739f78a5292ea, 0x8a5292ea6bfb5fb1,
    0x6bfb5fb11f8d5d08, 0x1f8d5d0856033046,
};

/// What is left of x after n quarter turns: the angle in two parts, and n
/// modulo 4 (in the low bits).
template <FloatValue V>
struct Quarter {
  V high;
  V low;
  UnsignedOf<V> turns;
};

/// An unsigned integer below 2^32 as a double.
template <class U>  // uint64_t
auto double_of_word(U word) {
  return bit_cast<double>(word | 0x4330000000000000u) - 0x1p52;
}

/// The reduction of any finite number above 2^17 in magnitude; NaN for
/// infinities.
struct ReduceLarge {
  static constexpr const char* name = "reduce_large";

  /// The first 128 bits of x * 2/pi modulo 4, as two words.
  template <class U>
  static std::tuple<U, U> product(U magnitude) {
    auto biased = magnitude >> 52;
    U mantissa = (magnitude & 0xfffffffffffffu) | 0x10000000000000u;
    U low = mantissa & 0xffffffffu, high = mantissa >> 32;
    // x = mantissa * 2^(biased - 1075): bits of weight 4 and more of the
    // product come from bits before number biased - 1076 of 2/pi.
    U first = biased - 1013;
    auto word = convert<int32_t>(first >> 5);
    U shift = 32 - (first & 31);
    U carry = U(0);
    std::array<U, 6> result = {shift, shift, shift, shift, shift, shift};
    for (int k = 5; k >= 0; --k) {
      U factor = (lookup(two_over_pi, word + k) >> shift) & 0xffffffffu;
      U a = low * factor, b = high * factor;
      U sum = carry + (a & 0xffffffffu);
      // b belongs one word higher: its low half meets the next `a`.
      result[k] = sum & 0xffffffffu;
      carry = (sum >> 32) + (a >> 32) + b;
    }
    return {(result[0] << 32) | result[1], (result[2] << 32) | result[3]};
  }

  template <DoubleValue V>
  std::tuple<V, V, UnsignedOf<V>> operator()(V x) const {
    auto [high, low] = product(bits_of(abs(x)));
    auto turns = (high + 0x2000000000000000u) >> 62;
    // The fraction, signed, in words of 32 bits.
    auto top = (high << 2) | (low >> 62);
    auto rest = low << 2;
    V a = double_of_word((top >> 32) ^ 0x80000000u) - 0x1p31;
    V b = double_of_word(top & 0xffffffffu);
    V c = double_of_word(rest >> 32);
    V d = double_of_word(rest & 0xffffffffu);
    a = a * 0x1p-32;
    b = b * 0x1p-64;
    V sum = a + b;
    V error = (b - (sum - a)) + fma(d, 0x1p-128, c * 0x1p-96);
    V head = sum + error;
    V tail = error - (head - sum);
    V angle = head * 0x1.921fb54442d18p0;
    V correction = fma(head, 0x1.921fb54442d18p0, -angle) +
                   fma(head, 0x1.1a62633145c07p-54, tail * 0x1.921fb54442d18p0);
    auto negative = x < 0.0;
    turns = select(negative, -turns, turns);
    angle = select(is_finite(x), angle, not_a_number<V>);
    return {select(negative, -angle, angle),
            select(negative, -correction, correction), turns};
  }
  template <SingleValue V>
  std::tuple<V, UnsignedOf<V>> operator()(V x) const {
    auto [angle, correction, turns] = (*this)(convert<double>(x));
    return {convert<float>(angle), convert<uint32_t>(turns)};
  }
};

// pi/2 in parts is rounded down, so that signed zeros survive the reduction.

template <DoubleValue V>
Quarter<V> reduce_quarter(V x) {
  auto n = nearest_whole(x, V(0x1.45f306dc9c883p-1));
  V r = fma(n.n, -0x1.921fb54442d18p0, x);
  // The parts of n times the second one are exact, as are both sums.
  V product = n.n * 0x1.1a62633145c06p-54;
  V rounding = fma(n.n, 0x1.1a62633145c06p-54, -product);
  V high = r - product;
  V back = high - r;
  V low = (r - (high - back)) - (product + back);
  low = fma(n.n, -0x1.c1cd129024e09p-107, low - rounding);
  auto [a, b, turns] = rare<ReduceLarge>(
      abs(x) > 0x1p30, std::tuple(high, low, bits_of(n.shifted)), x);
  return {a, b, turns};
}

/// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2/2) / r^4 as polynomials in z = r^2.
template <SingleValue V>
V sin_tail(V z) {
  return horner(z, V(-0x1.994c24p-13f), V(0x1.11076ap-7f), -0x1.555546p-3f);
}
template <SingleValue V>
V cos_tail(V z) {
  return horner(z, V(0x1.99e33p-16f), V(-0x1.6c0c1ep-10f), 0x1.55554ap-5f);
}
template <DoubleValue V>
V sin_tail(V z) {
  return horner(z, V(0x1.5d925d46609p-33), V(-0x1.ae5e64a797f4ep-26),
                0x1.71de3576bcd38p-19, -0x1.a01a019c121afp-13,
                0x1.111111110f892p-7, -0x1.5555555555549p-3);
}
template <DoubleValue V>
V cos_tail(V z) {
  return horner(z, V(-0x1.8fb0016142419p-37), V(0x1.1ee9ef5285376p-29),
                -0x1.27e4f810456bbp-22, 0x1.a01a019cbcd91p-16,
                -0x1.6c16c16c1521p-10, 0x1.555555555554cp-5);
}

/// Sine and cosine of an angle in two parts.
template <FloatValue V>
V quarter_sin(Quarter<V> r) {
  V z = r.high * r.high;
  return fma(sin_tail(z) * z, r.high, r.low) + r.high;
}
template <FloatValue V>
V quarter_cos(Quarter<V> r) {
  constexpr ElementOf<V> half = 0.5, one = 1;
  V z = r.high * r.high;
  V head = fma(z, -half, one);
  V rounding = fma(z, -half, one - head);
  // The rounding error of z itself counts, too.
  V square = fma(r.high, r.high, -z);
  V tail = fma(square, -half, rounding - r.high * r.low);
  return head + fma(z * z, cos_tail(z), tail);
}

/// y, a quarter's sine or cosine, with the sign that the turns give to it.
template <FloatValue V>
V turn_sign(V y, UnsignedOf<V> turns) {
  using T = ElementOf<V>;
  constexpr int to_sign = sizeof(T) * 8 - 2;
  auto sign = (turns << to_sign) & FloatBits<T>::sign;
  return bit_cast<T>(bits_of(y) ^ sign);
}

/// sin(x + start pi/2).
template <DoubleValue V>
V quarter_wave(V x, int start) {
  Quarter<V> r = reduce_quarter(x);
  auto turns = r.turns + start;
  V y = select((turns & 1) != 0, quarter_cos(r), quarter_sin(r));
  return turn_sign(y, turns);
}
template <SingleValue V>
V quarter_wave(V x, int start) {
  auto n = nearest_whole(x, V(0x1.45f306p-1f));
  V angle = fma(n.n, -0x1.921fb4p0f, x);
  angle = fma(n.n, -0x1.4442dp-24f, angle);
  angle = fma(n.n, -0x1.846988p-48f, angle);
  auto [r, from] = rare<ReduceLarge>(abs(x) > 0x1p17f,
                                     std::tuple(angle, bits_of(n.shifted)), x);
  auto turns = from + start;
  V z = r * r;
  V sine = fma(sin_tail(z) * z, r, r);
  V cosine = fma(fma(cos_tail(z), z, -0.5f), z, 1.0f);
  return turn_sign(select((turns & 1) != 0, cosine, sine), turns);
}

template <FloatValue V>
V sin(V x) {
  return select(x == ElementOf<V>{0}, x, quarter_wave(x, 0));
}
template <FloatValue V>
V cos(V x) {
  return quarter_wave(x, 1);
}
/// tan of the angle plus its quarter turns.
template <FloatValue V>
V quarter_tan(V sine, V cosine, UnsignedOf<V> turns) {
  auto odd = (turns & 1) != 0;
  return select(odd, cosine, sine) / select(odd, -sine, cosine);
}
template <DoubleValue V>
V tan(V x) {
  Quarter<V> r = reduce_quarter(x);
  V y = quarter_tan(quarter_sin(r), quarter_cos(r), r.turns);
  return select(x == 0.0, x, y);
}
template <SingleValue V>
V tan(V x) {
  // The quotient leaves no room for the rounding of a float angle.
  auto wide = convert<double>(x);
  auto n = nearest_whole(wide, decltype(wide)(0x1.45f306dc9c883p-1));
  auto angle = fma(n.n, -0x1.921fb54442d18p0, wide);
  angle = fma(n.n, -0x1.1a62633145c06p-54, angle);
  auto [exact, correction, turns] = rare<ReduceLarge>(
      abs(wide) > 0x1p26,
      std::tuple(angle, decltype(angle)(0.0), bits_of(n.shifted)), wide);
  V high = convert<float>(exact);
  V rest = convert<float>(exact - convert<double>(high));
  Quarter<V> r = {high, rest, convert<uint32_t>(turns)};
  V y = quarter_tan(quarter_sin(r), quarter_cos(r), r.turns);
  return select(x == 0.0f, x, y);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
