#pragma once
// The passes over array IR, in order: from the graph that was traced to the one
// that kernels are formed from. The result of each is verified.
#include <functional>
#include <string_view>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/partition/map_graph.h"
#include "jit/transform/transforms.h"

namespace unisono::jit {

/// Called with each pass's name and result.
using AfterPass = std::function<void(std::string_view pass, const Graph&)>;

/// The first passes: from one member's graph to the graph that every device
/// runs, whose collectives are over devices. `mesh` and `plain` are spmd's.
Graph for_devices(const MemberGraph& map, const std::vector<MeshAxis>& mesh,
                  bool plain, const AfterPass& after = nullptr);
/// The other passes: the graph, which keeps its meaning, has less to compute.
Graph optimise(const Graph& graph, const AfterPass& after = nullptr);

/// The names of all passes in order, after "trace", which stands for the graph
/// before any pass.
std::vector<std::string_view> pass_names();

}  // namespace unisono::jit
