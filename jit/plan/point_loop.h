#pragma once
// Loops in which every point depends on itself alone: one kernel, in which each
// thread takes the turns for its points, instead of launches for each turn.
#include <cstdint>
#include <optional>
#include <vector>

#include "jit/plan/fuse.h"
#include "jit/plan/known_turns.h"

namespace unisono::jit {

/// Whether point_loop is worth a try: the body has few operations, all at
/// points, and so few turns that a kernel ends soon.
bool may_be_point_loop(const ir::Graph& body, int64_t turns);

struct PointLoop {
  struct Carry {
    BufferId first = -1;  // has the value before the loop
    BufferId place = -1;  // the body reads it; at the end has the last value
    BufferId next = -1;   // the body puts the next value there
    DType dtype = DType::F32;
    int64_t elements = 0;
  };
  KnownTurns turns = {};
  std::vector<Carry> carries;
};

/// One kernel for the loop whose body is these steps; nothing if points depend
/// on others.
std::optional<Kernel> point_loop(const PlanSteps& body, const PointLoop& loop);

}  // namespace unisono::jit
