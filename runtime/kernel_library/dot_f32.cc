// Products of f32, each element one fma chain in the order of k.
#include "runtime/kernel_library/pipeline.h"

namespace unisono::grid {

#define DOT(tile)                                                          \
  GRID_KERNEL dot_f32_any_##tile(const float* a, const float* b, float* c, \
                                 DotCall call) {                           \
    product<F32, tile, Chains<F32, float, tile>>(a, b, c, call);           \
  }
DOT(128)
DOT(64)

/// Operands are aligned: pipeline.h.
#if GRID_CAPABILITY >= 80
template <class, class>
using Large = WordChains<128>;
template <class, class>
using Small = WordChains<64>;
#define ALIGNED(tile, stages, multiply)                                  \
  GRID_KERNEL dot_f32_##tile(const float* a, const float* b, float* c,   \
                             DotCall call) {                             \
    pipelined_product<ChainTile, multiply, tile, stages>(a, b, c, call); \
  }
#else
#define ALIGNED(tile, stages, multiply)                                \
  GRID_KERNEL dot_f32_##tile(const float* a, const float* b, float* c, \
                             DotCall call) {                           \
    product<F32, tile, Chains<F32, float, tile>>(a, b, c, call);       \
  }
#endif
ALIGNED(128, 3, Large)
ALIGNED(64, 4, Small)

}  // namespace unisono::grid
