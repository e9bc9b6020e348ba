#pragma once
// What a kernel's launch does, as a program counts it.
#include <cstdint>
#include <span>

#include "jit/kernel/kernel.h"
#include "jit/kernel/packed_dot.h"

namespace unisono::jit {

/// As LaunchStep has it.
struct Work {
  double flops = 0;
  int64_t bytes = 0;
};

/// Of one launch. `argument_bytes` are the sizes of the kernel's arrays. An
/// operation counts once for each point of the axes on which its value depends,
/// also where the kernel computes it more often; an array's elements count
/// once as read and once as written, those that a gather or scatter may touch
/// as many as it touches, at most all.
Work work_of(const Kernel& kernel, std::span<const int64_t> argument_bytes);
Work work_of(const DotShape& product);

}  // namespace unisono::jit
