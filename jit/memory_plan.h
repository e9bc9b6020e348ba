#pragma once
// A place for every array of a plan: dead arrays' memory is used again.
#include <cstdint>
#include <vector>

#include "jit/fuse.h"
#include "runtime/program.h"

namespace unisono::jit {

struct MemoryPlan {
  std::vector<Slot> slots;  // one per buffer of the plan
  int64_t arena_bytes = 0;
};

MemoryPlan plan_memory(const Plan& plan);

}  // namespace unisono::jit
