#pragma once
// exp in fewer operations where the argument is known to need less: the bits of
// exp (exp.h), which tests/programs/numerics/row_quotients.uni goes through.
#include <limits>

#include "jit/scalar/exp.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// An exponent n <= 0 as the low bits of a float, n + 127 + 33: shifted to the
/// place of the exponent they are 2^(n + 33), which is normal for n >= -159.
constexpr float power_shift = 0x1.8p23f + 127 + 33;

/// p * 2^n, rounded once, for 0.25 < p < 4 and n = shifted - power_shift.
template <SingleValue V>
V scale_down(V p, V shifted) {
  return p * V(bit_cast<float>(bits_of(shifted) << 23)) * V(0x1p-33f);
}

/// exp(x) for x <= 0 or NaN.
template <SingleValue V>
V exp_below_zero(V x) {
  x = clamp(x, ExpRangeOf<V>::zero, std::numeric_limits<float>::infinity());
  V shifted = fma(x, V(0x1.715476p0f), V(power_shift));
  V n = shifted - power_shift;
  V p = exp_of_rest(reduce_exp(x, WholeNumber<V>{n, shifted}));
  return scale_down(p, shifted);
}

/// 2^f for |f| <= 1/2, near enough for the 8 digits of bf16: the coefficients
/// are those that leave most room on the right side of all numbers at which
/// exp of a bf16 would round to another one (a linear program).
template <SingleValue V>
V exp2_of_few_digits(V f) {
  return horner(f, V(0x1.328eacp-7f), V(0x1.c8d0c2p-5f), 0x1.ec1482p-3f,
                0x1.62e30ap-1f, 1.0f);
}

/// exp(x) for an x that is a bf16: what rounds to the bf16 to which exp(x)
/// does.
template <SingleValue V>
V exp_of_few_digits(V x) {
  x = clamp(x, ExpRangeOf<V>::zero, ExpRangeOf<V>::infinite);
  WholeNumber<V> n = whole_exponent(x);
  return scale(exp2_of_few_digits(fma(x, V(0x1.715476p0f), -n.n)), n);
}
/// The same for x <= 0 or NaN.
template <SingleValue V>
V exp_of_few_digits_below_zero(V x) {
  x = clamp(x, ExpRangeOf<V>::zero, std::numeric_limits<float>::infinity());
  V shifted = fma(x, V(0x1.715476p0f), V(power_shift));
  V n = shifted - power_shift;
  return scale_down(exp2_of_few_digits(fma(x, V(0x1.715476p0f), -n)), shifted);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
