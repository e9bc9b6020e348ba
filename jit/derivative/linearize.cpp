#include "jit/derivative/linearize.h"

#include <algorithm>

#include "jit/derivative/late_inputs.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/scalar/element.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;
using ir::Type;

Duals Linearizer::place(const Graph& graph, const Duals& arguments) {
  Duals placed(graph.nodes.size());
  std::unordered_map<NodeId, Duals> results;  // where project reads
  for (const NodeId id : ir::node_ids(graph)) {
    poll_stop();
    const Node& node = graph[id];
    source_ = node.source;
    Duals operands;
    for (const NodeId operand : node.inputs)
      operands.push_back(placed[operand]);
    if (node.op == Op::input)
      placed[id] = arguments[id];
    else if (node.op == Op::project)
      placed[id] =
          results[node.inputs[0]][ir::attrs<ir::ProjectAttrs>(node).index];
    else if (ir::has_results(node))
      results[id] = place_control(node, operands);
    else
      placed[id] = place_node(node, operands);
  }
  Duals outputs;
  for (const NodeId output : graph.outputs) outputs.push_back(placed[output]);
  return outputs;
}

Dual Linearizer::place_node(const Node& node, const Duals& x) {
  const bool moves = is_floating(node.type.dtype) &&
                     std::ranges::any_of(x, &Dual::has_tangent);
  if (moves && ir::kind(node.op) == ir::Kind::sort) return sorted(x[0]);
  Dual out{place_value(node, x)};
  if (!moves) return out;
  switch (ir::kind(node.op)) {
    case ir::Kind::map: out.tangent = map(node, x, out.value); break;
    case ir::Kind::reduce: out.tangent = reduce(node, x[0], out.value); break;
    case ir::Kind::scan: out.tangent = scan(node, x[0], out.value); break;
    case ir::Kind::move: out.tangent = move(node, x); break;
    case ir::Kind::index: out.tangent = index(node, x); break;
    case ir::Kind::dot: out.tangent = dot(node, x); break;
    case ir::Kind::collective:
      out.tangent = collective(node, x[0], out.value);
      break;
    case ir::Kind::argreduce:  // of integers, or without operands
    case ir::Kind::source:
    case ir::Kind::sort:
    case ir::Kind::control:
    case ir::Kind::host:
      check_failed("a kind of one result with a tangent", __FILE__, __LINE__);
  }
  return out;
}

NodeId Linearizer::place_value(const Node& node, const Duals& x) {
  Node copy = node;
  for (size_t i = 0; i < x.size(); ++i) copy.inputs[i] = x[i].value;
  return values_.append(std::move(copy));
}

// ---- building blocks --------------------------------------------------------

NodeId Linearizer::v(Op op, std::vector<NodeId> inputs, ir::Attrs attrs) {
  return values_.add(op, std::move(inputs), std::move(attrs), source_);
}

NodeId Linearizer::t(Op op, std::vector<NodeId> inputs, ir::Attrs attrs) {
  return tangents().add(op, std::move(inputs), std::move(attrs), source_);
}

NodeId Linearizer::v_number(const Type& type, double value) {
  return values_.add_constant(type, element_bytes(type.dtype, value), source_);
}

NodeId Linearizer::t_zeros(const Type& type) {
  return add_zeros(tangents(), type);
}

NodeId Linearizer::tangent_or_zeros(const Dual& x) {
  return x.has_tangent() ? x.tangent : t_zeros(Type(type(x)));
}

NodeId Linearizer::take(NodeId value) {
  if (!apart()) return value;
  if (const auto known = inputs_of_taken_.find(value);
      known != inputs_of_taken_.end())
    return known->second;
  const Node& node = values_[value];
  NodeId id = -1;
  if (ir::kind(node.op) == ir::Kind::source && node.op != Op::input) {
    id = tangents_.append(node);
  } else {
    id = add_late_input(tangents_, node.type);
    taken_.push_back(value);
    taken_inputs_.push_back(id);
  }
  inputs_of_taken_.emplace(value, id);
  return id;
}

NodeId Linearizer::plus(NodeId a, NodeId b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return t(Op::add, {a, b});
}

Graph Linearizer::finished_tangents(const std::vector<NodeId>& inputs) {
  std::vector<NodeId> all = inputs;
  all.insert(all.end(), taken_inputs_.begin(), taken_inputs_.end());
  const Graph graph = cse_dce(with_inputs(tangents_, all));
  std::vector<bool> used(graph.nodes.size(), false);
  for (const Node& node : graph.nodes)
    for (const NodeId operand : node.inputs) used[operand] = true;
  for (const NodeId output : graph.outputs) used[output] = true;
  std::vector<NodeId> stay, taken;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_tangent = i < inputs.size();
    if (!is_tangent && !used[i]) continue;
    stay.push_back(static_cast<NodeId>(i));
    if (!is_tangent) taken.push_back(taken_[i - inputs.size()]);
  }
  taken_ = std::move(taken);
  return with_inputs(graph, stay);
}

void Linearizer::join_equal_values(Duals& outputs) {
  CHECK(values_.outputs.empty());
  for (const Dual& output : outputs) values_.outputs.push_back(output.value);
  values_.outputs.insert(values_.outputs.end(), taken_.begin(), taken_.end());
  values_ = join_equal(values_);
  auto joined = values_.outputs.begin();
  for (Dual& output : outputs) output.value = *joined++;
  for (NodeId& value : taken_) value = *joined++;
  values_.outputs.clear();
}

std::vector<NodeId> values_of(const Duals& x) {
  std::vector<NodeId> out;
  for (const Dual& dual : x) out.push_back(dual.value);
  return out;
}

NodeId projected(Graph& graph, NodeId control, size_t index) {
  return graph.add(Op::project, {control},
                   ir::ProjectAttrs{static_cast<int>(index)});
}

NodeId add_zeros(Graph& graph, const Type& type) {
  return graph.add_constant(type, element_bytes(type.dtype, 0.0));
}

bool is_zero(const Graph& graph, NodeId id) {
  const Node* node = &graph[id];
  while (node->op == Op::broadcast || node->op == Op::reshape)
    node = &graph[node->inputs[0]];
  const auto* a = std::get_if<ir::ConstantAttrs>(&node->attrs);
  return a && std::ranges::all_of(a->bytes, [](uint8_t b) { return b == 0; });
}

}  // namespace unisono::jit
