#pragma once
// Derivatives of graphs: forward (jvp) and in reverse (vjp).
#include <cstdint>
#include <variant>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

using ir::Graph;
using ir::NodeId;

/// An axis that is mapped around a graph: its number in collectives, and how
/// many members it has.
struct MappedMembers {
  ir::AxisId axis = 0;
  int64_t size = 1;
};

/// What is differentiated by what. The graph is that of one member.
struct DerivativeSpec {
  /// By input: whether it has a tangent, or is given a cotangent. Only floats
  /// have.
  std::vector<bool> inputs;
  /// vjp, by output: whether a cotangent is given for it; only for floats.
  /// Empty: for all floats.
  std::vector<bool> outputs = {};
  /// The axes mapped around the graph, and by input those over which it varies,
  /// ascending. Both are empty outside maps.
  std::vector<MappedMembers> axes = {};
  std::vector<std::vector<ir::AxisId>> varies = {};
  /// Another derivative is taken around this one: calls of functions with rules
  /// of their own that depend on none of the inputs stay, for that one.
  bool inside = false;
};

/// Why a graph has no derivative.
struct NoDerivative {
  enum class Why : uint8_t {
    reverse_while,       // in reverse, a loop without LoopAttrs::most
    no_factor,           // the row of `op` has the factor `unknown`
    forward_custom_vjp,  // forward through a call whose rule is a vjp
    rule_not_linear,     // a rule's tangent is not linear: it meets `op`
  };
  Why why = Why::no_factor;
  ir::Op op = ir::Op::loop;
  /// The node's place in the program (Node::source).
  uint32_t source = 0;
};

/// Inputs are the graph's, then the tangent of each flagged input, of its type.
/// Outputs are the graph's, then the tangent of each float output: zeros where
/// it depends on no flagged input.
std::variant<Graph, NoDerivative> jvp(const Graph& graph,
                                      const DerivativeSpec& spec);

/// Inputs are the graph's, then a cotangent for each flagged output, of its
/// type. Outputs are the graph's, then the cotangent of each flagged input:
/// sum over outputs of cotangent times Jacobian, zeros where nothing depends on
/// the input.
std::variant<Graph, NoDerivative> vjp(const Graph& graph,
                                      const DerivativeSpec& spec);

/// The graph with each `call` replaced by what it calls.
Graph without_calls(const Graph& graph);

}  // namespace unisono::jit
