#include "jit/ir/verify.h"

#include <fmt/format.h>

#include "jit/ir/kinds.h"

namespace unisono::ir {
namespace {

Error wrong(std::string what) {
  return {Error::Kind::compile_failed, std::move(what)};
}
Error broken(NodeId id, const std::string& what) {
  return wrong(fmt::format("%{}: {}", id, what));
}

Status verify_subgraph(NodeId id, const char* which,
                       const std::shared_ptr<const Graph>& graph) {
  if (!graph) return broken(id, fmt::format("no {} graph", which));
  if (auto good = verify(*graph); !good)
    return broken(
        id, fmt::format("in the {} graph: {}", which, good.error().message));
  return Unit{};
}

Status verify_subgraphs(NodeId id, const Node& node) {
  if (const auto* a = std::get_if<IfAttrs>(&node.attrs)) {
    TRY(verify_subgraph(id, "then", a->then_graph));
    return verify_subgraph(id, "else", a->else_graph);
  }
  if (const auto* a = std::get_if<LoopAttrs>(&node.attrs)) {
    if (!a->is_counted()) TRY(verify_subgraph(id, "condition", a->condition));
    return verify_subgraph(id, "body", a->body);
  }
  if (const auto* a = std::get_if<CallAttrs>(&node.attrs)) {
    TRY(verify_subgraph(id, "called", a->graph));
    return verify_subgraph(id, "rule's", a->rule);
  }
  return Unit{};
}

Status verify_input(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const auto* a = std::get_if<InputAttrs>(&node.attrs);
  if (!a || a->index != id || !node.inputs.empty())
    return broken(id, "an input's index is its id, and it has no operands");
  if (id >= static_cast<NodeId>(graph.inputs.size()) || graph.inputs[id] != id)
    return broken(id, "inputs come first and are listed in order");
  for (const Dim& d : node.type.shape)
    if (d.overflowed() || (d.is_constant() && d.value() < 0))
      return broken(id, "a size is negative or too large");
  return Unit{};
}

Result<Type> type_of(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op != Op::project) {
    std::vector<Type> operands;
    for (NodeId operand : node.inputs) operands.push_back(graph.type(operand));
    return infer_type(node.op, operands, node.attrs);
  }
  const auto* a = std::get_if<ProjectAttrs>(&node.attrs);
  if (!a || node.inputs.size() != 1)
    return wrong("`project` has one operand and an index");
  const Node& of = graph[node.inputs[0]];
  if (!has_results(of)) return wrong("`project` of what has one result");
  if (a->index < 0 || a->index >= result_count(of))
    return wrong(fmt::format("there is no result {}", a->index));
  return result_type(of, a->index);
}

}  // namespace

Status verify_node(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  for (NodeId operand : node.inputs)
    if (operand < 0 || operand >= id)
      return broken(
          id, fmt::format("operand %{} does not come before it", operand));
  if (node.op == Op::input) return verify_input(graph, id);
  TRY(verify_subgraphs(id, node));
  auto type = type_of(graph, id);
  if (!type) return broken(id, type.error().message);
  if (!(*type == node.type))
    return broken(id, fmt::format("is {}, but its operation gives {}",
                                  node.type.to_string(), type->to_string()));
  return Unit{};
}

Status verify(const Graph& graph) {
  const auto count = static_cast<NodeId>(graph.nodes.size());
  for (NodeId id : graph.inputs)
    if (id < 0 || id >= count || graph[id].op != Op::input)
      return broken(id, "is listed as an input and is none");
  for (NodeId id = 0; id < count; ++id) TRY(verify_node(graph, id));
  for (NodeId id : graph.outputs)
    if (id < 0 || id >= count) return broken(id, "an output that is no node");
  return Unit{};
}

}  // namespace unisono::ir
