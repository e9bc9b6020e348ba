#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "runtime/check.h"

namespace unisono::jit {

std::vector<NodeId> inline_graph(Graph& graph, const Graph& callee,
                                 const std::vector<NodeId>& arguments) {
  CHECK(arguments.size() == callee.inputs.size());
  ir::Renaming placed(callee);
  for (const NodeId id : ir::node_ids(callee)) {
    if (callee[id].op == ir::Op::input) {
      placed.set(id, arguments[id]);
      CHECK(graph.type(placed[id]) == callee.type(id));
    } else {
      placed.set(id, graph.append(placed.renamed(id)));
    }
  }
  return placed.renamed(callee.outputs);
}

}  // namespace unisono::jit
