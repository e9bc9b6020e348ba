#pragma once
// Array work outside maps on arrays that are split over devices: what each
// block can do alone is done where it lies.
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
  std::vector<GridAxis> grid;  // which the devices form
  /// Where whole arrays lie before and after.
  std::vector<Sharding> inputs, outputs;
};

/// Nothing unless an input is split over several devices, and every node that
/// depends on it is computed block by block: map operations,
/// reductions along other axes, and moves that keep the blocks apart.
std::optional<BlockPlan> plan_blocks(const ir::Graph& graph,
                                     const std::vector<unisono::Array>& inputs);

/// Some of a graph: what some of its outputs need.
struct GraphPart {
  ir::Graph graph;
  std::vector<int> outputs;  // which of the whole graph's
  /// Which of the whole graph's inputs; counted on from there, outputs of the
  /// part before this one.
  std::vector<int> inputs;
};
/// A graph whose outputs are not all computed block by block: first those that
/// are, then the rest.
struct Division {
  GraphPart placed, rest;
  BlockPlan plan;  // of `placed`
};
/// Nothing if none of the outputs, or not all of them together, can be
/// computed block by block.
std::optional<Division> divide(const ir::Graph& graph,
                               const std::vector<unisono::Array>& inputs);

/// `graph` reads an input only through slices: one of them.
struct ReadPart {
  ir::NodeId slice;
  int input;
};
/// All slices of inputs that are split over several devices and read in no
/// other way.
std::vector<ReadPart> parts_read(const ir::Graph& graph,
                                 const std::vector<unisono::Array>& inputs);

}  // namespace unisono::jit
