#include "jit/reference/reference.h"
#include "jit/transform/simplify.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;

/// Operands that are one value everywhere give one value everywhere. A checked
/// error is left for when the program runs.
std::optional<NodeId> Simplifier::fold(const Node& node) {
  Graph scalar;
  for (NodeId id : node.inputs) {
    const auto* bytes = one_value(id);
    if (!bytes) return std::nullopt;
    scalar.add_constant({out_.type(id).dtype, {}}, *bytes);
  }
  std::vector<NodeId> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    operands.push_back(static_cast<NodeId>(i));
  scalar.outputs = {scalar.add(node.op, operands, node.attrs)};
  auto value = evaluate(scalar, {});
  if (!value) return std::nullopt;
  return constant(node.type, std::move((*value)[0].bytes));
}

std::optional<NodeId> Simplifier::rewrite_map(const Node& node) {
  if (auto folded = fold(node)) return folded;
  const auto& x = node.inputs;
  const Node& first = out_[x[0]];
  switch (node.op) {
    case Op::cast:
      if (first.type == node.type) return x[0];
      return std::nullopt;
    case Op::neg:
    case Op::bit_not:
      if (first.op == node.op) return first.inputs[0];
      return std::nullopt;
    case Op::abs:
      if (first.op == Op::abs || is_unsigned(node.type.dtype)) return x[0];
      return std::nullopt;
    case Op::select:
      if (x[1] == x[2]) return x[1];
      if (one_value(x[0])) return is_value(x[0], 1) ? x[1] : x[2];
      return std::nullopt;
    default: return x.size() == 2 ? rewrite_binary(node) : std::nullopt;
  }
}

std::optional<NodeId> Simplifier::rewrite_binary(const Node& node) {
  const NodeId x = node.inputs[0], y = node.inputs[1];
  const DType dtype = out_.type(x).dtype;
  const bool is_float = is_floating(dtype);
  // The value that leaves the other operand as it is. Floats: only -0.0 does
  // in a sum, for -0.0 + 0.0 is 0.0.
  const auto neutral = [&](NodeId id) {
    switch (node.op) {
      case Op::add: return is_value(id, is_float ? -0.0 : 0.0);
      case Op::bit_or:
      case Op::bit_xor: return is_value(id, 0);
      case Op::mul: return is_value(id, 1);
      case Op::bit_and:
        return is_value(id, is_bool(dtype) ? 1 : -1) && !is_unsigned(dtype);
      default: return false;
    }
  };
  // The value that decides alone.
  const auto absorbing = [&](NodeId id) {
    if (is_float) return false;
    switch (node.op) {
      case Op::mul:
      case Op::bit_and: return is_value(id, 0);
      case Op::bit_or: return is_bool(dtype) && is_value(id, 1);
      default: return false;
    }
  };
  if (neutral(y) || absorbing(x)) return x;
  if (neutral(x) || absorbing(y)) return y;
  switch (node.op) {
    case Op::sub:
    case Op::shift_left:
    case Op::shift_right:
      if (is_value(y, 0)) return x;
      break;
    case Op::div:
      if (is_value(y, 1)) return x;
      break;
    case Op::floor_div:
    case Op::pow:
      if (!is_float && is_value(y, 1)) return x;
      break;
    case Op::maximum:
    case Op::minimum:
    case Op::bit_and:
    case Op::bit_or:
      if (x == y) return x;
      break;
    default: break;
  }
  return std::nullopt;
}

}  // namespace unisono::jit
