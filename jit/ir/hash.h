#pragma once
#include <cstddef>

#include "jit/ir/graph.h"

namespace unisono::ir {

/// A hash of operation, operands, attributes and type; equal nodes have equal
/// ones.
size_t hash(const Node& node);
/// Whether operation, operands, attributes and type are equal; `source` and
/// `by_member` do not count. Subgraphs are equal when they are the same object.
bool equal(const Node& a, const Node& b);

}  // namespace unisono::ir
