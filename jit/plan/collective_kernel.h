#pragma once
#include "jit/kernel/kernel.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

/// A kernel that combines `elements` elements of each of `sources` arrays in
/// the members tree and stores the result to each of `targets` arrays. Its
/// arguments are the sources, then the targets; their buffers are -1, as the
/// run binds them.
Kernel all_reduce_kernel(ReduceOp op, DType dtype, int64_t elements,
                         int sources, int targets);

/// The elements of one part of an all_reduce, which one device combines for
/// all; parts go to the devices in turn. A multiple of 64, or all elements
/// where they are few.
int64_t all_reduce_part(int64_t elements, DType dtype, int devices);

}  // namespace unisono::jit
