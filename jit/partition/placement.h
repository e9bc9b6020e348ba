#pragma once
// Array work outside maps on arrays that are split over devices: each device
// computes on its own blocks what can be computed so.
#include <cstdint>
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
/// How the parts of an input may be brought.
struct PartsOf {
  bool any = false;      // slices of step 1, at least
  bool strided = false;  // slices whose steps are positive
  /// Gathers of rows at positions that do not depend on an input of which parts
  /// may be brought: all of them, or of few rows, which are quicker to copy one
  /// by one than the whole is.
  enum class Rows : uint8_t { none, few, all } rows = Rows::none;
};
/// All parts of the inputs (one `PartsOf` each) that the graph reads in no
/// other way.
std::vector<ReadPart> parts_read(const ir::Graph& graph,
                                 const std::vector<PartsOf>& inputs);

/// The graph that computes one value: its outputs are the value, its inputs
/// those of the numbered inputs that it needs.
GraphPart part_for(const ir::Graph& graph, ir::NodeId value);

}  // namespace unisono::jit
