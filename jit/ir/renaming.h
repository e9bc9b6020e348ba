#pragma once
// Which node of a new graph stands for which node of an old one: what all
// passes need, as they make a graph from another one node by node.
#include <ranges>
#include <vector>

#include "jit/ir/graph.h"
#include "runtime/check.h"

namespace unisono::ir {

/// For each node of a graph `from`, the node of the graph under construction
/// that stands for it, once there is one. `from` outlives this object.
class Renaming {
 public:
  explicit Renaming(const Graph& from)
      : from_(&from), ids_(from.nodes.size(), none) {}

  bool contains(NodeId id) const { return ids_[id] != none; }
  /// The node that stands for `id`; there must be one (CHECK).
  NodeId operator[](NodeId id) const {
    UNISONO_CHECK(contains(id));
    return ids_[id];
  }
  /// Sets it, and returns it.
  NodeId set(NodeId id, NodeId stands_for_it) {
    return ids_[id] = stands_for_it;
  }
  /// A copy of a node of `from`, with its operands renamed.
  Node renamed(NodeId id) const {
    Node node = (*from_)[id];
    for (NodeId& operand : node.inputs) operand = (*this)[operand];
    return node;
  }
  /// The ids that stand for these.
  std::vector<NodeId> renamed(const std::vector<NodeId>& ids) const {
    std::vector<NodeId> out;
    out.reserve(ids.size());
    for (const NodeId id : ids) out.push_back((*this)[id]);
    return out;
  }

 private:
  static constexpr NodeId none = -1;
  const Graph* from_;
  std::vector<NodeId> ids_;
};

/// The ids of a graph's nodes, in order: operands before what reads them.
inline auto node_ids(const Graph& graph) {
  return std::views::iota(NodeId{0}, static_cast<NodeId>(graph.nodes.size()));
}

}  // namespace unisono::ir
