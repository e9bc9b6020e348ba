#pragma once
// The orders in which reductions and scans combine elements, as templates over
// the element getter and the combining function. The reference evaluator calls
// them; generated code has the same trees. The orders depend on sizes alone
// (runtime/tuning/orders.def), so results do not depend on the machine, on
// threads, or on devices.
//
// `get(i)` is element i in the accumulating type (f32 for f16 and bf16, which
// are rounded once at the end); `combine(a, b)` has the earlier element first.
// All functions but reduce_one_chunk poll (runtime/stop.h).
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "runtime/member_tree.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

/// Lanes that a chunk is spread over.
inline constexpr int64_t reduce_lanes = Orders::reduce_lanes;
/// Elements of a scan's groups, and of its blocks of groups.
inline constexpr int64_t scan_lanes = Orders::scan_lanes,
                         scan_block = Orders::scan_block;

/// One chunk, begin ... end-1, at most `reduce_chunk` elements and at least
/// one: lane j combines elements j, j + 64, ... in order; then lane i takes
/// lane i + 32, then i + 16, ... A lane without elements takes no part.
template <class Get, class Combine>
auto reduce_one_chunk(int64_t begin, int64_t end, Get&& get,
                      Combine&& combine) {
  using T = decltype(get(begin));
  T lane[reduce_lanes];
  const int64_t n = end - begin, used = std::min(n, reduce_lanes);
  for (int64_t j = 0; j < used; ++j) lane[j] = get(begin + j);
  int64_t i = reduce_lanes;
  for (; i + reduce_lanes <= n; i += reduce_lanes)
    for (int64_t j = 0; j < reduce_lanes; ++j)
      lane[j] = combine(lane[j], get(begin + i + j));
  for (int64_t j = 0; i + j < n; ++j)
    lane[j] = combine(lane[j], get(begin + i + j));
  for (int64_t half = reduce_lanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half && j + half < used; ++j)
      lane[j] = combine(lane[j], lane[j + half]);
  return lane[0];
}

/// n >= 1 elements, where the reduced axes include the last one: chunks, which
/// combine in the members tree.
template <class Get, class Combine>
auto reduce_contiguous(int64_t n, Get&& get, Combine&& combine) {
  const int64_t size = orders().reduce_chunk, chunks = (n + size - 1) / size;
  return member_tree(
      0, chunks,
      [&](int64_t c) {
        poll_stop();
        return reduce_one_chunk(c * size, std::min(n, (c + 1) * size), get,
                                combine);
      },
      combine);
}

/// n >= 1 elements, where the last axis is kept: runs of 64 in order, which
/// combine in the members tree.
template <class Get, class Combine>
auto reduce_strided(int64_t n, Get&& get, Combine&& combine) {
  const int64_t size = orders().reduce_run, runs = (n + size - 1) / size;
  return member_tree(
      0, runs,
      [&](int64_t r) {
        poll_stop();
        int64_t i = r * size;
        const int64_t end = std::min(n, i + size);
        auto total = get(i);
        while (++i < end) total = combine(total, get(i));
        return total;
      },
      combine);
}

/// `dot` of n >= 1 pairs: `chain(begin, end)` is the fma chain over these, in
/// order from 0; chains of 4,096 (`dot_chain`) combine in the members tree, by
/// addition.
template <class Chain, class Add>
auto reduce_products(int64_t n, Chain&& chain, Add&& add) {
  const int64_t size = orders().dot_chain;
  return member_tree(
      0, (n + size - 1) / size,
      [&](int64_t c) { return chain(c * size, std::min(n, (c + 1) * size)); },
      add);
}

/// n >= 1 members: the members tree.
template <class Get, class Combine>
auto reduce_members(int64_t n, Get&& get, Combine&& combine) {
  return member_tree(
      0, n,
      [&](int64_t m) {
        if (m % orders().reduce_chunk == 0) poll_stop();
        return get(m);
      },
      combine);
}

/// What a scan has before each part of its axis: the members tree over the
/// totals of all parts before it, which is also their reduction. `push` takes
/// the next part's total; `carry` is for the part after the last one pushed.
template <class T, class Combine>
class ScanCarry {
 public:
  explicit ScanCarry(Combine combine) : combine_(combine) {}
  bool empty() const { return count_ == 0; }

  /// Part number n closes as many blocks of the tree as n has trailing ones.
  void push(T total) {
    int level = 0;
    for (; count_ >> level & 1; ++level)
      total = combine_(blocks_[level], total);
    blocks_[level] = total;
    ++count_;
  }

  /// Blocks that wait, the smallest first; at least one part was pushed.
  T carry() const {
    int64_t rest = count_;
    T sum = blocks_[std::countr_zero(static_cast<uint64_t>(rest))];
    while ((rest &= rest - 1) != 0)
      sum =
          combine_(blocks_[std::countr_zero(static_cast<uint64_t>(rest))], sum);
    return sum;
  }

 private:
  Combine combine_;
  int64_t count_ = 0;
  T blocks_[63] = {};
};

/// The running reduction along the last axis; `put(i, value)` gets element i's.
/// The axis is cut into chunks, a chunk into blocks of 256, a block into 16
/// groups of 16:
///   prefix  of a group, by log steps: element i takes the one at i - 1, then
///           the one at i - 2, i - 4, i - 8, where there is one in the group
///   within  = combine(groups, prefix), where `groups` is the in-order fold of
///           the totals (the last prefixes) of the block's groups before
///   result  = combine(base, within); base = combine(carry, blocks), where
///           `blocks` is the in-order fold of the totals (the last `within`s)
///           of the chunk's blocks before, and `carry` the members tree over
///           the totals of the chunks before; a chunk's total is the in-order
///           fold of its blocks' totals
/// What has nothing before it takes no part. A reverse scan is this on the
/// reversed axis.
template <class Get, class Put, class Combine>
void scan_contiguous(int64_t n, Get&& get, Put&& put, Combine&& combine) {
  using T = decltype(get(int64_t{0}));
  ScanCarry<T, std::decay_t<Combine>> before(combine);
  const int64_t size = orders().reduce_chunk;
  for (int64_t chunk = 0; chunk < n; chunk += size) {
    poll_stop();
    const int64_t chunk_end = std::min(n, chunk + size);
    T blocks{};
    for (int64_t block = chunk; block < chunk_end; block += scan_block) {
      const int64_t end = std::min(chunk_end, block + scan_block);
      const bool first = chunk == 0 && block == 0;
      T base{};
      if (block == chunk)
        base = first ? base : before.carry();
      else
        base = chunk ? combine(before.carry(), blocks) : blocks;
      T groups{};
      for (int64_t group = block; group < end; group += scan_lanes) {
        const int64_t used = std::min(scan_lanes, end - group);
        T lane[scan_lanes];
        for (int64_t i = 0; i < used; ++i) lane[i] = get(group + i);
        for (int64_t step = 1; step < scan_lanes; step *= 2)
          for (int64_t i = used - 1; i >= step; --i)
            lane[i] = combine(lane[i - step], lane[i]);
        for (int64_t i = 0; i < used; ++i) {
          if (group != block) lane[i] = combine(groups, lane[i]);
          put(group + i, first ? lane[i] : combine(base, lane[i]));
        }
        groups = lane[used - 1];
      }
      blocks = block == chunk ? groups : combine(blocks, groups);
    }
    before.push(blocks);
  }
}

/// The running reduction along another axis than the last: runs of 64 in order,
/// then combine(carry, that), where `carry` is the members tree over the totals
/// of the runs before.
template <class Get, class Put, class Combine>
void scan_strided(int64_t n, Get&& get, Put&& put, Combine&& combine) {
  using T = decltype(get(int64_t{0}));
  ScanCarry<T, std::decay_t<Combine>> before(combine);
  const int64_t size = orders().reduce_run;
  for (int64_t run = 0; run < n; run += size) {
    poll_stop();
    const int64_t end = std::min(n, run + size);
    const T carry = run ? before.carry() : T{};
    T total{};
    for (int64_t i = run; i < end; ++i) {
      total = i == run ? get(i) : combine(total, get(i));
      put(i, run ? combine(carry, total) : total);
    }
    before.push(total);
  }
}

}  // namespace unisono::jit
