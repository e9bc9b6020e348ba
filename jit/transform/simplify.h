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
  /// What stands for `node` (operands are nodes of out_): the node itself,
  /// appended, unless a rule knows better.
  NodeId place(ir::Node node);
  /// All nodes of a graph, its inputs replaced by `arguments`.
  std::vector<NodeId> place_all(const Graph& graph,
                                const std::vector<NodeId>& arguments);
  void simplify_subgraphs(ir::Node& node);

  // The rules: a node that has the same value.
  std::optional<NodeId> rewrite(const ir::Node& node);
  std::optional<NodeId> rewrite_map(const ir::Node& node);
  std::optional<NodeId> rewrite_binary(const ir::Node& node);
  std::optional<NodeId> rewrite_line(const ir::Node& node);
  std::optional<NodeId> rewrite_move(const ir::Node& node);
  std::optional<NodeId> rewrite_source(const ir::Node& node);
  std::optional<NodeId> rewrite_collective(const ir::Node& node);
  std::optional<NodeId> fold(const ir::Node& node);

  /// A node made by a rule.
  NodeId emit(ir::Op op, std::vector<NodeId> inputs,
              ir::Attrs attrs = ir::NoAttrs{});
  NodeId constant(const ir::Type& type, std::vector<uint8_t> bytes);
  NodeId zeros(const ir::Type& type);
  /// The element of a constant that has the same everywhere.
  const std::vector<uint8_t>* one_value(NodeId id) const;
  /// Whether it is that with this value, to the bit (-0.0 is not 0.0).
  bool is_value(NodeId id, double value) const;

  Graph out_;
  uint32_t source_ = 0;
};

}  // namespace unisono::jit
