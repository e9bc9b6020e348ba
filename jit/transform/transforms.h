#pragma once
// The passes over array IR. One file per pass; each takes a graph and gives a
// graph. jit/pipeline.cpp is the ordered list, and verifies after each.
#include <optional>
#include <string>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

using ir::Graph;
using ir::NodeId;

/// An axis of a mesh of devices.
struct MeshAxis {
  int64_t size = 1;
  /// The axes whose collectives run along it; empty: any.
  std::vector<ir::AxisId> ids;
};
/// spmd.cpp: the graph that each device of a mesh (its first axis outermost)
/// runs becomes one in which all collectives are over axis 0, which is all
/// devices in row-major order; a collective over some axes of the mesh is made
/// in groups. As the runtime has it, all_gather stacks at the front, and there
/// is no own_part. `plain`: nor are there reductions of groups and
/// reduce_scatter, which become gathers and exchanges with a reduction on each
/// device.
Graph spmd(const Graph& graph, const std::vector<MeshAxis>& mesh,
           bool plain = false);

/// join_all_reduces.cpp: reductions over members that nothing orders, and that
/// agree in operation, axes, groups and element type, become one, where they
/// are small.
Graph join_all_reduces(const Graph& graph);

/// inline.cpp: appends the nodes of `callee` to `graph`, its inputs replaced
/// by `arguments`; gives the ids of its outputs.
std::vector<NodeId> inline_graph(Graph& graph, const Graph& callee,
                                 const std::vector<NodeId>& arguments);
/// simplify.cpp: algebraic identities that keep every bit, constant folding of
/// scalars (by the reference evaluator), moves of moves.
Graph simplify(const Graph& graph);
/// cse.cpp: equal nodes become one. Inputs, which come first, keep their ids;
/// outside subgraphs no node is removed otherwise.
Graph join_equal(const Graph& graph);
/// cse.cpp: join_equal, and nodes that are not needed are removed, but for
/// those that must_stay.
Graph cse_dce(const Graph& graph);
/// dead_results.cpp: results of branches and loops that are not read are not
/// computed.
Graph drop_dead_results(const Graph& graph);
/// pull_gathers.cpp: a gather of what maps compute, for nobody else, is the
/// maps of gathers. The graph is concrete.
Graph pull_gathers(const Graph& graph);
/// narrow_products.cpp: a product of which only slices are read is that of the
/// parts of its factors that these depend on. The graph is concrete.
Graph narrow_products(const Graph& graph);

}  // namespace unisono::jit
