#pragma once
// Collectives that travel while devices compute.
#include "jit/plan/fuse.h"

namespace unisono::jit {

/// For devices of several processes: a collective comes where what it sends is
/// there, and may be under way until the first step that needs its result.
/// There stands its end, a copy of no bytes between its slots (flat_program.h),
/// if kernels are between the two; else it stays where it is. It passes no step
/// that may fail, call of the host, loop or branch, so which error is reported
/// does not change. Collectives may come in another order, the same one in all
/// processes. What it sends and gets keeps its place in memory until its end.
void overlap_collectives(Plan& plan);

}  // namespace unisono::jit
