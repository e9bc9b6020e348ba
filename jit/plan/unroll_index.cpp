// Reads and writes at indices, and branches, of arrays that are scalars
// (unroll.h). What is read from memory at an index is a gather; in
// registers an index that is not a constant becomes selects.
#include <algorithm>
#include <iterator>

#include "jit/ir/affine_view.h"
#include "jit/ir/kinds.h"
#include "jit/plan/unroll.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (int64_t size : sizes) out *= size;
  return out;
}

/// The coordinates of element `flat` of an array, row-major.
std::vector<int64_t> unravel(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t a = shape.size(); a-- > 0; flat /= shape[a])
    at[a] = flat % shape[a];
  return at;
}

int64_t ravel(const std::vector<int64_t>& at,
              const std::vector<int64_t>& shape) {
  int64_t flat = 0;
  for (size_t a = 0; a < shape.size(); ++a) flat = flat * shape[a] + at[a];
  return flat;
}

}  // namespace

/// `part` is the result of a gather: the axes of the indices, then the rest.
std::optional<Unroller::Indexing> Unroller::indexing(
    const std::vector<int64_t>& shape, const std::vector<int>& space,
    const std::vector<int>& axes, std::span<const Array> indices) const {
  Indexing out;
  const int index_rank = static_cast<int>(indices[0].shape.size());
  for (int a = 0; a < static_cast<int>(shape.size()); ++a)
    if (std::find(axes.begin(), axes.end(), a) == axes.end())
      out.rest.push_back(a);
  const std::vector<int>& index_space = indices[0].space;
  for (const Array& index : indices)
    if (index.space != index_space) return std::nullopt;
  size_t kept = 0;
  for (int axis : space) {
    const auto at = std::find(out.rest.begin(), out.rest.end(), axis);
    if (at == out.rest.end()) continue;
    ++kept;
    out.part_space.push_back(index_rank +
                             static_cast<int>(at - out.rest.begin()));
  }
  if (kept != 0 && kept != space.size()) return std::nullopt;
  out.by_index = kept == 0 && !space.empty();
  if (!index_space.empty()) {
    if (kept != 0) return std::nullopt;
    out.part_space = index_space;
  } else if (out.by_index) {
    return std::nullopt;  // other points' elements
  }
  return out;
}

/// Whether an index is the point's own place along axis `s` of the space.
bool Unroller::is_own_place(ExprId index, size_t s) const {
  const Expr& expr = nest_.exprs[index];
  if (expr.kind == Expr::Kind::operation && expr.op == Op::cast &&
      is_integer(expr.dtype) && byte_size(expr.dtype) >= 4)
    return is_own_place(expr.operands[0], s);
  Affine own = constant_affine(0, nest_.extents.size());
  own.factors[s] = 1;
  return expr.kind == Expr::Kind::iota && expr.at == own;
}

Unroller::Found Unroller::gather(const Graph& graph, const Node& node,
                                 Arrays x) {
  for (size_t i = 1; i < x.size(); ++i)
    if (!load(x[i])) return std::nullopt;
  if (x[0].uniform) return std::nullopt;
  if (x[0].held) return gather_held(graph, node, x);
  if (x[0].memory) return gather_memory(graph, node, x);
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const std::span<const Array> indices = std::span(x).subspan(1);
  const auto how = indexing(x[0].shape, x[0].space, axes, indices);
  if (!how) return std::nullopt;
  Array out{x[0].dtype, node.type.sizes(), how->part_space};
  if (!is_small(out)) return std::nullopt;
  const int64_t positions = count(indices[0]);
  const int64_t windows = count(out) / positions;
  for (int64_t p = 0; p < positions; ++p) {
    const auto choices = choices_of(graph, node, x[0], indices, p);
    if (!choices) return std::nullopt;
    for (int64_t w = 0; w < windows; ++w) {
      ExprId value = -1;
      for (const auto& [condition, places] : *choices) {
        const ExprId element =
            x[0].elements[element_at(x[0], axes, how->rest, places, w)];
        value = value < 0 ? element
                          : operation(Op::select, out.dtype, out.dtype,
                                      {condition, element, value});
      }
      out.elements.push_back(value);
    }
  }
  return out;
}

/// The places along the indexed axes that position `p` of the indices may mean,
/// each with the condition that it does; the first needs none. Nothing if the
/// indices may be out of bounds, or mean too many.
std::optional<std::vector<Unroller::Choice>> Unroller::choices_of(
    const Graph& graph, const Node& node, const Array& array,
    std::span<const Array> indices, int64_t p) {
  const auto& attrs = ir::attrs<ir::IndexAttrs>(node);
  const bool checked = checked_ && ir::must_stay(graph, node);
  std::vector<Choice> out = {{-1, {}}};
  for (size_t k = 0; k < attrs.axes.size(); ++k) {
    const ExprId index = indices[k].elements[static_cast<size_t>(p)];
    const int64_t size = array.shape[attrs.axes[k]];
    const auto own =
        std::find(array.space.begin(), array.space.end(), attrs.axes[k]);
    std::vector<Choice> next;
    if (own != array.space.end()) {
      if (!is_own_place(index, static_cast<size_t>(own - array.space.begin())))
        return std::nullopt;
      for (Choice& choice : out) choice.places.push_back(0);
      continue;
    }
    const auto value = known(index);
    if (value && *value >= -size && *value < size) {
      for (Choice& choice : out)
        choice.places.push_back(*value < 0 ? *value + size : *value);
      continue;
    }
    if ((checked && !is_inside(index, size)) ||
        size * static_cast<int64_t>(out.size()) > tuning().most_picked_elements)
      return std::nullopt;
    const ExprId place = wrapped(index, size);
    for (const Choice& choice : out)
      for (int64_t v = 0; v < size; ++v) {
        const ExprId here = operation(Op::eq, DType::Bool, DType::I64,
                                      {place, integer(DType::I64, v)});
        Choice longer = choice;
        longer.places.push_back(v);
        longer.condition =
            choice.condition < 0
                ? here
                : operation(Op::bit_and, DType::Bool, DType::Bool,
                            {choice.condition, here});
        next.push_back(std::move(longer));
      }
    out = std::move(next);
  }
  return out;
}

/// The number, among a point's elements, of that at `places` along the indexed
/// axes and at number `window` of the others.
size_t Unroller::element_at(const Array& array, const std::vector<int>& axes,
                            const std::vector<int>& rest,
                            const std::vector<int64_t>& places,
                            int64_t window) const {
  std::vector<int64_t> whole(array.shape.size(), 0), sizes;
  std::vector<int> small;
  for (int axis : rest)
    if (std::find(array.space.begin(), array.space.end(), axis) ==
        array.space.end()) {
      small.push_back(axis);
      sizes.push_back(array.shape[axis]);
    }
  const std::vector<int64_t> at = unravel(window, sizes);
  for (size_t i = 0; i < small.size(); ++i) whole[small[i]] = at[i];
  for (size_t i = 0; i < axes.size(); ++i) whole[axes[i]] = places[i];
  std::vector<int64_t> own;
  for (int axis : small_axes(array)) own.push_back(whole[axis]);
  return static_cast<size_t>(ravel(own, small_shape(array)));
}

Strided Unroller::lies(const Array& array) {
  return array.memory->view ? *array.memory->view : dense(array.shape);
}

/// What reads the first element of an array in memory, at each point of the
/// axes of the space.
Expr Unroller::first_read(const Array& array,
                          const std::vector<int>& space) const {
  const MemoryPlace& place = *array.memory;
  const auto [start, strides] = lies(array);
  Expr out{.kind = place.base.empty() ? Expr::Kind::load : Expr::Kind::gather,
           .dtype = array.dtype,
           .argument = place.argument,
           .at = constant_affine(start, nest_.extents.size()),
           .operands = place.base,
           .indexed = place.base_axes};
  for (size_t s = 0; s < space.size(); ++s)
    out.at.factors[s] = strides[space[s]];
  return out;
}

/// A move of an array in memory that no turn changes. What has few elements at
/// a point is loaded instead, and then moved.
Unroller::Found Unroller::view(const Array& x, const Node& node) const {
  if (!x.memory || x.held || !may_be_view(node)) return std::nullopt;
  Array out{x.dtype, node.type.sizes()};
  out.memory = x.memory;
  if (!x.memory->view) {
    if (node.op == Op::reshape) return out;  // dense, too
    ir::Type type{x.dtype, {}};
    for (const int64_t size : x.shape) type.shape.emplace_back(size);
    if (is_small(shaped(type))) return std::nullopt;
  }
  out.memory->view = moved(node, lies(x), x.shape);
  if (!out.memory->view) return std::nullopt;
  return out;
}

Unroller::Found Unroller::gather_memory(const Graph& graph, const Node& node,
                                        const Arrays& x) {
  const auto& attrs = ir::attrs<ir::IndexAttrs>(node);
  const std::span<const Array> indices = std::span(x).subspan(1);
  ir::Type type{x[0].dtype, {}};
  for (int64_t size : x[0].shape) type.shape.emplace_back(size);
  if (type.elements() == 0) return std::nullopt;
  // The space's axes lead those that are not indexed, unless indices say where
  // a point reads.
  std::vector<int> space;
  const size_t axes = nest_.extents.size();
  for (int a = 0; a < type.rank() && space.size() < axes; ++a)
    if (std::find(attrs.axes.begin(), attrs.axes.end(), a) == attrs.axes.end())
      space.push_back(a);
  bool fits = space.size() == axes && indices[0].space.empty();
  for (size_t s = 0; fits && s < axes; ++s)
    fits = x[0].shape[space[s]] == nest_.extents[s];
  if (!fits) space.clear();
  const auto how = indexing(x[0].shape, space, attrs.axes, indices);
  if (!how) return std::nullopt;
  Array out{x[0].dtype, node.type.sizes(), how->part_space};
  if (!is_small(out)) return std::nullopt;
  const bool can_fail = checked_ && ir::must_stay(graph, node);
  const auto strides = lies(x[0]).strides;
  const Expr first = first_read(x[0], space);
  std::vector<int64_t> sizes;
  std::vector<int> small;
  for (int axis : how->rest)
    if (std::find(space.begin(), space.end(), axis) == space.end()) {
      small.push_back(axis);
      sizes.push_back(x[0].shape[axis]);
    }
  for (int64_t p = 0; p < count(indices[0]); ++p)
    for (int64_t w = 0; w < product(sizes); ++w) {
      Expr expr = first;
      const std::vector<int64_t> at = unravel(w, sizes);
      for (size_t i = 0; i < small.size(); ++i)
        expr.at.constant += at[i] * strides[small[i]];
      bool inside = true;
      for (size_t k = 0; k < attrs.axes.size(); ++k)
        inside &=
            add_index(expr,
                      guarded_index(indices[k].elements[static_cast<size_t>(p)],
                                    x[0].shape[attrs.axes[k]], can_fail),
                      x[0].shape[attrs.axes[k]], strides[attrs.axes[k]]);
      expr.kind = expr.operands.empty() ? Expr::Kind::load : Expr::Kind::gather;
      if (can_fail && !inside) {
        expr.checked = true;
        expr.source = node.source;
        if (!set_member(expr, node, out)) return std::nullopt;
      }
      out.elements.push_back(intern(std::move(expr)));
    }
  return out;
}

/// Adds an index along an axis to where `expr` reads; gives whether it is known
/// to be inside.
bool Unroller::add_index(Expr& expr, ExprId index, int64_t size,
                         int64_t stride) {
  const bool inside = is_inside(index, size);
  if (inside && nest_.extents.empty() && nest_.exprs[index].dtype == DType::I32)
    index = widened(index);
  if (const auto value = known(index); value && inside) {
    expr.at.constant += *value * stride;
    return true;
  }
  if (nest_.exprs[index].kind == Expr::Kind::iota && inside) {
    expr.at = expr.at + scaled(nest_.exprs[index].at, stride, 0);
    return true;
  }
  expr.operands.push_back(index);
  expr.indexed.push_back({size, stride, inside});
  return inside;
}

/// Says to which member the check of a node belongs, if it is one of many.
bool Unroller::set_member(Expr& expr, const Node& node,
                          const Array& result) const {
  if (!node.by_member) return true;
  if (result.space.empty() || result.space[0] != 0) return false;
  expr.member = {constant_affine(0, nest_.extents.size()), 1};
  expr.member.element.factors[0] = 1;
  return true;
}

Unroller::Found Unroller::scatter(const Graph& graph, const Node& node,
                                  Arrays x) {
  if (!x[0].held && !load(x[0]) && !to_memory(x[0])) return std::nullopt;
  for (size_t i = 1; i < x.size(); ++i)
    if (!load(x[i])) return std::nullopt;
  if (x[0].held) return scatter_held(graph, node, x);
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const std::span<const Array> indices = std::span(x).subspan(2);
  const auto how = indexing(x[0].shape, x[0].space, axes, indices);
  if (!how || how->part_space != x[1].space || !is_small(x[0]))
    return std::nullopt;
  Array out = x[0];
  const int64_t positions = count(indices[0]);
  const int64_t windows = count(x[1]) / positions;
  for (int64_t p = 0; p < positions; ++p) {
    const auto choices = choices_of(graph, node, x[0], indices, p);
    if (!choices) return std::nullopt;
    for (int64_t w = 0; w < windows; ++w)
      for (const auto& [condition, places] : *choices) {
        ExprId& element =
            out.elements[element_at(x[0], axes, how->rest, places, w)];
        ExprId value = x[1].elements[static_cast<size_t>(p * windows + w)];
        if (node.op == Op::scatter_add)
          value = operation(Op::add, out.dtype, out.dtype, {element, value});
        element = condition < 0 ? value
                                : operation(Op::select, out.dtype, out.dtype,
                                            {condition, value, element});
      }
  }
  return out;
}

/// Both branches are computed: they have no effects, and few operations. What
/// may fail does so where its branch is taken.
std::optional<Unroller::Arrays> Unroller::branch(const Graph&, const Node& node,
                                                 Arrays x) {
  load(x[0]);  // a bool alone, which can be
  const auto& a = ir::attrs<ir::IfAttrs>(node);
  const ExprId condition = x[0].elements[0], outer = guard_;
  x.erase(x.begin());
  // Loops change memory in the branch that is taken alone, so for the other one
  // its states are what they were.
  auto keep_up = [&](Arrays& arrays, const Versions& since) {
    for (Array& array : arrays)
      if (array.held && array.version == version_in(since, array))
        array.version = version_in(versions_, array);
  };
  const Versions before = versions_;
  guard_ = both(outer, condition);
  auto ones = place(*a.then_graph, x);
  keep_up(x, before);
  const Versions between = versions_;
  guard_ = both(outer, negated(condition));
  auto others = place(*a.else_graph, std::move(x));
  guard_ = outer;
  if (!ones || !others) return std::nullopt;
  keep_up(*ones, between);
  for (size_t i = 0; i < ones->size(); ++i) {
    Array &one = (*ones)[i], &other = (*others)[i];
    if (one.held && other.held && is_current(one) && is_current(other) &&
        merge_held(condition, one, other))
      continue;
    if (!load(one) || !load(other) || !fits({one, other})) return std::nullopt;
    for (size_t e = 0; e < one.elements.size(); ++e)
      if (one.elements[e] != other.elements[e])
        one.elements[e] =
            operation(Op::select, one.dtype, one.dtype,
                      {condition, one.elements[e], other.elements[e]});
  }
  return ones;
}

}  // namespace unisono::jit
