#pragma once
#include "jit/ir/graph.h"
#include "runtime/result.h"

namespace unisono::ir {

/// Well-formedness: operands precede uses, types are what the rules give,
/// attributes fit their operation, subgraphs are well-formed too. The error
/// names the node.
Status verify(const Graph& graph);

}  // namespace unisono::ir
