#pragma once
// What routines compute (jit/ir/routines.def).
#include <vector>

#include "jit/ir/routines.h"
#include "jit/reference/reference.h"

namespace unisono::jit {

/// Computes the results, of which the types are there, from operands that fit
/// (CHECK), one matrix after the other. Ends with an error where the work is
/// stopped.
Status run_routine(ir::Routine routine, const std::vector<HostArray>& operands,
                   std::vector<HostArray>& results);

}  // namespace unisono::jit
