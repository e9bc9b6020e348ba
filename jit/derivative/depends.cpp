#include "jit/derivative/depends.h"

#include <algorithm>
#include <unordered_map>

#include "jit/derivative/factors.h"
#include "jit/ir/kinds.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;
using Flags = std::vector<bool>;

bool any(const Flags& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

Flags depending_results(const Node& node, const Flags& operands) {
  if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
    const Flags captures(operands.begin() + 1, operands.end());
    Flags out = depending_outputs(*a->then_graph, captures);
    const Flags other = depending_outputs(*a->else_graph, captures);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] || other[i];
    return out;
  }
  if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
    return depending_loop(*a, operands).results;
  Flags out;
  const bool depends = any(operands);  // of a call, here or of the host
  for (int i = 0; i < ir::result_count(node); ++i)
    out.push_back(depends && is_floating(ir::result_type(node, i).dtype));
  return out;
}

bool depends(const Node& node, const Flags& operands) {
  if (!is_floating(node.type.dtype)) return false;
  if (ir::kind(node.op) != ir::Kind::map) return any(operands);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && !has_no_factor(node.op, i)) return true;
  return false;
}

}  // namespace

Flags depending_outputs(const Graph& graph, Flags inputs) {
  Flags flags(graph.nodes.size(), false);
  std::unordered_map<NodeId, Flags> results;  // where project reads
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    Flags operands;
    for (const NodeId operand : node.inputs) operands.push_back(flags[operand]);
    if (node.op == Op::input)
      flags[i] = inputs[i];
    else if (node.op == Op::project)
      flags[i] =
          results[node.inputs[0]][ir::attrs<ir::ProjectAttrs>(node).index];
    else if (ir::has_results(node))
      results[static_cast<NodeId>(i)] = depending_results(node, operands);
    else
      flags[i] = depends(node, operands);
  }
  Flags outputs;
  for (const NodeId output : graph.outputs) outputs.push_back(flags[output]);
  return outputs;
}

LoopDepends depending_loop(const ir::LoopAttrs& loop, Flags operands) {
  LoopDepends out{std::move(operands), {}};
  const auto carries = static_cast<size_t>(loop.carries);
  while (true) {
    const Flags before = out.operands;
    Flags parameters = out.operands;
    if (loop.is_counted()) parameters.insert(parameters.begin(), false);
    out.results = depending_outputs(*loop.body, parameters);
    for (size_t i = 0; i < carries; ++i) {
      out.operands[i] = out.operands[i] || out.results[i];
      out.results[i] = out.operands[i];
    }
    if (out.operands == before) return out;
  }
}

}  // namespace unisono::jit
