// Products of f16 by matrix units.
#include "runtime/kernel_library/matrix_unit.h"

namespace unisono::grid {

#define DOT(tile)                                                  \
  GRID_KERNEL dot_f16_##tile(const uint16_t* a, const uint16_t* b, \
                             uint16_t* c, DotCall call) {          \
    product<F16, tile, MatrixUnit<F16, tile>>(a, b, c, call);      \
  }
DOT(128)
DOT(64)

}  // namespace unisono::grid
