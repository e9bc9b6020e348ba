#pragma once
// The passes over array IR, in order: from what was traced to what kernels are
// formed from. Each one's result is verified.
#include <functional>
#include <string_view>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/partition/map_graph.h"
#include "jit/transform/transforms.h"

namespace unisono::jit {

/// Called with each pass's name and result.
using AfterPass = std::function<void(std::string_view pass, const Graph&)>;

/// The first passes: one member's graph becomes that of its devices, the same
/// for all of them, whose collectives are of devices. `grid` and `plain` are
/// spmd's.
Graph for_devices(const MemberGraph& map, const std::vector<GridAxis>& grid,
                  bool plain, const AfterPass& after = nullptr);
/// The others: the same graph, with less to compute.
Graph optimise(const Graph& graph, const AfterPass& after = nullptr);

/// The names of all, in order; "trace" is the graph before any pass.
std::vector<std::string_view> pass_names();

}  // namespace unisono::jit
