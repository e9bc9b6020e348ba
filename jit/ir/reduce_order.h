#pragma once
// The orders in which reductions and scans combine elements, as templates over
// the element getter and the combining function. The reference evaluator calls
// them; generated code has the same trees. The orders depend on sizes alone, so
// results do not depend on the machine, on threads, or on devices.
//
// `get(i)` is element i in the accumulating type (f32 for f16 and bf16, which
// are rounded once at the end); `combine(a, b)` has the earlier element first.
// All functions but reduce_one_chunk poll (runtime/stop.h).
#include <algorithm>
#include <cstdint>

#include "runtime/member_tree.h"
#include "runtime/stop.h"

namespace unisono::jit {

/// Elements of one chunk, and lanes that a chunk is spread over.
inline constexpr int64_t reduce_chunk = 4096, reduce_lanes = 64;
/// Elements of one run, where the last axis is kept.
inline constexpr int64_t reduce_run = 64;
/// Products of one fma chain of `dot`.
inline constexpr int64_t dot_chain = 4096;
/// Elements that a scan takes at a time.
inline constexpr int64_t scan_lanes = 16;

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
  const int64_t chunks = (n + reduce_chunk - 1) / reduce_chunk;
  return member_tree(
      0, chunks,
      [&](int64_t c) {
        poll_stop();
        return reduce_one_chunk(c * reduce_chunk,
                                std::min(n, (c + 1) * reduce_chunk), get,
                                combine);
      },
      combine);
}

/// n >= 1 elements, where the last axis is kept: runs of 64 in order, which
/// combine in the members tree.
template <class Get, class Combine>
auto reduce_strided(int64_t n, Get&& get, Combine&& combine) {
  const int64_t runs = (n + reduce_run - 1) / reduce_run;
  return member_tree(
      0, runs,
      [&](int64_t r) {
        poll_stop();
        int64_t i = r * reduce_run;
        const int64_t end = std::min(n, i + reduce_run);
        auto total = get(i);
        while (++i < end) total = combine(total, get(i));
        return total;
      },
      combine);
}

/// `dot` of n >= 1 pairs: `chain(begin, end)` is the fma chain over these, in
/// order from 0; chains of 4,096 combine in the members tree, by addition.
template <class Chain, class Add>
auto reduce_products(int64_t n, Chain&& chain, Add&& add) {
  return member_tree(
      0, (n + dot_chain - 1) / dot_chain,
      [&](int64_t c) {
        return chain(c * dot_chain, std::min(n, (c + 1) * dot_chain));
      },
      add);
}

/// n >= 1 members: the members tree.
template <class Get, class Combine>
auto reduce_members(int64_t n, Get&& get, Combine&& combine) {
  return member_tree(
      0, n,
      [&](int64_t m) {
        if (m % reduce_chunk == 0) poll_stop();
        return get(m);
      },
      combine);
}

/// The running reduction along the last axis; `put(i, value)` gets element i's.
/// The axis is cut into chunks of 4,096, and a chunk into groups of 16:
///   prefix  of a group, by log steps: element i takes the one at i - 1, then
///           the one at i - 2, i - 4, i - 8, where there is one in the group
///   within  = combine(last `within` of the group before, prefix); in a chunk's
///           first group it is the prefix itself
///   result  = combine(carry, within); in the first chunk it is `within` itself
/// where carry, of a chunk, is the in-order fold of the totals (the last
/// `within`) of the chunks before it. A reverse scan is this on the reversed
/// axis.
template <class Get, class Put, class Combine>
void scan_contiguous(int64_t n, Get&& get, Put&& put, Combine&& combine) {
  using T = decltype(get(int64_t{0}));
  T carry{};
  for (int64_t chunk = 0; chunk < n; chunk += reduce_chunk) {
    poll_stop();
    const int64_t end = std::min(n, chunk + reduce_chunk);
    T total{};
    for (int64_t group = chunk; group < end; group += scan_lanes) {
      const int64_t used = std::min(scan_lanes, end - group);
      T lane[scan_lanes];
      for (int64_t i = 0; i < used; ++i) lane[i] = get(group + i);
      for (int64_t step = 1; step < scan_lanes; step *= 2)
        for (int64_t i = used - 1; i >= step; --i)
          lane[i] = combine(lane[i - step], lane[i]);
      for (int64_t i = 0; i < used; ++i) {
        if (group != chunk) lane[i] = combine(total, lane[i]);
        put(group + i, chunk ? combine(carry, lane[i]) : lane[i]);
      }
      total = lane[used - 1];
    }
    carry = chunk ? combine(carry, total) : total;
  }
}

/// The running reduction along another axis than the last: in order.
template <class Get, class Put, class Combine>
void scan_strided(int64_t n, Get&& get, Put&& put, Combine&& combine) {
  if (n == 0) return;
  auto total = get(int64_t{0});
  put(int64_t{0}, total);
  for (int64_t i = 1; i < n; ++i) {
    if (i % reduce_chunk == 0) poll_stop();
    total = combine(total, get(i));
    put(i, total);
  }
}

}  // namespace unisono::jit
