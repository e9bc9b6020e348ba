#pragma once
// Arrays that are the same in every run, computed when a program is compiled.
#include "jit/ir/graph.h"

namespace unisono::jit {

/// Arrays that no input has a part in, and that are dear to compute, become
/// constants, also in branches and loops. The graph is concrete.
ir::Graph fold_arrays(const ir::Graph& graph);

}  // namespace unisono::jit
