#pragma once
#include "jit/kernel/kernel.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

/// `elements` elements of `sources` arrays combined in the members tree, stored
/// to each of `targets` arrays: arguments are the sources, then the targets.
/// Their buffers are -1: the run names them.
Kernel all_reduce_kernel(ReduceOp op, DType dtype, int64_t elements,
                         int sources, int targets);

/// The elements that one device combines for all: the first so many for the
/// first device, and so on, in turn. A multiple of 64, or all of them where
/// they are few.
int64_t all_reduce_part(int64_t elements, DType dtype, int devices);

}  // namespace unisono::jit
