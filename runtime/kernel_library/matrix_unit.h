#pragma once
// Products by the matrix units of GPUs (`mma.sync`), accumulated in f32. The
// eight warps of a block have half of its rows and a quarter of its columns
// each, in pieces of 16 x 8.
#include "runtime/kernel_library/pipeline.h"

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

template <class Type, int tile, bool brain = false, int wide = tile>
struct MatrixUnit {
  using Word = typename Type::Word;
  using Result = typename Type::Element;
  static constexpr bool exact = false;  // zeros may be added
  static constexpr int steps = 8;
  static constexpr int down = tile / 2 / 16, across = wide / 4 / 8;
  float sum[down][across][4] = {};

  GRID_INLINE static int lane() { return thread() % warp_threads; }
  GRID_INLINE static int first_row() {
    return thread() / warp_threads / 4 * (tile / 2);
  }
  GRID_INLINE static int first_column() {
    return thread() / warp_threads % 4 * (wide / 4);
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

/// The same from tiles of 16-bit elements that `ldmatrix` reads.
template <class Left, class Right, class Type, int tile, bool brain,
          int wide = tile>
struct TileUnit : MatrixUnit<Type, tile, brain, wide> {
  using Base = MatrixUnit<Type, tile, brain, wide>;

  GRID_INLINE void step_rest(uint32_t a, uint32_t b, int) { step(a, b); }
  GRID_INLINE void step(uint32_t a, uint32_t b) {
    const int matrix = Base::lane() / 8;
    // Of the left operand rows come first, of the right one k.
    const uint32_t left_place =
        a + Left::place(Base::first_row(), matrix % 2, matrix / 2);
    const uint32_t right_place =
        b + Right::place(Base::first_column(), matrix / 2, matrix % 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t left[Base::down][4], right[Base::across / 2][4];
#pragma unroll
      for (int i = 0; i < Base::down; ++i)
        Left::read(Left::moved(left_place, half, i), left[i]);
#pragma unroll
      for (int j = 0; j < Base::across / 2; ++j)
        Right::read(Right::moved(right_place, half, j), right[j]);
#pragma unroll
      for (int i = 0; i < Base::down; ++i)
#pragma unroll
        for (int j = 0; j < Base::across; ++j)
          multiply_piece<Type, brain>(this->sum[i][j], left[i],
                                      &right[j / 2][j % 2 * 2]);
    }
  }
};

/// The same with f32 as tf32, from tiles of words.
template <int tile>
struct WordUnit : MatrixUnit<F32, tile> {
  using Base = MatrixUnit<F32, tile>;
  using Tile = UnitTile<Along::k, tile>;

  /// Element (d + lane % 4, i + lane / 4); `i` is a multiple of 8, `d` of 4.
  /// The bits of lane / 4 and of i are others, so i turns by itself.
  GRID_INLINE static uint32_t read(uint32_t own, int d, int i) {
    float word;
    const int turned = (i % 32) ^ Tile::turn(d);
    asm volatile("ld.shared.f32 %0, [%1];"
                 : "=f"(word)
                 : "r"((own ^ static_cast<uint32_t>(turned * 4)) +
                       static_cast<uint32_t>((d * tile + i / 32 * 32) * 4))
                 : "memory");
    return Base::operand(word);
  }
  /// Of a tile whose side begins at row `first`, which is a multiple of 16.
  GRID_INLINE static uint32_t own_place(int first) {
    const int d = Base::lane() % 4, i = Base::lane() / 4;
    return static_cast<uint32_t>(
        (d * tile + first / 32 * 32 + (i ^ Tile::turn(d) ^ first % 32)) * 4);
  }
  GRID_INLINE void step_rest(uint32_t a, uint32_t b, int) { step(a, b); }
  GRID_INLINE void step(uint32_t a, uint32_t b) {
    // Tiles begin at multiples of 128 bytes, which no turn reaches.
    uint32_t left_place = a + own_place(Base::first_row()),
             right_place = b + own_place(Base::first_column());
#pragma unroll 1
    for (int d = 0; d < depth_words; d += 8) {
      uint32_t left[Base::down][4], right[Base::across][2];
#pragma unroll
      for (int i = 0; i < Base::down; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          left[i][r] = read(left_place, r / 2 * 4, 16 * i + r % 2 * 8);
#pragma unroll
      for (int j = 0; j < Base::across; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          right[j][r] = read(right_place, r * 4, 8 * j);
#pragma unroll
      for (int i = 0; i < Base::down; ++i)
#pragma unroll
        for (int j = 0; j < Base::across; ++j)
          multiply_piece<F32, false>(this->sum[i][j], left[i], right[j]);
      left_place += 8 * tile * 4;
      right_place += 8 * tile * 4;
    }
  }
};

}  // namespace unisono::grid
