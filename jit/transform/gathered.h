#pragma once
#include "jit/transform/transforms.h"

namespace unisono::jit {

/// gathered.cpp: what an all_gather stacked at the front, where it belongs: the
/// stack becomes axis `dim`, joined with the one it meets there if `tiled`.
/// `mapped`: there is an axis of members before it, which stays.
NodeId place_gathered(Graph& graph, NodeId stacked, bool mapped, int dim,
                      bool tiled, uint32_t source);

}  // namespace unisono::jit
