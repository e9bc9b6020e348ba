#pragma once
// Products by the matrix units of GPUs (`mma.sync`), accumulated in f32. The
// eight warps of a block have half of its rows and a quarter of its columns
// each, in pieces of 16 x 8.
#include "runtime/kernel_library/product.h"

namespace unisono::grid {

/// d += a b: 16 rows, 8 columns, 8 words along k.
template <class Type, bool brain>
GRID_INLINE void multiply_piece(float* d, const uint32_t* a,
                                const uint32_t* b) {
#if GRID_CAPABILITY >= 80
#define MMA(shape, type)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type      \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),     \
                 "r"(b[1]))
  if constexpr (Type::per_word == 1)
    MMA("m16n8k8", "tf32");
  else if constexpr (brain)
    MMA("m16n8k16", "bf16");
  else
    MMA("m16n8k16", "f16");
#undef MMA
#else
  static_assert(Type::per_word == 2 && !brain, "only f16 is known there");
#pragma unroll
  for (int half = 0; half < 2; ++half)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
        "{%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}

template <class Type, int tile, bool brain = false>
struct MatrixUnit {
  using Word = typename Type::Word;
  using Result = typename Type::Element;
  static constexpr bool exact = false;  // zeros may be added
  static constexpr int steps = 8;
  static constexpr int down = tile / 2 / 16, across = tile / 4 / 8;
  float sum[down][across][4] = {};

  GRID_INLINE static int lane() { return thread() % warp_threads; }
  GRID_INLINE static int first_row() {
    return thread() / warp_threads / 4 * (tile / 2);
  }
  GRID_INLINE static int first_column() {
    return thread() / warp_threads % 4 * (tile / 4);
  }
  GRID_INLINE static uint32_t operand(Word word) {
    if constexpr (Type::per_word == 2) {
      return word;
    } else {  // to tf32
      uint32_t rounded;
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(word));
      return rounded;
    }
  }
  GRID_INLINE void step(const Shared<Word>* a, const Shared<Word>* b, int d) {
    const int deep = d + lane() % 4;
    const int row = first_row() + lane() / 4,
              column = first_column() + lane() / 4;
    uint32_t left[down][4], right[across][2];
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int r = 0; r < 4; ++r)
        left[i][r] = operand(
            a[place_in_tile<tile>(deep + r / 2 * 4, row + 16 * i + r % 2 * 8)]);
#pragma unroll
    for (int j = 0; j < across; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        right[j][r] =
            operand(b[place_in_tile<tile>(deep + r * 4, column + 8 * j)]);
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < across; ++j)
        multiply_piece<Type, brain>(sum[i][j], left[i], right[j]);
  }
  GRID_INLINE void step_one(const Shared<Word>*, const Shared<Word>*, int) {}

  GRID_INLINE void store(Result* c, int64_t height, int64_t width,
                         int64_t n) const {
    const int row = first_row() + lane() / 4,
              column = first_column() + lane() % 4 * 2;
    const bool pairs =
        n % 2 == 0 && reinterpret_cast<uint64_t>(c) % (2 * sizeof(Result)) == 0;
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int at_row = row + 16 * i + 8 * r;
        if (at_row >= height) continue;
#pragma unroll
        for (int j = 0; j < across; ++j) {
          const int at = column + 8 * j;
          const Result first = result_of(sum[i][j][2 * r]),
                       second = result_of(sum[i][j][2 * r + 1]);
          Result* to = c + at_row * n + at;
          if (pairs && at + 1 < width) {
            *(Global<Vector<Result, 2>>*)to = Vector<Result, 2>{first, second};
          } else {
            if (at < width) *global(to) = first;
            if (at + 1 < width) *global(to + 1) = second;
          }
        }
      }
  }
  GRID_INLINE static Result result_of(float value) {
    if constexpr (Type::per_word == 1)
      return value;
    else
      return half_of<brain>(value);
  }
};

}  // namespace unisono::grid
