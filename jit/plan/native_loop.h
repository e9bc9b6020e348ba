#pragma once
// Loops that run in registers: one kernel takes all turns, instead of kernels
// for each turn. Small arrays become scalars (unroll.h). Where the carries
// begin with the same axes and no point along these needs another one's
// elements, as with the members of a vmap, the points are lanes of vectors, or
// threads.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/kernel.h"
#include "jit/kernel/schedule.h"
#include "jit/loops/known_turns.h"
#include "jit/plan/fuse.h"

namespace unisono::jit {

/// Where a loop's operands and results lie.
struct LoopPlaces {
  std::vector<BufferId> operands, results;
  std::vector<bool> wanted;  // by result; others are not stored
  std::vector<std::optional<IntegerRange>> ranges;  // of operands
  std::function<BufferId(int64_t bytes)> scratch;   // a buffer of its own
};

struct NativeLoop {
  Kernel kernel;
  /// Carries that are read and written at their results' places, element by
  /// element: the operands are to be copied there before.
  std::vector<size_t> held;
};

/// Whether native_loop is worth a try: the body has few operations, none of a
/// kind that has a kernel of its own, and on devices whose kernels nobody stops
/// few turns.
bool may_be_native(const ir::Graph& graph, const ir::Node& loop,
                   const Machine& machine);

/// A loop of `graph`; nothing if its body is too large or its
/// points depend on others. `checked`: whether failed checks are errors.
std::optional<NativeLoop> native_loop(const ir::Graph& graph,
                                      const ir::Node& loop,
                                      const LoopPlaces& places, bool checked,
                                      const Machine& machine);

}  // namespace unisono::jit
