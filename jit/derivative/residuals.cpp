// A minimum cut (Dinic's algorithm) through what computes the wanted nodes.
// Each node is two places, its operands' side and its result's. Places on the
// far side of the cut are what the derivative has to compute or has:
//   result far, operands near   the node is kept: its bytes
//   both far                    it is computed again: its operations, and the
//                               results of its operands are far, too
// Wanted results are far. Operations that cannot be repeated have their
// operands' side near.
#include "jit/derivative/residuals.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "jit/ir/kinds.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max() / 4;

/// The operations that computing the node again is; `never` where it may not
/// be.
int64_t cost_again(const Node& node) {
  const int64_t elements = node.type.elements();
  switch (ir::kind(node.op)) {
    case ir::Kind::map: {
      switch (ir::row(node.op).cost) {
        case ir::Cost::cheap: return elements;
        case ir::Cost::slow: return 8 * elements;
        case ir::Cost::dear: return 30 * elements;
      }
      return never;
    }
    case ir::Kind::move: return elements;
    case ir::Kind::source: return node.op == ir::Op::input ? never : 0;
    case ir::Kind::index: return node.op == ir::Op::gather ? elements : never;
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::dot:
    case ir::Kind::sort:
    case ir::Kind::control:
    case ir::Kind::collective:
    case ir::Kind::host: return never;
  }
  return never;
}

/// A network whose places have numbers; flow goes from place 0 to place 1.
class Network {
 public:
  explicit Network(size_t places) : edges_(places) {}

  void add(size_t from, size_t to, int64_t capacity) {
    edges_[from].push_back({to, edges_[to].size(), capacity});
    edges_[to].push_back({from, edges_[from].size() - 1, 0});
  }

  /// Which places are near, that is on the side of place 0, in the minimum cut
  /// that has the fewest of them.
  std::vector<bool> near_side() {
    while (measure()) {
      next_.assign(edges_.size(), 0);
      push_all();
    }
    std::vector<bool> near;
    for (const size_t distance : distance_) near.push_back(distance != far);
    return near;
  }

 private:
  struct Edge {
    size_t to;
    size_t back;  // the place of the opposite edge among those of `to`
    int64_t capacity;
  };
  static constexpr size_t far = std::numeric_limits<size_t>::max();

  /// Distances from place 0 along edges that have room. False if place 1 is
  /// not reached.
  bool measure() {
    distance_.assign(edges_.size(), far);
    distance_[0] = 0;
    std::vector<size_t> reached = {0};
    for (size_t i = 0; i < reached.size(); ++i)
      for (const Edge& edge : edges_[reached[i]]) {
        if (edge.capacity == 0 || distance_[edge.to] != far) continue;
        distance_[edge.to] = distance_[reached[i]] + 1;
        reached.push_back(edge.to);
      }
    return distance_[1] != far;
  }

  /// Pushes flow along shortest paths until none has room. Paths may be long,
  /// so this does not recurse.
  void push_all() {
    std::vector<std::pair<size_t, size_t>> path;  // places, and their edges
    size_t at = 0;
    while (true) {
      if (at == 1) {
        int64_t flow = never;
        for (const auto& [place, edge] : path)
          flow = std::min(flow, edges_[place][edge].capacity);
        for (const auto& [place, edge] : path) {
          Edge& forth = edges_[place][edge];
          forth.capacity -= flow;
          edges_[forth.to][forth.back].capacity += flow;
        }
        path.clear();
        at = 0;
        continue;
      }
      size_t& next = next_[at];
      while (next < edges_[at].size() &&
             (edges_[at][next].capacity == 0 ||
              distance_[edges_[at][next].to] != distance_[at] + 1))
        ++next;
      if (next < edges_[at].size()) {
        path.emplace_back(at, next);
        at = edges_[at][next].to;
      } else if (path.empty()) {
        return;
      } else {
        at = path.back().first;
        path.pop_back();
        ++next_[at];
      }
    }
  }

  std::vector<std::vector<Edge>> edges_;
  std::vector<size_t> distance_, next_;
};

}  // namespace

std::vector<NodeId> residuals(const Graph& known, const std::vector<bool>& free,
                              const std::vector<NodeId>& wanted,
                              const std::vector<NodeId>& outputs) {
  const size_t count = known.nodes.size();
  const std::vector<bool> involved = needed_for(known, {}, wanted);
  // What nothing but the derivative needs is computed once, before or then.
  std::vector<bool> computed(count, true);
  if (!outputs.empty()) computed = needed_for(known, {}, outputs);
  const auto operands = [](NodeId id) { return 2 + 2 * size_t(id); };
  const auto result = [](NodeId id) { return 3 + 2 * size_t(id); };

  Network network(2 + 2 * count);
  for (const NodeId id : ir::node_ids(known)) {
    const Node& node = known[id];
    const bool is_free = node.op == ir::Op::input && free[size_t(id)];
    if (!involved[id] || is_free) continue;
    const int64_t again = cost_again(node);
    // Of a node with several results, those are kept that are needed.
    network.add(operands(id), result(id),
                ir::has_results(node) ? never
                                      : tuning().recomputed_operations_a_byte *
                                            node.type.bytes());
    if (again == never || computed[id]) network.add(0, operands(id), again);
    for (const NodeId operand : node.inputs)
      network.add(result(operand), operands(id), never);
  }
  for (const NodeId id : wanted) network.add(result(id), 1, never);

  const std::vector<bool> near = network.near_side();
  std::vector<NodeId> kept;
  for (const NodeId id : ir::node_ids(known))
    if (near[operands(id)] && !near[result(id)]) kept.push_back(id);
  return kept;
}

}  // namespace unisono::jit
