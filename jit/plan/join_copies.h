#pragma once
// Copies of arrays that nobody reads afterwards: the copy lies where the array
// does. So updates of an array that is not used any more are made in place, in
// straight code and under branches; those of a loop's carries are
// fuse_control's affair. Tests: tests/unit/jit/in_place_test.cpp.
#include <cstdint>
#include <functional>
#include <vector>

#include "jit/plan/fuse.h"

namespace unisono::jit {

/// Whether `result`, which the steps make of `before`, may be made in its
/// place: `before` is read before that alone, or at the same elements; a copy
/// of it to `result` would then do nothing. A branch of an IfTask may leave the
/// result to the other one.
bool may_replace(const PlanSteps& steps, BufferId before, BufferId result);

/// Names `to` by `from` everywhere, and drops what then copies nothing.
void rename(PlanSteps& steps, BufferId from, BufferId to);

/// Calls `f(source, bytes)` for the copies that are left in the loops of
/// `steps`, in order, of arrays that are updated there (PlanStep::sources).
void for_each_copied_update(
    const PlanSteps& steps,
    const std::function<void(uint32_t source, int64_t bytes)>& f);

/// Joins each buffer of one graph's steps with a copy of it that alone is used
/// afterwards. The graph's own buffers are the temporary ones from `first` on;
/// `outputs` are read after the steps. Linear in the steps.
void join_copies(const Plan& plan, BufferId first,
                 const std::vector<BufferId>& outputs, PlanSteps& steps);

}  // namespace unisono::jit
