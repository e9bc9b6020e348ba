#pragma once
#include <cstdint>

#include "jit/kernel/kernel.h"

namespace unisono::jit {

/// A kernel that adds the results of a product's chains (dot_chains), each of
/// them a dense array of so many elements of `dtype` in buffer `from`, one
/// after the other, in the members tree; sums go to `to`.
Kernel sum_chains(int from, int to, DType dtype, int64_t elements,
                  int64_t chains);

}  // namespace unisono::jit
