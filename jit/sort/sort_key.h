#pragma once
// The order of elements as that of unsigned keys.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/dtype.h"

namespace unisono::jit {

template <DType D>
using KeyOf = std::conditional_t<
    sizeof(typename StorageOf<D>::type) == 1, uint8_t,
    std::conditional_t<
        sizeof(typename StorageOf<D>::type) == 2, uint16_t,
        std::conditional_t<sizeof(typename StorageOf<D>::type) == 4, uint32_t,
                           uint64_t>>>;

// Types are told apart as they compile: both are done for every element.
template <DType D>
inline constexpr bool is_float = DType::F16 <= D;
template <DType D>
inline constexpr bool is_signed_integer =
    !is_float<D> && std::is_signed_v<typename StorageOf<D>::type>;
template <DType D>
inline constexpr KeyOf<D> top_bit =
    KeyOf<D>(KeyOf<D>{1} << (sizeof(KeyOf<D>) * 8 - 1));

/// An unsigned key of the same order; NaNs are the largest key, -0.0 is 0.0.
template <DType D>
KeyOf<D> to_key(typename StorageOf<D>::type x) {
  using Key = KeyOf<D>;
  constexpr Key top = top_bit<D>;
  Key bits;
  std::memcpy(&bits, &x, sizeof bits);
  if constexpr (is_float<D>) {
    // Choices and no branches, so that vectors can make them.
    const auto value = static_cast<typename ComputeOf<D>::type>(x);
    Key key = Key(bits & top ? ~bits : bits | top);
    key = value == 0 ? top : key;
    return value == value ? key : std::numeric_limits<Key>::max();
  }
  return is_signed_integer<D> ? Key(bits ^ top) : bits;
}

template <DType D>
typename StorageOf<D>::type from_key(KeyOf<D> key) {
  using Key = KeyOf<D>;
  constexpr Key top = top_bit<D>;
  if constexpr (is_float<D>)
    key = Key(key & top ? key ^ top : ~key);
  else if constexpr (is_signed_integer<D>)
    key = Key(key ^ top);
  typename StorageOf<D>::type x;
  std::memcpy(&x, &key, sizeof x);
  return x;
}

/// Puts elements that keys do not tell apart, zeros and NaNs, into the order in
/// which the input has them. `output` is sorted.
template <DType D, class Element = typename StorageOf<D>::type>
void restore_equal(const Element* input, Element* output, int64_t length) {
  const KeyOf<D> zero = to_key<D>(Element{}),
                 nan = std::numeric_limits<KeyOf<D>>::max();
  const auto first = [&](KeyOf<D> key) {
    return std::lower_bound(
               output, output + length, key,
               [](Element x, KeyOf<D> k) { return to_key<D>(x) < k; }) -
           output;
  };
  int64_t zeros = first(zero), nans = first(nan);
  for (int64_t i = 0; i < length; ++i) {
    const KeyOf<D> key = to_key<D>(input[i]);
    if (key == zero) output[zeros++] = input[i];
    if (key == nan) output[nans++] = input[i];
  }
}

}  // namespace unisono::jit
