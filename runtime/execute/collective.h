#pragma once
// What the devices of a program do together. One call does it for all of them,
// when all have arrived: the elements are shared out among idle workers, and
// each part reads its operands where they are and writes all results. Reads
// and writes overlap only where `from` and `to` of an all_reduce are one.
#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/dtype.h"
#include "runtime/execute/program.h"
#include "runtime/pool.h"

namespace unisono {

/// from[d] and to[d] belong to device d. Of all_reduce and all_gather there may
/// be one result, which all devices share.
struct CollectiveBuffers {
  std::span<const void* const> from;
  std::span<void* const> to;
};

/// Whom the work is shared with.
struct CollectiveWorkers {
  Pool& pool;
  const void* group;
  /// Set: what is left is left out, soon.
  const std::atomic<bool>* stop = nullptr;

  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

/// "all_reduce"
const char* name(CollectiveStep::Kind kind);

/// How many bytes one of `team` devices that meet gives, and gets.
struct CollectiveBytes {
  int64_t from = 0, to = 0;
};
CollectiveBytes bytes_of(const CollectiveStep& step, int64_t team);

/// One group's meeting. What each kind means stands at CollectiveStep::Kind.
/// Integers wrap; of a number and NaN the extremum is NaN; f16 and bf16 combine
/// in f32 and are rounded once, at the end; bools have no sum (CHECK). The tree
/// is that of member_tree.h.
void meet(CollectiveWorkers workers, const CollectiveStep& step,
          CollectiveBuffers buffers);

}  // namespace unisono
