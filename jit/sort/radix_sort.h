#pragma once
// Radix sort of lines: of all types, on all processors.
#include <cstdint>

#include "jit/sort/sort_kernels.h"

namespace unisono::jit {

/// Appends the launches of plan_sort, and says how much scratch they need.
void add_radix_sort(DType dtype, int64_t rows, int64_t length, bool argsort,
                    SortPlan& plan);

}  // namespace unisono::jit
