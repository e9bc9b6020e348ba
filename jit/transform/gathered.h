#pragma once
#include "jit/transform/transforms.h"

namespace unisono::jit {

/// gathered.cpp: moves the leading axis of `stacked`, along which an all_gather
/// stacked values, to axis `dim`; if `tiled`, it is joined with the axis that
/// follows there. `mapped`: an axis of members comes before all these and
/// stays.
NodeId place_gathered(Graph& graph, NodeId stacked, bool mapped, int dim,
                      bool tiled, uint32_t source);

}  // namespace unisono::jit
