#pragma once
// Radix sort of lines, from the least significant digit of 8 bits on, which is
// stable. A pass is three kernels. Each block of the first and the last does a
// tile of a line:
//
//   count   how many elements of the tile have each value of the digit
//   offset  a block for each value: the counts of the tiles become the numbers
//           of such elements before them; and how many there are in the line
//   move    elements go to their places, by way of shared memory, where those
//           with the same digit come to lie side by side
//
// Elements keep their bits; their keys are made anew in each pass.
#include "runtime/kernel_library/sort_key.h"

namespace unisono::grid {

inline constexpr int radix_values = 256, radix_each = 16;
inline constexpr int radix_tile = block_threads * radix_each;
inline constexpr int block_warps = block_threads / warp_threads;

template <class T>
using InShared = T __attribute__((address_space(3)));

/// Where a block's tile lies.
struct RadixTile {
  int64_t first;  // its first element, of all lines
  int64_t tile;   // in its line
  int64_t tiles;  // of a line
  int64_t line;
  int count;  // elements
};
GRID_INLINE RadixTile own_radix_tile(const SortCall& call) {
  const auto tiles =
      static_cast<uint32_t>((call.length + radix_tile - 1) / radix_tile);
  const auto number = static_cast<uint32_t>(block());
  const int64_t tile = number % tiles, line = number / tiles;
  const int64_t left = call.length - tile * radix_tile;
  return {line * call.length + tile * radix_tile, tile, tiles, line,
          static_cast<int>(left < radix_tile ? left : radix_tile)};
}

template <class Bits>
GRID_INLINE int digit_of(Bits bits, const SortCall& call) {
  return static_cast<int>(key_of(bits, call) >> call.run) & (radix_values - 1);
}

/// The counters of a line: [value][tile].
GRID_INLINE int64_t counter(const RadixTile& own, int value) {
  return (own.line * radix_values + value) * own.tiles + own.tile;
}

template <class Bits>
GRID_INLINE void radix_count(const Bits* from, uint32_t* counts,
                             const SortCall& call) {
  static InShared<uint32_t> values[radix_values];
  const RadixTile own = own_radix_tile(call);
  values[thread()] = 0;
  synchronise();
  Bits elements[radix_each];
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const int i = thread() + e * block_threads;
    elements[e] = i < own.count ? from[own.first + i] : Bits{0};
  }
#pragma unroll
  for (int e = 0; e < radix_each; ++e)
    if (thread() + e * block_threads < own.count)
      __atomic_fetch_add(&values[digit_of(elements[e], call)], 1u,
                         __ATOMIC_RELAXED);
  synchronise();
  counts[counter(own, thread())] = values[thread()];
}

/// The sum of `value` over the threads before this one, and over all. `sums`
/// has a place for each warp.
GRID_INLINE uint32_t before_in_block(uint32_t value, InShared<uint32_t>* sums,
                                     uint32_t& total) {
  const int lane = thread() % warp_threads, warp = thread() / warp_threads;
  uint32_t sum = value;
#pragma unroll
  for (int by = 1; by < warp_threads; by *= 2) {
    const uint32_t other = static_cast<uint32_t>(
        __nvvm_shfl_sync_up_i32(~0u, static_cast<int>(sum), by, 0));
    if (lane >= by) sum += other;
  }
  if (lane == warp_threads - 1) sums[warp] = sum;
  synchronise();
  uint32_t before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    const uint32_t one = sums[w];
    if (w < warp) before += one;
    total += one;
  }
  synchronise();
  return before + sum - value;
}

/// A block for each line and value.
GRID_INLINE void radix_offset(uint32_t* counts, uint32_t* totals,
                              const SortCall& call) {
  static InShared<uint32_t> sums[block_warps];
  const int64_t tiles = (call.length + radix_tile - 1) / radix_tile;
  uint32_t* row = counts + int64_t{block()} * tiles;
  uint32_t done = 0;
#pragma unroll 1
  for (int64_t start = 0; start < tiles; start += radix_tile) {
    uint32_t own[radix_each], sum = 0, total = 0;
    const int64_t first = start + int64_t{thread()} * radix_each;
#pragma unroll
    for (int e = 0; e < radix_each; ++e)
      own[e] = first + e < tiles ? row[first + e] : 0;
#pragma unroll
    for (int e = 0; e < radix_each; ++e) sum += own[e];
    uint32_t before = done + before_in_block(sum, sums, total);
#pragma unroll
    for (int e = 0; e < radix_each; ++e) {
      if (first + e < tiles) row[first + e] = before;
      before += own[e];
    }
    done += total;
  }
  if (thread() == 0) totals[block()] = done;
}

/// `from_index` is null where positions are those in the line. Warps have 512
/// neighbours each, 32 at once: the order in which equal digits keep.
template <class Bits, bool with_index>
GRID_INLINE void radix_move(const Bits* from, const int32_t* from_index,
                            const uint32_t* counts, const uint32_t* totals,
                            Bits* to, int32_t* to_index, const SortCall& call) {
  static InShared<Bits> elements[radix_tile];
  static InShared<int32_t> indices[with_index ? radix_tile : 1];
  static InShared<uint32_t> values[block_warps][radix_values];
  static InShared<uint32_t> goes_to[radix_values], sums[block_warps];
  const RadixTile own = own_radix_tile(call);
  const int lane = thread() % warp_threads, warp = thread() / warp_threads;
#pragma unroll
  for (int w = 0; w < block_warps; ++w) values[w][thread()] = 0;
  synchronise();
  Bits mine[radix_each];
  uint32_t rank[radix_each];
  auto number = [&](int e) __attribute__((always_inline)) {
    return (warp * radix_each + e) * warp_threads + lane;
  };
#pragma unroll
  for (int e = 0; e < radix_each; ++e)
    mine[e] = number(e) < own.count ? from[own.first + number(e)] : Bits{0};
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const bool is_there = number(e) < own.count;
    const int value = is_there ? digit_of(mine[e], call) : radix_values;
    const auto same = static_cast<uint32_t>(
        __nvvm_match_any_sync_i32(~0u, static_cast<uint32_t>(value)));
    const auto before =
        static_cast<uint32_t>(__builtin_popcount(same & ((1u << lane) - 1)));
    if (is_there) rank[e] = values[warp][value] + before;
    __nvvm_bar_warp_sync(~0u);
    if (is_there && before == 0)
      values[warp][value] += static_cast<uint32_t>(__builtin_popcount(same));
    __nvvm_bar_warp_sync(~0u);
  }
  synchronise();
  // A thread for each value: where each warp's begin in the tile, and where the
  // tile's lie in the line.
  uint32_t count = 0, all = 0;
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    const uint32_t one = values[w][thread()];
    values[w][thread()] = count;
    count += one;
  }
  const uint32_t start = before_in_block(count, sums, all);
  const uint32_t in_line =
      before_in_block(totals[own.line * radix_values + thread()], sums, all);
#pragma unroll
  for (int w = 0; w < block_warps; ++w) values[w][thread()] += start;
  goes_to[thread()] = in_line + counts[counter(own, thread())] - start;
  synchronise();
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    if (number(e) >= own.count) continue;
    const uint32_t place = values[warp][digit_of(mine[e], call)] + rank[e];
    elements[place] = mine[e];
    if constexpr (with_index)
      indices[place] =
          from_index ? from_index[own.first + number(e)]
                     : static_cast<int32_t>(own.tile * radix_tile + number(e));
  }
  synchronise();
  const int64_t line = own.line * call.length;
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const int i = thread() + e * block_threads;
    if (i >= own.count) continue;
    const Bits bits = elements[i];
    const int64_t place =
        line + static_cast<uint32_t>(goes_to[digit_of(bits, call)] +
                                     static_cast<uint32_t>(i));
    to[place] = bits;
    if constexpr (with_index) to_index[place] = indices[i];
  }
}

}  // namespace unisono::grid
