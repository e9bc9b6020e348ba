#pragma once
// Which values of a graph differ between the members of a mapped axis.
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

using Flags = std::vector<bool>;

/// Whether each node differs, given whether each input does. Of a node with
/// several results it is the first one; projections say it of each.
Flags varying_nodes(const ir::Graph& graph, ir::AxisId axis, Flags inputs);
/// The same, of the outputs.
Flags varying_outputs(const ir::Graph& graph, ir::AxisId axis, Flags inputs);
/// Which operands of a loop differ inside it, and whether its condition does.
struct LoopVaries {
  Flags operands;  // carries, widened to a fixed point, then the others
  Flags results;   // carries, then stacks
  bool condition = false;
};
/// `operands`: whether each one differs before the loop.
LoopVaries varying_loop(const ir::LoopAttrs& loop, ir::AxisId axis,
                        Flags operands);

}  // namespace unisono::jit
