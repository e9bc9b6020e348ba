#pragma once
// A place in memory for every buffer of a plan; the memory of dead ones is used
// again.
#include <cstdint>
#include <vector>

#include "jit/plan/fuse.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

struct MemoryPlan {
  std::vector<Slot> slots;  // one per buffer of the plan
  int64_t arena_bytes = 0, shared_arena_bytes = 0;  // as in Program
  std::vector<int> overwritten;  // inputs whose places outputs take
};

/// `donated`: as in CompileOptions. An output takes a donated input's place
/// where it is of its size and the input is not read any more. `in_place`:
/// devices combine what an all_reduce leaves in its operand's place, as the
/// executors of CPUs do.
MemoryPlan plan_memory(const Plan& plan, const std::vector<bool>& donated,
                       bool in_place);
/// Tells the plan's kernels.
void mark_overwriting(PlanSteps& steps, const std::vector<Slot>& slots);

}  // namespace unisono::jit
