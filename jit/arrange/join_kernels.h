#pragma once
// Small kernels of a loop's turn, launched together; and sums over rows with
// what reduces the rows.
#include "jit/kernel/schedule.h"
#include "jit/plan/fuse.h"

namespace unisono::jit {

/// In loops that are not kernels themselves, small kernels that do not depend
/// on one another become one, with the nests of all: to launch one takes as
/// long as it runs. Kernels that may fail stay as they are, and so does what is
/// outside loops. `to_large_ones`: small kernels join large ones, too, as some
/// more blocks of a GPU's: a loop's counter then is no launch.
void join_kernels(PlanSteps& steps, bool to_large_ones);

/// Small reductions that do not depend on one another become one kernel, also
/// outside loops: the trees of a mean and of a variance take a GPU as long as
/// their launches do. Those that may fail stay as they are.
void join_reductions(PlanSteps& steps);

/// A kernel that adds rows goes into an earlier one that reduces the same rows
/// (rows_and_sums, jit/kernel/row_sums.h), if it depends on nothing between the
/// two: memory is read once for both. So for the gradient of a layer_norm.
void join_row_sums(PlanSteps& steps, const Machine& machine);

}  // namespace unisono::jit
