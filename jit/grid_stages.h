#pragma once
// What a GPU does in several kernels so that many threads have work where one
// nest has few units: long lines of scans, and scatters to few columns.
#include <functional>
#include <vector>

#include "jit/fuse.h"
#include "jit/kernel.h"

namespace unisono::jit {

/// The steps in place of the kernel, none if it stays as it is. `add_buffer`
/// gives new buffers.
std::vector<PlanStep> grid_stages(
    const Kernel& kernel,
    const std::function<BufferId(DType, int64_t elements)>& add_buffer);

}  // namespace unisono::jit
