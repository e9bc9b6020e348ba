#pragma once
// sort and argsort along the last axis, as a kernel that is not generated.
#include <cstdint>
#include <vector>

#include "runtime/dtype.h"
#include "runtime/program.h"

namespace unisono::jit {

struct SortKernel {
  KernelFunction function = nullptr;
  /// The kernel's arguments are: elements, sorted elements (or positions), and
  /// a constant with these bytes.
  std::vector<uint8_t> parameters;
  int64_t units = 1, grain = 1;
};

SortKernel sort_kernel(DType dtype, int64_t rows, int64_t length,
                       bool positions);

}  // namespace unisono::jit
