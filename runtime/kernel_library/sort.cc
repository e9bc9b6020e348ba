// Sorting lines by merging: tiles of 1,024 elements in shared memory, then runs
// of twice the length, and so on. An element's place in two merged runs is its
// place in its own plus the number of elements of the other that come before
// it; of equal elements those of the left run do, so that it is stable.
#include "runtime/kernel_library/grid.h"

namespace unisono::grid {
namespace {

/// What is sorted; constants of the launch.
struct SortCall {
  int64_t rows, length;
  int64_t run;        // merge: elements of the runs that are merged
  uint64_t infinity;  // of floats: larger magnitudes are NaN
  int32_t kind;       // 0: unsigned, 1: signed, 2: floats
};

constexpr int tile = 1024;

/// An unsigned key of the same order; NaNs are the largest key, -0.0 is 0.0.
template <class Bits>
GRID_INLINE Bits key_of(Bits bits, const SortCall& call) {
  constexpr Bits top = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  if (call.kind == 0) return bits;
  if (call.kind == 1) return static_cast<Bits>(bits ^ top);
  const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~top));
  if (magnitude > static_cast<Bits>(call.infinity))
    return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) return top;
  return static_cast<Bits>(bits & top ? ~bits : bits | top);
}

/// How many of the `count` sorted elements come before `key`: smaller ones,
/// and with `equal_too` equal ones.
template <class Elements, class Bits>
GRID_INLINE int64_t rank_in(const Elements& at, int64_t count, Bits key,
                            bool equal_too, const SortCall& call) {
  int64_t low = 0;
#pragma unroll 1
  while (low < count) {
    const int64_t middle = (low + count) / 2;
    const Bits other = key_of<Bits>(at(middle), call);
    const bool before = equal_too ? other <= key : other < key;
    low = before ? middle + 1 : low;
    count = before ? count : middle;
  }
  return low;
}

/// Where element `i` of `length` goes when runs of `run` are merged.
template <class Elements, class Bits>
GRID_INLINE int64_t place_of(const Elements& at, Bits bits, int64_t i,
                             int64_t run, int64_t length,
                             const SortCall& call) {
  const int64_t start = i / run * run;
  const bool left = start / run % 2 == 0;
  const int64_t other = left ? start + run : start - run;
  if (other >= length) return i;
  const int64_t end = other + run < length ? other + run : length;
  const int64_t before = rank_in([&](int64_t j) { return at(other + j); },
                                 end - other, key_of(bits, call), !left, call);
  return (left ? start : other) + (i - start) + before;
}

template <class Bits, bool with_index>
GRID_INLINE void sort_tile(const Bits* from, Bits* to, int32_t* to_index,
                           const SortCall& call) {
  constexpr int each = tile / block_threads;
  static Bits __attribute__((address_space(3))) elements[2][tile];
  static int32_t __attribute__((address_space(3)))
      indices[2][with_index ? tile : 1];
  const int64_t tiles = (call.length + tile - 1) / tile;
  const int64_t start = block() % tiles * tile, line = block() / tiles;
  const int count = static_cast<int>(
      call.length - start < tile ? call.length - start : tile);
  const int64_t first = line * call.length + start;
  for (int e = 0; e < each; ++e) {
    const int i = thread() + e * block_threads;
    if (i >= count) continue;
    elements[0][i] = from[first + i];
    if (with_index) indices[0][i] = static_cast<int32_t>(start + i);
  }
  synchronise();
  int now = 0;
#pragma unroll 1
  for (int run = 1; run < tile; run *= 2) {
    for (int e = 0; e < each; ++e) {
      const int i = thread() + e * block_threads;
      if (i >= count) continue;
      const Bits bits = elements[now][i];
      const int64_t place =
          place_of([&](int64_t j) { return elements[now][j]; }, bits, i, run,
                   count, call);
      elements[now ^ 1][place] = bits;
      if (with_index) indices[now ^ 1][place] = indices[now][i];
    }
    synchronise();
    now ^= 1;
  }
  for (int e = 0; e < each; ++e) {
    const int i = thread() + e * block_threads;
    if (i >= count) continue;
    to[first + i] = elements[now][i];
    if (with_index) to_index[first + i] = indices[now][i];
  }
}

template <class Bits, bool with_index>
GRID_INLINE void sort_merge(const Bits* from, const int32_t* from_index,
                            Bits* to, int32_t* to_index,
                            const SortCall& call) {
  const int64_t i = int64_t{block()} * block_threads + thread();
  if (i >= call.rows * call.length) return;
  const int64_t first = i / call.length * call.length;
  const Bits bits = from[i];
  const int64_t place =
      first + place_of([&](int64_t j) { return from[first + j]; }, bits,
                       i - first, call.run, call.length, call);
  to[place] = bits;
  if (with_index) to_index[place] = from_index[i];
}

}  // namespace

#define SORT(bits)                                                           \
  GRID_KERNEL sort_tile_##bits(const uint##bits##_t* from,                   \
                               uint##bits##_t* to, SortCall call) {          \
    sort_tile<uint##bits##_t, false>(from, to, nullptr, call);               \
  }                                                                          \
  GRID_KERNEL argsort_tile_##bits(const uint##bits##_t* from,                \
                                  uint##bits##_t* to, int32_t* to_index,     \
                                  SortCall call) {                           \
    sort_tile<uint##bits##_t, true>(from, to, to_index, call);               \
  }                                                                          \
  GRID_KERNEL sort_merge_##bits(const uint##bits##_t* from,                  \
                                uint##bits##_t* to, SortCall call) {         \
    sort_merge<uint##bits##_t, false>(from, nullptr, to, nullptr, call);     \
  }                                                                          \
  GRID_KERNEL argsort_merge_##bits(                                          \
      const uint##bits##_t* from, const int32_t* from_index,                 \
      uint##bits##_t* to, int32_t* to_index, SortCall call) {                \
    sort_merge<uint##bits##_t, true>(from, from_index, to, to_index, call);  \
  }
SORT(8)
SORT(16)
SORT(32)
SORT(64)

}  // namespace unisono::grid
