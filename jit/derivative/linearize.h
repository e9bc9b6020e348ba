#pragma once
// From a graph to its values and tangents. A Linearizer places a graph's nodes
// with their tangents; the rule of each family of kinds is one function, in
// linearize_*.cpp. There are two forms:
//   together  one graph has values and tangents: jvp
//   apart     the tangents are a graph of their own, which is linear in its
//             tangent inputs and takes as further inputs the values that it
//             needs: what reverse mode turns around. A control node becomes
//             two, of which the first one also gives what the second one needs.
#include <optional>
#include <unordered_map>
#include <vector>

#include "jit/derivative/derivative.h"
#include "jit/ir/graph.h"

namespace unisono::jit {

/// A node of the values' graph, and that of its tangent in the tangents' graph;
/// -1: it has none, as it depends on nothing that has one.
struct Dual {
  NodeId value = -1;
  NodeId tangent = -1;
  bool has_tangent() const { return tangent >= 0; }
};
using Duals = std::vector<Dual>;
std::vector<NodeId> values_of(const Duals& x);

class Linearizer {
 public:
  enum class Form : uint8_t { together, apart };
  explicit Linearizer(Form form) : form_(form) {}

  /// The graph of values, and that of tangents: the same one when together.
  /// Inputs of both are the caller's to add, before anything is placed.
  Graph& values() { return values_; }
  const Graph& values() const { return values_; }
  Graph& tangents() { return apart() ? tangents_ : values_; }

  /// Appends a graph; gives its outputs. Throws NoDerivative.
  Duals place(const Graph& graph, const Duals& arguments);
  /// The tangent, or zeros.
  NodeId tangent_or_zeros(const Dual& x);

  /// Apart: the nodes of values() that tangents() takes, in the order of the
  /// inputs behind those that the caller added.
  const std::vector<NodeId>& taken() const { return taken_; }
  /// Apart: tangents(), finished, with `inputs` first and then those for
  /// taken(), of which only those stay that the outputs, which are the
  /// caller's, need.
  Graph finished_tangents(const std::vector<NodeId>& inputs);
  /// Apart, when all is finished: equal nodes of values(), which has no outputs
  /// yet, become one, so that nothing is kept or computed twice. `outputs` are
  /// all else that refers to them.
  void join_equal_values(Duals& outputs);

 private:
  bool apart() const { return form_ == Form::apart; }

  // linearize.cpp: building blocks. v_: among values; t_: among tangents.
  NodeId v(ir::Op op, std::vector<NodeId> inputs,
           ir::Attrs attrs = ir::NoAttrs{});
  NodeId t(ir::Op op, std::vector<NodeId> inputs,
           ir::Attrs attrs = ir::NoAttrs{});
  const ir::Type& type(const Dual& x) const { return values_.type(x.value); }
  NodeId v_number(const ir::Type& type, double value);
  NodeId t_zeros(const ir::Type& type);
  /// A value, among the tangents.
  NodeId take(NodeId value);
  /// The sum of two tangents, of which there may be none.
  NodeId plus(NodeId a, NodeId b);
  Dual place_node(const ir::Node& node, const Duals& x);
  /// A copy of the node alone, without tangents.
  NodeId place_value(const ir::Node& node, const Duals& x);

  // linearize_kinds.cpp: tangents of one node, whose value is placed
  NodeId map(const ir::Node& node, const Duals& x, NodeId result);
  NodeId reduce(const ir::Node& node, const Dual& x, NodeId result);
  NodeId product(const ir::Node& node, const Dual& x);
  NodeId extremum(const ir::Node& node, const Dual& x, NodeId result);
  NodeId scan(const ir::Node& node, const Dual& x, NodeId result);
  NodeId recurrence(const ir::Node& node, const Dual& x, NodeId result);
  Dual sorted(const Dual& x);
  NodeId move(const ir::Node& node, const Duals& x);
  NodeId index(const ir::Node& node, const Duals& x);
  bool all_win(const Duals& x, const std::vector<int>& axes) const;
  NodeId dot(const ir::Node& node, const Duals& x);
  NodeId collective(const ir::Node& node, const Dual& x, NodeId result);

  // linearize_control.cpp
  Duals place_control(const ir::Node& node, const Duals& x);
  Duals place_if(const ir::Node& node, const Duals& x);
  Duals place_if_apart(const ir::Node& node, const Duals& x,
                       const std::vector<bool>& results);
  Duals place_call(const ir::Node& node, const Duals& x);
  Duals place_forward_rule(const ir::Node& node, const Duals& x);
  Duals place_rule_with_control(const ir::Node& node, const Duals& x);
  Duals place_reverse_rule(const ir::Node& node, const Duals& x);
  /// The results of a control node among the values, without tangents.
  Duals results_of(NodeId control);

  // linearize_loop.cpp
  Duals place_loop(const ir::Node& node, const Duals& x);
  Duals place_loop_together(const ir::Node& node, const Duals& x,
                            const struct LoopDepends& depends);
  Duals place_loop_apart(const ir::Node& node, const Duals& x,
                         const struct LoopDepends& depends);

  Form form_;
  Graph values_, tangents_;
  std::vector<NodeId> taken_, taken_inputs_;
  std::unordered_map<NodeId, NodeId> inputs_of_taken_;
  uint32_t source_ = 0;
};

/// without_calls of the graphs of a control node.
ir::Node without_calls(ir::Node node);

/// Result `index` of a control node.
NodeId projected(Graph& graph, NodeId control, size_t index);
/// Whether a value is 0 everywhere, as anybody can see.
bool is_zero(const Graph& graph, NodeId id);
/// Zeros of a float type.
NodeId add_zeros(Graph& graph, const ir::Type& type);

}  // namespace unisono::jit
