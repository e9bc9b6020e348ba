#pragma once
// Radix sort of lines, from the least significant digit of 8 bits on, which is
// stable. Elements are read once to count all digits:
//
//   totals  how many elements of a line have each value of each digit
//   starts  a block for each line and digit: these become the numbers of
//           elements with smaller values
//
// and then once for each digit, by a kernel of which each block does a tile of
// a line: it ranks its elements, learns how many the tiles before it have of
// each value, and moves its own to their places by way of shared memory, where
// those with the same digit come to lie side by side (D. Merrill and A.
// Adinets, "Onesweep", 2022). What tiles tell one another is a Fenwick tree:
// tile n tells once how many there are in the largest block of tiles that
// begins at a multiple of its size, a power of 2, and ends with n; the tiles
// before n are as many such blocks as n has bits that are set. Blocks take
// tiles in the order in which they begin, so none waits for one that has not
// begun.
//
// Elements keep their bits; their keys are made anew in each pass.
#include <type_traits>

#include "runtime/kernel_library/sort_key.h"

namespace unisono::grid {

inline constexpr uint32_t radix_values = 256;
inline constexpr int radix_each = 24;
inline constexpr uint32_t radix_tile = block_threads * radix_each;
inline constexpr int block_warps = block_threads / warp_threads;

template <class T>
using InShared = T __attribute__((address_space(3)));

/// Tiles of a line that a block counts.
inline constexpr uint32_t radix_counted = 4;

/// What a sort counts, in one array: for each pass the number of tiles that
/// have begun; for each line and pass the totals of its values; and for each
/// tile and value what the tile tells, plus 1, twice: a pass has one of the two
/// and clears the other for the next.
template <class Bits>
struct RadixCounters {
  static constexpr uint32_t passes = sizeof(Bits), most_passes = 4;

  GRID_INLINE RadixCounters(uint32_t* counters, const SortCall& call)
      : tickets(global(counters)),
        tiles((static_cast<uint32_t>(call.length) + (radix_tile - 1)) /
              radix_tile),
        nodes_(most_passes +
               static_cast<uint32_t>(call.rows) * passes * radix_values),
        size_(static_cast<uint32_t>(call.rows) * tiles * radix_values) {}

  GRID_INLINE Global<uint32_t>* totals(uint32_t line, uint32_t pass) const {
    return tickets + (most_passes + (line * passes + pass) * radix_values);
  }
  GRID_INLINE Global<uint32_t>* nodes(uint32_t line, uint32_t pass) const {
    return tickets + (nodes_ + pass % 2 * size_ + line * tiles * radix_values);
  }

  Global<uint32_t>* tickets;
  uint32_t tiles;  // of a line

 private:
  uint32_t nodes_, size_;
};

/// Where a tile lies.
struct RadixTile {
  uint32_t line;
  uint32_t tile;  // in its line
  int64_t begin;  // of the line
  int64_t first;  // its first element, of all lines
  int count;      // elements
};
GRID_INLINE RadixTile radix_tile_of(const SortCall& call, uint32_t line,
                                    uint32_t tile) {
  const uint32_t at = tile * radix_tile;
  const uint32_t left = static_cast<uint32_t>(call.length) - at;
  const int64_t begin = line * call.length;
  return {line, tile, begin, begin + at,
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
        first_bit_(static_cast<int>(call.run)) {
    // Else each element would choose between what these may be.
    if constexpr (sizeof(Bits) == 4) asm("" : "+r"(negative_), "+r"(all_));
  }
  GRID_INLINE Bits key(Bits bits) const {
    if constexpr (sizeof(Bits) == 4) {
      // The sum's NaN has the largest bits that a positive number may have.
      const float sum = __builtin_bit_cast(float, bits) + 0.0f;
      if (is_float_) bits = __builtin_bit_cast(Bits, sum);
      return turned(bits);
    }
    Bits key = turned(bits);
    if (static_cast<Bits>(bits & static_cast<Bits>(~top)) > infinity_)
      key = ones;
    if (is_float_ && bits == top) key = top;
    return key;
  }
  GRID_INLINE uint32_t digit(Bits bits) const {
    return (key(bits) >> first_bit_) % radix_values;
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
  GRID_INLINE Bits turned(Bits bits) const {
    const Bits sign =
        static_cast<Bits>(static_cast<Signed>(bits) >> (sizeof(Bits) * 8 - 1));
    return static_cast<Bits>(bits ^ ((sign & negative_) | all_));
  }
  const bool is_float_;
  Bits negative_, all_;  // the bits that are turned
  const Bits infinity_;
  const int first_bit_;
};

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
  for (int e = 0; e < radix_each; ++e) {
    if (!whole && thread() + e * block_threads >= own.count) continue;
    const Bits key = keys.key(elements[e]);
#pragma unroll
    for (uint32_t pass = 0; pass < RadixCounters<Bits>::passes; ++pass)
      __atomic_fetch_add(
          &values[pass * radix_values + ((key >> (8 * pass)) % radix_values)],
          1u, __ATOMIC_RELAXED);
  }
}

template <class Bits>
GRID_INLINE void radix_totals(const Bits* from, uint32_t* all,
                              const SortCall& call) {
  constexpr uint32_t passes = RadixCounters<Bits>::passes;
  static InShared<uint32_t> values[passes * radix_values];
  const RadixCounters<Bits> counters(all, call);
  const RadixKeys<Bits> keys(call);
  const uint32_t shares = (counters.tiles + radix_counted - 1) / radix_counted;
  const auto number = static_cast<uint32_t>(block());
  const uint32_t line = number / shares;
  const uint32_t first = number % shares * radix_counted;
#pragma unroll
  for (uint32_t pass = 0; pass < passes; ++pass)
    values[pass * radix_values + thread()] = 0;
  synchronise();
#pragma unroll 1
  for (uint32_t t = first; t < first + radix_counted && t < counters.tiles;
       ++t) {
    const RadixTile own = radix_tile_of(call, line, t);
    if (own.count == radix_tile)
      count_tile<Bits, true>(from, values, own, keys);
    else
      count_tile<Bits, false>(from, values, own, keys);
  }
  synchronise();
#pragma unroll
  for (uint32_t pass = 0; pass < passes; ++pass)
    if (const uint32_t one = values[pass * radix_values + thread()])
      __atomic_fetch_add(counters.totals(line, pass) + thread(), one,
                         __ATOMIC_RELAXED);
}

/// The sum of `value` over the threads before this one. `sums` has a place for
/// each warp.
GRID_INLINE uint32_t before_in_block(uint32_t value, InShared<uint32_t>* sums) {
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
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    const uint32_t one = sums[w];
    if (w < warp) before += one;
  }
  return before + sum - value;
}

/// A block for each line and pass; `totals` are theirs.
GRID_INLINE void radix_starts(uint32_t* totals) {
  static InShared<uint32_t> sums[block_warps];
  Global<uint32_t>* own =
      global(totals) + static_cast<uint32_t>(block()) * radix_values;
  own[thread()] = before_in_block(own[thread()], sums);
}

/// What a tile tells is one word, which is there or is not: no fence is needed.
GRID_INLINE uint32_t told(const Global<uint32_t>* node) {
  return *static_cast<const volatile Global<uint32_t>*>(node);
}
GRID_INLINE void tell(Global<uint32_t>* node, uint32_t sum) {
  *static_cast<volatile Global<uint32_t>*>(node) = sum + 1;
}

/// How many elements with this thread's value the tiles before `tile` have,
/// which has `count` of them; `nodes` are those of the line.
GRID_INLINE uint32_t before_in_line(Global<uint32_t>* nodes, uint32_t tile,
                                    uint32_t count) {
  constexpr int at_once = 4;
  nodes += static_cast<uint32_t>(thread());
  // The last of them that are in the block which this tile ends; ~0: none.
  const uint32_t begin = tile & (tile + 1);
  const uint32_t last = begin == tile ? ~0u : begin + (tile + 1 - begin) / 2;
  uint32_t end = tile, before = 0;
#pragma unroll 1
  while (end != 0) {
    uint32_t ends[at_once], seen[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      ends[i] = end;
      seen[i] = end != 0 ? told(nodes + (end - 1) * radix_values) : 1;
      end &= end - 1;
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      while (seen[i] == 0) seen[i] = told(nodes + (ends[i] - 1) * radix_values);
      before += seen[i] - 1;
      if (ends[i] == last) tell(nodes + tile * radix_values, count + before);
    }
  }
  return before;
}

/// What a block that moves a tile has in shared memory.
template <class Word>
struct MovedTile {
  InShared<Word>* words;                       // elements, then positions
  InShared<uint8_t>* digits;                   // of the elements
  InShared<uint16_t> (*values)[radix_values];  // of each warp
  InShared<uint32_t>*goes_to, *sums;
};

/// Of a tile's elements each thread has some. Warps have 1,024 neighbours each,
/// 32 at once: the order in which equal digits keep.
GRID_INLINE int radix_number(int e) {
  const int lane = thread() % warp_threads, warp = thread() / warp_threads;
  return (warp * radix_each + e) * warp_threads + lane;
}

/// Of elements the digit, in the upper 16 bits, and how many of the warp's
/// elements with that digit are before each.
template <class Bits, bool whole>
GRID_INLINE void rank_in_warp(const Bits (&mine)[radix_each],
                              uint32_t (&ranks)[radix_each],
                              InShared<uint16_t>* values, int count,
                              const RadixKeys<Bits>& keys) {
  const uint32_t below = (1u << thread() % warp_threads) - 1;
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const bool is_there = whole || radix_number(e) < count;
    const uint32_t value = is_there ? keys.digit(mine[e]) : radix_values;
    const auto same =
        static_cast<uint32_t>(__nvvm_match_any_sync_i32(~0u, value));
    const auto before = static_cast<uint32_t>(__builtin_popcount(same & below));
    const uint32_t so_far = is_there ? values[value] : 0;
    ranks[e] = (value << 16) + so_far + before;
    asm("" : "+r"(ranks[e]));  // one register, not two
    __nvvm_bar_warp_sync(~0u);
    if (is_there && before == 0)
      values[value] = static_cast<uint16_t>(
          so_far + static_cast<uint32_t>(__builtin_popcount(same)));
    __nvvm_bar_warp_sync(~0u);
  }
}

/// Moves what lies in `words` to where it goes in the line at `to`.
template <class To, bool whole, class Shared>
GRID_INLINE void put_words(To* to, const Shared& shared, int count) {
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    const int i = thread() + e * block_threads;
    if (!whole && i >= count) continue;
    const uint32_t place =
        shared.goes_to[shared.digits[i]] + static_cast<uint32_t>(i);
    to[place] = static_cast<To>(shared.words[i]);
  }
}

/// `from_index` is null where positions are those in the line. A `whole` tile
/// has all of its elements.
template <class Bits, bool with_index, bool whole, class Word>
GRID_INLINE void move_tile(const Bits* from, const int32_t* from_index,
                           const RadixCounters<Bits>& counters, Bits* to,
                           int32_t* to_index, const SortCall& call,
                           const RadixTile& own,
                           const MovedTile<Word>& shared) {
  const RadixKeys<Bits> keys(call);
  const int warp = thread() / warp_threads;
  const uint32_t pass = static_cast<uint32_t>(call.run) / 8;
  Bits mine[radix_each];
  uint32_t ranks[radix_each];
#pragma unroll
  for (int e = 0; e < radix_each; ++e)
    mine[e] = whole || radix_number(e) < own.count
                  ? from[own.first + radix_number(e)]
                  : Bits{0};
  rank_in_warp<Bits, whole>(mine, ranks, shared.values[warp], own.count, keys);
  synchronise();
  // A thread for each value: how many the tile has, where each warp's begin in
  // the tile, and, later, where the tile's lie in the line.
  uint32_t count = 0, begins[block_warps];
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    begins[w] = count;
    count += shared.values[w][thread()];
  }
  Global<uint32_t>* nodes = counters.nodes(own.line, pass);
  const uint32_t node =
      own.tile * radix_values + static_cast<uint32_t>(thread());
  if (own.tile % 2 == 0) tell(nodes + node, count);
  if (pass + 1 < RadixCounters<Bits>::passes)
    counters.nodes(own.line, pass + 1)[node] = 0;
  const uint32_t start = before_in_block(count, shared.sums);
#pragma unroll
  for (int w = 0; w < block_warps; ++w)
    shared.values[w][thread()] = static_cast<uint16_t>(start + begins[w]);
  synchronise();
#pragma unroll
  for (int e = 0; e < radix_each; ++e) {
    if (!whole && radix_number(e) >= own.count) continue;
    const uint32_t value = ranks[e] >> 16;
    ranks[e] = shared.values[warp][value] + (ranks[e] & 0xffff);
    shared.words[ranks[e]] = mine[e];
    shared.digits[ranks[e]] = static_cast<uint8_t>(value);
  }
  shared.goes_to[thread()] = counters.totals(own.line, pass)[thread()] +
                             before_in_line(nodes, own.tile, count) - start;
  synchronise();
  put_words<Bits, whole>(to + own.begin, shared, own.count);
  if constexpr (with_index) {
    synchronise();
#pragma unroll
    for (int e = 0; e < radix_each; ++e) {
      if (!whole && radix_number(e) >= own.count) continue;
      shared.words[ranks[e]] =
          from_index
              ? static_cast<uint32_t>(from_index[own.first + radix_number(e)])
              : own.tile * radix_tile + static_cast<uint32_t>(radix_number(e));
    }
    synchronise();
    put_words<int32_t, whole>(to_index + own.begin, shared, own.count);
  }
}

template <class Bits, bool with_index>
GRID_INLINE void radix_move(const Bits* from, const int32_t* from_index,
                            uint32_t* all, Bits* to, int32_t* to_index,
                            const SortCall& call) {
  using Word = std::conditional_t<with_index, uint32_t, Bits>;
  static InShared<Word> words[radix_tile];
  static InShared<uint8_t> digits[radix_tile];
  static InShared<uint16_t> values[block_warps][radix_values];
  static InShared<uint32_t> goes_to[radix_values], sums[block_warps], ticket;
  const MovedTile<Word> shared{words, digits, values, goes_to, sums};
  const RadixCounters<Bits> counters(all, call);
#pragma unroll
  for (int w = 0; w < block_warps; ++w) values[w][thread()] = 0;
  if (thread() == 0)
    ticket = __atomic_fetch_add(
        counters.tickets + static_cast<uint32_t>(call.run) / 8, 1u,
        __ATOMIC_RELAXED);
  synchronise();
  const RadixTile own =
      radix_tile_of(call, ticket / counters.tiles, ticket % counters.tiles);
  if (own.count == radix_tile)
    move_tile<Bits, with_index, true>(from, from_index, counters, to, to_index,
                                      call, own, shared);
  else
    move_tile<Bits, with_index, false>(from, from_index, counters, to, to_index,
                                       call, own, shared);
}

/// Clears the first `call.run` words.
GRID_INLINE void radix_clear(uint32_t* counters, const SortCall& call) {
  const int64_t step = int64_t{blocks()} * block_threads;
  for (int64_t i = int64_t{block()} * block_threads + thread(); i < call.run;
       i += step)
    counters[i] = 0;
}

}  // namespace unisono::grid
