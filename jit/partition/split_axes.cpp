#include "jit/partition/split_axes.h"

#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/ir/reduce_order.h"

namespace unisono::jit {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;

constexpr int whole = SplitAxes::whole, apart = SplitAxes::apart;

int64_t product_before(const ir::Shape& shape, int axis) {
  int64_t out = 1;
  for (int i = 0; i < axis; ++i) out *= shape[i].value();
  return out;
}

/// An axis after others were removed.
int kept(int axis, const std::vector<int>& removed) {
  if (axis == whole) return whole;
  if (position_of(removed, axis) >= 0) return apart;
  return axis - static_cast<int>(std::ranges::count_if(
                    removed, [&](int r) { return r < axis; }));
}

/// Whether the results of any neighbouring parts, in order, combine to the
/// result of all: not so where each step rounds.
bool combines_freely(const Node& node) {
  return !is_floating(node.type.dtype) || node.op == Op::max ||
         node.op == Op::min;
}

}  // namespace

SplitAxes::SplitAxes(const ir::Graph& graph, const std::vector<int>& inputs,
                     int64_t devices)
    : graph_(graph), devices_(devices), of_(inputs) {
  for (size_t i = inputs.size(); i < graph.nodes.size(); ++i)
    of_.push_back(axis_of(static_cast<NodeId>(i)));
}

int SplitAxes::axis_of(NodeId id) const {
  const Node& node = graph_[id];
  bool any = false;
  for (NodeId operand : node.inputs) {
    if (of_[operand] == apart) return apart;
    any = any || of_[operand] != whole;
  }
  switch (ir::kind(node.op)) {
    case ir::Kind::map: return common(node.inputs);
    case ir::Kind::source: return whole;
    case ir::Kind::reduce: return reduced(node);
    case ir::Kind::argreduce:
      return kept(of_[node.inputs[0]], ir::attrs<ir::ReduceAttrs>(node).axes);
    case ir::Kind::scan: {
      const int axis = of_[node.inputs[0]];
      return axis == ir::attrs<ir::ScanAttrs>(node).axis ? apart : axis;
    }
    case ir::Kind::move: return any ? moved(node) : whole;
    case ir::Kind::dot: return any ? product(node) : whole;
    case ir::Kind::index:
    case ir::Kind::sort:
    case ir::Kind::control:
    case ir::Kind::collective:
    case ir::Kind::host: break;
  }
  return any || ir::must_stay(graph_, node) ? apart : whole;
}

int SplitAxes::common(const std::vector<NodeId>& operands) const {
  int axis = whole;
  for (NodeId operand : operands) {
    if (of_[operand] == whole) continue;
    if (axis != whole && axis != of_[operand]) return apart;
    axis = of_[operand];
  }
  return axis;
}

int SplitAxes::moved(const Node& node) const {
  const int axis = of_[node.inputs[0]];
  const ir::Shape& shape = graph_.type(node.inputs[0]).shape;
  if (node.op == Op::concat) {
    const int own = common(node.inputs);
    return own == ir::attrs<ir::AxisAttrs>(node).axis ? apart : own;
  }
  if (axis == whole) return apart;  // pad with a value of one block
  switch (ir::move_of(node.op)) {
    case ir::Move::transpose:
      return position_of(ir::attrs<ir::AxesAttrs>(node).axes, axis);
    case ir::Move::flip:
      return position_of(ir::attrs<ir::AxesAttrs>(node).axes, axis) < 0 ? axis
                                                                        : apart;
    case ir::Move::broadcast:
      return ir::attrs<ir::BroadcastAttrs>(node).axes[axis];
    case ir::Move::slice: {
      const auto& a = ir::attrs<ir::SliceAttrs>(node);
      return a.size[axis] == shape[axis] ? axis : apart;
    }
    case ir::Move::pad: {
      const auto& a = ir::attrs<ir::PadAttrs>(node);
      return node.type.shape[axis] == shape[axis] && a.low[axis] == ir::Dim(0)
                 ? axis
                 : apart;
    }
    case ir::Move::reshape: return reshaped(node, axis);
    case ir::Move::concat: break;  // above
  }
  return apart;
}

/// The axis that begins where `axis` does, counted in elements.
int SplitAxes::reshaped(const Node& node, int axis) const {
  const int64_t before =
      product_before(graph_.type(node.inputs[0]).shape, axis);
  for (int i = 0; i < node.type.rank(); ++i) {
    const int64_t size = node.type.shape[i].value();
    if (product_before(node.type.shape, i) == before && size > 1)
      return size % devices_ == 0 ? i : apart;
  }
  return apart;
}

int SplitAxes::product(const Node& node) const {
  const auto& a = ir::attrs<ir::DotAttrs>(node);
  const int left = of_[node.inputs[0]], right = of_[node.inputs[1]];
  const int batch = static_cast<int>(a.batch_a.size());
  auto is_free = [](int axis, const std::vector<int>& b,
                    const std::vector<int>& c) {
    return position_of(b, axis) < 0 && position_of(c, axis) < 0;
  };
  auto place = [](int axis, const std::vector<int>& b,
                  const std::vector<int>& c) {
    int out = 0;
    for (int i = 0; i < axis; ++i)
      out += position_of(b, i) < 0 && position_of(c, i) < 0;
    return out;
  };
  if (left != whole && right != whole) {
    const int at = position_of(a.batch_a, left);
    return at >= 0 && at == position_of(a.batch_b, right) ? at : apart;
  }
  if (left != whole)
    return is_free(left, a.batch_a, a.contract_a)
               ? batch + place(left, a.batch_a, a.contract_a)
               : apart;
  const int free_left = graph_.type(node.inputs[0]).rank() - batch -
                        static_cast<int>(a.contract_a.size());
  return is_free(right, a.batch_b, a.contract_b)
             ? batch + free_left + place(right, a.batch_b, a.contract_b)
             : apart;
}

int SplitAxes::reduced(const Node& node) const {
  const int axis =
      kept(of_[node.inputs[0]], ir::attrs<ir::ReduceAttrs>(node).axes);
  return axis == apart && partial_elements(node) > 0 ? whole : axis;
}

int64_t SplitAxes::partial_elements(const Node& node) const {
  if (ir::kind(node.op) != ir::Kind::reduce) return 0;
  const auto& a = ir::attrs<ir::ReduceAttrs>(node);
  const int axis = of_[node.inputs[0]];
  const ir::Type& type = graph_.type(node.inputs[0]);
  if (axis < 0 || position_of(a.axes, axis) < 0 ||
      a.order != ir::ReduceOrder::elements)
    return 0;
  // A block's elements must be neighbours in the order of the reduction.
  int64_t block = type.shape[axis].value() / devices_;
  for (int removed : a.axes) {
    if (removed == axis) continue;
    const int64_t size = type.shape[removed].value();
    if (removed < axis && size > 1 && is_floating(type.dtype)) return 0;
    block *= size;
  }
  if (block == 0) return 0;
  if (combines_freely(node)) return block;
  if (byte_size(type.dtype) < 4) return 0;  // the whole is rounded once
  const int64_t unit = a.axes.back() == type.rank() - 1 ? orders().reduce_chunk
                                                        : orders().reduce_run;
  return block % unit == 0 ? unit : 0;
}

}  // namespace unisono::jit
