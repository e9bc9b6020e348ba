#pragma once
// The fields of each operation's attributes, as the printed form names them.
// `visit(name, field of a, field of b)` is called for each.
#include "jit/ir/graph.h"

namespace unisono::ir {

template <class A, class B, class Visit>
void for_each_field(A& a, B& b, Visit&& visit) {
  using T = std::remove_const_t<A>;
  if constexpr (std::is_same_v<T, ReduceAttrs>) {
    visit("axes", a.axes, b.axes);
    visit("order", a.order, b.order);
  } else if constexpr (std::is_same_v<T, ScanAttrs>) {
    visit("axis", a.axis, b.axis);
    visit("reverse", a.reverse, b.reverse);
  } else if constexpr (std::is_same_v<T, ShapeAttrs>) {
    visit("shape", a.shape, b.shape);
  } else if constexpr (std::is_same_v<T, AxesAttrs>) {
    visit("axes", a.axes, b.axes);
  } else if constexpr (std::is_same_v<T, BroadcastAttrs>) {
    visit("shape", a.shape, b.shape);
    visit("axes", a.axes, b.axes);
  } else if constexpr (std::is_same_v<T, SliceAttrs>) {
    visit("start", a.start, b.start);
    visit("step", a.step, b.step);
    visit("size", a.size, b.size);
  } else if constexpr (std::is_same_v<T, PadAttrs>) {
    visit("low", a.low, b.low);
    visit("high", a.high, b.high);
  } else if constexpr (std::is_same_v<T, AxisAttrs>) {
    visit("axis", a.axis, b.axis);
  } else if constexpr (std::is_same_v<T, InputAttrs>) {
    visit("index", a.index, b.index);
  } else if constexpr (std::is_same_v<T, IotaAttrs>) {
    visit("type", a.type, b.type);
    visit("axis", a.axis, b.axis);
  } else if constexpr (std::is_same_v<T, CastAttrs>) {
    visit("dtype", a.dtype, b.dtype);
  } else if constexpr (std::is_same_v<T, IndexAttrs>) {
    visit("axes", a.axes, b.axes);
    visit("checked", a.checked, b.checked);
  } else if constexpr (std::is_same_v<T, DotAttrs>) {
    visit("batch_a", a.batch_a, b.batch_a);
    visit("batch_b", a.batch_b, b.batch_b);
    visit("contract_a", a.contract_a, b.contract_a);
    visit("contract_b", a.contract_b, b.contract_b);
    visit("precision", a.precision, b.precision);
  } else if constexpr (std::is_same_v<T, IfAttrs>) {
    visit("then", a.then_graph, b.then_graph);
    visit("else", a.else_graph, b.else_graph);
  } else if constexpr (std::is_same_v<T, LoopAttrs>) {
    visit("carries", a.carries, b.carries);
    visit("turns", a.turns, b.turns);
    visit("backwards", a.backwards, b.backwards);
    visit("rows", a.rows, b.rows);
    visit("most", a.most, b.most);
    visit("recomputed", a.recomputed, b.recomputed);
    visit("count", a.count, b.count);
    visit("condition", a.condition, b.condition);
    visit("body", a.body, b.body);
  } else if constexpr (std::is_same_v<T, CallAttrs>) {
    visit("kind", a.kind, b.kind);
    visit("graph", a.graph, b.graph);
    visit("rule", a.rule, b.rule);
  } else if constexpr (std::is_same_v<T, ProjectAttrs>) {
    visit("index", a.index, b.index);
  } else if constexpr (std::is_same_v<T, CollectiveAttrs>) {
    visit("axes", a.axes, b.axes);
    visit("sizes", a.sizes, b.sizes);
    visit("reduce", a.reduce, b.reduce);
    visit("pairs", a.pairs, b.pairs);
    visit("groups", a.groups, b.groups);
    visit("dim", a.dim, b.dim);
    visit("tiled", a.tiled, b.tiled);
    visit("stays", a.stays, b.stays);
  } else if constexpr (std::is_same_v<T, HostCallAttrs>) {
    visit("format", a.format, b.format);
    visit("specs", a.specs, b.specs);
    visit("everywhere", a.everywhere, b.everywhere);
    visit("axes", a.axes, b.axes);
    visit("function", a.function, b.function);
    visit("number", a.number, b.number);
    visit("results", a.results, b.results);
    visit("pure", a.pure, b.pure);
    visit("members", a.members, b.members);
    visit("mapped", a.mapped, b.mapped);
    visit("masked", a.masked, b.masked);
  } else {
    // A constant's elements have a notation of their own.
    static_assert(std::is_same_v<T, NoAttrs> ||
                  std::is_same_v<T, ConstantAttrs>);
  }
}

/// The attributes that the printed form leaves out: those that follow from the
/// result's type, and defaults for the rest. `index` is the node's id, which is
/// an input's number.
Attrs usual_attrs(Op op, const Type& result, NodeId index);

}  // namespace unisono::ir
