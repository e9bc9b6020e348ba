#pragma once
#include "jit/ir/graph.h"
#include "runtime/result.h"

namespace unisono::ir {

/// Checks that the graph is well-formed: operands precede uses, types are what
/// the rules give, attributes fit their operation, subgraphs are well-formed,
/// too. The error names the node.
Status verify(const Graph& graph);
/// Checks one node, whose operands are well-formed.
Status verify_node(const Graph& graph, NodeId id);

}  // namespace unisono::ir
