// Products of f16 and bf16 without matrix units: each element one fma chain in
// f32 in the order of k, rounded at its end.
#include "runtime/kernel_library/product.h"

namespace unisono::grid {

#define DOT(name, type, brain)                                        \
  GRID_KERNEL name(const uint16_t* a, const uint16_t* b, uint16_t* c, \
                   DotCall call) {                                    \
    product<type, 64, Chains<type, float, 64, brain>>(a, b, c, call); \
  }
DOT(dot_exact_f16_64, F16, false)
DOT(dot_exact_bf16_64, BF16, true)

}  // namespace unisono::grid
