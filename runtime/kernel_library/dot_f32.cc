// Products of f32, each element one fma chain in the order of k.
#include "runtime/kernel_library/product.h"

namespace unisono::grid {

#define DOT(tile)                                                      \
  GRID_KERNEL dot_f32_##tile(const float* a, const float* b, float* c, \
                             DotCall call) {                           \
    product<F32, tile, Chains<F32, float, tile>>(a, b, c, call);       \
  }
DOT(128)
DOT(64)

}  // namespace unisono::grid
