#include "jit/kernel/packed_dot.h"

#include <algorithm>

#include "jit/ir/reduce_order.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

DotTile dot_tile(DType dtype, int vector_bytes) {
  const int lanes = vector_bytes / static_cast<int>(byte_size(dtype));
  if (vector_bytes >= 64) return {lanes, 8, 3};  // 24 of 32 registers
  if (vector_bytes >= 32) return {lanes, 6, 2};  // 12 of 16
  return {lanes, 4, 2};
}

DotTile view_tile(const DotShape& shape, int vector_bytes) {
  const int lanes = vector_bytes / static_cast<int>(byte_size(shape.dtype));
  const int most = vector_bytes >= 64 ? 4 : 2;
  const int64_t vectors = ceil_div(shape.n, lanes);
  const int64_t each = ceil_div(vectors, ceil_div(vectors, most));
  const int sums = vector_bytes >= 64 ? 24 : vector_bytes >= 32 ? 12 : 8;
  return {lanes, std::min(8, sums / static_cast<int>(each)),
          static_cast<int>(each)};
}

int64_t dot_chains(const DotShape& s) {
  return ceil_div(s.k, orders().dot_chain);
}

DotForm dot_form(const DotShape& s) {
  if (s.dtype != DType::F32 && s.dtype != DType::F64) return DotForm::nest;
  // A nest takes in what follows, and passes over memory once.
  if (s.m < tuning().least_tiled_rows || s.n < tuning().least_tiled_columns ||
      s.k < tuning().least_tiled_depth ||
      s.m * s.n * s.k < tuning().least_tiled_product)
    return DotForm::nest;
  if (s.is_view()) return DotForm::direct;
  const bool large = s.m * s.n * s.k >= tuning().large_product;
  return std::min(s.m, s.n) < (large ? tuning().least_packed_side_of_large
                                     : tuning().least_packed_side)
             ? DotForm::direct
             : DotForm::packed;
}

bool packs_b_in_units(const DotShape& s) {
  // Transposed in registers it costs more, and each row of units does it.
  return s.b_column == 1 || s.m <= tuning().few_packed_rows;
}

PackedBytes packed_bytes(const DotShape& s, int vector_bytes) {
  const DotTile tile = dot_tile(s.dtype, vector_bytes);
  const int64_t elements = s.batch * s.k * byte_size(s.dtype);
  const int64_t columns = ceil_div(s.n, tile.columns()) * tile.columns();
  return {elements * ceil_div(s.m, tile.rows) * tile.rows,
          packs_b_in_units(s) ? 0 : elements * columns};
}

}  // namespace unisono::jit
