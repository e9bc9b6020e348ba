// Identities that keep every bit. The graph is rebuilt node by node; each
// node's operands are simple already, so one pass sees chains as a whole. What
// nobody reads any more is left to cse_dce.
#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/scalar/element.h"
#include "jit/transform/simplify.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;

NodeId Simplifier::emit(Op op, std::vector<NodeId> inputs, ir::Attrs attrs) {
  // The new node is simplified too: its rules see its operands.
  Node node{op, std::move(inputs), std::move(attrs), {}, source_};
  std::vector<ir::Type> operands;
  for (NodeId id : node.inputs) operands.push_back(out_.type(id));
  auto type = ir::infer_type(op, operands, node.attrs);
  CHECK(type);
  node.type = *std::move(type);
  return place(std::move(node));
}

NodeId Simplifier::constant(const ir::Type& type, std::vector<uint8_t> bytes) {
  return out_.add_constant(type, std::move(bytes), source_);
}

NodeId Simplifier::zeros(const ir::Type& type) {
  return constant(type, jit::element_bytes(type.dtype, int64_t{0}));
}

const std::vector<uint8_t>* Simplifier::one_value(NodeId id) const {
  const Node& node = out_[id];
  if (node.op != Op::constant) return nullptr;
  const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
  const bool one =
      static_cast<int64_t>(bytes.size()) == byte_size(node.type.dtype);
  return one ? &bytes : nullptr;
}

bool Simplifier::is_value(NodeId id, double value) const {
  const auto* bytes = one_value(id);
  return bytes && *bytes == jit::element_bytes(out_.type(id).dtype, value);
}

std::optional<NodeId> Simplifier::rewrite(const Node& node) {
  switch (ir::kind(node.op)) {
    case ir::Kind::map: return rewrite_map(node);
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan: return rewrite_line(node);
    case ir::Kind::move: return rewrite_move(node);
    case ir::Kind::source: return rewrite_source(node);
    case ir::Kind::collective: return rewrite_collective(node);
    case ir::Kind::index: return rewrite_index(node);
    case ir::Kind::dot:
    case ir::Kind::sort:
    case ir::Kind::control:
    case ir::Kind::host: return std::nullopt;
  }
  __builtin_unreachable();
}

NodeId Simplifier::place(Node node) {
  poll_stop();
  if (auto simpler = rewrite(node)) return *simpler;
  return out_.append(std::move(node));
}

namespace {

/// A constant scalar operand becomes a constant inside the subgraph, where
/// more rules see it; the input stays, unread, until cse_dce.
std::shared_ptr<const Graph> with_constants(
    const Graph& graph, const std::vector<const Node*>& constants) {
  Graph out;
  for (NodeId id : graph.inputs)
    out.add_input(graph.type(id), graph[id].source);
  std::vector<NodeId> arguments = out.inputs;
  for (size_t i = 0; i < constants.size(); ++i)
    if (constants[i]) arguments[i] = out.append(*constants[i]);
  out.outputs = inline_graph(out, graph, arguments);
  return std::make_shared<const Graph>(simplify(out));
}

}  // namespace

void Simplifier::simplify_subgraphs(Node& node) {
  // By operand from `from` on; of the first `changing` the value is not known.
  const auto constant_operands = [&](size_t from, size_t changing) {
    std::vector<const Node*> out;
    for (size_t i = from; i < node.inputs.size(); ++i) {
      const bool constant = i - from >= changing && one_value(node.inputs[i]);
      out.push_back(constant ? &out_[node.inputs[i]] : nullptr);
    }
    return out;
  };
  if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
    const auto constants = constant_operands(1, 0);
    a->then_graph = with_constants(*a->then_graph, constants);
    a->else_graph = with_constants(*a->else_graph, constants);
  }
  if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) {
    auto constants = constant_operands(
        0, static_cast<size_t>(a->carries) + static_cast<size_t>(a->rows));
    if (a->is_counted()) constants.insert(constants.begin(), nullptr);
    if (a->condition) a->condition = with_constants(*a->condition, constants);
    a->body = with_constants(*a->body, constants);
  }
}

Graph Simplifier::run(const Graph& graph) {
  ir::Renaming placed(graph);
  // Results of branches that are taken for certain, by their control node.
  std::vector<std::vector<NodeId>> taken(graph.nodes.size());
  out_.nodes.reserve(graph.nodes.size());
  for (const NodeId id : ir::node_ids(graph)) {
    const Node& old = graph[id];
    source_ = old.source;
    if (old.op == Op::input) {
      placed.set(id, out_.add_input(old.type, old.source));
      continue;
    }
    if (old.op == Op::project && !taken[old.inputs[0]].empty()) {
      const int index = ir::attrs<ir::ProjectAttrs>(old).index;
      placed.set(id, taken[old.inputs[0]][index]);
      continue;
    }
    Node node = placed.renamed(id);
    if (node.op == Op::if_else && one_value(node.inputs[0])) {
      const auto& a = ir::attrs<ir::IfAttrs>(node);
      const bool truth = is_value(node.inputs[0], 1);
      taken[id] = place_all(truth ? *a.then_graph : *a.else_graph,
                            {node.inputs.begin() + 1, node.inputs.end()});
      placed.set(id, taken[id].empty() ? zeros(node.type) : taken[id][0]);
      continue;
    }
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs);
        a && a->turns == 0) {
      for (int i = 0; i < ir::result_count(node); ++i)
        taken[id].push_back(i < a->carries ? node.inputs[static_cast<size_t>(i)]
                                           : zeros(ir::result_type(node, i)));
      placed.set(id, taken[id].empty() ? zeros(node.type) : taken[id][0]);
      continue;
    }
    simplify_subgraphs(node);
    placed.set(id, place(std::move(node)));
  }
  out_.outputs = placed.renamed(graph.outputs);
  return std::move(out_);
}

std::vector<NodeId> Simplifier::place_all(
    const Graph& graph, const std::vector<NodeId>& arguments) {
  const Graph simple = simplify(graph);
  ir::Renaming placed(simple);
  for (const NodeId id : ir::node_ids(simple)) {
    source_ = simple[id].source;
    placed.set(id, simple[id].op == Op::input ? arguments[id]
                                              : place(placed.renamed(id)));
  }
  return placed.renamed(simple.outputs);
}

Graph simplify(const Graph& graph) { return Simplifier().run(graph); }

}  // namespace unisono::jit
