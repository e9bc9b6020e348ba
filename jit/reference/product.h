#pragma once
// A product of two small matrices, for who has them at hand: no node, no types.
#include <cstdint>

#include "runtime/dtype.h"

namespace unisono::jit::reference {

/// The longest sum of products that is one chain of fma
/// (jit/ir/reduce_order.h).
inline constexpr int64_t longest_product_chain = 4096;

/// out[m, n] = a[m, k] @ b[k, n], dense and row-major, as the node `dot` gives
/// it, to the bit. For f32 and f64, and k up to `longest_product_chain`.
void multiply(DType dtype, const void* a, const void* b, int64_t m, int64_t k,
              int64_t n, void* out);

}  // namespace unisono::jit::reference
