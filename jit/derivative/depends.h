#pragma once
// Which values of a graph depend on some of its inputs through floats: those
// that have a tangent.
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// Whether each output has a tangent, given whether each input has.
std::vector<bool> depending_outputs(const ir::Graph& graph,
                                    std::vector<bool> inputs);

/// Which operands of a loop have a tangent inside it (carries, widened to a
/// fixed point, then the others), and which results: carries, then stacks.
struct LoopDepends {
  std::vector<bool> operands, results;
};
/// `operands`: whether each one has before the loop.
LoopDepends depending_loop(const ir::LoopAttrs& loop,
                           std::vector<bool> operands);

}  // namespace unisono::jit
