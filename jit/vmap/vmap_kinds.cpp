// vmap of what computes and moves: the members' axis goes in front, so that a
// last axis stays the last one, and with it the order of reductions.
#include <algorithm>
#include <optional>

#include "jit/ir/kinds.h"
#include "jit/vmap/vmap_rules.h"

namespace unisono::jit::vmapping {

using ir::Dim;
using ir::Node;
using ir::Op;
using ir::Shape;

namespace {

std::vector<int> behind_members(std::vector<int> axes) {
  for (int& axis : axes) ++axis;
  return axes;
}

std::vector<int> with_front(std::vector<int> axes) {
  axes = behind_members(std::move(axes));
  axes.insert(axes.begin(), 0);
  return axes;
}

Shape with_front(Shape shape, const Dim& front) {
  shape.insert(shape.begin(), front);
  return shape;
}

/// The operand of a map operation that decides whether its check fails, and a
/// value of it with which that holds.
struct CheckedOperand {
  int place;
  int harmless;
};
std::optional<CheckedOperand> checked_operand(Op op) {
  switch (ir::row(op).check) {
    case ir::Check::divisor: return {{1, 1}};
    case ir::Check::exponent: return {{1, 0}};
    case ir::Check::none:
    case ir::Check::index: break;  // of no map operation
  }
  return std::nullopt;
}

}  // namespace

Value Mapper::place_map(const Graph& graph, const Node& node, Values x) {
  const bool mapped =
      std::any_of(x.begin(), x.end(), [](const Value& v) { return v.mapped; });
  const auto checked = checked_operand(node.op);
  if (checked && ir::must_stay(graph, node))
    x[checked->place] = guarded(x[checked->place], mapped, checked->harmless);
  std::vector<NodeId> operands;
  for (const Value& v : x) operands.push_back(mapped ? lift(v) : v.id);
  const NodeId id = add(node.op, std::move(operands), node.attrs);
  return mapped && checked ? this->checked(id) : Value{id, mapped};
}

Value Mapper::place_line(const Node& node, Value x) {
  ir::Attrs attrs = node.attrs;
  if (x.mapped) {
    if (auto* a = std::get_if<ir::ReduceAttrs>(&attrs))
      a->axes = behind_members(a->axes);
    if (auto* a = std::get_if<ir::ScanAttrs>(&attrs)) ++a->axis;
  }
  return {add(node.op, {x.id}, std::move(attrs)), x.mapped};
}

Value Mapper::place_move(const Node& node, const Values& x) {
  const bool mapped =
      std::any_of(x.begin(), x.end(), [](const Value& v) { return v.mapped; });
  if (!mapped) {
    std::vector<NodeId> operands = ids(x);
    return {add(node.op, std::move(operands), node.attrs), false};
  }
  if (node.op == Op::pad) return place_pad(node, x[0], x[1]);
  ir::Attrs attrs = node.attrs;
  const Dim members(spec_.size);
  if (auto* a = std::get_if<ir::ShapeAttrs>(&attrs)) {
    a->shape = with_front(a->shape, members);
  } else if (auto* a = std::get_if<ir::AxesAttrs>(&attrs)) {
    a->axes = node.op == Op::transpose ? with_front(a->axes)
                                       : behind_members(a->axes);
  } else if (auto* a = std::get_if<ir::BroadcastAttrs>(&attrs)) {
    *a = {with_front(a->shape, members), with_front(a->axes)};
  } else if (auto* a = std::get_if<ir::SliceAttrs>(&attrs)) {
    *a = {with_front(a->start, 0), with_front(a->step, 1),
          with_front(a->size, members)};
  } else if (auto* a = std::get_if<ir::AxisAttrs>(&attrs)) {
    ++a->axis;
  }
  std::vector<NodeId> operands;
  for (const Value& v : x) operands.push_back(lift(v));
  return {add(node.op, std::move(operands), std::move(attrs)), true};
}

Value Mapper::place_pad(const Node& node, Value x, Value value) {
  const auto& a = ir::attrs<ir::PadAttrs>(node);
  const ir::PadAttrs attrs{with_front(a.low, 0), with_front(a.high, 0)};
  const NodeId array = lift(x);
  if (!value.mapped) return {add(Op::pad, {array, value.id}, attrs), true};
  // Each member pads with its own value: pad with anything, and choose.
  const NodeId padded =
      add(Op::pad, {array, splat(member_type(value), 0)}, attrs);
  const NodeId inside = add(Op::pad,
                            {splat({DType::Bool, out_.type(array).shape}, 1),
                             splat({DType::Bool, {}}, 0)},
                            attrs);
  const NodeId values = spread(value.id, out_.type(padded).shape);
  return {add(Op::select, {inside, padded, values}), true};
}

Value Mapper::place_dot(const Node& node, Value a, Value b) {
  ir::DotAttrs d = ir::attrs<ir::DotAttrs>(node);
  // Where the members' axis comes out: batch axes, then the free ones of a,
  // then those of b.
  const int batch = static_cast<int>(d.batch_a.size());
  const int free_a =
      member_type(a).rank() - batch - static_cast<int>(d.contract_a.size());
  if (a.mapped) {
    d.batch_a = behind_members(d.batch_a);
    d.contract_a = behind_members(d.contract_a);
  }
  if (b.mapped) {
    d.batch_b = behind_members(d.batch_b);
    d.contract_b = behind_members(d.contract_b);
  }
  if (a.mapped && b.mapped) {
    d.batch_a.insert(d.batch_a.begin(), 0);
    d.batch_b.insert(d.batch_b.begin(), 0);
  }
  const NodeId out = add(Op::dot, {a.id, b.id}, d);
  if (!a.mapped && !b.mapped) return {out, false};
  const int place = a.mapped && b.mapped ? 0
                    : a.mapped           ? batch
                                         : batch + free_a;
  return {to_front(out, place), true};
}

}  // namespace unisono::jit::vmapping
