// Radix sorts of long lines of elements of 32 bits and less.
#include "runtime/kernel_library/radix.h"

namespace unisono::grid {

#define RADIX(bits)                                                            \
  GRID_KERNEL radix_totals_##bits(const uint##bits##_t* from,                  \
                                  uint32_t* counters, SortCall call) {         \
    radix_totals<uint##bits##_t>(from, counters, call);                        \
  }                                                                            \
  GRID_KERNEL sort_move_##bits(const uint##bits##_t* from, uint32_t* counters, \
                               uint##bits##_t* to, SortCall call) {            \
    radix_move<uint##bits##_t, false>(from, nullptr, counters, to, nullptr,    \
                                      call);                                   \
  }                                                                            \
  GRID_KERNEL argsort_first_##bits(const uint##bits##_t* from,                 \
                                   uint32_t* counters, uint##bits##_t* to,     \
                                   int32_t* to_index, SortCall call) {         \
    radix_move<uint##bits##_t, true>(from, nullptr, counters, to, to_index,    \
                                     call);                                    \
  }                                                                            \
  GRID_KERNEL argsort_move_##bits(const uint##bits##_t* from,                  \
                                  const int32_t* from_index,                   \
                                  uint32_t* counters, uint##bits##_t* to,      \
                                  int32_t* to_index, SortCall call) {          \
    radix_move<uint##bits##_t, true>(from, from_index, counters, to, to_index, \
                                     call);                                    \
  }
RADIX(8)
RADIX(16)
RADIX(32)

GRID_KERNEL radix_clear_32(uint32_t* counters, SortCall call) {
  radix_clear(counters, call);
}
GRID_KERNEL radix_starts_32(uint32_t* counters, SortCall) {
  radix_starts(counters + RadixCounters<uint32_t>::most_passes);
}

}  // namespace unisono::grid
