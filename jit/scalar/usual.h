#pragma once
// log and exp in fewer operations for arguments in the usual range: the bits of
// log.h and exp.h there, which tests/programs/numerics/usual_numbers.uni goes
// through.
#include "jit/scalar/log.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// exp(x) where it is normal: 2^n is added to the exponent.
template <SingleValue V>
V exp_usual(V x) {
  const WholeNumber<V> n = whole_exponent(x);
  const V p = exp_of_rest(reduce_exp(x, n));
  return bit_cast<float>(bits_of(p) +
                         (bits_of(n.shifted) << FloatBits<float>::mantissa));
}

/// log(x) for a positive normal x.
template <SingleValue V>
V log_usual(V x) {
  constexpr uint32_t low_bits = (uint32_t{1} << FloatBits<float>::mantissa) - 1;
  constexpr uint32_t lowest = lowest_mantissa<V>;
  const auto bits = bits_of(x);
  // The exponent in its place: 2^23 times what log_parts gives, exactly.
  const auto place = (bits - lowest) & ~low_bits;
  const V exponent = convert<float>(bit_cast<int32_t>(place));
  const V f = bit_cast<float>(bits - place) - 1.0f;
  const V y = fma(fma(log1p_cubic(f), f, -0.5f), f * f, f);
  return fma(exponent, 0x1.62e43p-1f * 0x1p-23f, y);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
