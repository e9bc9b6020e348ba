// Products of f16 by matrix units.
#include "runtime/kernel_library/matrix_unit.h"

namespace unisono::grid {

template <int tile>
using Multiply = MatrixUnit<F16, tile>;

#define DOT(tile)                                                      \
  GRID_KERNEL dot_f16_any_##tile(const uint16_t* a, const uint16_t* b, \
                                 uint16_t* c, DotCall call) {          \
    product<F16, tile, Multiply<tile>>(a, b, c, call);                 \
  }
DOT(128)
DOT(64)

/// Operands are aligned: pipeline.h.
#if GRID_CAPABILITY >= 80
template <class Left, class Right>
using Large = TileUnit<Left, Right, F16, 128, false>;
template <class Left, class Right>
using Small = TileUnit<Left, Right, F16, 64, false>;
#define ALIGNED(tile, stages, multiply)                                 \
  GRID_KERNEL dot_f16_##tile(const uint16_t* a, const uint16_t* b,      \
                             uint16_t* c, DotCall call) {               \
    pipelined_product<HalfTile, multiply, tile, stages>(a, b, c, call); \
  }
#else
#define ALIGNED(tile, stages, multiply)                            \
  GRID_KERNEL dot_f16_##tile(const uint16_t* a, const uint16_t* b, \
                             uint16_t* c, DotCall call) {          \
    product<F16, tile, Multiply<tile>>(a, b, c, call);             \
  }
#endif
ALIGNED(128, 3, Large)
ALIGNED(64, 4, Small)

}  // namespace unisono::grid
