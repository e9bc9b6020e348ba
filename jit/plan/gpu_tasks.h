#pragma once
// Sorts and products of matrices on GPUs: launches of the library's kernels.
#include <memory>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/packed_dot.h"
#include "jit/plan/lowering.h"
#include "runtime/grid.h"

namespace unisono::jit {

/// The launches, in order, that sort.
std::vector<LaunchStep> sort_steps(const SortTask& task, Plan& plan);

/// The launch of a product, with arguments a, b, c; null where a generated
/// kernel is as good. `shape` may also be of f16 or bf16.
std::shared_ptr<const GridLaunch> product_launch(const DotShape& shape,
                                                 ir::Precision precision);

}  // namespace unisono::jit
