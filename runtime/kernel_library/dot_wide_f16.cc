// Products of f16 by matrix units: large ones of aligned operands.
#ifdef GRID_WARPGROUPS
#include "runtime/kernel_library/warpgroup.h"
#else
#include "runtime/kernel_library/matrix_unit.h"
#include "runtime/kernel_library/wide.h"
#endif

namespace unisono::grid {

#if defined(GRID_WARPGROUPS)
GRID_SHARED_MEMORY(197632);
inline constexpr int stages = 4;
static_assert(1024 + stages * (LineTile<Along::k, wide_rows>::bytes +
                               LineTile<Along::k, wide_columns>::bytes) ==
              197632);
#define WIDE group_products<false, stages>
#elif GRID_CAPABILITY >= 80
GRID_SHARED_MEMORY(73728);
inline constexpr int stages = 3;
static_assert(stages * (HalfTile<Along::k, wide_rows>::bytes +
                        HalfTile<Along::k, wide_columns>::bytes) ==
              73728);
template <class Left, class Right>
using Wide = TileUnit<Left, Right, F16, wide_rows, false, wide_columns>;
#define WIDE wide_product<HalfTile, Wide, stages>
#else
using Square128 = MatrixUnit<F16, wide_rows>;
#define WIDE two_squares<F16, Square128>
#endif

GRID_KERNEL dot_wide_f16(const uint16_t* a, const uint16_t* b, uint16_t* c,
                         DotCall call) {
  WIDE(a, b, c, call);
}

}  // namespace unisono::grid
