#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::ir {

/// Whether it is a move of one operand, whose result may be a view of that.
bool may_be_view(const Node& node);

/// A node whose elements are those of another one, at places that are sums of
/// multiples of its own: what `slice`, `transpose`, `broadcast`, `flip`,
/// reshapes that add or drop axes of size 1, and stacks of such views do. So
/// the windows of a convolution, slices that are stacked, are a view.
struct AffineView {
  NodeId base = -1;
  /// By axis of the base: its place at the view's first element, and how far it
  /// moves along each axis of the view.
  struct Place {
    int64_t start = 0;
    std::vector<int64_t> steps;
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> places;
  bool stacks = false;  // a stack is on the way: elements may be seen twice
};

/// `id` as a view of a node as far back as may be; nothing if it is none of
/// another node. Sizes are constants.
std::optional<AffineView> affine_view(const Graph& graph, NodeId id);

}  // namespace unisono::ir
