// Reductions over members that nothing orders become one, of all their elements
// in a row: a meeting of devices takes the same time for one number as for a
// thousand, and the gradient of a model is many small arrays. A reduction
// combines element by element, so the bits do not know in how many they came.
//
// What nothing orders: the height of a node is the largest number of reductions
// on a way from it to where the graph ends. No way leads from one reduction to
// another one of its height, and none to itself once those of a height are one.
// Heights count from the end, as the gradients of all layers are read there
// alone, whatever reductions came before each of them.
#include <algorithm>
#include <map>
#include <queue>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::CollectiveAttrs;
using ir::Node;
using ir::Op;
using ir::Shape;

bool may_be_joined(const Node& node) {
  return node.op == Op::all_reduce && node.type.elements() > 0 &&
         node.type.bytes() <= tuning().most_joined_all_reduce;
}

/// Calls `f` for the graphs of a branch or a loop.
template <class Control, class F>
void for_each_part(Control& node, F&& f) {
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
    f(a->then_graph);
    f(a->else_graph);
  } else if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) {
    if (a->condition) f(a->condition);
    f(a->body);
  }
}

/// Whether the graph, or one inside it, has two that may be joined.
bool has_several(const Graph& graph) {
  int count = 0;
  bool inside = false;
  for (const Node& node : graph.nodes) {
    count += may_be_joined(node);
    for_each_part(
        node, [&](const auto& part) { inside = inside || has_several(*part); });
  }
  return count > 1 || inside;
}

class Join {
 public:
  explicit Join(const Graph& graph)
      : graph_(graph), placed_(graph), last_(graph.nodes.size()) {}

  Graph run() {
    find_groups();
    for (const auto& [last, group] : groups_)
      for (const NodeId member : group) last_[member] = last;
    in_order([&](NodeId id) {
      poll_stop();
      if (groups_.contains(id))
        place_group(groups_.at(id));
      else
        place(id);
    });
    out_.outputs = placed_.renamed(graph_.outputs);
    return std::move(out_);
  }

 private:
  std::vector<int> heights() const {
    std::vector<int> height(graph_.nodes.size(), 0);
    for (NodeId id = static_cast<NodeId>(height.size()); id-- > 0;) {
      const Node& node = graph_[id];
      const int above = height[id] + may_be_joined(node);
      for (const NodeId operand : node.inputs)
        height[operand] = std::max(height[operand], above);
    }
    return height;
  }

  /// Those of one height that agree in all but their shape, with no effect or
  /// check between: what devices print, and which one's error is told, is in
  /// the order of devices between two meetings.
  void find_groups() {
    const std::vector<int> height = heights();
    using Place = std::pair<int, int>;  // height, effects and checks before
    std::map<Place, std::vector<std::vector<NodeId>>> by_place;
    int effects = 0;
    const auto agree = [&](NodeId a, NodeId b) {
      const auto &x = ir::attrs<CollectiveAttrs>(graph_[a]),
                 &y = ir::attrs<CollectiveAttrs>(graph_[b]);
      return graph_.type(a).dtype == graph_.type(b).dtype &&
             x.reduce == y.reduce && x.axes == y.axes && x.sizes == y.sizes &&
             x.groups == y.groups;
    };
    for (const NodeId id : ir::node_ids(graph_)) {
      last_[id] = id;
      effects += ir::must_stay(graph_, graph_[id]);
      if (!may_be_joined(graph_[id])) continue;
      auto& lists = by_place[{height[id], effects}];
      const auto list = std::ranges::find_if(
          lists, [&](const auto& have) { return agree(have[0], id); });
      if (list == lists.end())
        lists.push_back({id});
      else
        list->push_back(id);
    }
    for (auto& [place, lists] : by_place)
      for (auto& list : lists)
        if (list.size() > 1) {
          const NodeId last = list.back();
          groups_.emplace(last, std::move(list));
        }
  }

  /// Calls `f` for each node, of a group for the last, in the graph's order but
  /// for what waits for a group.
  template <class F>
  void in_order(F&& f) const {
    const size_t n = graph_.nodes.size();
    std::vector<std::vector<NodeId>> readers(n);
    std::vector<int> waits(n, 0);
    const auto before = [&](NodeId first, NodeId second) {
      readers[last_[first]].push_back(last_[second]);
      ++waits[last_[second]];
    };
    for (const NodeId id : ir::node_ids(graph_))
      for (const NodeId operand : graph_[id].inputs) before(operand, id);

    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (const NodeId id : ir::node_ids(graph_))
      if (last_[id] == id && waits[id] == 0) ready.push(id);
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      f(id);
      for (const NodeId reader : readers[id])
        if (--waits[reader] == 0) ready.push(reader);
    }
  }

  void place(NodeId id) {
    Node node = placed_.renamed(id);
    for_each_part(node, [](std::shared_ptr<const Graph>& part) {
      part = std::make_shared<const Graph>(Join(*part).run());
    });
    placed_.set(id, node.op == Op::input
                        ? out_.add_input(node.type, node.source)
                        : out_.append(std::move(node)));
  }

  void place_group(const std::vector<NodeId>& group) {
    std::vector<NodeId> rows;
    for (const NodeId id : group) {
      const Node& node = graph_[id];
      rows.push_back(out_.add(Op::reshape, {placed_[node.inputs[0]]},
                              ir::ShapeAttrs{{node.type.elements()}},
                              node.source));
    }
    const Node& first = graph_[group[0]];
    const NodeId row =
        out_.add(Op::concat, rows, ir::AxisAttrs{0}, first.source);
    const NodeId sum =
        out_.add(Op::all_reduce, {row}, first.attrs, first.source);
    int64_t start = 0;
    for (const NodeId id : group) {
      const Node& node = graph_[id];
      const int64_t count = node.type.elements();
      const NodeId own = out_.add(
          Op::slice, {sum}, ir::SliceAttrs{{start}, {1}, {count}}, node.source);
      placed_.set(id, out_.add(Op::reshape, {own},
                               ir::ShapeAttrs{node.type.shape}, node.source));
      start += count;
    }
  }

  const Graph& graph_;
  ir::Renaming placed_;
  /// By its last member; and of each node that of its group, else itself.
  std::map<NodeId, std::vector<NodeId>> groups_;
  std::vector<NodeId> last_;
  Graph out_;
};

}  // namespace

Graph join_all_reduces(const Graph& graph) {
  if (!has_several(graph)) return graph;
  // What is there twice, or for nothing, would be joined, and then stay.
  return Join(cse_dce(graph)).run();
}

}  // namespace unisono::jit
