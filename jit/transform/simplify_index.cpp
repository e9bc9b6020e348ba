#include <algorithm>
#include <numeric>
#include <span>

#include "jit/transform/distinct.h"
#include "jit/transform/simplify.h"

namespace unisono::jit {

using ir::Dim;
using ir::Node;
using ir::Op;
using ir::Shape;

namespace {

/// The part of an array that a gather reads or a scatter writes, if it is a
/// box: by axis where it begins, in what steps it goes on and how long it is,
/// and the axis of the positions along which it does (-1: along none). Axes
/// that are not counted are whole, and have axes of their own behind those of
/// the positions.
struct Box {
  std::vector<int64_t> start, step, size;
  std::vector<int> along;
  int rank_of_positions = 0;

  /// The axes of what is read or written that are those of the array, in its
  /// order, and then those of size 1 that are none of it.
  std::vector<int> order(const std::vector<int>& counted) const {
    std::vector<int> out;
    int rest = rank_of_positions;
    for (int axis = 0; axis < static_cast<int>(size.size()); ++axis) {
      const int p = along[static_cast<size_t>(axis)];
      if (std::ranges::find(counted, axis) == counted.end())
        out.push_back(rest++);
      else if (p >= 0)
        out.push_back(p);
    }
    for (int p = 0; p < rank_of_positions; ++p)
      if (std::ranges::find(out, p) == out.end()) out.push_back(p);
    return out;
  }
};

std::optional<Box> box_of(const Graph& graph, const Node& node,
                          std::span<const NodeId> indices) {
  const std::vector<int64_t> shape = graph.type(node.inputs[0]).sizes();
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  if (axes.empty()) return std::nullopt;
  const std::vector<int64_t> positions = graph.type(indices[0]).sizes();
  Box out{std::vector<int64_t>(shape.size(), 0),
          std::vector<int64_t>(shape.size(), 1), shape,
          std::vector<int>(shape.size(), -1),
          static_cast<int>(positions.size())};
  std::vector<bool> used(positions.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto numbers = steps_of(graph, indices[i]);
    if (!numbers) return std::nullopt;
    const auto axis = static_cast<size_t>(axes[i]);
    out.start[axis] = numbers->start;
    out.size[axis] = 1;
    for (size_t p = 0; p < positions.size(); ++p) {
      if (positions[p] == 1 || numbers->steps[p] == 0) continue;
      if (numbers->steps[p] < 1 || out.along[axis] >= 0 || used[p])
        return std::nullopt;
      used[p] = true;
      out.along[axis] = static_cast<int>(p);
      out.step[axis] = numbers->steps[p];
      out.size[axis] = positions[p];
    }
    const int64_t last =
        out.start[axis] + out.step[axis] * (out.size[axis] - 1);
    if (out.start[axis] < 0 || last >= shape[axis]) return std::nullopt;
  }
  for (size_t p = 0; p < positions.size(); ++p)
    if (positions[p] != 1 && !used[p]) return std::nullopt;
  return out;
}

Shape dims(const std::vector<int64_t>& sizes) {
  return {sizes.begin(), sizes.end()};
}

}  // namespace

std::optional<NodeId> Simplifier::rewrite_index(const Node& node) {
  if (node.op == Op::scatter_add) return rewrite_scatter_add(node);
  return node.op == Op::scatter ? rewrite_box(node) : rewrite_gather(node);
}

/// What is read at the positions of a slice is the slice.
std::optional<NodeId> Simplifier::rewrite_gather(const Node& node) {
  if (node.type.elements() == 0) return std::nullopt;
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const auto box = box_of(out_, node, std::span(node.inputs).subspan(1));
  if (!box) return std::nullopt;
  const NodeId slice =
      emit(Op::slice, {node.inputs[0]},
           ir::SliceAttrs{dims(box->start), dims(box->step), dims(box->size)});
  // Its axes in the order of the array, without those of one position, and
  // then in the order of the positions.
  const std::vector<int> order = box->order(axes);
  Shape there;
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const auto axis = static_cast<size_t>(order[i]);
    there.push_back(node.type.shape[axis]);
    back[axis] = static_cast<int>(i);
  }
  const NodeId flat = emit(Op::reshape, {slice}, ir::ShapeAttrs{there});
  return emit(Op::transpose, {flat}, ir::AxesAttrs{back});
}

/// A box that is written over half of an array, or over what is the same
/// everywhere, is joined with what is left around it: so what computes it and
/// what reads it become one kernel with that. A smaller one is written in
/// place, where that may be.
std::optional<NodeId> Simplifier::rewrite_box(const Node& node) {
  const NodeId base = node.inputs[0];
  const std::vector<int64_t> shape = out_.type(base).sizes();
  const int64_t written = out_.type(node.inputs[1]).elements();
  if (written == 0 ||
      (!one_value(base) && written < out_.type(base).elements() / 2))
    return std::nullopt;
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const auto box = box_of(out_, node, std::span(node.inputs).subspan(2));
  const auto is_1 = [](int64_t step) { return step == 1; };
  if (!box || !std::ranges::all_of(box->step, is_1)) return std::nullopt;
  NodeId out =
      emit(Op::transpose, {node.inputs[1]}, ir::AxesAttrs{box->order(axes)});
  out = emit(Op::reshape, {out}, ir::ShapeAttrs{dims(box->size)});

  // Around it, from the last axis to the first.
  std::vector<int64_t> start = box->start, size = box->size;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t begin = start[axis], end = begin + size[axis];
    start[axis] = 0;
    size[axis] = shape[axis];
    const auto part = [&](int64_t from, int64_t to) {
      ir::SliceAttrs slice{dims(start), Shape(shape.size(), Dim(1)),
                           dims(size)};
      slice.start[axis] = Dim(from);
      slice.size[axis] = Dim(to - from);
      return emit(Op::slice, {base}, std::move(slice));
    };
    std::vector<NodeId> parts;
    if (begin > 0) parts.push_back(part(0, begin));
    parts.push_back(out);
    if (end < shape[axis]) parts.push_back(part(end, shape[axis]));
    if (parts.size() > 1)
      out = emit(Op::concat, parts, ir::AxisAttrs{static_cast<int>(axis)});
  }
  return out;
}

/// Where nothing has been added yet, and each position comes once, to add is to
/// set: in any order, where that would ask for one.
std::optional<NodeId> Simplifier::rewrite_scatter_add(const Node& node) {
  if (node.op != Op::scatter_add) return std::nullopt;
  const auto* start = one_value(node.inputs[0]);
  if (!start) return std::nullopt;
  const ir::Type type = out_.type(node.inputs[0]);
  std::vector<int64_t> sizes;
  for (const int axis : ir::attrs<ir::IndexAttrs>(node).axes)
    sizes.push_back(type.shape[static_cast<size_t>(axis)].value());
  if (!positions_differ(out_, std::span(node.inputs).subspan(2), sizes))
    return std::nullopt;
  Node scatter = node;
  scatter.op = Op::scatter;
  const NodeId before = constant(out_.type(node.inputs[1]), *start);
  scatter.inputs[1] = emit(Op::add, {before, node.inputs[1]});
  return place(std::move(scatter));
}

}  // namespace unisono::jit
