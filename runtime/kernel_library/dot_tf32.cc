// Products of f32 rounded to tf32, where matrix units know it; else of f32.
#include "runtime/kernel_library/matrix_unit.h"

namespace unisono::grid {

#if GRID_CAPABILITY >= 80
template <int tile>
using Multiply = MatrixUnit<F32, tile>;
#else
template <int tile>
using Multiply = Chains<F32, float, tile>;
#endif

#define DOT(tile)                                                           \
  GRID_KERNEL dot_tf32_any_##tile(const float* a, const float* b, float* c, \
                                  DotCall call) {                           \
    product<F32, tile, Multiply<tile>>(a, b, c, call);                      \
  }
DOT(128)
DOT(64)

/// Operands are aligned: pipeline.h.
#if GRID_CAPABILITY >= 80
template <class, class>
using Large = WordUnit<128>;
template <class, class>
using Small = WordUnit<64>;
#define ALIGNED(tile, stages, multiply)                                 \
  GRID_KERNEL dot_tf32_##tile(const float* a, const float* b, float* c, \
                              DotCall call) {                           \
    pipelined_product<UnitTile, multiply, tile, stages>(a, b, c, call); \
  }
#else
#define ALIGNED(tile, stages, multiply)                                 \
  GRID_KERNEL dot_tf32_##tile(const float* a, const float* b, float* c, \
                              DotCall call) {                           \
    product<F32, tile, Multiply<tile>>(a, b, c, call);                  \
  }
#endif
ALIGNED(128, 3, Large)
ALIGNED(64, 4, Small)

}  // namespace unisono::grid
