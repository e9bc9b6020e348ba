#pragma once
// A product of two small matrices, for who has them at hand: no node, no types.
#include <cstdint>

#include "runtime/dtype.h"

namespace unisono::jit::reference {

/// out[m, n] = a[m, k] @ b[k, n], dense and row-major, as the node `dot` gives
/// it, to the bit. For f32 and f64, and k up to `dot_chain`
/// (runtime/tuning/orders.def).
void multiply(DType dtype, const void* a, const void* b, int64_t m, int64_t k,
              int64_t n, void* out);

}  // namespace unisono::jit::reference
