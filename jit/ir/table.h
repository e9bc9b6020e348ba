#pragma once
// What a row of the table of operations (ops.def) says of its operation.
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "jit/ir/graph.h"
#include "jit/ir/type_class.h"

namespace unisono::ir {

/// The cost of one element: a few cycles; a division; so much that it is never
/// computed twice.
enum class Cost : uint8_t { cheap, slow, dear };
/// What must hold of an operand, or else the operation is an error.
enum class Check : uint8_t {
  none,
  divisor,   // operand 1, of integers, is not 0
  exponent,  // operand 1, of signed integers, is not negative
  index,     // index operands lie inside, where IndexAttrs::checked
};
/// The element that combines with any other to that other.
enum class Identity : uint8_t { zero, one, lowest, highest };

/// What a collective gives where there is one member: its operand, its operand
/// in the result's shape, or zeros.
enum class Alone : uint8_t { same, reshaped, zeros };

/// Row::operands where the type rule counts them.
inline constexpr int any_operands = -1;

/// One row of ops.def, or what follows from its kind.
struct Row {
  Op op;
  std::string_view name;
  Kind kind;
  TypeClass types;
  Cost cost;
  Check check;
  int operands;
  size_t attributes;  // which alternative of Attrs
  /// Of reductions and scans: how two elements are combined, and with what an
  /// empty reduction begins.
  std::optional<Op> combine;
  std::optional<Identity> identity;
  /// The interval that generated tests sample.
  std::pair<double, double> domain;
  std::string_view help;
};

const Row& row(Op op);
Alone alone(Collective op);
/// All rows, in the order of Op.
std::span<const Row> all_rows();

}  // namespace unisono::ir
