#pragma once
#include <cstddef>

#include "jit/ir/graph.h"

namespace unisono::ir {

/// Of operation, operands, attributes and type; equal nodes have equal hashes.
size_t hash(const Node& node);
/// Everything but `source`. Subgraphs are equal when they are the same object.
bool equal(const Node& a, const Node& b);

}  // namespace unisono::ir
