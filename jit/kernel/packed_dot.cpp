#include "jit/kernel/packed_dot.h"

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

bool packs_well(const DotShape& s) {
  if (s.dtype != DType::F32 && s.dtype != DType::F64) return false;
  return s.m >= 8 && s.n >= 16 && s.k >= 16 && s.m * s.n * s.k >= 64 * 64 * 32;
}

PackedBytes packed_bytes(const DotShape& s, int vector_bytes) {
  const DotTile tile = dot_tile(s.dtype, vector_bytes);
  const int64_t elements = s.batch * s.k * byte_size(s.dtype);
  return {elements * ceil_div(s.m, tile.rows) * tile.rows,
          elements * ceil_div(s.n, tile.columns()) * tile.columns()};
}

}  // namespace unisono::jit
