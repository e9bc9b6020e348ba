#pragma once
// The conversion between element types, as the operation `cast` does it.
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "runtime/dtype.h"

namespace unisono::jit {

/// The f32 nearest to `value` among those with an odd last bit, or `value`
/// itself if it is an f32: rounding the result again, to fewer bits, gives what
/// rounding `value` once gives.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || std::isnan(value) || (bits & 1)) return nearest;
  // Infinity has no odd neighbour but the largest float; the other odd
  // neighbour of a finite value is on the value's side.
  return std::bit_cast<float>(std::abs(back) > std::abs(value) ? bits - 1
                                                               : bits + 1);
}

/// A double that rounds to f16 and bf16 as the integer does.
template <std::integral T>
double sticky_double(T value) {
  // Below 2^53 a double is exact. Above, the bits that may not fit are joined
  // into the lowest that does.
  if constexpr (sizeof(T) == 8) {
    const bool large =
        value > (T{1} << 53) || (std::is_signed_v<T> && value < -(T{1} << 53));
    if (large) {
      const bool lost = (value & 2047) != 0;
      value = (value & ~T{2047}) | (lost ? T{2048} : T{0});
    }
  }
  return static_cast<double>(value);
}

/// Converts a value in computing form (bool, an integer, float, double) to the
/// stored form of `To`: floats to integers round towards zero, saturate, and
/// NaN gives 0; integers wrap; to bool is `!= 0`; floats round once.
template <DType To, class From>
typename StorageOf<To>::type cast_element(From value) {
  using Storage = typename StorageOf<To>::type;
  if constexpr (To == DType::Bool) {
    return value != From(0);
  } else if constexpr (To == DType::F16 || To == DType::BF16) {
    if constexpr (std::is_same_v<From, double>) {
      return Storage(round_to_odd(value));
    } else if constexpr (std::is_integral_v<From>) {
      return Storage(round_to_odd(sticky_double(value)));
    } else {
      return Storage(value);
    }
  } else if constexpr (std::is_floating_point_v<Storage> ||
                       !std::is_floating_point_v<From>) {
    return static_cast<Storage>(value);
  } else {
    // 2^digits and -2^digits are floats; the largest integer may not be.
    constexpr From limit = [] {
      From power = 1;
      for (int i = 0; i < std::numeric_limits<Storage>::digits; ++i) power *= 2;
      return power;
    }();
    constexpr From low = std::is_signed_v<Storage> ? -limit : From(-1);
    if (std::isnan(value)) return 0;
    if (value >= limit) return std::numeric_limits<Storage>::max();
    if (value <= low) return std::numeric_limits<Storage>::min();
    return static_cast<Storage>(value);
  }
}

/// The computing form of a stored element.
template <DType D>
typename ComputeOf<D>::type compute_form(typename StorageOf<D>::type stored) {
  return static_cast<typename ComputeOf<D>::type>(stored);
}

}  // namespace unisono::jit
