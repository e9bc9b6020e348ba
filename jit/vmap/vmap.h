#pragma once
// From the graph of one member to that of many.
#include <cstdint>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// `graph` for one member becomes the graph for `size` members. The
/// inputs with `mapped[i]` gain a leading axis of that size; every output has
/// a leading axis of that size (broadcast if it does not depend on a mapped
/// input). Collectives over `axis` become reductions (in the order of
/// members), gathers and reshapes over the new axis; those over other axes
/// stay, member-wise. Conditions that are mapped become selects, loops whose
/// condition is mapped run until every member is done, and checked operations
/// of members that take no part are given harmless operands.
struct VmapSpec {
  ir::AxisId axis = 0;
  int64_t size = 1;
  std::vector<bool> mapped;
  /// Members of the axis on all devices together. If it is larger than
  /// `size`, this graph runs on `devices` = members / size devices, each with
  /// `size` consecutive members, and collectives over `axis` become a local
  /// part and a collective over devices (same AxisId, size = devices).
  int64_t devices = 1;
  /// Errors say which of the graph's members they are about.
  bool names_members = false;
  /// By output: whether it has the leading axis. The others are the same for
  /// all members and are given once. Empty: all have it.
  std::vector<bool> stacked = {};
};
ir::Graph vmap(const ir::Graph& graph, const VmapSpec& spec);

}  // namespace unisono::jit
