#pragma once
// The parts of simplify: one function of rules per kind, in simplify_*.cpp.
#include <optional>

#include "jit/ir/graph.h"
#include "jit/ir/kinds.h"
#include "jit/transform/transforms.h"

namespace unisono::jit {

class Simplifier {
 public:
  Graph run(const Graph& graph);

 private:
  /// The node of out_ that stands for `node`, whose operands are nodes of out_:
  /// one that a rule gives, else `node` itself, appended.
  NodeId place(ir::Node node);
  /// All nodes of a graph, its inputs replaced by `arguments`.
  std::vector<NodeId> place_all(const Graph& graph,
                                const std::vector<NodeId>& arguments);
  void simplify_subgraphs(ir::Node& node);

  // The rules. Each gives a node that has the value of `node`, if it has one.
  std::optional<NodeId> rewrite(const ir::Node& node);
  std::optional<NodeId> rewrite_map(const ir::Node& node);
  std::optional<NodeId> rewrite_odd(const ir::Node& node);
  std::optional<NodeId> rewrite_binary(const ir::Node& node);
  std::optional<NodeId> rewrite_chosen_scatter(const ir::Node& select);
  std::optional<NodeId> at_positions(NodeId condition, const ir::Node& scatter);
  std::optional<NodeId> rewrite_index(const ir::Node& node);
  std::optional<NodeId> rewrite_scatter_add(const ir::Node& node);
  std::optional<NodeId> rewrite_box(const ir::Node& node);
  std::optional<NodeId> rewrite_gather(const ir::Node& node);
  std::optional<NodeId> rewrite_line(const ir::Node& node);
  std::optional<NodeId> rewrite_move(const ir::Node& node);
  std::optional<NodeId> rewrite_source(const ir::Node& node);
  std::optional<NodeId> rewrite_collective(const ir::Node& node);
  std::optional<NodeId> fold(const ir::Node& node);

  /// Appends a node for a rule, simplified in turn.
  NodeId emit(ir::Op op, std::vector<NodeId> inputs,
              ir::Attrs attrs = ir::NoAttrs{});
  NodeId constant(const ir::Type& type, std::vector<uint8_t> bytes);
  NodeId zeros(const ir::Type& type);
  /// The bytes of the element of a constant that is the same everywhere; null
  /// of other nodes.
  const std::vector<uint8_t>* one_value(NodeId id) const;
  /// Whether the node is a constant that has this value everywhere, to the bit
  /// (-0.0 is not 0.0).
  bool is_value(NodeId id, double value) const;

  Graph out_;
  uint32_t source_ = 0;
};

}  // namespace unisono::jit
