#pragma once
// Sorting of lines by vector_sort.h: elements of four or eight bytes, and
// positions of elements of four, which stand in the lower half of a key.
#include <cstdint>

#include "jit/sort/sort_kernels.h"

namespace unisono::jit {

/// Appends the launches of plan_sort, and says how much scratch they need;
/// false where the types or the processor have none.
bool add_vector_sort(DType dtype, int64_t rows, int64_t length, bool argsort,
                     SortPlan& plan);

}  // namespace unisono::jit
