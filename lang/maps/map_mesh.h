#pragma once
// The devices that compiled code runs on, when maps are nested in it.
#include <vector>

#include "jit/partition/map_graph.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// Whether the graph has maps over devices inside it.
bool has_nested_maps(Walk& walk, const ir::Graph& graph);

/// Adds the axes of the maps inside `map.graph` to map.axes, behind that of
/// `outermost`, if that is not null; fills map.mesh, and lets parts stay where
/// they are (jit::keep_parts). Returns the mesh's devices in row-major order;
/// the first device if there are no maps over devices.
std::vector<Device*> complete_mesh(Walk& walk, jit::MemberGraph& map,
                                   const AxisInfo* outermost, Span where);

}  // namespace unisono::lang
