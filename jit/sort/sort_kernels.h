#pragma once
// Sorting along the last axis on a CPU: precompiled kernels that a program
// launches like generated ones.
#include <atomic>
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
/// The parameters.
struct SortedLines {
  int64_t rows, length;
};

SortPlan plan_sort(DType dtype, int64_t rows, int64_t length, bool argsort);

/// Whether the launch shall end.
inline bool stopped(const KernelContext* context) {
  return context->stop->load(std::memory_order_relaxed) ||
         context->cancel->load(std::memory_order_relaxed);
}

}  // namespace unisono::jit
