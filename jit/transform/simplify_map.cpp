#include <algorithm>
#include <numeric>

#include "jit/ir/kinds.h"
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

namespace {

/// Whether f(-x) is -f(x) to the bit, for every x.
bool is_odd(Op op) {
  switch (op) {
    case Op::sin:
    case Op::tan:
    case Op::asin:
    case Op::atan:
    case Op::sinh:
    case Op::tanh:
    case Op::asinh:
    case Op::atanh:
    case Op::erf:
    case Op::erf_inv: return true;
    default: return false;
  }
}

/// What the node is the negative of: x of -x, or x and c of -x * c.
struct Negated {
  NodeId value;
  std::optional<NodeId> factor = {};
};
std::optional<Negated> negated(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op == Op::neg) return Negated{node.inputs[0]};
  if (node.op != Op::mul) return std::nullopt;
  for (const size_t side : {0, 1}) {
    const Node& operand = graph[node.inputs[side]];
    const NodeId other = node.inputs[1 - side];
    if (operand.op == Op::neg && graph[other].op == Op::constant)
      return Negated{operand.inputs[0], other};
  }
  return std::nullopt;
}

}  // namespace

/// The sign comes out of an odd function, so that f(x) and f(-x) are computed
/// once.
std::optional<NodeId> Simplifier::rewrite_odd(const Node& node) {
  const auto from = negated(out_, node.inputs[0]);
  if (!is_odd(node.op) || !from) return std::nullopt;
  const NodeId positive =
      from->factor ? emit(Op::mul, {from->value, *from->factor}) : from->value;
  return emit(Op::neg, {emit(node.op, {positive})});
}

std::optional<NodeId> Simplifier::rewrite_map(const Node& node) {
  if (auto folded = fold(node)) return folded;
  const auto& x = node.inputs;
  const Node& first = out_[x[0]];
  switch (node.op) {
    case Op::cast:
      if (first.type == node.type) return x[0];
      return std::nullopt;
    case Op::stop_gradient: return x[0];  // derivatives are done
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
      return rewrite_chosen_scatter(node);
    default: return x.size() == 2 ? rewrite_binary(node) : rewrite_odd(node);
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

/// The condition of a `select` at the elements that a scatter writes, in the
/// shape of its updates; nothing unless that is a broadcast of few values.
std::optional<NodeId> Simplifier::at_positions(NodeId condition,
                                               const Node& scatter) {
  const Node broadcast = out_[condition];
  if (broadcast.op != Op::broadcast) return std::nullopt;
  const auto& to = ir::attrs<ir::BroadcastAttrs>(broadcast);
  const auto& at = ir::attrs<ir::IndexAttrs>(scatter);
  const ir::Shape shape = out_.type(scatter.inputs[1]).shape;
  std::vector<NodeId> operands = {broadcast.inputs[0]};
  std::vector<int> axes;
  for (size_t i = 0; i < to.axes.size(); ++i) {
    const auto found = std::ranges::find(at.axes, to.axes[i]);
    if (found == at.axes.end()) return std::nullopt;
    operands.push_back(scatter.inputs[2 + (found - at.axes.begin())]);
    axes.push_back(static_cast<int>(i));
  }
  NodeId value = operands[0];
  std::vector<int> positions;
  if (!axes.empty()) {
    positions.resize(out_.type(operands[1]).shape.size());
    std::iota(positions.begin(), positions.end(), 0);
    value = emit(Op::gather, operands, ir::IndexAttrs{axes, false});
  }
  return emit(Op::broadcast, {value}, ir::BroadcastAttrs{shape, positions});
}

/// An array or the same with elements written to it: a write of these elements
/// or of those that are there, which can be made in place. So writes under a
/// condition that `vmap` has made a `select` of cost what they write.
std::optional<NodeId> Simplifier::rewrite_chosen_scatter(const Node& select) {
  for (const size_t arm : {1, 2}) {
    const NodeId base = select.inputs[3 - arm];
    std::vector<NodeId> chain;
    NodeId at = select.inputs[arm];
    while (at != base && out_[at].op == Op::scatter) {
      chain.push_back(at);
      at = out_[at].inputs[0];
    }
    if (at != base || chain.empty()) continue;
    std::reverse(chain.begin(), chain.end());
    // The writes' own checks move behind what stands between.
    for (auto id = chain[0] + 1; id < static_cast<NodeId>(out_.nodes.size());
         ++id)
      if (std::ranges::find(chain, id) == chain.end() &&
          ir::must_stay(out_, out_[id]))
        return std::nullopt;
    std::vector<NodeId> conditions;
    for (const NodeId id : chain) {
      const auto condition = at_positions(select.inputs[0], Node(out_[id]));
      if (!condition) return std::nullopt;
      conditions.push_back(*condition);
    }
    NodeId array = base;
    for (size_t i = 0; i < chain.size(); ++i) {
      Node scatter = out_[chain[i]];
      std::get<ir::IndexAttrs>(out_.nodes[chain[i]].attrs).checked = false;
      auto part = ir::attrs<ir::IndexAttrs>(scatter);
      part.checked = false;
      std::vector<NodeId> operands(scatter.inputs);
      operands.erase(operands.begin() + 1);
      operands[0] = array;
      const NodeId there = emit(Op::gather, operands, part);
      const NodeId given = scatter.inputs[1];
      scatter.inputs[0] = array;
      scatter.inputs[1] = arm == 1
                              ? emit(Op::select, {conditions[i], given, there})
                              : emit(Op::select, {conditions[i], there, given});
      array = place(std::move(scatter));
    }
    return array;
  }
  return std::nullopt;
}

}  // namespace unisono::jit
