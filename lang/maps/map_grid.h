#pragma once
// The devices that compiled code runs on, when maps are nested in it.
#include <vector>

#include "jit/partition/map_graph.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// Whether there are maps over devices in the graph.
bool has_nested_maps(Walk& walk, const ir::Graph& graph);

/// Adds the axes of the maps in `map.graph` behind the one that it may have,
/// which is `outermost`'s; fills the grid, and gives its devices in row-major
/// order. Then keeps parts where they are (keep_parts).
std::vector<Device*> complete_grid(Walk& walk, jit::MemberGraph& map,
                                   const AxisInfo* outermost, Span where);

/// Whether a host call is for the member at this place: outside some of the
/// maps it is made once for all members of these.
bool calls_host(const jit::MemberGraph& map, const ir::HostCallAttrs& call,
                int64_t member);
/// The same for a device.
bool calls_host_on(const std::vector<jit::GridAxis>& grid,
                   const ir::HostCallAttrs& call, int position);

}  // namespace unisono::lang
