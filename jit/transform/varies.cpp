#include "jit/transform/varies.h"

#include <algorithm>
#include <unordered_map>

#include "jit/ir/kinds.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

bool any(const Flags& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

Flags varying_branches(const ir::IfAttrs& a, ir::AxisId axis,
                       const Flags& operands) {
  const Flags captures(operands.begin() + 1, operands.end());
  Flags out = varying_outputs(*a.then_graph, axis, captures);
  const Flags other = varying_outputs(*a.else_graph, axis, captures);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = out[i] || other[i] || operands[0];
  return out;
}

/// Each member makes its own call, unless those of all would be the same.
bool calls_vary(const ir::HostCallAttrs& call, ir::AxisId axis,
                const Flags& operands) {
  const bool inside =
      call.everywhere ||
      std::find(call.axes.begin(), call.axes.end(), axis) != call.axes.end();
  return inside && (!call.pure || any(operands));
}

Flags varying_results(const Node& node, ir::AxisId axis,
                      const Flags& operands) {
  if (const auto* call = std::get_if<ir::HostCallAttrs>(&node.attrs))
    return Flags(call->results.size(), calls_vary(*call, axis, operands));
  if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
    return varying_branches(*a, axis, operands);
  if (const auto* a = std::get_if<ir::CallAttrs>(&node.attrs)) {
    Flags out = varying_outputs(*a->graph, axis, operands);
    return Flags(out.size(), any(operands) || any(out));
  }
  return varying_loop(ir::attrs<ir::LoopAttrs>(node), axis, operands).results;
}

bool varies(const Node& node, ir::AxisId axis, const Flags& operands) {
  if (ir::kind(node.op) == ir::Kind::collective) {
    const auto& axes = ir::attrs<ir::CollectiveAttrs>(node).axes;
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      return !ir::same_for_all(node);
  }
  return any(operands);
}

}  // namespace

Flags varying_nodes(const Graph& graph, ir::AxisId axis, Flags inputs) {
  Flags flags(graph.nodes.size(), false);
  std::unordered_map<NodeId, Flags> results;  // where project reads
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    Flags operands;
    for (NodeId operand : node.inputs) operands.push_back(flags[operand]);
    if (node.op == Op::input) {
      flags[i] = inputs[i];
    } else if (node.op == Op::project) {
      flags[i] =
          results[node.inputs[0]][ir::attrs<ir::ProjectAttrs>(node).index];
    } else if (ir::has_results(node)) {
      Flags all = varying_results(node, axis, operands);
      flags[i] = !all.empty() && all[0];
      results[static_cast<NodeId>(i)] = std::move(all);
    } else {
      flags[i] = varies(node, axis, operands);
    }
  }
  return flags;
}

Flags varying_outputs(const Graph& graph, ir::AxisId axis, Flags inputs) {
  const Flags flags = varying_nodes(graph, axis, std::move(inputs));
  Flags outputs;
  for (NodeId output : graph.outputs) outputs.push_back(flags[output]);
  return outputs;
}

LoopVaries varying_loop(const ir::LoopAttrs& loop, ir::AxisId axis,
                        Flags operands) {
  LoopVaries out{std::move(operands), {}, false};
  const auto carries = static_cast<size_t>(loop.carries);
  while (true) {
    const Flags before = out.operands;
    if (!loop.is_counted())
      out.condition = varying_outputs(*loop.condition, axis, out.operands)[0];
    else if (loop.count >= 0)
      out.condition = out.operands[static_cast<size_t>(loop.count)];
    Flags parameters = out.operands;
    if (loop.is_counted()) parameters.insert(parameters.begin(), false);
    out.results = varying_outputs(*loop.body, axis, parameters);
    for (size_t i = 0; i < carries; ++i) {
      // Members that stop at different turns differ in what turns change.
      const bool changes =
          loop.body->outputs[i] != loop.body->inputs[loop.parameter(i)];
      if (out.results[i] || (out.condition && changes)) out.operands[i] = true;
      out.results[i] = out.operands[i];
    }
    if (out.operands == before) return out;
  }
}

}  // namespace unisono::jit
