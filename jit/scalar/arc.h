#pragma once
// Inverse trigonometric functions.
#include "jit/scalar/trig.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// pi/2 in two parts.
template <class T>
struct HalfPi {
  static constexpr T high = 0x1.921fb54442d18p0, low = 0x1.1a62633145c07p-54;
};
template <>
struct HalfPi<float> {
  static constexpr float high = 0x1.921fb6p0f, low = -0x1.777a5cp-25f;
};
template <FloatValue V>
using HalfPiOf = HalfPi<ElementOf<V>>;

/// (asin(x) - x) / x^3 in z = x^2 <= 1/4.
template <SingleValue V>
V asin_tail(V z) {
  return horner(z, V(0x1.59cc6p-5f), V(0x1.8bb55ep-6f), 0x1.748a2ap-5f,
                0x1.33016ap-4f, 0x1.5555cap-3f);
}
template <DoubleValue V>
V asin_tail(V z) {
  return horner(z, V(0x1.0bdc163831aa5p-5), V(-0x1.59dce535d9bdap-6),
                0x1.64f09ea7c4438p-6, 0x1.e191ef217c201p-9,
                0x1.61874904f8e45p-7, 0x1.757821d2b1af9p-7,
                0x1.ca2133447fc33p-7, 0x1.1c49dea9b522cp-6,
                0x1.6e8bdfde1affdp-6, 0x1.f1c71a8be033cp-6, 0x1.6db6db722ad2p-5,
                0x1.333333332df1ep-4, 0x1.5555555555578p-3);
}

/// asin(r) for the r at hand: |x|, or for |x| > 1/2 the r for which
/// asin |x| = pi/2 - 2 asin(r). NaN outside [-1, 1].
template <FloatValue V>
struct ArcSine {
  typename V::Mask far;
  V root;
  V angle;
};

template <FloatValue V>
ArcSine<V> arc_sine(V x) {
  constexpr ElementOf<V> half = 0.5, one = 1;
  V a = abs(x);
  auto far = a > half;
  V z = select(far, (one - a) * half, a * a);
  V root = select(far, sqrt(z), a);
  return {far, root, fma(asin_tail(z) * z, root, root)};
}

template <FloatValue V>
V asin(V x) {
  auto [far, root, angle] = arc_sine(x);
  V twice = angle + angle;
  V rest = HalfPiOf<V>::high - (twice - HalfPiOf<V>::low);
  return copysign(select(far, rest, angle), x);
}

template <FloatValue V>
V acos(V x) {
  auto [far, root, angle] = arc_sine(x);
  V twice = angle + angle;
  auto negative = x < number<V>(0);
  constexpr ElementOf<V> pi = 2 * HalfPiOf<V>::high,
                         pi_low = 2 * HalfPiOf<V>::low;
  V at_end = select(negative, pi - (twice - pi_low), twice);
  V near = HalfPiOf<V>::high - (copysign(angle, x) - HalfPiOf<V>::low);
  return select(far, at_end, near);
}

/// (atan(x) - x) / x^3 in z = x^2, for |x| <= tan(pi/8).
template <SingleValue V>
V atan_tail(V z) {
  return horner(z, V(-0x1.f31d54p-5f), V(0x1.b22ecap-4f), -0x1.23ba42p-3f,
                0x1.9991e8p-3f, -0x1.55554ap-2f);
}
template <DoubleValue V>
V atan_tail(V z) {
  return horner(
      z, V(-0x1.257bd37d2f76p-6), V(0x1.37de49532d67fp-5),
      -0x1.9cd6647368d7bp-5, 0x1.df1028301a90dp-5, -0x1.10ebc842a4648p-4,
      0x1.3b111a91baedbp-4, -0x1.745cf8f1bb47ap-4, 0x1.c71c70e6c8edfp-4,
      -0x1.24924922af0c6p-3, 0x1.999999999589bp-3, -0x1.555555555553dp-2);
}

/// atan(over / under) for 0 <= over <= under, 0 < under < infinity / 2.
template <FloatValue V>
V arc_tangent(V over, V under) {
  // Above tan(pi/8): pi/4 + atan((over - under) / (over + under)).
  auto far = over > under * number<V>(0x1.a827999fcef32p-2);
  V q = select(far, over - under, over) / select(far, over + under, under);
  V z = q * q;
  constexpr ElementOf<V> zero = 0, quarter = HalfPiOf<V>::high / 2,
                         quarter_low = HalfPiOf<V>::low / 2;
  V low = fma(atan_tail(z) * z, q, select(far, quarter_low, V(zero)));
  return select(far, quarter + (q + low), q + low);
}

template <FloatValue V>
V atan(V x) {
  constexpr ElementOf<V> one = 1;
  V a = abs(x);
  auto far = a > one;
  V capped = select(a > number<V>(0x1p100), number<V>(0x1p100), a);
  V y = arc_tangent(select(far, one, capped), select(far, capped, one));
  V rest = HalfPiOf<V>::high - (y - HalfPiOf<V>::low);
  return copysign(select(far, rest, y), x);
}

/// The angle of the point (x, y).
template <FloatValue V>
V atan2(V y, V x) {
  using T = ElementOf<V>;
  constexpr T zero = 0, one = 1;
  // Both scaled away from overflow; what that does to a small one, when the
  // other is huge, is lost in the angle's rounding.
  constexpr T huge = std::numeric_limits<T>::max() / 4;
  constexpr T quarter = 0.25;
  V a = abs(y), b = abs(x);
  auto swapped = a > b;
  V over = select(swapped, b, a), under = select(swapped, a, b);
  V factor = select(under > huge, quarter, V(one));
  auto diagonal = over == under;  // zeros and infinities too
  over = select(diagonal, one, over * factor);
  under = select(diagonal, one, under * factor);
  V angle = arc_tangent(over, select(under == infinity<V>, huge, under));
  angle = select(under == infinity<V>, zero, angle);
  angle = select(b == zero, select(a == zero, zero, angle), angle);
  angle =
      select(swapped, HalfPiOf<V>::high - (angle - HalfPiOf<V>::low), angle);
  constexpr T pi = 2 * HalfPiOf<V>::high, pi_low = 2 * HalfPiOf<V>::low;
  auto left = bit_cast<typename FloatBits<T>::Signed>(x) < 0;
  angle = select(left, pi - (angle - pi_low), angle);
  return select(is_nan(x) | is_nan(y), not_a_number<V>, copysign(angle, y));
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
