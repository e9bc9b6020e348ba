#pragma once
// Sorts and products of matrices on GPUs: launches of the library's kernels.
#include <vector>

#include "jit/ir/graph.h"
#include "jit/plan/lowering.h"

namespace unisono::jit {

/// The launches, in order, that sort.
std::vector<LaunchStep> sort_steps(const SortTask& task, Plan& plan);

/// The steps of a product (Lowering::product).
PlanSteps product_steps(DotTask dot, ir::Precision precision, Plan& plan);

}  // namespace unisono::jit
