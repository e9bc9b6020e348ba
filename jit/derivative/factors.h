#pragma once
// The column of factors of the table of operations: what the derivative of a
// map by each of its operands is.
#include <cstddef>
#include <cstdint>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// The factor with which the tangent of an operand enters that of the result.
struct Factor {
  enum class Kind : uint8_t { zero, one, minus_one, node, unknown };
  Kind kind = Kind::zero;
  ir::NodeId node = -1;
};

/// What a row says: the factor of operand `operand` of `op`, a UNARY or BINARY
/// row, for float values `x` (and `y`) and the result `r`, nodes of `graph` to
/// which a factor's nodes are appended. `y` of a UNARY row is ignored.
Factor factor(ir::Graph& graph, ir::Op op, size_t operand, ir::NodeId x,
              ir::NodeId y, ir::NodeId r, uint32_t source);

/// Whether a float operand of a map with a float result has no part in the
/// derivative.
bool has_no_factor(ir::Op op, size_t operand);

}  // namespace unisono::jit
