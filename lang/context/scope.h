#pragma once
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/ir/graph.h"
#include "lang/context/value.h"

namespace unisono::lang {

/// A graph under construction. Values of outer scopes (or arrays on devices)
/// that its operations use become inputs, each once; they are called captures.
/// Explicit parameters are inputs, too, and are added before all else (CHECK).
class GraphScope : public std::enable_shared_from_this<GraphScope> {
 public:
  explicit GraphScope(std::shared_ptr<GraphScope> parent = nullptr)
      : parent_(std::move(parent)) {}

  /// A new array value that is an input of this graph.
  ArrayValue add_parameter(ir::Type type, AxisSet varies, Span where);
  /// The node of this graph that stands for `value`: its own, or the input it
  /// is captured as.
  ir::NodeId import(const ArrayValue& value);
  /// Another value that stands for the node of `value`, which a flush computes
  /// as well.
  ArrayValue same_node(const ArrayValue& value);
  /// Appends an operation and gives its value.
  ArrayValue add(ir::Op op, std::vector<ir::NodeId> operands, ir::Attrs attrs,
                 ir::Type type, uint32_t source);
  /// Appends all nodes of a graph, with `arguments` for its inputs; gives the
  /// values of its outputs. The caller sets the axes over which they vary.
  std::vector<ArrayValue> append(const ir::Graph& callee,
                                 std::span<const ArrayValue> arguments);

  /// The graph so far. Captures are inputs that stand among the nodes; finish
  /// moves them to the front.
  const ir::Graph& graph() const { return graph_; }
  /// The finished graph: inputs are the parameters, then one for each of
  /// `captures`, which holds all captures of this scope, and perhaps more: two
  /// graphs of one control node share one list. May be called again.
  ir::Graph finish(std::span<const ArrayValue> outputs,
                   std::span<const ArrayValue> captures);
  ir::Graph finish(std::span<const ArrayValue> outputs);
  const std::shared_ptr<GraphScope>& parent() const { return parent_; }
  /// The outer value behind each captured input, in the order of inputs after
  /// the parameters.
  const std::vector<ArrayValue>& captures() const { return captures_; }
  /// The values created here. A flush of the pending statement must compute
  /// those that are still held.
  const std::vector<std::weak_ptr<ArrayCell>>& values() const {
    return values_;
  }

 private:
  ArrayValue new_value(ir::NodeId node);

  std::shared_ptr<GraphScope> parent_;
  ir::Graph graph_;
  std::vector<ir::NodeId> parameters_;
  std::vector<ArrayValue> captures_;
  /// The nodes of captured values and constants, by address; `constants_` keeps
  /// constants alive, so that an address means one value.
  std::unordered_map<const ArrayCell*, ir::NodeId> imported_;
  std::vector<ArrayValue> constants_;
  std::vector<std::weak_ptr<ArrayCell>> values_;
};

}  // namespace unisono::lang
