// Products of bf16: by matrix units where they know it, else by chains in f32.
#include "runtime/kernel_library/matrix_unit.h"

namespace unisono::grid {

#if GRID_CAPABILITY >= 80
template <int tile>
using Multiply = MatrixUnit<BF16, tile, true>;
#else
template <int tile>
using Multiply = Chains<BF16, float, tile, true>;
#endif

#define DOT(tile)                                                       \
  GRID_KERNEL dot_bf16_any_##tile(const uint16_t* a, const uint16_t* b, \
                                  uint16_t* c, DotCall call) {          \
    product<BF16, tile, Multiply<tile>>(a, b, c, call);                 \
  }
DOT(128)
DOT(64)

/// Operands are aligned: pipeline.h.
#if GRID_CAPABILITY >= 80
template <class Left, class Right>
using Large = TileUnit<Left, Right, BF16, 128, true>;
template <class Left, class Right>
using Small = TileUnit<Left, Right, BF16, 64, true>;
#define ALIGNED(tile, stages, multiply)                                 \
  GRID_KERNEL dot_bf16_##tile(const uint16_t* a, const uint16_t* b,     \
                              uint16_t* c, DotCall call) {              \
    pipelined_product<HalfTile, multiply, tile, stages>(a, b, c, call); \
  }
#else
#define ALIGNED(tile, stages, multiply)                             \
  GRID_KERNEL dot_bf16_##tile(const uint16_t* a, const uint16_t* b, \
                              uint16_t* c, DotCall call) {          \
    product<BF16, tile, Multiply<tile>>(a, b, c, call);             \
  }
#endif
ALIGNED(128, 3, Large)
ALIGNED(64, 4, Small)

}  // namespace unisono::grid
