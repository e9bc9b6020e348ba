// Tables, as of sines and cosines, that no input has a part in: computed once,
// when the program is compiled, instead of in each run. The reference evaluator
// does it, so no bit changes. What is cheap stays as it is: a kernel computes
// it where it is read, and an array in memory would have to be loaded.
#include "jit/transform/fold_arrays.h"

#include <algorithm>
#include <unordered_set>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/reference/reference.h"
#include "runtime/check.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Op;

/// A graph for one device, whose types are concrete.
class ArrayFolder {
 public:
  explicit ArrayFolder(const Graph& graph)
      : graph_(graph), facts_(graph.nodes.size()) {}
  Graph run();

 private:
  /// Of a node: whether no input has a part in it; whether computing it once
  /// saves work in each run; and the elements of the largest array in it.
  struct Fact {
    bool known = false, worth = false;
    int64_t largest = 0;
  };
  Fact fact_of(const Node& node) const;
  void want(NodeId id);
  void evaluate_wanted();
  Node with_folded_subgraphs(Node node) const;

  const Graph& graph_;
  std::vector<Fact> facts_;
  std::vector<NodeId> wanted_;
  std::unordered_set<NodeId> seen_;
  std::vector<std::vector<uint8_t>> values_;  // of wanted_
};

bool may_be_known(const Node& node) {
  switch (ir::kind(node.op)) {
    case Kind::map:
    case Kind::move:
    case Kind::reduce:
    case Kind::scan: return true;
    case Kind::source: return node.op != Op::input;
    case Kind::argreduce:
    case Kind::index:
    case Kind::dot:
    case Kind::sort:
    case Kind::collective:
    case Kind::control:
    case Kind::host: return false;
  }
  __builtin_unreachable();
}

ArrayFolder::Fact ArrayFolder::fact_of(const Node& node) const {
  Fact fact{.known = may_be_known(node) && !ir::must_stay(graph_, node)};
  for (const NodeId operand : node.inputs) {
    fact.known = fact.known && facts_[operand].known;
    fact.worth = fact.worth || facts_[operand].worth;
    fact.largest = std::max(fact.largest, facts_[operand].largest);
  }
  if (!fact.known) return {};
  const Kind kind = ir::kind(node.op);
  const int64_t elements = node.type.elements();
  fact.largest = std::max(fact.largest, elements);
  const bool is_dear =
      kind == Kind::map && ir::row(node.op).cost != ir::Cost::cheap;
  if (is_dear || kind == Kind::reduce || kind == Kind::scan)
    fact.worth = fact.worth || elements > 1;
  return fact;
}

/// Folds a known node that something else reads, or what it is made of: moves
/// of an array cost nothing, and make it larger, and so may cheap operations.
void ArrayFolder::want(NodeId id) {
  std::vector<NodeId> pending = {id};
  while (!pending.empty()) {
    const NodeId at = pending.back();
    pending.pop_back();
    if (!facts_[at].worth || !seen_.insert(at).second) continue;
    const Node& node = graph_[at];
    if (ir::kind(node.op) != Kind::move &&
        facts_[at].largest <= tuning().most_folded_elements)
      wanted_.push_back(at);
    else
      pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
  }
}

void ArrayFolder::evaluate_wanted() {
  std::sort(wanted_.begin(), wanted_.end());
  int64_t total = 0;
  std::erase_if(wanted_, [&](NodeId id) {
    total += graph_.type(id).elements();
    return total > tuning().most_folded_in_all;
  });
  // What they need.
  std::vector<bool> needed(graph_.nodes.size());
  for (const NodeId id : wanted_) needed[id] = true;
  for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;)
    if (needed[id])
      for (const NodeId operand : graph_[id].inputs) needed[operand] = true;
  Graph tables;
  ir::Renaming placed(graph_);
  for (const NodeId id : ir::node_ids(graph_))
    if (needed[id]) placed.set(id, tables.append(placed.renamed(id)));
  tables.outputs = placed.renamed(wanted_);
  ReferenceOptions options;
  options.stop = stop_requested;
  auto values = evaluate(tables, {}, options);
  poll_stop();
  if (!values) wanted_.clear();  // no memory: the program computes them
  for (size_t i = 0; i < wanted_.size(); ++i)
    values_.push_back(std::move((*values)[i].bytes));
}

Node ArrayFolder::with_folded_subgraphs(Node node) const {
  const auto fold = [](std::shared_ptr<const Graph>& graph) {
    if (graph) graph = std::make_shared<const Graph>(fold_arrays(*graph));
  };
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
    fold(a->then_graph), fold(a->else_graph);
  if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
    fold(a->condition), fold(a->body);
  return node;
}

Graph ArrayFolder::run() {
  for (const NodeId id : ir::node_ids(graph_)) {
    poll_stop();
    const Node& node = graph_[id];
    facts_[id] = fact_of(node);
    if (facts_[id].known) continue;
    for (const NodeId operand : node.inputs) want(operand);
  }
  if (!wanted_.empty()) evaluate_wanted();
  Graph out;
  ir::Renaming placed(graph_);
  size_t next = 0;
  for (const NodeId id : ir::node_ids(graph_)) {
    const Node& node = graph_[id];
    if (node.op == Op::input) {
      placed.set(id, out.add_input(node.type, node.source));
    } else if (next < wanted_.size() && wanted_[next] == id) {
      placed.set(id, out.add_constant(node.type, std::move(values_[next++]),
                                      node.source));
    } else {
      placed.set(id, out.append(with_folded_subgraphs(placed.renamed(id))));
    }
  }
  out.outputs = placed.renamed(graph_.outputs);
  return out;
}

}  // namespace

ir::Graph fold_arrays(const Graph& graph) { return ArrayFolder(graph).run(); }

}  // namespace unisono::jit
