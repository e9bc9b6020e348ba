// Products of f32, each element one fma chain in the order of k: large ones of
// aligned operands.
#include "runtime/kernel_library/wide.h"

namespace unisono::grid {

#if GRID_CAPABILITY >= 80
GRID_SHARED_MEMORY(73728);
inline constexpr int stages = 3;
static_assert(stages * (ChainTile<Along::k, wide_rows>::bytes +
                        ChainTile<Along::k, wide_columns>::bytes) ==
              73728);

template <class, class>
using Wide = WordChains<wide_rows, wide_columns>;
GRID_KERNEL dot_wide_f32(const float* a, const float* b, float* c,
                         DotCall call) {
  wide_product<ChainTile, Wide, stages>(a, b, c, call);
}
#else
GRID_KERNEL dot_wide_f32(const float* a, const float* b, float* c,
                         DotCall call) {
  two_squares<F32, Chains<F32, float, wide_rows>>(a, b, c, call);
}
#endif

}  // namespace unisono::grid
