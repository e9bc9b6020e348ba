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

/// key_of, where what depends on the kind of elements is chosen once, and no
/// element branches.
template <class Bits>
class RadixKeys {
 public:
  GRID_INLINE explicit RadixKeys(const SortCall& call)
      : is_float_(call.kind == 2),
        negative_(is_float_ ? ones : Bits{0}),
        all_(call.kind == 0 ? Bits{0} : top),
        infinity_(is_float_ ? static_cast<Bits>(call.infinity) : ones),
        first_bit_(static_cast<int>(call.run)) {}
  GRID_INLINE int digit(Bits bits) const {
    const Bits sign =
        static_cast<Bits>(static_cast<Signed>(bits) >> (sizeof(Bits) * 8 - 1));
    Bits key = static_cast<Bits>(bits ^ ((sign & negative_) | all_));
    if (static_cast<Bits>(bits & static_cast<Bits>(~top)) > infinity_)
      key = ones;
    if (is_float_ && bits == top) key = top;
    return static_cast<int>(key >> first_bit_) & (radix_values - 1);
  }

 private:
  using Signed = decltype([] {
    if constexpr (sizeof(Bits) == 1)
      return int8_t{};
    else if constexpr (sizeof(Bits) == 2)
      return int16_t{};
    else
      return int32_t{};
  }());
  static constexpr Bits ones = static_cast<Bits>(~Bits{0});
  static constexpr Bits top =
      static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  const bool is_float_;
  const Bits negative_, all_;  // the bits that are turned
  const Bits infinity_;
  const int first_bit_;
};

/// The counters of a line: [value][tile].
GRID_INLINE int64_t counter(const RadixTile& own, int value) {
  return (own.line * radix_values + value) * own.tiles + own.tile;
}

template <class Bits, bool whole>
GRID_INLINE void count_tile(const Bits* from, InShared<uint32_t>* values,
                            const RadixTile& own, const RadixKeys<Bits>& keys) {
  Bits elements[radix_each];
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const int i = thread() + e * block_threads;
    elements[e] = whole || i < own.count ? from[own.first + i] : Bits{0};
  }
#pragma unroll
  for (int e = 0; e < radix_each; ++e)
    if (whole || thread() + e * block_threads < own.count)
      __atomic_fetch_add(&values[keys.digit(elements[e])], 1u,
                         __ATOMIC_RELAXED);
}

template <class Bits>
GRID_INLINE void radix_count(const Bits* from, uint32_t* counts,
                             const SortCall& call) {
  static InShared<uint32_t> values[radix_values];
  const RadixTile own = own_radix_tile(call);
  const RadixKeys<Bits> keys(call);
  values[thread()] = 0;
  synchronise();
  if (own.count == radix_tile)
    count_tile<Bits, true>(from, values, own, keys);
  else
    count_tile<Bits, false>(from, values, own, keys);
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

/// What a block that moves a tile has in shared memory.
template <class Bits>
struct MovedTile {
  InShared<Bits>* elements;
  InShared<int32_t>* indices;
  InShared<uint8_t>* digits;                   // of the elements
  InShared<uint32_t> (*values)[radix_values];  // of each warp
  InShared<uint32_t>*goes_to, *sums;
};

/// `from_index` is null where positions are those in the line. Warps have 512
/// neighbours each, 32 at once: the order in which equal digits keep. A `whole`
/// tile has all of its elements.
template <class Bits, bool with_index, bool whole>
GRID_INLINE void move_tile(const Bits* from, const int32_t* from_index,
                           const uint32_t* counts, const uint32_t* totals,
                           Bits* to, int32_t* to_index, const SortCall& call,
                           const RadixTile& own,
                           const MovedTile<Bits>& shared) {
  const RadixKeys<Bits> keys(call);
  const int lane = thread() % warp_threads, warp = thread() / warp_threads;
  InShared<uint32_t>* values = shared.values[warp];
#pragma unroll
  for (int w = 0; w < block_warps; ++w) shared.values[w][thread()] = 0;
  synchronise();
  Bits mine[radix_each];
  // Of an element the digit, and above it how many of the warp's elements with
  // that digit are before it.
  uint32_t ranks[radix_each];
  auto number = [&](int e) __attribute__((always_inline)) {
    return (warp * radix_each + e) * warp_threads + lane;
  };
#pragma unroll
  for (int e = 0; e < radix_each; ++e)
    mine[e] =
        whole || number(e) < own.count ? from[own.first + number(e)] : Bits{0};
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const bool is_there = whole || number(e) < own.count;
    const int value = is_there ? keys.digit(mine[e]) : radix_values;
    const auto same = static_cast<uint32_t>(
        __nvvm_match_any_sync_i32(~0u, static_cast<uint32_t>(value)));
    const auto before =
        static_cast<uint32_t>(__builtin_popcount(same & ((1u << lane) - 1)));
    const uint32_t so_far = is_there ? values[value] : 0;
    ranks[e] = (so_far + before) * radix_values + static_cast<uint32_t>(value);
    __nvvm_bar_warp_sync(~0u);
    if (is_there && before == 0)
      values[value] = so_far + static_cast<uint32_t>(__builtin_popcount(same));
    __nvvm_bar_warp_sync(~0u);
  }
  synchronise();
  // A thread for each value: where each warp's begin in the tile, and where the
  // tile's lie in the line.
  uint32_t count = 0, all = 0;
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    const uint32_t one = shared.values[w][thread()];
    shared.values[w][thread()] = count;
    count += one;
  }
  const uint32_t start = before_in_block(count, shared.sums, all);
  const uint32_t in_line = before_in_block(
      totals[own.line * radix_values + thread()], shared.sums, all);
#pragma unroll
  for (int w = 0; w < block_warps; ++w) shared.values[w][thread()] += start;
  shared.goes_to[thread()] = in_line + counts[counter(own, thread())] - start;
  synchronise();
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    if (!whole && number(e) >= own.count) continue;
    const uint32_t value = ranks[e] % radix_values;
    const uint32_t place = values[value] + ranks[e] / radix_values;
    shared.elements[place] = mine[e];
    shared.digits[place] = static_cast<uint8_t>(value);
    if constexpr (with_index)
      shared.indices[place] =
          from_index ? from_index[own.first + number(e)]
                     : static_cast<int32_t>(own.tile * radix_tile + number(e));
  }
  synchronise();
  const int64_t line = own.line * call.length;
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const int i = thread() + e * block_threads;
    if (!whole && i >= own.count) continue;
    const int64_t place =
        line + static_cast<uint32_t>(shared.goes_to[shared.digits[i]] +
                                     static_cast<uint32_t>(i));
    to[place] = shared.elements[i];
    if constexpr (with_index) to_index[place] = shared.indices[i];
  }
}

template <class Bits, bool with_index>
GRID_INLINE void radix_move(const Bits* from, const int32_t* from_index,
                            const uint32_t* counts, const uint32_t* totals,
                            Bits* to, int32_t* to_index, const SortCall& call) {
  static InShared<Bits> elements[radix_tile];
  static InShared<int32_t> indices[with_index ? radix_tile : 1];
  static InShared<uint8_t> digits[radix_tile];
  static InShared<uint32_t> values[block_warps][radix_values];
  static InShared<uint32_t> goes_to[radix_values], sums[block_warps];
  const MovedTile<Bits> shared{elements, indices, digits,
                               values,   goes_to, sums};
  const RadixTile own = own_radix_tile(call);
  if (own.count == radix_tile)
    move_tile<Bits, with_index, true>(from, from_index, counts, totals, to,
                                      to_index, call, own, shared);
  else
    move_tile<Bits, with_index, false>(from, from_index, counts, totals, to,
                                       to_index, call, own, shared);
}

}  // namespace unisono::grid
