#pragma once
// What the kernels that sort are told, and the order of elements.
#include "runtime/kernel_library/grid.h"

namespace unisono::grid {

/// What is sorted; constants of the launch.
struct SortCall {
  int64_t rows, length;
  // merge: elements of the runs that are merged; radix: the digit's first bit.
  int64_t run;
  uint64_t infinity;  // of floats: larger magnitudes are NaN
  int32_t kind;       // 0: unsigned, 1: signed, 2: floats
};

/// An unsigned key of the same order; NaNs are the largest key, -0.0 is 0.0.
template <class Bits>
GRID_INLINE Bits key_of(Bits bits, const SortCall& call) {
  constexpr Bits top = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  if (call.kind == 0) return bits;
  if (call.kind == 1) return static_cast<Bits>(bits ^ top);
  const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~top));
  if (magnitude > static_cast<Bits>(call.infinity))
    return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) return top;
  return static_cast<Bits>(bits & top ? ~bits : bits | top);
}

}  // namespace unisono::grid
