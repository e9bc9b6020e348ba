// Calls of the host: the members become those of the call.
#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"
#include "jit/vmap/vmap_rules.h"

namespace unisono::jit::vmapping {

using ir::Node;
using ir::Op;

Values Mapper::shared_call(const Node& node, const Values& x) {
  const int results = ir::result_count(node);
  Values out;
  if (!mask_) {
    const NodeId id = add(Op::host_call, ids(x), node.attrs);
    for (int i = 0; i < results; ++i)
      out.push_back({add(Op::project, {id}, ir::ProjectAttrs{i}), false});
    return out;
  }
  auto calls = std::make_shared<Graph>(), nothing = std::make_shared<Graph>();
  std::vector<NodeId> parameters, operands = {any_member()};
  for (const Value& v : x) {
    parameters.push_back(calls->add_input(out_.type(v.id)));
    nothing->add_input(out_.type(v.id));
    operands.push_back(v.id);
  }
  const NodeId call =
      calls->add(Op::host_call, std::move(parameters), node.attrs, node.source);
  for (int i = 0; i < results; ++i) {
    const ir::Type type = ir::result_type(node, i);
    calls->outputs.push_back(
        calls->add(Op::project, {call}, ir::ProjectAttrs{i}, node.source));
    nothing->outputs.push_back(nothing->add_constant(
        type, std::vector<uint8_t>(byte_size(type.dtype)), node.source));
  }
  const NodeId id =
      add(Op::if_else, std::move(operands), ir::IfAttrs{calls, nothing});
  for (int i = 0; i < results; ++i)
    out.push_back({add(Op::project, {id}, ir::ProjectAttrs{i}), false});
  return out;
}

NodeId Mapper::both_members(Value x, int64_t inner, bool has_inner) {
  const NodeId lifted = lift(x);
  ir::Type type = out_.type(lifted);
  NodeId both = lifted;
  if (!has_inner) {
    ir::BroadcastAttrs a{type.shape, {0}};
    a.shape.insert(a.shape.begin() + 1, ir::Dim(inner));
    for (int i = 1; i < type.rank(); ++i) a.axes.push_back(i + 1);
    both = add(Op::broadcast, {lifted}, std::move(a));
    type = out_.type(both);
  }
  ir::Shape flat(type.shape.begin() + 1, type.shape.end());
  flat[0] = ir::Dim(spec_.size * inner);
  return add(Op::reshape, {both}, ir::ShapeAttrs{std::move(flat)});
}

Values Mapper::place_routine(const Node& node, const Values& x) {
  ir::HostCallAttrs call = ir::attrs<ir::HostCallAttrs>(node);
  const bool mapped = std::ranges::any_of(x, &Value::mapped);
  std::vector<NodeId> operands;
  for (const Value& v : x) operands.push_back(mapped ? lift(v) : v.id);
  if (mapped)
    for (ir::Type& type : call.results) type = with_members(type);
  const int results = ir::result_count(node);
  const NodeId id = add(Op::host_call, std::move(operands), std::move(call));
  Values out;
  for (int i = 0; i < results; ++i)
    out.push_back({add(Op::project, {id}, ir::ProjectAttrs{i}), mapped});
  return out;
}

Values Mapper::place_host_call(const Node& node, const Values& x) {
  if (ir::is_routine(node)) return place_routine(node, x);
  ir::HostCallAttrs call = ir::attrs<ir::HostCallAttrs>(node);
  const bool inside =
      call.everywhere ||
      std::ranges::find(call.axes, spec_.axis) != call.axes.end();
  const bool varies = std::ranges::any_of(x, &Value::mapped);
  if (!inside || (call.pure && !varies)) return shared_call(node, x);

  const int64_t inner = call.members;  // those of a map inside this one, or 0
  const size_t count = x.size() - call.masked;
  std::vector<NodeId> operands;
  std::vector<int> mapped;
  for (size_t i = 0; i < count; ++i) {
    const bool of_inner = std::ranges::find(call.mapped, static_cast<int>(i)) !=
                          call.mapped.end();
    const bool is_mapped = x[i].mapped || of_inner;
    if (is_mapped) mapped.push_back(static_cast<int>(i));
    operands.push_back(
        is_mapped && inner > 0 ? both_members(x[i], inner, of_inner) : x[i].id);
  }
  std::optional<NodeId> takes_part = mask_;
  if (inner > 0) {
    if (mask_) takes_part = both_members({*mask_, true}, inner, false);
    if (call.masked) {
      const NodeId own = both_members(x.back(), inner, true);
      takes_part = takes_part ? add(Op::bit_and, {*takes_part, own}) : own;
    }
  }
  if (takes_part) operands.push_back(*takes_part);
  call.members = spec_.size * std::max<int64_t>(inner, 1);
  call.mapped = std::move(mapped);
  call.masked = takes_part.has_value();
  const NodeId id = add(Op::host_call, std::move(operands), call);
  if (inner == 0) out_[id].by_member = spec_.names_members;
  Values out;
  for (int i = 0; i < ir::result_count(node); ++i) {
    NodeId result = add(Op::project, {id}, ir::ProjectAttrs{i});
    if (inner > 0)
      result =
          add(Op::reshape, {result},
              ir::ShapeAttrs{with_members(ir::result_type(node, i)).shape});
    out.push_back({result, true});
  }
  return out;
}

}  // namespace unisono::jit::vmapping
