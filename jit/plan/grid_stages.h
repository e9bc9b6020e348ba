#pragma once
// What a GPU does in several kernels so that many threads have work where one
// nest has few units: long lines of scans, and scatters to few columns.
#include <functional>
#include <vector>

#include "jit/kernel/kernel.h"
#include "jit/plan/fuse.h"
#include "jit/plan/grid_tasks.h"

namespace unisono::jit {

using AddBuffer = std::function<BufferId(DType, int64_t elements)>;

/// What sorts `from` to `to`.
std::vector<LaunchStep> sort_tasks(GridSort sort, BufferId from, BufferId to,
                                   const AddBuffer& add_buffer);

/// The steps in place of the kernel, none if it stays as it is. `add_buffer`
/// gives new buffers.
std::vector<PlanStep> grid_stages(const Kernel& kernel,
                                  const AddBuffer& add_buffer);

}  // namespace unisono::jit
