#pragma once
// Graphs whose inputs are found while they are made.
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// Appends an input at any place; `with_inputs` puts it in order.
inline ir::NodeId add_late_input(ir::Graph& graph, ir::Type type) {
  return graph.append(
      {ir::Op::input, {}, ir::InputAttrs{-1}, std::move(type), 0});
}

/// The graph with these inputs, all that it has, in this order. Its outputs
/// stay.
ir::Graph with_inputs(const ir::Graph& graph,
                      const std::vector<ir::NodeId>& inputs);

}  // namespace unisono::jit
