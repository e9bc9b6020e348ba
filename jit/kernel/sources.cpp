#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/kernel/group.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

constexpr int too_dear = 1 << 20;
constexpr int64_t too_many = 1 << 10;  // arrays that are read

}  // namespace

bool is_dear(Op op) { return ir::row(op).cost == ir::Cost::dear; }

int flops(Op op) {
  switch (ir::row(op).cost) {
    case ir::Cost::cheap: return 1;
    case ir::Cost::slow: return 6;
    case ir::Cost::dear: return 20;
  }
  __builtin_unreachable();
}

CombineOrder combine_order(const ir::ReduceAttrs& attrs, int rank) {
  if (attrs.order == ir::ReduceOrder::members) return CombineOrder::members;
  bool last = !attrs.axes.empty() && attrs.axes.back() == rank - 1;
  return last ? CombineOrder::lanes : CombineOrder::runs;
}

Sources::Sources(const ir::Graph& graph, bool checked, const Machine& machine)
    : graph(graph), checked(checked), machine(machine) {
  size_t n = graph.nodes.size();
  step.assign(n, -1);
  buffer.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    const Node& node = graph.nodes[i];
    sizes.push_back(node.type.sizes());
    elements.push_back(node.type.elements());
    int64_t total = 0, arrays = 0;
    for (NodeId operand : node.inputs) {
      const bool one = elements[operand] <= 1;
      // What is the same for many elements, as a row's mean, is read from
      // memory, and counts for none of them.
      if (!one && elements[operand] <= elements[i] / tuning().few_sharers)
        continue;
      total += cost[operand];
      arrays += one ? 0 : streams[operand];
    }
    if (ir::kind(node.op) == Kind::map) total += flops(node.op);
    if (ir::kind(node.op) == Kind::reduce && elements[i] > 0)
      total = (total + 1) *
              std::min<int64_t>(elements[node.inputs[0]] / elements[i], 1024);
    cost.push_back(static_cast<int>(std::min<int64_t>(total, too_dear)));
    streams.push_back(static_cast<int>(std::min(arrays, too_many)));
    NodeId id = static_cast<NodeId>(i);
    if (node.op == Op::input) {
      streams[i] = 1;
    } else if (!is_expression(id) || can_fail(id)) {
      cost[i] = too_dear;
      streams[i] = 1;
    }
  }
}

bool Sources::is_expression(NodeId id) const {
  const Node& node = graph[id];
  switch (ir::kind(node.op)) {
    case Kind::map:
    case Kind::move: return true;
    case Kind::source: return node.op != Op::input;
    case Kind::index: return node.op == Op::gather;
    case Kind::reduce: {
      NodeId operand = node.inputs[0];
      if (elements[id] == 0) return false;
      int64_t count = elements[operand] / elements[id];
      bool strided = combine_order(ir::attrs<ir::ReduceAttrs>(node),
                                   static_cast<int>(sizes[operand].size())) !=
                     CombineOrder::lanes;
      return count <= (strided ? tuning().few_reduced_strided
                               : tuning().few_reduced_contiguous) &&
             count * (cost[operand] + 1) <= tuning().few_reduced_flops;
    }
    case Kind::dot: return elements[node.inputs[0]] == 0;
    case Kind::argreduce: return elements[node.inputs[0]] == elements[id];
    case Kind::scan: return sizes[id][ir::attrs<ir::ScanAttrs>(node).axis] == 1;
    case Kind::sort:
    case Kind::control:
    case Kind::host: return false;
    case Kind::collective: return node.op == Op::axis_index;
  }
  __builtin_unreachable();
}

bool Sources::can_fail(NodeId id) const {
  return checked && is_expression(id) && ir::must_stay(graph, graph[id]);
}

bool Sources::is_cheap(NodeId id) const {
  return cost[id] <= tuning().most_cheap_cost &&
         streams[id] <= tuning().most_cheap_streams;
}

NodeId Sources::stored_node(NodeId id) const {
  while (buffer[id] < 0 && graph[id].op == Op::reshape)
    id = graph[id].inputs[0];
  return id;
}

}  // namespace unisono::jit
