#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// Whether the positions of a gather or a scatter are certainly all different:
/// no two elements of the index arrays `indices`, along axes of these sizes,
/// name one place. The index arrays are nodes of `graph`. Known to differ are:
///   iota, and what is made of it by adding and multiplying numbers: rows of a
///     stack, slices with steps, members of a map
///   constants, whose elements are looked at
///   argsort, along its lines: permutations, and what they pick of these
///   moves of all this, and several such arrays that differ along several axes
bool positions_differ(const ir::Graph& graph,
                      std::span<const ir::NodeId> indices,
                      std::span<const int64_t> sizes);

/// Integers that change by the same step along each axis: an element is `start`
/// plus its place times the steps, which are 0 along axes of size 1.
struct Steps {
  int64_t start = 0;
  std::vector<int64_t> steps;
};
/// Nothing if they are not known to.
std::optional<Steps> steps_of(const ir::Graph& graph, ir::NodeId id);

}  // namespace unisono::jit
