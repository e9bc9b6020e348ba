#pragma once
// Graphs under construction, whose inputs are found while they are made.
#include <memory>
#include <utility>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// Appends an input at any place; `with_inputs` puts it in order.
inline ir::NodeId add_late_input(ir::Graph& graph, ir::Type type) {
  return graph.append(
      {ir::Op::input, {}, ir::InputAttrs{-1}, std::move(type), 0});
}

/// A finished graph, as control nodes hold theirs.
inline std::shared_ptr<const ir::Graph> shared(ir::Graph graph) {
  return std::make_shared<const ir::Graph>(std::move(graph));
}

/// The graph with these inputs, all that it has, in this order. Its outputs
/// stay.
ir::Graph with_inputs(const ir::Graph& graph,
                      const std::vector<ir::NodeId>& inputs);

}  // namespace unisono::jit
