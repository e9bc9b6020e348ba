// A gather of what maps compute is the maps of gathers: `(q * 2)[j]` computes a
// row, and not q * 2. It happens where the maps have no other readers, so that
// nobody stores them, and what gathers read of them is not more than they are.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "jit/ir/affine_view.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Kind;
using ir::Node;
using ir::Op;

bool has_one_value(const Node& node) {
  const auto* a = std::get_if<ir::ConstantAttrs>(&node.attrs);
  return a &&
         static_cast<int64_t>(a->bytes.size()) == byte_size(node.type.dtype);
}

/// A node, and moves of it of which there is a gather, the last one first.
using Place = std::pair<NodeId, std::vector<NodeId>>;

/// Which gathers of a graph are pulled through their operands.
class Pulled {
 public:
  explicit Pulled(const Graph& graph)
      : graph_(graph),
        gathered_(graph.nodes.size(), 0),
        is_read_(graph.nodes.size()),
        pulled_(graph.nodes.size()) {
    find_readers();
    for (const NodeId id : ir::node_ids(graph)) {
      const Node& node = graph[id];
      if (node.op != Op::gather || node.type.elements() == 0) continue;
      Seen seen;
      pulled_[id] = see(node.inputs[0], {}, seen) && seen.arrays > 0 &&
                    seen.arrays <= seen.room;
    }
  }
  bool operator[](NodeId gather) const { return pulled_[gather]; }

 private:
  /// What a gather meets on its way: the arrays are those that it would be
  /// gathers of, but for constants.
  struct Seen {
    std::set<Place> places;
    int64_t arrays = 0;
    int64_t room = 0;  // how many gathers would read as much as maps compute
  };

  /// `gathered_`: how many elements gathers read of a node, through maps and
  /// views; `read_whole` where somebody else reads it.
  void find_readers() {
    for (const NodeId id : graph_.outputs) read(id, read_whole);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!is_read_[i] && !ir::must_stay(graph_, node)) continue;
      const bool passes =
          may_be_view(node) ||
          (ir::kind(node.op) == Kind::map && !ir::must_stay(graph_, node));
      for (size_t k = 0; k < node.inputs.size(); ++k)
        read(node.inputs[k], passes ? gathered_[i]
                             : node.op == Op::gather && k == 0
                                 ? node.type.elements()
                                 : read_whole);
    }
  }
  void read(NodeId id, int64_t elements) {
    is_read_[id] = true;
    gathered_[id] = std::min(gathered_[id] + elements, read_whole);
  }

  /// Whether gathers of the node may be those of what it is computed from.
  bool see(NodeId id, std::vector<NodeId> moves, Seen& seen) const {
    if (!seen.places.emplace(id, moves).second) return true;
    if (std::ssize(seen.places) > tuning().most_pulled_depth) return false;
    const Node& node = graph_[id];
    switch (ir::kind(node.op)) {
      case Kind::map:
        seen.room =
            std::max(seen.room, node.type.elements() /
                                    std::max<int64_t>(gathered_[id], 1));
        return gathered_[id] <= node.type.elements() &&
               !ir::must_stay(graph_, node) &&
               std::ranges::all_of(node.inputs, [&](NodeId operand) {
                 return see(operand, moves, seen);
               });
      case Kind::move:
        if (!may_be_view(node)) return false;
        moves.push_back(id);
        return see(node.inputs[0], std::move(moves), seen);
      case Kind::source:
        seen.arrays += node.op == Op::input ? 1 : 0;
        return node.op != Op::iota;
      case Kind::index:
        // Another gather would have to be stored in place of the map.
        ++seen.arrays;
        return node.op != Op::gather;
      case Kind::reduce:
      case Kind::argreduce:
      case Kind::scan:
      case Kind::dot:
      case Kind::sort:
      case Kind::collective:
      case Kind::control:
      case Kind::host: ++seen.arrays; return true;
    }
    __builtin_unreachable();
  }

  static constexpr int64_t read_whole = int64_t{1} << 60;
  const Graph& graph_;
  std::vector<int64_t> gathered_;
  std::vector<bool> is_read_, pulled_;
};

/// Places one gather in a new graph.
class Puller {
 public:
  Puller(const Graph& from, NodeId gather, const ir::Renaming& placed,
         Graph& out)
      : from_(from),
        placed_(placed),
        out_(out),
        gather_(placed.renamed(gather)) {}

  /// The gather of what `moves`, from the last one on, make of a node.
  NodeId place(NodeId id, std::vector<NodeId> moves) {
    Place key{id, moves};
    if (const auto known = known_.find(key); known != known_.end())
      return known->second;
    const NodeId placed = place_new(id, std::move(moves));
    known_.emplace(std::move(key), placed);
    return placed;
  }

 private:
  NodeId place_new(NodeId id, std::vector<NodeId> moves) {
    const Node& node = from_[id];
    if (ir::kind(node.op) == Kind::map) {
      std::vector<NodeId> operands;
      for (const NodeId operand : node.inputs)
        operands.push_back(place(operand, moves));
      return out_.add(node.op, std::move(operands), node.attrs, node.source);
    }
    if (may_be_view(node)) {
      moves.push_back(id);
      return place(node.inputs[0], std::move(moves));
    }
    if (has_one_value(node))
      return out_.add_constant({node.type.dtype, gather_.type.shape},
                               ir::attrs<ir::ConstantAttrs>(node).bytes,
                               node.source);
    NodeId array = placed_[id];
    for (size_t i = moves.size(); i-- > 0;) {
      const Node& move = from_[moves[i]];
      array = out_.add(move.op, {array}, move.attrs, move.source);
    }
    Node gather = gather_;
    gather.inputs[0] = array;
    gather.type.dtype = node.type.dtype;
    // One of them looks whether the places are inside.
    auto& attrs = std::get<ir::IndexAttrs>(gather.attrs);
    attrs.checked = attrs.checked && !is_checked_;
    is_checked_ = true;
    return out_.append(std::move(gather));
  }

  const Graph& from_;
  const ir::Renaming& placed_;
  Graph& out_;
  const Node gather_;
  std::map<Place, NodeId> known_;
  bool is_checked_ = false;
};

void rewrite(std::shared_ptr<const Graph>& graph) {
  if (graph) graph = std::make_shared<const Graph>(pull_gathers(*graph));
}

}  // namespace

Graph pull_gathers(const Graph& graph) {
  const Pulled pulled(graph);
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    poll_stop();
    if (graph[id].op == Op::input) {
      placed.set(id, out.add_input(graph.type(id), graph[id].source));
      continue;
    }
    if (pulled[id]) {
      placed.set(id,
                 Puller(graph, id, placed, out).place(graph[id].inputs[0], {}));
      continue;
    }
    Node node = placed.renamed(id);
    if (auto* branch = std::get_if<ir::IfAttrs>(&node.attrs))
      rewrite(branch->then_graph), rewrite(branch->else_graph);
    if (auto* loop = std::get_if<ir::LoopAttrs>(&node.attrs))
      rewrite(loop->condition), rewrite(loop->body);
    placed.set(id, out.append(std::move(node)));
  }
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

}  // namespace unisono::jit
