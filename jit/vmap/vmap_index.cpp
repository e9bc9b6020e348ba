// vmap of gather and scatter.
#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/vmap/vmap_rules.h"

namespace unisono::jit::vmapping {

using ir::Node;
using ir::Op;

namespace {

/// Operands before the index arrays: the array, and scatter's updates.
size_t arrays_of(const Node& node) { return node.op == Op::gather ? 1 : 2; }

bool any_mapped(const Values& x, size_t begin, size_t end) {
  return std::any_of(x.begin() + begin, x.begin() + end,
                     [](const Value& v) { return v.mapped; });
}

}  // namespace

Value Mapper::place_index(const Graph& graph, const Node& node, Values x) {
  const size_t arrays = arrays_of(node);
  const bool mapped = any_mapped(x, 0, x.size());
  if (mask_ && ir::must_stay(graph, node)) {
    const ir::Type array = member_type(x[0]);
    for (int axis : ir::attrs<ir::IndexAttrs>(node).axes)
      if (array.shape[axis] == ir::Dim(0)) return index_nothing(node, x);
    for (size_t i = arrays; i < x.size(); ++i) x[i] = guarded(x[i], mapped, 0);
  }
  if (!mapped) return {add(node.op, ids(x), node.attrs), false};
  const bool indices_mapped = any_mapped(x, arrays, x.size());
  // An array that all members share needs no members' axis to gather from.
  if (node.op == Op::gather && !x[0].mapped) {
    for (size_t i = arrays; i < x.size(); ++i) x[i] = {lift(x[i]), true};
    return checked(add(node.op, ids(x), node.attrs));
  }
  return indices_mapped ? index_each(node, x) : index_same(node, x);
}

/// Each member has indices of its own: the member's number is one more index.
Value Mapper::index_each(const Node& node, const Values& x) {
  const size_t arrays = arrays_of(node);
  ir::IndexAttrs attrs = ir::attrs<ir::IndexAttrs>(node);
  for (int& axis : attrs.axes) ++axis;
  attrs.axes.insert(attrs.axes.begin(), 0);
  std::vector<NodeId> operands;
  for (const Value& v : x) operands.push_back(lift(v));
  const ir::Type indices = member_type(x[arrays]);
  operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(arrays),
                  member_numbers(indices.dtype, indices.shape));
  return checked(add(node.op, std::move(operands), std::move(attrs)));
}

/// All members have the same indices: the members' axis belongs to the parts,
/// which lie behind the axes of the index arrays.
Value Mapper::index_same(const Node& node, const Values& x) {
  const size_t arrays = arrays_of(node);
  ir::IndexAttrs attrs = ir::attrs<ir::IndexAttrs>(node);
  for (int& axis : attrs.axes) ++axis;
  std::vector<NodeId> operands = ids(x);
  const int positions = out_.type(x[arrays].id).rank();
  operands[0] = lift(x[0]);
  if (node.op == Op::gather)
    return {to_front(add(node.op, operands, attrs), positions), true};
  // The updates' members' axis from the front to there.
  operands[1] = lift(x[1]);
  std::vector<int> axes;
  for (int i = 1; i <= positions; ++i) axes.push_back(i);
  axes.push_back(0);
  for (int i = positions + 1; i < out_.type(operands[1]).rank(); ++i)
    axes.push_back(i);
  operands[1] = add(Op::transpose, {operands[1]}, ir::AxesAttrs{axes});
  return {add(node.op, std::move(operands), std::move(attrs)), true};
}

/// An axis without elements has no harmless index: only if a member takes part
/// is there a check, which then fails if there is a position.
Value Mapper::index_nothing(const Node& node, const Values& x) {
  const bool mapped = any_mapped(x, 0, x.size());
  std::vector<ir::Type> types;
  Flags flags;
  for (const Value& v : x) {
    types.push_back(member_type(v));
    flags.push_back(v.mapped);
  }
  Node unchecked = node;
  std::get<ir::IndexAttrs>(unchecked.attrs).checked = false;
  std::shared_ptr<Graph> branches[2];
  for (int i = 0; i < 2; ++i) {
    Values inputs;
    Mapper part = subgraph(types, flags, &inputs);
    part.mask_.reset();
    part.source_ = source_;
    const Value value =
        part.place_index(part.out_, i ? unchecked : node, inputs);
    part.out_.outputs = {value.id};
    branches[i] = std::make_shared<Graph>(std::move(part.out_));
  }
  std::vector<NodeId> operands = ids(x);
  operands.push_back(*mask_);  // subgraphs take the mask last
  operands.insert(operands.begin(), any_member());
  const NodeId both = add(Op::if_else, std::move(operands),
                          ir::IfAttrs{branches[0], branches[1]});
  return {add(Op::project, {both}, ir::ProjectAttrs{0}), mapped};
}

}  // namespace unisono::jit::vmapping
