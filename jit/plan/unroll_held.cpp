// Arrays that a loop holds in memory (unroll.h). A turn reads what memory had
// when it began, and what it has written itself: where a read may mean a
// written element, it is a choice. So writes come at the end, and a branch is
// conditions of writes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "jit/ir/kinds.h"
#include "jit/plan/unroll.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::Op;

ExprId Unroller::both(ExprId a, ExprId b) {
  if (a < 0) return b;
  return operation(Op::bit_and, DType::Bool, DType::Bool, {a, b});
}

ExprId Unroller::negated(ExprId condition) {
  return operation(Op::bit_not, DType::Bool, DType::Bool, {condition});
}

/// The value, or in a branch that is not taken the other one.
ExprId Unroller::guarded(ExprId value, int64_t otherwise) {
  if (guard_ < 0) return value;
  const DType dtype = nest_.exprs[value].dtype;
  return operation(Op::select, dtype, dtype,
                   {guard_, value, integer(dtype, otherwise)});
}

ExprId Unroller::guarded_index(ExprId index, int64_t size, bool can_fail) {
  return can_fail && !is_inside(index, size) ? guarded(index, 0) : index;
}

/// One element of a held array, and the check that the indices lie inside.
struct Unroller::HeldPlace {
  ExprId place = -1;  // its number at a point
  Expr read = {};     // by the indices, checked
  bool may_fail = false;
};

/// Where a point's elements begin.
Affine Unroller::own_part(const Array& array) const { return offset(array, 0); }

/// Position `p` of the indices, and number `window` of the elements there.
std::optional<Unroller::HeldPlace> Unroller::held_place(
    const Graph& graph, const Node& node, const Array& array,
    std::span<const Array> indices, int64_t p, const std::vector<int>& rest,
    int64_t window) {
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const bool can_fail = checked_ && ir::must_stay(graph, node);
  const std::vector<int64_t> strides = dense_strides(array.shape);
  HeldPlace out{.read = {.kind = Expr::Kind::gather,
                         .dtype = array.dtype,
                         .argument = array.memory->argument,
                         .checked = true,
                         .source = node.source,
                         .at = own_part(array)}};
  int64_t constant = 0;
  for (size_t a = rest.size(); a-- > 0;) {
    const auto axis = static_cast<size_t>(rest[a]);
    if (std::find(array.space.begin(), array.space.end(), rest[a]) !=
        array.space.end())
      continue;
    constant += window % array.shape[axis] * strides[axis];
    window /= array.shape[axis];
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    ExprId index = indices[k].elements[static_cast<size_t>(p)];
    const int64_t size = array.shape[axes[k]], stride = strides[axes[k]];
    const auto own = std::find(array.space.begin(), array.space.end(), axes[k]);
    if (own != array.space.end()) {
      if (!is_own_place(index, static_cast<size_t>(own - array.space.begin())))
        return std::nullopt;
      continue;
    }
    if (const auto value = known(index);
        value && *value >= -size && *value < size) {
      constant += (*value < 0 ? *value + size : *value) * stride;
      continue;
    }
    // A branch that is not taken may mean any place, but checks none.
    ExprId term = wrapped(index, size);
    index = guarded_index(index, size, can_fail);
    const bool inside = is_inside(index, size);
    out.may_fail = out.may_fail || (can_fail && !inside);
    out.read.operands.push_back(index);
    out.read.indexed.push_back({size, stride, inside});
    if (stride != 1)
      term = operation(Op::mul, DType::I64, DType::I64,
                       {term, integer(DType::I64, stride)});
    out.place = out.place < 0 ? term
                              : operation(Op::add, DType::I64, DType::I64,
                                          {out.place, term});
  }
  out.read.at.constant += constant;
  const ExprId fixed = integer(DType::I64, constant);
  out.place = out.place < 0   ? fixed
              : constant == 0 ? out.place
                              : operation(Op::add, DType::I64, DType::I64,
                                          {out.place, fixed});
  return out;
}

/// The check of a place as an expression, whose value is what memory has there;
/// -1 where nothing can fail.
std::optional<ExprId> Unroller::report_place(const Node& node,
                                             const HeldPlace& where,
                                             const Array& result,
                                             int64_t version) {
  if (!where.may_fail) return -1;
  Expr expr = where.read;
  if (!set_member(expr, node, result)) return std::nullopt;
  // Once in a turn: a read and a write of one element are one check.
  std::string key = fmt::format("{} {} {} {} {}", expr.argument, version, loop_,
                                expr.at.constant, guard_);
  for (size_t i = 0; i < expr.operands.size(); ++i)
    key += fmt::format(" {}*{}<{}", expr.operands[i], expr.indexed[i].stride,
                       expr.indexed[i].size);
  const auto [at, is_new] = checked_reads_.try_emplace(std::move(key), -1);
  if (is_new) at->second = fresh(std::move(expr));
  return at->second;
}

/// An element; `before`: what memory has there, if that is known.
ExprId Unroller::held_element(const Array& array, ExprId place, ExprId before) {
  const auto number = known(place);
  if (before < 0) {
    Expr expr{.kind = Expr::Kind::load,
              .dtype = array.dtype,
              .argument = array.memory->argument,
              .at = own_part(array)};
    if (number) {
      expr.at.constant += *number;
    } else {
      expr.kind = Expr::Kind::gather;
      expr.operands = {place};
      expr.indexed = {{count(array), 1, true}};
    }
    before = intern(std::move(expr), array.version);
  }
  ExprId value = before;
  for (const HeldWrite& write : array.writes) {
    ExprId hit = write.condition;
    if (write.place != place) {
      if (number && known(write.place)) continue;
      hit = both(hit, operation(Op::eq, DType::Bool, DType::I64,
                                {place, write.place}));
    }
    value = hit < 0 ? write.value
                    : operation(Op::select, array.dtype, array.dtype,
                                {hit, write.value, value});
  }
  return value;
}

Unroller::Found Unroller::gather_held(const Graph& graph, const Node& node,
                                      const Arrays& x) {
  if (!is_current(x[0])) return std::nullopt;
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const std::span<const Array> indices = std::span(x).subspan(1);
  const auto how = indexing(x[0].shape, x[0].space, axes, indices);
  if (!how) return std::nullopt;
  Array out{x[0].dtype, node.type.sizes(), how->part_space};
  if (!is_small(out)) return std::nullopt;
  const int64_t positions = count(indices[0]);
  const int64_t windows = count(out) / positions;
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t w = 0; w < windows; ++w) {
      const auto where =
          held_place(graph, node, x[0], indices, p, how->rest, w);
      if (!where) return std::nullopt;
      const auto before = report_place(node, *where, out, x[0].version);
      if (!before) return std::nullopt;
      out.elements.push_back(held_element(x[0], where->place, *before));
    }
  return out;
}

Unroller::Found Unroller::scatter_held(const Graph& graph, const Node& node,
                                       const Arrays& x) {
  if (!is_current(x[0])) return std::nullopt;
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const std::span<const Array> indices = std::span(x).subspan(2);
  const auto how = indexing(x[0].shape, x[0].space, axes, indices);
  if (!how || how->part_space != x[1].space) return std::nullopt;
  Array out = x[0];
  const int64_t positions = count(indices[0]);
  const int64_t windows = count(x[1]) / positions;
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t w = 0; w < windows; ++w) {
      if (out.writes.size() >= tuning().most_held_writes) return std::nullopt;
      const auto where = held_place(graph, node, out, indices, p, how->rest, w);
      if (!where) return std::nullopt;
      const auto before = report_place(node, *where, out, x[0].version);
      if (!before) return std::nullopt;
      ExprId value = x[1].elements[static_cast<size_t>(p * windows + w)];
      if (node.op == Op::scatter_add)
        value = operation(Op::add, out.dtype, out.dtype,
                          {held_element(out, where->place, *before), value});
      out.writes.push_back({where->place, value, -1});
    }
  return out;
}

/// Both results of a branch, of which `one` is held, are the same array,
/// written or not: gives to `one` the writes of both. False if they are not.
bool Unroller::merge_held(ExprId condition, Array& one, const Array& other) {
  if (!other.held || one.memory->argument != other.memory->argument ||
      one.version != other.version || !is_current(one))
    return false;
  auto [ours, theirs] = std::mismatch(one.writes.begin(), one.writes.end(),
                                      other.writes.begin(), other.writes.end());
  std::vector<HeldWrite> all(one.writes.begin(), ours);
  const auto append = [&](auto from, auto end, ExprId taken) {
    for (; from != end; ++from)
      all.push_back(
          {from->place, from->value,
           from->condition < 0 ? taken : both(taken, from->condition)});
  };
  // One write where each branch has one to this place.
  for (; ours != one.writes.end() && theirs != other.writes.end() &&
         ours->place == theirs->place && ours->condition < 0 &&
         theirs->condition < 0;
       ++ours, ++theirs)
    all.push_back({ours->place,
                   operation(Op::select, one.dtype, one.dtype,
                             {condition, ours->value, theirs->value}),
                   -1});
  append(ours, one.writes.end(), condition);
  append(theirs, other.writes.end(), negated(condition));
  one.writes = std::move(all);
  return true;
}

std::optional<std::vector<HeldWrite>> Unroller::writes_to(const Array& held,
                                                          Array value) {
  if (value.held && value.memory->argument == held.memory->argument) {
    if (!is_current(value)) return std::nullopt;
    return value.writes;
  }
  if (!settle(value) || value.space != held.space) return std::nullopt;
  std::vector<HeldWrite> out;
  for (size_t e = 0; e < value.elements.size(); ++e) {
    const ExprId place = integer(DType::I64, static_cast<int64_t>(e));
    if (held_element(held, place) != value.elements[e])
      out.push_back({place, value.elements[e], -1});
  }
  return out;
}

}  // namespace unisono::jit
