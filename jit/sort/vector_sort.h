#pragma once
// Sorting in vectors: Highway's vqsort, a quicksort of compressed stores with
// sorting networks below.
#include <cstddef>
#include <cstdint>

namespace unisono::jit {

/// What elements are, whose bits become keys: unsigned, signed, or floats, of
/// which NaNs are the largest key and -0.0 is 0.0.
enum class KeyOrder : uint8_t { natural, with_sign, floating };

/// Not stable; without memory but the stack's, and safe for several threads.
template <class Key>
struct VectorSort {
  /// Ascending, in place.
  void (*sort)(Key* keys, size_t count);
  /// Keys up to `pivot` to the front; says how many they are. At least
  /// `least_parted` keys.
  size_t (*part)(Key* keys, size_t count, Key pivot);

  /// Elements to keys; whether there are some that keys do not tell apart.
  bool (*keys)(const Key* elements, Key* keys, size_t count, KeyOrder order);
  /// Keys to elements, in place.
  void (*elements)(Key* keys, size_t count, KeyOrder order);
  /// Elements of four bytes to keys of eight, whose lower halves are `first`,
  /// `first` + 1 and so on. (Of uint64_t alone.)
  void (*numbered)(const uint32_t* elements, Key* keys, uint32_t first,
                   size_t count, KeyOrder order);
};

/// The one for this processor; null where radix passes are faster. Of uint32_t
/// (AVX2, AVX-512) and uint64_t (AVX-512).
template <class Key>
const VectorSort<Key>* vector_sort();

}  // namespace unisono::jit
