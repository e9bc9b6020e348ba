// Radix sorts of long lines of elements of 32 bits and less.
#include "runtime/kernel_library/radix.h"

namespace unisono::grid {

#define RADIX(bits)                                                            \
  GRID_KERNEL radix_count_##bits(const uint##bits##_t* from, uint32_t* counts, \
                                 SortCall call) {                              \
    radix_count<uint##bits##_t>(from, counts, call);                           \
  }                                                                            \
  GRID_KERNEL sort_move_##bits(const uint##bits##_t* from,                     \
                               const uint32_t* counts, const uint32_t* totals, \
                               uint##bits##_t* to, SortCall call) {            \
    radix_move<uint##bits##_t, false>(from, nullptr, counts, totals, to,       \
                                      nullptr, call);                          \
  }                                                                            \
  GRID_KERNEL argsort_first_##bits(const uint##bits##_t* from,                 \
                                   const uint32_t* counts,                     \
                                   const uint32_t* totals, uint##bits##_t* to, \
                                   int32_t* to_index, SortCall call) {         \
    radix_move<uint##bits##_t, true>(from, nullptr, counts, totals, to,        \
                                     to_index, call);                          \
  }                                                                            \
  GRID_KERNEL argsort_move_##bits(                                             \
      const uint##bits##_t* from, const int32_t* from_index,                   \
      const uint32_t* counts, const uint32_t* totals, uint##bits##_t* to,      \
      int32_t* to_index, SortCall call) {                                      \
    radix_move<uint##bits##_t, true>(from, from_index, counts, totals, to,     \
                                     to_index, call);                          \
  }
RADIX(8)
RADIX(16)
RADIX(32)

GRID_KERNEL radix_offset_32(uint32_t* counts, uint32_t* totals, SortCall call) {
  radix_offset(counts, totals, call);
}

}  // namespace unisono::grid
