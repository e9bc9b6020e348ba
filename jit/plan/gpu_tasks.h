#pragma once
// Sorts and products of matrices on GPUs: launches of the library's kernels.
#include <memory>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/packed_dot.h"
#include "runtime/grid.h"

namespace unisono::jit {

/// The launches, in order, that sort `rows` lines of `length` elements, or give
/// the positions that sort them; the result is that of plan_sort
/// (sort_kernels.h). A launch names its arrays by their roles.
struct GridSort {
  enum class Array : uint8_t { from, to, elements0, elements1, positions };
  struct Launch {
    std::shared_ptr<const GridLaunch> grid;
    std::vector<Array> arguments;
  };
  std::vector<Launch> launches;
  int64_t elements0_bytes = 0, elements1_bytes = 0, positions_bytes = 0;
};
GridSort plan_grid_sort(DType dtype, int64_t rows, int64_t length,
                        bool argsort);

/// The launch of a product, with arguments a, b, c; null where a generated
/// kernel is as good. `shape` may also be of f16 or bf16.
std::shared_ptr<const GridLaunch> grid_dot(const DotShape& shape,
                                           ir::Precision precision);

}  // namespace unisono::jit
