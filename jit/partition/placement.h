#pragma once
// Array work outside maps on arrays that are split over devices: each device
// computes on its own blocks what can be computed so.
#include <optional>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/transform/transforms.h"
#include "runtime/array.h"

namespace unisono::jit {

/// A graph as each device runs it on its own blocks.
struct BlockPlan {
  ir::Graph graph;  // sizes are those of one block
  std::vector<Device*> devices;
  std::vector<MeshAxis> mesh;  // that the devices form
  /// The placements of the whole inputs and outputs.
  std::vector<Sharding> inputs, outputs;
};

/// The plan of a graph that each device can run on its blocks; inputs[i] is
/// where input i lies. Nothing unless an input is split over several devices
/// and every node that depends on it can be computed block by block
/// (split_axes.h).
std::optional<BlockPlan> plan_blocks(const ir::Graph& graph,
                                     const std::vector<unisono::Array>& inputs);

/// The part of a graph that some of its outputs need.
struct GraphPart {
  ir::Graph graph;
  std::vector<int> outputs;  // their numbers in the whole graph
  /// The numbers of the part's inputs in the whole graph. Those from the whole
  /// graph's number of inputs on are outputs of the part before this one, in
  /// its order.
  std::vector<int> inputs;
};
/// A graph of whose outputs only some can be computed block by block: first
/// these, then the rest.
struct Division {
  GraphPart placed, rest;
  BlockPlan plan;  // of `placed`
};
/// Nothing if no output can be computed block by block, or those that can by
/// themselves cannot together.
std::optional<Division> divide(const ir::Graph& graph,
                               const std::vector<unisono::Array>& inputs);

/// A node that reads a part of an input: a slice, or a gather of rows.
struct ReadPart {
  ir::NodeId node;
  int input;
};
/// All parts of those of the inputs in `wanted` that the graph reads in no
/// other way. Of those that are not in `strided`, too, they are slices of step
/// 1; of others slices whose steps are positive, and gathers of rows at
/// positions that do not depend on what is in `wanted`.
std::vector<ReadPart> parts_read(const ir::Graph& graph,
                                 std::vector<bool> wanted,
                                 const std::vector<bool>& strided);

/// The graph that computes one value: its outputs are the value, its inputs
/// those of the numbered inputs that it needs.
GraphPart part_for(const ir::Graph& graph, ir::NodeId value);

}  // namespace unisono::jit
