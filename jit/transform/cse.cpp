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

using Subgraph = std::shared_ptr<const Graph>;

/// Cleans subgraphs that take the same and drops what none of them reads; the
/// first `fixed` of their inputs stay. Gives which inputs are kept.
std::vector<bool> clean_subgraphs(std::initializer_list<Subgraph*> graphs,
                                  size_t fixed) {
  std::vector<bool> keep;
  for (Subgraph* graph : graphs) {
    *graph = cleaned(*graph);
    keep.resize((*graph)->inputs.size(), false);
    mark_read(**graph, keep);
  }
  std::fill_n(keep.begin(), fixed, true);
  if (std::find(keep.begin(), keep.end(), false) != keep.end())
    for (Subgraph* graph : graphs) *graph = without_inputs(**graph, keep);
  return keep;
}

/// Drops operands; operand `offset` + i is input i of the subgraphs.
void drop_operands(Node& node, const std::vector<bool>& keep,
                   ptrdiff_t offset) {
  std::vector<NodeId> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ptrdiff_t input = static_cast<ptrdiff_t>(i) - offset;
    if (input < 0 || keep[static_cast<size_t>(input)])
      operands.push_back(node.inputs[i]);
  }
  node.inputs = std::move(operands);
}

void clean_loop(Node& node, ir::LoopAttrs& a) {
  const auto fixed = a.parameter(static_cast<size_t>(a.carries));
  if (!a.is_counted()) {
    drop_operands(node, clean_subgraphs({&a.condition, &a.body}, fixed), 0);
    return;
  }
  const std::vector<bool> keep = clean_subgraphs({&a.body}, fixed);
  const auto rows = keep.begin() + static_cast<ptrdiff_t>(fixed);
  a.rows = static_cast<int>(std::count(rows, rows + a.rows, true));
  drop_operands(node, keep, -1);
}

void clean_control(Node& node) {
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
    drop_operands(node, clean_subgraphs({&a->then_graph, &a->else_graph}, 0),
                  1);
  if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) clean_loop(node, *a);
}

}  // namespace

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

namespace {

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
