// The gradient of a recurrence multiplies by the transposed weights in each
// turn. A product of few rows is a nest (dot_form), each lane of which has a
// chain along k: if k is the matrix's last axis, squares of it are transposed
// in registers, again in each turn. No bit changes: which elements a chain
// combines, and in which order, stays.
#include "jit/loops/transpose_captures.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "jit/ir/renaming.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::LoopAttrs;
using ir::Node;
using ir::NodeId;
using ir::Op;

/// Which factor of a product, 0 or 1, is a matrix whose last axis is
/// contracted, where it may be transposed; -1 for none.
int matrix_of(const Graph& body, const Node& node,
              const std::vector<bool>& is_capture) {
  if (node.op != Op::dot) return -1;
  const auto& dot = ir::attrs<ir::DotAttrs>(node);
  if (!dot.batch_a.empty()) return -1;
  for (const int side : {1, 0}) {
    const NodeId matrix = node.inputs[static_cast<size_t>(side)];
    const auto& contract = side ? dot.contract_b : dot.contract_a;
    if (!is_capture[matrix] || contract != std::vector<int>{1}) continue;
    const ir::Type& type = body.type(matrix);
    if (type.shape.size() != 2) continue;
    const int64_t rows = type.shape[0].value(), columns = type.shape[1].value();
    if (rows < tuning().least_transposed_side ||
        columns < tuning().least_transposed_side ||
        rows * columns < tuning().least_transposed_elements)
      continue;
    if (node.type.elements() / rows < tuning().least_tiled_factor_rows)
      return side;
  }
  return -1;
}

/// A body with transposed copies of some of its captures, as further ones.
struct Transposed {
  Graph body;
  std::vector<size_t> copied;  // which inputs these are copies of
};

Transposed with_transposed(const Graph& body, size_t first_capture) {
  std::vector<bool> is_capture(body.nodes.size());
  for (size_t i = first_capture; i < body.inputs.size(); ++i)
    is_capture[body.inputs[i]] = true;
  Transposed result;
  std::map<NodeId, NodeId> copies;  // by input of `body`: in the new one
  std::map<NodeId, size_t> number;  // of inputs
  for (size_t i = 0; i < body.inputs.size(); ++i) number[body.inputs[i]] = i;
  ir::Renaming placed(body);
  for (const NodeId id : body.inputs)
    placed.set(id, result.body.add_input(body.type(id), body[id].source));
  for (const NodeId id : ir::node_ids(body)) {
    const int side = matrix_of(body, body[id], is_capture);
    if (side < 0) continue;
    const NodeId matrix = body[id].inputs[static_cast<size_t>(side)];
    if (copies.contains(matrix)) continue;
    ir::Type type = body.type(matrix);
    std::swap(type.shape[0], type.shape[1]);
    copies[matrix] = result.body.add_input(type, body[matrix].source);
    result.copied.push_back(number.at(matrix));
  }
  for (const NodeId id : ir::node_ids(body)) {
    if (body[id].op == Op::input) continue;
    Node node = placed.renamed(id);
    if (const int side = matrix_of(body, body[id], is_capture); side >= 0) {
      auto& dot = std::get<ir::DotAttrs>(node.attrs);
      (side ? dot.contract_b : dot.contract_a) = {0};
      const auto place = static_cast<size_t>(side);
      node.inputs[place] = copies.at(body[id].inputs[place]);
    }
    placed.set(id, result.body.append(std::move(node)));
  }
  result.body.outputs = placed.renamed(body.outputs);
  return result;
}

/// `node` is the loop, in `graph`, which comes to have the copies.
void capture_transposed(Node& node, LoopAttrs& loop, Graph& graph) {
  Transposed made = with_transposed(
      *loop.body, loop.parameter(static_cast<size_t>(loop.carries) +
                                 static_cast<size_t>(loop.rows)));
  if (made.copied.empty()) return;
  // Operands are the body's inputs without the number of the turn.
  for (const size_t input : made.copied)
    node.inputs.push_back(graph.add(Op::transpose,
                                    {node.inputs[input - loop.parameter(0)]},
                                    ir::AxesAttrs{{1, 0}}, node.source));
  loop.body = std::make_shared<const Graph>(std::move(made.body));
}

void rewrite(std::shared_ptr<const Graph>& graph) {
  if (graph) graph = std::make_shared<const Graph>(transpose_captures(*graph));
}

}  // namespace

Graph transpose_captures(const Graph& graph) {
  Graph out;
  ir::Renaming placed(graph);
  for (const NodeId id : ir::node_ids(graph)) {
    poll_stop();
    if (graph[id].op == Op::input) {
      placed.set(id, out.add_input(graph.type(id), graph[id].source));
      continue;
    }
    Node node = placed.renamed(id);
    if (auto* branch = std::get_if<ir::IfAttrs>(&node.attrs))
      rewrite(branch->then_graph), rewrite(branch->else_graph);
    if (auto* loop = std::get_if<LoopAttrs>(&node.attrs)) {
      rewrite(loop->condition), rewrite(loop->body);
      if (loop->turns >= tuning().least_transposed_turns)
        capture_transposed(node, *loop, out);
    }
    placed.set(id, out.append(std::move(node)));
  }
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

}  // namespace unisono::jit
