// Equal nodes become one, and nodes that nobody needs go. Both also happen
// inside the subgraphs of branches and loops, which lose captures that they do
// not read.
#include <algorithm>
#include <unordered_map>

#include "jit/ir/hash.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

using ir::Node;
using ir::Op;

std::shared_ptr<const Graph> cleaned(const std::shared_ptr<const Graph>& g) {
  return std::make_shared<const Graph>(cse_dce(*g));
}

/// Whether any node or output reads each input.
void mark_read(const Graph& g, std::vector<bool>& read) {
  const auto mark = [&](NodeId id) {
    if (id < static_cast<NodeId>(read.size())) read[id] = true;
  };
  for (const Node& node : g.nodes)
    for (NodeId operand : node.inputs) mark(operand);
  for (NodeId output : g.outputs) mark(output);
}

/// The graph without the inputs that are not kept (and that nobody reads).
std::shared_ptr<const Graph> without_inputs(const Graph& g,
                                            const std::vector<bool>& keep) {
  auto out = std::make_shared<Graph>();
  ir::Renaming placed(g);
  for (const NodeId id : ir::node_ids(g)) {
    const Node& node = g[id];
    if (node.op != Op::input)
      placed.set(id, out->append(placed.renamed(id)));
    else if (keep[id])
      placed.set(id, out->add_input(node.type, node.source));
  }
  out->outputs = placed.renamed(g.outputs);
  return out;
}

/// Cleans the two subgraphs of a control node and drops captures that neither
/// reads; the first `fixed` subgraph inputs (carries) stay, the operands before
/// the subgraphs' inputs are `offset`.
void clean_subgraphs(Node& node, std::shared_ptr<const Graph>& a,
                     std::shared_ptr<const Graph>& b, size_t offset,
                     size_t fixed) {
  a = cleaned(a);
  b = cleaned(b);
  std::vector<bool> keep(a->inputs.size(), false);
  mark_read(*a, keep);
  mark_read(*b, keep);
  std::fill_n(keep.begin(), fixed, true);
  if (std::find(keep.begin(), keep.end(), false) == keep.end()) return;
  a = without_inputs(*a, keep);
  b = without_inputs(*b, keep);
  std::vector<NodeId> operands(node.inputs.begin(),
                               node.inputs.begin() + offset);
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) operands.push_back(node.inputs[offset + i]);
  node.inputs = std::move(operands);
}

void clean_control(Node& node) {
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
    clean_subgraphs(node, a->then_graph, a->else_graph, 1, 0);
  if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
    clean_subgraphs(node, a->condition, a->body, 0,
                    static_cast<size_t>(a->carries));
}

/// The graph with equal nodes joined.
Graph join_equal(const Graph& graph) {
  Graph out;
  out.nodes.reserve(graph.nodes.size());
  std::unordered_multimap<size_t, NodeId> known;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    poll_stop();
    Node node = placed.renamed(id);
    clean_control(node);
    const auto* call = std::get_if<ir::HostCallAttrs>(&node.attrs);
    const bool unique = node.op == Op::input || (call && !call->pure);
    const size_t key = unique ? 0 : ir::hash(node);
    if (!unique) {
      const auto [begin, end] = known.equal_range(key);
      const auto same = std::find_if(begin, end, [&](const auto& entry) {
        return ir::equal(out[entry.second], node);
      });
      if (same != end) {
        placed.set(id, same->second);
        continue;
      }
    }
    placed.set(id, out.append(std::move(node)));
    if (!unique) known.emplace(key, placed[id]);
  }
  out.inputs = graph.inputs;
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

Graph drop_dead(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (NodeId id : graph.inputs) needed[id] = true;
  for (NodeId id : graph.outputs) needed[id] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!needed[i] && ir::must_stay(graph, graph.nodes[i])) needed[i] = true;
    if (needed[i])
      for (NodeId operand : graph.nodes[i].inputs) needed[operand] = true;
  }
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph))
    if (needed[id]) placed.set(id, out.append(placed.renamed(id)));
  out.inputs = graph.inputs;
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

}  // namespace

Graph cse_dce(const Graph& graph) { return drop_dead(join_equal(graph)); }

}  // namespace unisono::jit
