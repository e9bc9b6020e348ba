// Results of branches and loops that nobody reads are not computed: stacks,
// carries that serve themselves alone, and what a derivative needed no more.
#include <algorithm>
#include <memory>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

using ir::LoopAttrs;
using ir::Node;
using ir::Op;
using Flags = std::vector<bool>;

/// What is needed for some outputs, and for what must stay.
Flags needed_nodes(const Graph& graph, const Flags& outputs) {
  Flags needed(graph.nodes.size(), false);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) needed[graph.outputs[i]] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!needed[i] && ir::must_stay(graph, graph.nodes[i])) needed[i] = true;
    if (needed[i])
      for (const NodeId operand : graph.nodes[i].inputs) needed[operand] = true;
  }
  return needed;
}

/// The graph with some of its inputs, which are all that the outputs need, and
/// some of its outputs.
std::shared_ptr<const Graph> part(const Graph& graph, const Flags& inputs,
                                  const Flags& outputs) {
  const Flags needed = needed_nodes(graph, outputs);
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    const Node& node = graph[id];
    if (node.op == Op::input) {
      if (inputs[static_cast<size_t>(id)])
        placed.set(id, out.add_input(node.type, node.source));
    } else if (needed[id]) {
      placed.set(id, out.append(placed.renamed(id)));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) out.outputs.push_back(placed[graph.outputs[i]]);
  return std::make_shared<const Graph>(drop_dead_results(out));
}

/// Which results a loop must compute so that `read` ones are right.
Flags live_results(const LoopAttrs& a, Flags read) {
  const auto carries = static_cast<size_t>(a.carries);
  if (a.condition) {
    const Flags needed = needed_nodes(*a.condition, {true});
    for (size_t i = 0; i < carries; ++i)
      if (needed[a.condition->inputs[i]]) read[i] = true;
  }
  while (true) {
    const Flags before = read;
    const Flags needed = needed_nodes(*a.body, read);
    for (size_t i = 0; i < carries; ++i)
      if (needed[a.body->inputs[a.parameter(i)]]) read[i] = true;
    if (read == before) return read;
  }
}

void keep_loop_results(Node& node, LoopAttrs& a, const Flags& live) {
  const auto carries = static_cast<size_t>(a.carries);
  Flags operands(node.inputs.size(), true);
  std::copy_n(live.begin(), carries, operands.begin());
  Flags parameters = operands;
  if (a.is_counted()) parameters.insert(parameters.begin(), true);
  a.body = part(*a.body, parameters, live);
  if (a.condition) a.condition = part(*a.condition, operands, {true});
  a.carries = static_cast<int>(std::count(
      live.begin(), live.begin() + static_cast<ptrdiff_t>(carries), true));
  std::vector<NodeId> kept;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i]) kept.push_back(node.inputs[i]);
  node.inputs = std::move(kept);
}

/// Narrows a control node to the results that are read, and those they need;
/// gives which these are.
Flags narrow(Node& node, Flags read) {
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
    const Flags inputs(node.inputs.size() - 1, true);
    a->then_graph = part(*a->then_graph, inputs, read);
    a->else_graph = part(*a->else_graph, inputs, read);
  } else {
    auto& loop = std::get<LoopAttrs>(node.attrs);
    CHECK(loop.count < 0);
    read = live_results(loop, std::move(read));
    keep_loop_results(node, loop, read);
  }
  const bool any = std::ranges::find(read, true) != read.end();
  node.type = any ? ir::result_type(node, 0) : ir::Type{DType::Bool, {}};
  return read;
}

}  // namespace

Graph drop_dead_results(const Graph& graph) {
  const Flags needed = needed_nodes(graph, Flags(graph.outputs.size(), true));
  // By control node: which results are read.
  std::vector<Flags> read(graph.nodes.size());
  for (const NodeId id : ir::node_ids(graph)) {
    const Node& node = graph[id];
    if (node.op == Op::if_else || node.op == Op::loop)
      read[id].resize(static_cast<size_t>(ir::result_count(node)), false);
    if (node.op == Op::project && needed[id] && !read[node.inputs[0]].empty())
      read[node.inputs[0]]
          [static_cast<size_t>(ir::attrs<ir::ProjectAttrs>(node).index)] = true;
  }
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    Node node = graph[id];
    if (node.op != Op::input && !needed[id]) continue;
    if (node.op == Op::project && !read[node.inputs[0]].empty()) {
      auto& a = std::get<ir::ProjectAttrs>(node.attrs);
      const Flags& stays = read[node.inputs[0]];
      a.index = static_cast<int>(
          std::count(stays.begin(), stays.begin() + a.index, true));
    }
    for (NodeId& operand : node.inputs) operand = placed[operand];
    const bool control = node.op == Op::if_else || node.op == Op::loop;
    if (control) read[id] = narrow(node, read[id]);
    placed.set(id, out.append(std::move(node)));
  }
  out.inputs = graph.inputs;
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

}  // namespace unisono::jit
