#pragma once
// Which products of matrices a CPU computes from packed panels, and the sizes
// of tiles and panels.
#include <cstdint>

#include "runtime/dtype.h"

namespace unisono::jit {

/// c[b, i, j] = a[b, i, :] times b[b, :, j]: for each element one fma chain in
/// the order of k, from 0. Sizes are positive; offsets and strides count
/// elements; c is dense and row-major. f32 or f64.
struct DotShape {
  DType dtype = DType::F32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t a_offset = 0, a_batch = 0, a_row = 0, a_column = 1;
  int64_t b_offset = 0, b_batch = 0, b_row = 0, b_column = 1;
};

/// Whether packing pays for this product.
bool packs_well(const DotShape& shape);

/// The tile of the result that a kernel keeps in registers: `rows` times
/// `vectors` vector registers of `lanes` elements each.
struct DotTile {
  int lanes, rows, vectors;
  int columns() const { return lanes * vectors; }
};
/// The tile for machines whose vectors have `vector_bytes`: 16, 32 or 64.
DotTile dot_tile(DType dtype, int vector_bytes);

/// The bytes of both operands when packed, filled up to whole tiles.
struct PackedBytes {
  int64_t a = 0, b = 0;
};
PackedBytes packed_bytes(const DotShape& shape, int vector_bytes);

}  // namespace unisono::jit
