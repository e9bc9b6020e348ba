// Products of matrices in tiles through shared memory. A thread has a square of
// results in registers; each is one fma chain in the order of k, from 0.
#include "runtime/grid_library/grid.h"

namespace unisono::grid {
namespace {

/// c[b, i, j] = a[b, i, :] times b[b, :, j]; c is dense. Offsets and strides
/// count elements.
struct DotCall {
  int64_t batch, m, n, k;
  int64_t a_offset, a_batch, a_row, a_column;
  int64_t b_offset, b_batch, b_row, b_column;
};

template <class T>
using Shared = T __attribute__((address_space(3)));

/// Puts a matrix of `along` x depth elements to shared memory, zeros outside;
/// neighbouring threads read neighbours in memory.
template <int along, int depth, class T>
GRID_INLINE void fetch(Shared<T> (*to)[along + 1], const T* from,
                       int64_t stride, int64_t deep_stride, int64_t count,
                       int64_t deep_count) {
  const bool deep_first = deep_stride == 1;
#pragma unroll
  for (int e = 0; e < along * depth / block_threads; ++e) {
    const int number = thread() + e * block_threads;
    const int i = deep_first ? number / depth : number % along;
    const int d = deep_first ? number % depth : number / along;
    to[d][i] = i < count && d < deep_count ? from[i * stride + d * deep_stride]
                                           : T{0};
  }
}

template <class T, int each, int depth>
GRID_INLINE void dot(const T* a, const T* b, T* c, const DotCall& call) {
  constexpr int side = 16, tile = side * each;
  static Shared<T> rows[depth][tile + 1], columns[depth][tile + 1];
  const int64_t across = (call.n + tile - 1) / tile,
                down = (call.m + tile - 1) / tile;
  const int64_t number = block();
  const int64_t j0 = number % across * tile,
                i0 = number / across % down * tile,
                batch = number / across / down;
  a += call.a_offset + batch * call.a_batch + i0 * call.a_row;
  b += call.b_offset + batch * call.b_batch + j0 * call.b_column;
  c += (batch * call.m + i0) * call.n + j0;
  const int64_t height = call.m - i0, width = call.n - j0;
  const int x = thread() % side, y = thread() / side;
  T sum[each][each] = {};
  auto step = [&](int d) {
    T left[each], right[each];
#pragma unroll
    for (int i = 0; i < each; ++i) left[i] = rows[d][y + i * side];
#pragma unroll
    for (int j = 0; j < each; ++j) right[j] = columns[d][x + j * side];
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int j = 0; j < each; ++j)
        sum[i][j] =
            __builtin_elementwise_fma(left[i], right[j], sum[i][j]);
  };
#pragma unroll 1
  for (int64_t k = 0; k < call.k; k += depth) {
    const int64_t deep = call.k - k < depth ? call.k - k : depth;
    fetch<tile, depth>(rows, a + k * call.a_column, call.a_row, call.a_column,
                       height, deep);
    fetch<tile, depth>(columns, b + k * call.b_row, call.b_column, call.b_row,
                       width, deep);
    synchronise();
    if (deep == depth) {
#pragma unroll
      for (int d = 0; d < depth; ++d) step(d);
    } else {  // to add zeros would turn -0 to 0
#pragma unroll 1
      for (int d = 0; d < deep; ++d) step(d);
    }
    synchronise();
  }
#pragma unroll
  for (int i = 0; i < each; ++i)
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (y + i * side < height && x + j * side < width)
        c[(y + i * side) * call.n + x + j * side] = sum[i][j];
}

}  // namespace

GRID_KERNEL dot_f32(const float* a, const float* b, float* c, DotCall call) {
  dot<float, 8, 8>(a, b, c, call);
}
GRID_KERNEL dot_f64(const double* a, const double* b, double* c,
                    DotCall call) {
  dot<double, 4, 8>(a, b, c, call);
}

}  // namespace unisono::grid
