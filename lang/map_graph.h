#pragma once
// One member's graph, and what becomes of it: a graph that every device runs on
// its own blocks, or the reference evaluator over all members.
#include <cstdint>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/reference.h"
#include "lang/map_spec.h"
#include "runtime/result.h"

namespace unisono::lang {

/// A map traced for one member.
struct MemberGraph {
  ir::Graph graph;
  ir::AxisId axis = 0;  // 0 for jit
  int devices = 1;
  int64_t per_device = 1;  // members on each device
  /// Of each input and output of the graph; captures have `none`.
  std::vector<AxisEntry> inputs, outputs;

  int64_t members() const { return per_device * devices; }
};

/// The graph that each device runs. Its inputs and outputs are the blocks of
/// whole arrays, cut along the axes that are mapped or split.
ir::Graph device_graph(const MemberGraph& map);

/// Evaluates the map member by member, from whole arrays to whole results: what
/// the map means. `outputs` are the types of the results.
Result<std::vector<jit::HostArray>> evaluate_map(
    const MemberGraph& map, const std::vector<jit::HostArray>& inputs,
    const std::vector<ir::Type>& outputs, const jit::ReferenceOptions& options);

}  // namespace unisono::lang
