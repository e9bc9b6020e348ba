#include "jit/scalar/element.h"
#include "jit/vmap/vmap_rules.h"

#include <numeric>

#include "jit/ir/kinds.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit {

ir::Graph vmap(const ir::Graph& graph, const VmapSpec& spec) {
  CHECK(spec.mapped.size() == graph.inputs.size());
  CHECK(spec.stacked.empty() || spec.stacked.size() == graph.outputs.size());
  CHECK(spec.size >= 0 && spec.devices >= 1);
  VmapSpec used = spec;
  if (spec.size == 0) used.devices = 1;  // nobody meets
  return vmapping::Mapper(used).run(graph);
}

namespace vmapping {

using ir::Node;
using ir::Op;
using ir::Shape;
using ir::Type;

Graph Mapper::run(const Graph& graph) {
  Values arguments;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    arguments.push_back(input(graph.type(graph.inputs[i]), spec_.mapped[i]));
  const Values outputs = place(graph, arguments);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool stacked = spec_.stacked.empty() || spec_.stacked[i];
    out_.outputs.push_back(stacked             ? lift(outputs[i])
                           : outputs[i].mapped ? row(outputs[i].id, 0)
                                               : outputs[i].id);
  }
  return std::move(out_);
}

Value Mapper::input(const Type& member_type, bool mapped) {
  return {out_.add_input(mapped ? with_members(member_type) : member_type),
          mapped};
}

Values Mapper::place(const Graph& graph, const Values& arguments) {
  Values placed(graph.nodes.size());
  std::unordered_map<NodeId, Values> results;  // where project reads
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    poll_stop();
    const Node& node = graph.nodes[i];
    source_ = node.source;
    Values operands;
    for (NodeId operand : node.inputs) operands.push_back(placed[operand]);
    if (node.op == Op::input) {
      placed[i] = arguments[i];
    } else if (node.op == Op::project) {
      placed[i] =
          results[node.inputs[0]][ir::attrs<ir::ProjectAttrs>(node).index];
    } else if (ir::has_results(node)) {
      Values all = node.op == Op::if_else ? place_if(node, operands)
                   : node.op == Op::loop  ? place_loop(node, operands)
                   : node.op == Op::call  ? place_call(node, operands)
                                          : place_host_call(node, operands);
      if (!all.empty()) placed[i] = all[0];
      results[static_cast<NodeId>(i)] = std::move(all);
    } else {
      placed[i] = place_node(graph, node, operands);
    }
  }
  Values outputs;
  for (NodeId output : graph.outputs) outputs.push_back(placed[output]);
  return outputs;
}

Value Mapper::place_node(const Graph& graph, const Node& node,
                         const Values& x) {
  switch (ir::kind(node.op)) {
    case ir::Kind::map: return place_map(graph, node, x);
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::sort: return place_line(node, x[0]);
    case ir::Kind::move: return place_move(node, x);
    case ir::Kind::source: return {add(node.op, {}, node.attrs), false};
    case ir::Kind::index: return place_index(graph, node, x);
    case ir::Kind::dot: return place_dot(node, x[0], x[1]);
    case ir::Kind::collective: return place_collective(node, x);
    case ir::Kind::host:
    case ir::Kind::control: break;
  }
  check_failed("a node that is placed alone", __FILE__, __LINE__);
}

// ---- building blocks --------------------------------------------------------

NodeId Mapper::add(Op op, std::vector<NodeId> inputs, ir::Attrs attrs) {
  return out_.add(op, std::move(inputs), std::move(attrs), source_);
}

Value Mapper::checked(NodeId id) {
  out_[id].by_member = spec_.names_members;
  return {id, true};
}

Type Mapper::member_type(Value x) const {
  Type type = out_.type(x.id);
  if (x.mapped) type.shape.erase(type.shape.begin());
  return type;
}

Type Mapper::with_members(const Type& type) const {
  Type out = type;
  out.shape.insert(out.shape.begin(), ir::Dim(spec_.size));
  return out;
}

NodeId Mapper::lift(Value x) {
  if (x.mapped) return x.id;
  const Type type = with_members(out_.type(x.id));
  ir::BroadcastAttrs a{type.shape, {}};
  for (int i = 1; i < type.rank(); ++i) a.axes.push_back(i);
  return add(Op::broadcast, {x.id}, std::move(a));
}

NodeId Mapper::splat(const Type& type, int64_t value) {
  return out_.add_constant(type, jit::element_bytes(type.dtype, value),
                           source_);
}

NodeId Mapper::member_numbers(DType dtype, const Shape& shape) {
  return add(Op::iota, {}, ir::IotaAttrs{with_members({dtype, shape}), 0});
}

NodeId Mapper::spread(NodeId flags, const Shape& shape) {
  if (shape.size() == 1) return flags;
  return add(Op::broadcast, {flags}, ir::BroadcastAttrs{shape, {0}});
}

NodeId Mapper::choose(NodeId flags, Value a, Value b) {
  const NodeId x = lift(a), y = lift(b);
  if (x == y) return x;
  return add(Op::select, {spread(flags, out_.type(x).shape), x, y});
}

NodeId Mapper::row(NodeId x, int64_t index) {
  ir::SliceAttrs slice;
  slice.size = out_.type(x).shape;
  slice.start.assign(slice.size.size(), 0);
  slice.step.assign(slice.size.size(), 1);
  slice.start[0] = index;
  slice.size[0] = 1;
  const Shape rest(slice.size.begin() + 1, slice.size.end());
  return add(Op::reshape, {add(Op::slice, {x}, std::move(slice))},
             ir::ShapeAttrs{rest});
}

NodeId Mapper::to_front(NodeId x, int axis) {
  if (axis == 0) return x;
  std::vector<int> axes = {axis};
  for (int i = 0; i < out_.type(x).rank(); ++i)
    if (i != axis) axes.push_back(i);
  return add(Op::transpose, {x}, ir::AxesAttrs{axes});
}

NodeId Mapper::turned(NodeId x) { return to_front(x, 1); }

// ---- members that take no part ----------------------------------------------

NodeId Mapper::any_member() {
  return add(Op::any, {*mask_},
             ir::ReduceAttrs{{0}, ir::ReduceOrder::elements});
}

Value Mapper::guarded(Value x, bool mapped, int64_t harmless) {
  if (!mask_) return x;
  const Value safe = {splat(member_type(x), harmless), false};
  if (mapped) return {choose(*mask_, x, safe), true};
  NodeId any = any_member();
  const Shape shape = out_.type(x.id).shape;
  if (!shape.empty())
    any = add(Op::broadcast, {any}, ir::BroadcastAttrs{shape, {}});
  return {add(Op::select, {any, x.id, safe.id}), false};
}

}  // namespace vmapping
}  // namespace unisono::jit
