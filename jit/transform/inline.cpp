#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::jit {

std::vector<NodeId> inline_graph(Graph& graph, const Graph& callee,
                                 const std::vector<NodeId>& arguments) {
  CHECK(arguments.size() == callee.inputs.size());
  std::vector<NodeId> placed(callee.nodes.size());
  for (size_t i = 0; i < callee.nodes.size(); ++i) {
    ir::Node node = callee.nodes[i];
    if (node.op == ir::Op::input) {
      placed[i] = arguments[i];
      CHECK(graph.type(placed[i]) == node.type);
      continue;
    }
    for (NodeId& operand : node.inputs) operand = placed[operand];
    placed[i] = static_cast<NodeId>(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
  }
  std::vector<NodeId> outputs;
  for (NodeId output : callee.outputs) outputs.push_back(placed[output]);
  return outputs;
}

}  // namespace unisono::jit
