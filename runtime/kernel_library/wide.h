#pragma once
// Products by rectangles of 128 rows and 256 columns, for operands that are
// aligned (pipeline.h): for each element that is copied to shared memory a
// third more is multiplied than in squares of 128. Their tiles do not fit in
// the shared memory that every launch has, so these kernels are launched with
// more: as much as the line says that GRID_SHARED_MEMORY puts in their PTX
// (GridCode::Image::shared_bytes).
#include "runtime/kernel_library/pipeline.h"

#define GRID_TEXT(value) #value
/// All kernels of the file need so many bytes of a block; a literal.
#define GRID_SHARED_MEMORY(bytes) \
  asm("// shared memory of a block: " GRID_TEXT(bytes))

namespace unisono::grid {

inline constexpr int wide_rows = 128, wide_columns = 256;

extern "C" {
/// What a launch has asked for.
alignas(256) extern Shared<uint8_t> launched[];
}

/// With tiles that are copied by `cp.async`.
template <template <Along, int> class Tile,
          template <class, class> class Multiply, int stages, class Element,
          class Result>
GRID_INLINE void wide_product(const Element* a, const Element* b, Result* c,
                              const DotCall& call) {
  pipelined_in<Tile, Multiply, wide_rows, wide_columns, stages>(launched, a, b,
                                                                c, call);
}

/// Where there is no `cp.async`: two squares, one after the other.
template <class Type, class Multiply>
GRID_INLINE void two_squares(const typename Type::Element* a,
                             const typename Type::Element* b,
                             typename Multiply::Result* c,
                             const DotCall& call) {
  Square square = own_square<wide_rows, wide_columns>(call);
#pragma unroll 1
  for (int half = 0; half < 2 && square.j < call.n; ++half) {
    product_at<Type, wide_rows, Multiply>(square, a, b, c, call);
    square.j += wide_rows;
    synchronise();  // the next square's tiles go to the same buffers
  }
}

}  // namespace unisono::grid
