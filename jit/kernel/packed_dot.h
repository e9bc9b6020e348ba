#pragma once
// Which products of matrices a CPU computes in tiles, from packed panels or
// from where they lie, and the sizes of tiles and panels.
#include <cstdint>
#include <vector>

#include "runtime/dtype.h"

namespace unisono::jit {

/// c[chain, b, i, j] = a[b, i, K] times b[b, K, j], K being the range of k that
/// is chain number `chain` of this product's (jit/ir/reduce_order.h): for each
/// element one fma chain in the order of k, from 0. Sizes are positive; offsets
/// and strides count elements; c is dense and row-major. f32 or f64.
struct DotShape {
  DType dtype = DType::F32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t a_offset = 0, a_batch = 0, a_row = 0, a_column = 1;
  int64_t b_offset = 0, b_batch = 0, b_row = 0, b_column = 1;
  /// Where a is a view (jit/ir/affine_view.h), as the windows of a convolution,
  /// whose rows or columns do not lie evenly: the axes that its rows and its
  /// columns are numbered along, in row-major order. Then a_row and a_column
  /// say nothing.
  struct Axis {
    int64_t extent = 1, stride = 0;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> a_rows = {}, a_columns = {};
  bool is_view() const { return !a_rows.empty(); }
};

/// How many fma chains each element of the product is the sum of.
int64_t dot_chains(const DotShape& shape);

/// How a product is computed: by a nest of loops like any other, in tiles of
/// operands as they lie, or in tiles of packed operands.
enum class DotForm : uint8_t { nest, direct, packed };
DotForm dot_form(const DotShape& shape);

/// The tile of the result that a kernel keeps in registers: `rows` times
/// `vectors` vector registers of `lanes` elements each.
struct DotTile {
  int lanes, rows, vectors;
  int columns() const { return lanes * vectors; }
};
/// The tile for machines whose vectors have `vector_bytes`: 16, 32 or 64.
DotTile dot_tile(DType dtype, int vector_bytes);

/// The tile of a product whose a is a view, with vectors for n columns. It has
/// at most 8 rows, as each takes a register for its address.
DotTile view_tile(const DotShape& shape, int vector_bytes);

/// Whether the units of a packed product pack B for themselves, a panel at a
/// time, from where it lies; else it is packed before the first.
bool packs_b_in_units(const DotShape& shape);

/// The bytes of both operands when packed, filled up to whole tiles; 0 of a B
/// that units pack.
struct PackedBytes {
  int64_t a = 0, b = 0;
};
PackedBytes packed_bytes(const DotShape& shape, int vector_bytes);

}  // namespace unisono::jit
