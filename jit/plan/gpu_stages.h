#pragma once
// Work that a GPU does in several kernels, so that many threads have some where
// one nest has few units: scans of few long lines, scatters to few columns.
#include "jit/kernel/kernel.h"
#include "jit/plan/fuse.h"

namespace unisono::jit {

/// The steps to do in place of the kernel; none if it stays as it is.
PlanSteps gpu_stages(const Kernel& kernel, Plan& plan);

}  // namespace unisono::jit
