// Sorting lines by merging: tiles of 1,024 elements in shared memory, then runs
// of twice the length, and so on. An element's place in two merged runs is its
// place in its own plus the number of elements of the other that come before
// it; of equal elements those of the left run do, so that it is stable.
#include "runtime/kernel_library/sort_key.h"

namespace unisono::grid {
namespace {

constexpr int tile = 1024;

/// How many of the `count` sorted elements come before `key`: smaller ones,
/// and with `equal_too` equal ones. Numbers are unsigned: halving is a shift.
template <class Elements, class Number, class Bits>
GRID_INLINE Number rank_in(const Elements& at, Number count, Bits key,
                           bool equal_too, const SortCall& call) {
  Number low = 0;
#pragma unroll 1
  while (low < count) {
    const Number middle = (low + count) / 2;
    const Bits other = key_of<Bits>(at(middle), call);
    const bool before = equal_too ? other <= key : other < key;
    low = before ? middle + 1 : low;
    count = before ? count : middle;
  }
  return low;
}

/// Where element `i` of `length` goes when runs of `run`, a power of 2, are
/// merged.
template <class Elements, class Number, class Bits>
GRID_INLINE Number place_of(const Elements& at, Bits bits, Number i, Number run,
                            Number length, const SortCall& call) {
  const Number start = i & ~(run - 1);
  const bool left = (i & run) == 0;
  const Number other = start ^ run;
  if (other >= length) return i;
  const Number end = length - other < run ? length : other + run;
  const Number before = rank_in([&](Number j) { return at(other + j); },
                                end - other, key_of(bits, call), !left, call);
  return (left ? start : other) + (i - start) + before;
}

template <class Bits, bool with_index>
GRID_INLINE void sort_tile(const Bits* from, Bits* to, int32_t* to_index,
                           const SortCall& call) {
  constexpr int each = tile / block_threads;
  static Bits __attribute__((address_space(3))) elements[2][tile];
  static int32_t
      __attribute__((address_space(3))) indices[2][with_index ? tile : 1];
  const auto tiles = static_cast<uint32_t>((call.length + tile - 1) / tile);
  const uint32_t number = static_cast<uint32_t>(block());
  const int64_t start = int64_t{number % tiles} * tile, line = number / tiles;
  const int count =
      static_cast<int>(call.length - start < tile ? call.length - start : tile);
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
      const uint32_t place =
          place_of([&](uint32_t j) { return elements[now][j]; }, bits,
                   static_cast<uint32_t>(i), static_cast<uint32_t>(run),
                   static_cast<uint32_t>(count), call);
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
                            Bits* to, int32_t* to_index, const SortCall& call) {
  const int64_t i = int64_t{block()} * block_threads + thread();
  if (i >= call.rows * call.length) return;
  int64_t first = 0;  // of the line; divisions of 64 bits are long
  if (call.rows > 1)
    first = (i | call.length) >> 32
                ? i / call.length * call.length
                : int64_t{static_cast<uint32_t>(i) /
                          static_cast<uint32_t>(call.length)} *
                      call.length;
  const Bits bits = from[i];
  uint64_t place;
  if (call.length >> 31)
    place = place_of([&](uint64_t j) { return from[first + j]; }, bits,
                     static_cast<uint64_t>(i - first),
                     static_cast<uint64_t>(call.run),
                     static_cast<uint64_t>(call.length), call);
  else
    place = place_of([&](uint32_t j) { return from[first + j]; }, bits,
                     static_cast<uint32_t>(i - first),
                     static_cast<uint32_t>(call.run),
                     static_cast<uint32_t>(call.length), call);
  place += static_cast<uint64_t>(first);
  to[place] = bits;
  if (with_index) to_index[place] = from_index[i];
}

}  // namespace

#define SORT(bits)                                                             \
  GRID_KERNEL sort_tile_##bits(const uint##bits##_t* from, uint##bits##_t* to, \
                               SortCall call) {                                \
    sort_tile<uint##bits##_t, false>(from, to, nullptr, call);                 \
  }                                                                            \
  GRID_KERNEL argsort_tile_##bits(const uint##bits##_t* from,                  \
                                  uint##bits##_t* to, int32_t* to_index,       \
                                  SortCall call) {                             \
    sort_tile<uint##bits##_t, true>(from, to, to_index, call);                 \
  }                                                                            \
  GRID_KERNEL sort_merge_##bits(const uint##bits##_t* from,                    \
                                uint##bits##_t* to, SortCall call) {           \
    sort_merge<uint##bits##_t, false>(from, nullptr, to, nullptr, call);       \
  }                                                                            \
  GRID_KERNEL argsort_merge_##bits(                                            \
      const uint##bits##_t* from, const int32_t* from_index,                   \
      uint##bits##_t* to, int32_t* to_index, SortCall call) {                  \
    sort_merge<uint##bits##_t, true>(from, from_index, to, to_index, call);    \
  }
SORT(8)
SORT(16)
SORT(32)
SORT(64)

}  // namespace unisono::grid
