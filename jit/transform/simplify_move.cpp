#include <algorithm>
#include <numeric>

#include "jit/transform/simplify.h"

namespace unisono::jit {

using ir::Dim;
using ir::Node;
using ir::Op;
using ir::Shape;

namespace {

bool all_equal(const Shape& shape, int64_t value) {
  return std::all_of(shape.begin(), shape.end(),
                     [&](const Dim& d) { return d == Dim(value); });
}

bool is_ascending_from_0(const std::vector<int>& axes) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int>(i)) return false;
  return true;
}

ir::SliceAttrs joined(const ir::SliceAttrs& inner,
                      const ir::SliceAttrs& outer) {
  ir::SliceAttrs out = outer;
  for (size_t i = 0; i < out.start.size(); ++i) {
    // Where nothing is read the start need only be within the array.
    const bool reads = !(outer.size[i] == Dim(0));
    out.start[i] =
        reads ? inner.start[i] + outer.start[i] * inner.step[i] : Dim(0);
    out.step[i] = inner.step[i] * outer.step[i];
    if (outer.size[i] == Dim(0) || outer.size[i] == Dim(1)) out.step[i] = 1;
  }
  return out;
}

/// Of a list of axes, those whose size is not 1, sorted; twice is not at all.
std::vector<int> flipped_axes(const std::vector<int>& a,
                              const std::vector<int>& b, const Shape& shape) {
  std::vector<int> out;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    const auto times =
        std::count(a.begin(), a.end(), i) + std::count(b.begin(), b.end(), i);
    if (times == 1 && !(shape[i] == Dim(1))) out.push_back(i);
  }
  return out;
}

}  // namespace

std::optional<NodeId> Simplifier::rewrite_move(const Node& node) {
  const NodeId x = node.inputs[0];
  const bool rearranges = node.op != Op::pad && node.op != Op::concat;
  if (rearranges)
    if (const auto* bytes = one_value(x)) return constant(node.type, *bytes);
  const bool again = out_[x].op == node.op;
  const bool same_type = out_.type(x) == node.type;
  const NodeId under = again ? out_[x].inputs[0] : x;
  switch (ir::move_of(node.op)) {
    case ir::Move::reshape:
      if (same_type) return x;
      if (again) return emit(Op::reshape, {under}, node.attrs);
      return std::nullopt;
    case ir::Move::transpose: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(node).axes;
      if (is_ascending_from_0(axes)) return x;
      if (!again) return std::nullopt;
      std::vector<int> both;
      for (int axis : axes)
        both.push_back(ir::attrs<ir::AxesAttrs>(out_[x]).axes[axis]);
      return emit(Op::transpose, {under}, ir::AxesAttrs{both});
    }
    case ir::Move::broadcast: {
      const auto& a = ir::attrs<ir::BroadcastAttrs>(node);
      if (same_type && is_ascending_from_0(a.axes)) return x;
      if (!again) return std::nullopt;
      ir::BroadcastAttrs both{a.shape, {}};
      for (int axis : ir::attrs<ir::BroadcastAttrs>(out_[x]).axes)
        both.axes.push_back(a.axes[axis]);
      return emit(Op::broadcast, {under}, both);
    }
    case ir::Move::slice: {
      const auto& a = ir::attrs<ir::SliceAttrs>(node);
      if (same_type) return x;
      if (!again) return std::nullopt;
      return emit(Op::slice, {under},
                  joined(ir::attrs<ir::SliceAttrs>(out_[x]), a));
    }
    case ir::Move::flip: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(node).axes;
      const auto rest = flipped_axes(
          axes,
          again ? ir::attrs<ir::AxesAttrs>(out_[x]).axes : std::vector<int>(),
          node.type.shape);
      if (rest.empty()) return under;
      if (again || rest != axes)
        return emit(Op::flip, {under}, ir::AxesAttrs{rest});
      return std::nullopt;
    }
    case ir::Move::pad: {
      const auto& a = ir::attrs<ir::PadAttrs>(node);
      if (all_equal(a.low, 0) && all_equal(a.high, 0)) return x;
      return std::nullopt;
    }
    case ir::Move::concat: {
      const int axis = ir::attrs<ir::AxisAttrs>(node).axis;
      std::vector<NodeId> parts;
      for (NodeId part : node.inputs)
        if (!(out_.type(part).shape[axis] == Dim(0))) parts.push_back(part);
      if (parts.size() == 1) return parts[0];
      if (parts.empty()) return x;
      if (parts.size() == node.inputs.size()) return std::nullopt;
      return emit(Op::concat, parts, node.attrs);
    }
  }
  __builtin_unreachable();
}

std::optional<NodeId> Simplifier::rewrite_line(const Node& node) {
  const NodeId x = node.inputs[0];
  const Shape& shape = out_.type(x).shape;
  const auto is_one = [&](int axis) { return shape[axis] == Dim(1); };
  if (node.op == Op::argmax || node.op == Op::argmin) {
    if (is_one(ir::attrs<ir::ReduceAttrs>(node).axes[0]))
      return zeros(node.type);
    return std::nullopt;
  }
  if (ir::kind(node.op) == ir::Kind::scan) {
    if (is_one(ir::attrs<ir::ScanAttrs>(node).axis)) return x;
    return std::nullopt;
  }
  // A reduction of one element is the element.
  const auto& axes = ir::attrs<ir::ReduceAttrs>(node).axes;
  if (axes.empty()) return x;
  if (std::all_of(axes.begin(), axes.end(), is_one))
    return emit(Op::reshape, {x}, ir::ShapeAttrs{node.type.shape});
  return std::nullopt;
}

std::optional<NodeId> Simplifier::rewrite_source(const Node& node) {
  if (node.op == Op::iota) {
    const int axis = ir::attrs<ir::IotaAttrs>(node).axis;
    if (node.type.shape[axis] == Dim(1)) return zeros(node.type);
    return std::nullopt;
  }
  if (node.op != Op::constant || !node.type.is_concrete()) return std::nullopt;
  // Elements that are all the same are held once.
  const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
  const auto size = static_cast<size_t>(byte_size(node.type.dtype));
  if (bytes.size() <= size) return std::nullopt;
  if (!std::equal(bytes.begin() + size, bytes.end(), bytes.begin()))
    return std::nullopt;
  return constant(node.type, {bytes.begin(), bytes.begin() + size});
}

std::optional<NodeId> Simplifier::rewrite_collective(const Node& node) {
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  if (!(ir::member_count(a) == Dim(1))) return std::nullopt;
  if (node.op == Op::permute && a.pairs.empty()) return zeros(node.type);
  switch (ir::alone(ir::collective_of(node.op))) {
    case ir::Alone::same: return node.inputs[0];
    case ir::Alone::reshaped:
      return emit(Op::reshape, {node.inputs[0]},
                  ir::ShapeAttrs{node.type.shape});
    case ir::Alone::zeros: return zeros(node.type);
  }
  __builtin_unreachable();
}

}  // namespace unisono::jit
