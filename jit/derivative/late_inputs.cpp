#include "jit/derivative/late_inputs.h"

#include "jit/ir/renaming.h"

namespace unisono::jit {

ir::Graph with_inputs(const ir::Graph& graph,
                      const std::vector<ir::NodeId>& inputs) {
  ir::Graph out;
  ir::Renaming placed(graph);
  for (const ir::NodeId id : inputs)
    placed.set(id, out.add_input(graph.type(id)));
  for (const ir::NodeId id : ir::node_ids(graph))
    if (graph[id].op != ir::Op::input)
      placed.set(id, out.append(placed.renamed(id)));
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

}  // namespace unisono::jit
