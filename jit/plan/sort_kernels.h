#pragma once
// Sorting along the last axis on a CPU: precompiled kernels that a program
// launches like generated ones.
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dtype.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

/// The launches that sort `rows` lines of `length` elements (or, for argsort,
/// give the i32 positions that sort them): ascending, stable, NaN last, -0.0
/// equal to 0.0. They run in order, each with the arguments
///   (parameters: constant bytes, input, output, scratch).
struct SortPlan {
  struct Launch {
    KernelFunction function = nullptr;
    std::string name;
    int64_t units = 1, grain = 1;
  };
  std::vector<Launch> launches;
  std::vector<uint8_t> parameters;
  int64_t scratch_bytes = 0;
};
SortPlan plan_sort(DType dtype, int64_t rows, int64_t length, bool argsort);

}  // namespace unisono::jit
