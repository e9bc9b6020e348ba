#pragma once
// Work that a GPU does in several kernels, so that many threads have some where
// one nest has few units: scans of few long lines, scatters to few columns.
#include <functional>
#include <vector>

#include "jit/kernel/kernel.h"
#include "jit/plan/fuse.h"
#include "jit/plan/grid_tasks.h"

namespace unisono::jit {

/// Adds a buffer to the plan.
using AddBuffer = std::function<BufferId(DType, int64_t elements)>;

/// The launches that sort `from` to `to`, in order.
std::vector<LaunchStep> sort_tasks(GridSort sort, BufferId from, BufferId to,
                                   const AddBuffer& add_buffer);

/// The steps to do in place of the kernel; none if it stays as it is.
std::vector<PlanStep> grid_stages(const Kernel& kernel,
                                  const AddBuffer& add_buffer);

}  // namespace unisono::jit
