// This file is compiled once for each instruction set: foreach_target.h
// includes it again, with HWY_NAMESPACE another name each time. The functions
// are called through our own tables, as Highway's choice of one at run time
// stands in a shared library.
#include "jit/sort/vector_sort.h"

#if defined(UNISONO_HIGHWAY) && defined(__x86_64__)

#define HWY_IS_DEBUG_BUILD 0  // its assertions are in the shared library, too
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jit/sort/vector_sort.cpp"
#include <hwy/foreach_target.h>
// After it: what depends on the instruction set.
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace unisono::jit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Key>
constexpr Key top_bit = Key{1} << (sizeof(Key) * 8 - 1);
/// Of floats: larger magnitudes are NaN.
template <class Key>
constexpr Key infinity = sizeof(Key) == 4 ? 0x7F800000 : 0x7FF0000000000000;

// Choices and no branches, so that the compiler makes vectors of them.
template <KeyOrder order, class Key>
inline Key key_of(Key bits) {
  constexpr Key top = top_bit<Key>;
  if constexpr (order == KeyOrder::natural) return bits;
  if constexpr (order == KeyOrder::with_sign) return bits ^ top;
  const Key magnitude = bits & ~top;
  Key key = bits & top ? ~bits : bits | top;
  key = magnitude == 0 ? top : key;
  return magnitude > infinity<Key> ? ~Key{0} : key;
}
template <KeyOrder order, class Key>
inline Key bits_of(Key key) {
  constexpr Key top = top_bit<Key>;
  if constexpr (order == KeyOrder::natural) return key;
  if constexpr (order == KeyOrder::with_sign) return key ^ top;
  return key & top ? key ^ top : ~key;
}

/// Calls f.operator()<order>().
template <class F>
inline void with_order(KeyOrder order, const F& f) {
  switch (order) {
    case KeyOrder::natural: return f.template operator()<KeyOrder::natural>();
    case KeyOrder::with_sign:
      return f.template operator()<KeyOrder::with_sign>();
    case KeyOrder::floating: return f.template operator()<KeyOrder::floating>();
  }
}

template <class Key>
struct Sorter {
  using Order = hn::detail::OrderAscending<Key>;
  static constexpr hn::detail::SharedTraits<hn::detail::TraitsLane<Order>>
      traits{};
  static constexpr hn::SortTag<Key> tag{};
  static constexpr size_t buffer =
      hwy::SortConstants::BufNum<Key>(HWY_LANES(Key));

  /// As hn::Sort does, but with samples that are always the same.
  static void sort(Key* keys, size_t count) {
    if (count < 2) return;
    HWY_ALIGN Key scratch[buffer];
    hn::detail::Generator samples(0x9E3779B97F4A7C15);
    const size_t levels = 2 * hwy::CeilLog2(count) + 4;
    hn::detail::Recurse(tag, traits, keys, keys + count, count, scratch,
                        samples, levels);
  }
  static size_t part(Key* keys, size_t count, Key pivot) {
    HWY_ALIGN Key scratch[buffer];
    return hn::detail::Partition(tag, traits, keys, count, hn::Set(tag, pivot),
                                 scratch);
  }
  static bool keys(const Key* HWY_RESTRICT elements, Key* HWY_RESTRICT keys,
                   size_t count, KeyOrder order) {
    Key alike = 0;
    with_order(order, [&]<KeyOrder o>() {
      for (size_t i = 0; i < count; ++i) {
        const Key key = key_of<o>(elements[i]);
        keys[i] = key;
        alike |= bits_of<o>(key) ^ elements[i];
      }
    });
    return alike != 0;
  }
  static void elements(Key* keys, size_t count, KeyOrder order) {
    with_order(order, [&]<KeyOrder o>() {
      for (size_t i = 0; i < count; ++i) keys[i] = bits_of<o>(keys[i]);
    });
  }
  static void numbered(const uint32_t* HWY_RESTRICT elements,
                       Key* HWY_RESTRICT keys, uint32_t first, size_t count,
                       KeyOrder order) {
    with_order(order, [&]<KeyOrder o>() {
      for (size_t i = 0; i < count; ++i)
        keys[i] = static_cast<Key>(uint64_t{key_of<o>(elements[i])} << 32 |
                                   (first + static_cast<uint32_t>(i)));
    });
  }
  static constexpr VectorSort<Key> table = {sort, part, keys, elements,
                                            numbered};
};

const VectorSort<uint32_t>* sort_32() { return &Sorter<uint32_t>::table; }
#if HWY_TARGET == HWY_AVX3
const VectorSort<uint64_t>* sort_64() { return &Sorter<uint64_t>::table; }
#endif

}  // namespace unisono::jit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace unisono::jit {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd");
}

}  // namespace

template <>
const VectorSort<uint32_t>* vector_sort() {
  return has_avx512() ? N_AVX3::sort_32()
         : has_avx2() ? N_AVX2::sort_32()
                      : nullptr;
}
template <>
const VectorSort<uint64_t>* vector_sort() {
  // AVX2 has neither minima of 64 bits nor stores of chosen lanes: radix passes
  // are twice as fast.
  return has_avx512() ? N_AVX3::sort_64() : nullptr;
}

}  // namespace unisono::jit
#endif

#else  // no Highway

namespace unisono::jit {
template <>
const VectorSort<uint32_t>* vector_sort() {
  return nullptr;
}
template <>
const VectorSort<uint64_t>* vector_sort() {
  return nullptr;
}
}  // namespace unisono::jit

#endif
