#include "jit/sort/sort_kernels.h"

#include <cstring>

#include "jit/sort/radix_sort.h"
#include "jit/sort/vector_lines.h"

namespace unisono::jit {

SortPlan plan_sort(DType dtype, int64_t rows, int64_t length, bool argsort) {
  SortPlan plan;
  const SortedLines lines{rows, length};
  plan.parameters.resize(sizeof lines);
  std::memcpy(plan.parameters.data(), &lines, sizeof lines);
  if (!add_vector_sort(dtype, rows, length, argsort, plan))
    add_radix_sort(dtype, rows, length, argsort, plan);
  return plan;
}

}  // namespace unisono::jit
