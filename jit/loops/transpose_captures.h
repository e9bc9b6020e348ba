#pragma once
// Matrices that every turn of a loop multiplies a vector by along their rows,
// turned round once before it.
#include "jit/ir/graph.h"

namespace unisono::jit {

/// Where the body of a counted loop contracts the last axis of a captured
/// matrix with a few vectors, the loop captures the transposed matrix instead:
/// the elements that are multiplied by one factor then lie side by side, and
/// a product is a pass over memory in vectors. Also in loops and branches. The
/// graph is concrete.
ir::Graph transpose_captures(const ir::Graph& graph);

}  // namespace unisono::jit
