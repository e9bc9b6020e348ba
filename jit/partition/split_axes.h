#pragma once
// Along which axis each value of a graph is split over a line of devices, if
// each device computes its own block of it alone.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// The place of `item` in `list`; -1 if it is not there.
inline int position_of(const std::vector<int>& list, int item) {
  const auto at = std::ranges::find(list, item);
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

/// The axis of every node's value, found forwards through the graph.
class SplitAxes {
 public:
  /// Each device has, or computes, the whole value.
  static constexpr int whole = -1;
  /// The node cannot be computed block by block.
  static constexpr int apart = -2;

  /// `inputs`: the axes that the inputs, which are the first nodes, are split
  /// along, or `whole`.
  SplitAxes(const ir::Graph& graph, const std::vector<int>& inputs,
            int64_t devices);
  /// An axis, `whole` or `apart`.
  int of(ir::NodeId id) const { return of_[id]; }

  /// For a reduction that removes the split axis of its operand: how many
  /// elements of a block may be reduced by themselves so that these partial
  /// results, combined in the members tree, give the bits of the whole
  /// reduction (reduce_order.h). 0: the node is no such reduction, or there is
  /// no such number.
  int64_t partial_elements(const ir::Node& node) const;

 private:
  int axis_of(ir::NodeId id) const;
  int common(const std::vector<ir::NodeId>& operands) const;
  int reduced(const ir::Node& node) const;
  int moved(const ir::Node& node) const;
  int reshaped(const ir::Node& node, int axis) const;
  int product(const ir::Node& node) const;

  const ir::Graph& graph_;
  const int64_t devices_;
  std::vector<int> of_;
};

}  // namespace unisono::jit
