#include "jit/reference/straight.h"

#include <algorithm>
#include <array>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/reference/nodes.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit::reference {
namespace {

/// By node, the last one that reads it; the graph's size for outputs.
std::vector<size_t> last_uses(const ir::Graph& graph) {
  std::vector<size_t> last(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const ir::NodeId operand : graph.nodes[i].inputs) last[operand] = i;
  for (const ir::NodeId output : graph.outputs)
    last[output] = graph.nodes.size();
  return last;
}

Result<std::vector<Value>> run(const ir::Graph& graph,
                               std::span<const Value> inputs, bool checked) {
  const std::vector<size_t> last = last_uses(graph);
  std::vector<Value> values(graph.nodes.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    values[graph.inputs[i]] = inputs[i];
  std::vector<Operand> operands;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Node& node = graph.nodes[i];
    if (node.op == ir::Op::input) continue;
    poll_stop();
    operands.clear();
    for (const ir::NodeId id : node.inputs)
      operands.push_back(
          {&graph[id].type, &values[id],
           last[id] == i && std::ranges::count(node.inputs, id) == 1});
    values[i] = TRY(run_node(node, operands, checked));
    for (const ir::NodeId id : node.inputs)
      if (last[id] == i) values[id] = Value();
  }
  std::vector<Value> outputs;
  for (const ir::NodeId id : graph.outputs) outputs.push_back(values[id]);
  return outputs;
}

// Nanoseconds for each element, as measured for 20,000 to 1,000,000 of them;
// docs/decisions.md has the table.
constexpr double cheap_map = 0.6, dear_map = 6, moved = 0.5, reduced = 1,
                 compared = 1.5, scanned = 3, sorted = 100, placed = 4,
                 packed = 3.5, multiplied = 0.2;
// Of a node, whatever its size.
constexpr double visited = 300;
// Nanoseconds that the compiler takes for a program, and for what is in it.
constexpr double ms = 1e6, program = 2 * ms, small_node = 0.2 * ms,
                 line_kernel = 10 * ms, place_kernel = 4 * ms,
                 product_kernel = 40 * ms;

Estimate of_node(const ir::Graph& graph, const ir::Node& node) {
  const auto elements = static_cast<double>(node.type.elements());
  const auto of = [&](size_t operand) {
    return static_cast<double>(graph.type(node.inputs[operand]).elements());
  };
  switch (ir::kind(node.op)) {
    case ir::Kind::map: {
      const bool dear =
          node.op != ir::Op::cast && ir::row(node.op).cost == ir::Cost::dear;
      return {elements * (dear ? dear_map : cheap_map), small_node};
    }
    case ir::Kind::source: return {elements * moved, 0};
    case ir::Kind::move:
      return {elements * moved,
              small_node * static_cast<double>(node.inputs.size())};
    case ir::Kind::reduce: return {of(0) * reduced, line_kernel};
    case ir::Kind::argreduce: return {of(0) * compared, line_kernel};
    case ir::Kind::scan: return {of(0) * scanned, line_kernel};
    case ir::Kind::sort: return {of(0) * sorted, place_kernel};
    case ir::Kind::index: {
      // Of a scatter the array is copied, too, unless it dies there.
      const double positions = of(node.inputs.size() - 1);
      return {positions * placed + elements * moved, place_kernel};
    }
    case ir::Kind::dot: {
      const auto& a = ir::attrs<ir::DotAttrs>(node);
      double terms = 1;
      for (const int axis : a.contract_a)
        terms *=
            static_cast<double>(graph.type(node.inputs[0]).shape[axis].value());
      return {(of(0) + of(1)) * packed + elements * terms * multiplied,
              product_kernel};
    }
    case ir::Kind::control:
    case ir::Kind::collective:
    case ir::Kind::host: break;
  }
  check_failed("a node of a straight graph", __FILE__, __LINE__);
}

}  // namespace

bool is_straight(const ir::Graph& graph) {
  return std::ranges::all_of(graph.nodes, [](const ir::Node& node) {
    return evaluates(ir::kind(node.op));
  });
}

Result<std::vector<Value>> evaluate_straight(const ir::Graph& graph,
                                             std::span<const Value> inputs,
                                             bool checked) {
  CHECK(inputs.size() == graph.inputs.size());
  return unless_stopped([&] { return run(graph, inputs, checked); });
}

Estimate estimate(const ir::Graph& graph) {
  Estimate all{0, program};
  for (const ir::Node& node : graph.nodes) {
    if (node.op == ir::Op::input) continue;
    const Estimate one = of_node(graph, node);
    all.evaluate += visited + one.evaluate;
    all.compile += one.compile;
  }
  return all;
}

}  // namespace unisono::jit::reference
