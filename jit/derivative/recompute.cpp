#include <algorithm>

#include "jit/derivative/residuals.h"
#include "runtime/check.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::NodeId;

std::vector<bool> needed_for(const Graph& known,
                             const std::vector<NodeId>& kept,
                             const std::vector<NodeId>& wanted) {
  std::vector<bool> needed(known.nodes.size(), false);
  for (const NodeId id : wanted) needed[id] = true;
  std::vector<bool> is_kept(known.nodes.size(), false);
  for (const NodeId id : kept) is_kept[id] = true;
  for (size_t i = known.nodes.size(); i-- > 0;)
    if (needed[i] && !is_kept[i])
      for (const NodeId operand : known.nodes[i].inputs) needed[operand] = true;
  return needed;
}

std::vector<NodeId> recompute(Graph& out, const Graph& known, ir::Renaming have,
                              const std::vector<NodeId>& wanted) {
  std::vector<NodeId> there;
  for (const NodeId id : ir::node_ids(known))
    if (have.contains(id)) there.push_back(id);
  const std::vector<bool> needed = needed_for(known, there, wanted);
  for (const NodeId id : ir::node_ids(known)) {
    if (!needed[id] || have.contains(id)) continue;
    CHECK(known[id].op != ir::Op::input);  // those are there, or kept
    Node node = have.renamed(id);
    if (auto* a = std::get_if<ir::IndexAttrs>(&node.attrs)) a->checked = false;
    node.by_member = false;
    have.set(id, out.append(std::move(node)));
  }
  return have.renamed(wanted);
}

}  // namespace unisono::jit
