#pragma once
// Products of matrices: a block does a square of the result. Tiles of both
// operands, 16 words deep, go through registers to one of two buffers of
// shared memory while the threads multiply what is in the other one.
//
// In shared memory a word is one element, or of 16-bit elements two neighbours
// along k; word d of row i lies at [d][i ^ 8 * (d / 4 % 4)], in rows of
// `tile` + 8 words. So the 16-byte stores of operands that are contiguous in
// either direction and the reads of every kind below each hit all banks.
#include "runtime/kernel_library/grid.h"

namespace unisono::grid {

/// c[b, i, j] = a[b, i, :] times b[b, :, j]; c is dense, from its offset on.
/// Offsets and strides count elements.
struct DotCall {
  int64_t batch, m, n, k;
  int64_t a_offset, a_batch, a_row, a_column;
  int64_t b_offset, b_batch, b_row, b_column;
  int64_t c_offset;
};

template <class T>
using Shared = T __attribute__((address_space(3)));
template <class T, int n>
using Vector = T __attribute__((ext_vector_type(n)));

// ---- element types ----------------------------------------------------------

template <class E>
struct Plain {
  using Element = E;
  using Word = E;
  static constexpr int per_word = 1;
};
template <bool brain>
struct Half {
  using Element = uint16_t;
  using Word = uint32_t;
  static constexpr int per_word = 2;
};
using F32 = Plain<float>;
using F64 = Plain<double>;
using F16 = Half<false>;
using BF16 = Half<true>;

/// To the nearest, ties to even; `value` may be infinite or NaN.
template <bool brain>
GRID_INLINE uint16_t half_of(float value) {
  if constexpr (!brain)
    return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t up = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>(value != value ? 0x7fff : up >> 16);
}
template <bool brain>
GRID_INLINE float float_of(uint32_t bits16) {
  if constexpr (brain) return __builtin_bit_cast(float, bits16 << 16);
  return static_cast<float>(
      __builtin_bit_cast(_Float16, static_cast<uint16_t>(bits16)));
}

// ---- an operand -------------------------------------------------------------

inline constexpr int depth_words = 16;

/// thread(), read anew, so that what is computed from it is not kept in
/// registers along a loop: products have none to spare.
GRID_INLINE int thread_again() {
  int number;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
  return number;
}

template <int tile>
GRID_INLINE int place_in_tile(int d, int i) {
  return d * (tile + 8) + (i ^ (d / 4 % 4 * 8));
}

/// One operand's tile, of which `count` of `tile` rows exist. `stride` elements
/// lie between rows, `deep_stride` between neighbours along k.
template <class Type, int tile>
struct Operand {
  using Element = typename Type::Element;
  using Word = typename Type::Word;
  static constexpr int per_word = Type::per_word;
  static constexpr int vector = 16 / sizeof(Element);  // elements
  static constexpr int vector_words = 16 / sizeof(Word);
  static constexpr int depth = depth_words * per_word;  // elements
  static constexpr int own_words = tile * depth_words / block_threads;
  /// A bundle is as many vectors along the rows as a word has elements; their
  /// elements are neighbours along k.
  static constexpr int bundles = tile / vector * depth_words;
  static constexpr int own_bundles =
      (bundles + block_threads - 1) / block_threads;
  static constexpr int bundle_words = vector_words * per_word;
  static constexpr int most_words = own_bundles * bundle_words > own_words
                                        ? own_bundles* bundle_words
                                        : own_words;
  /// How 16 bytes can be read at once: along k, along the rows, or not.
  enum class Way : int { along_k, along_rows, no };

  const Element* from;
  int64_t stride, deep_stride;
  int count;
  Way way, used = Way::no;
  Word words[most_words];

  GRID_INLINE Operand(const Element* from, int64_t stride, int64_t deep_stride,
                      int64_t rows)
      : from(from),
        stride(stride),
        deep_stride(deep_stride),
        count(static_cast<int>(rows < tile ? rows : tile)) {
    const bool aligned = reinterpret_cast<uint64_t>(from) % 16 == 0;
    way = Way::no;
    if (aligned && deep_stride == 1 && stride % vector == 0)
      way = Way::along_k;
    else if (aligned && stride == 1 && deep_stride % vector == 0 &&
             count % vector == 0)
      way = Way::along_rows;
  }

  using Packed = Vector<Word, vector_words>;
  GRID_INLINE static Packed read_vector(const Element* at) {
    return *(const Global<Packed>*)at;
  }
  GRID_INLINE Word read_word(const Element* at, int i, int d, int deep) const {
    Word word = 0;
    if (i >= count) return word;
#pragma unroll
    for (int part = 0; part < per_word; ++part) {
      const int k = d * per_word + part;
      if (k >= deep) break;
      const Element element = *global(at + i * stride + k * deep_stride);
      if constexpr (per_word == 1)
        word = element;
      else
        word |= static_cast<Word>(element) << (16 * part);
    }
    return word;
  }
  GRID_INLINE int single_row(int number) const {
    return deep_stride == 1 ? number / depth_words : number % tile;
  }
  GRID_INLINE int single_depth(int number) const {
    return deep_stride == 1 ? number % depth_words : number / tile;
  }

  /// Reads elements k ... k + deep - 1, with zeros after them.
  GRID_INLINE void fetch(int64_t k, int deep) {
    const int own = thread_again();
    const Element* at = from + k * deep_stride;
    used = deep == depth ? way : Way::no;
    if (used == Way::along_k) {
#pragma unroll
      for (int e = 0; e < own_words / vector_words; ++e) {
        const int number = own + e * block_threads;
        const int i = number / (depth_words / vector_words),
                  d = number % (depth_words / vector_words) * vector_words;
        Packed packed = 0;
        if (i < count) packed = read_vector(at + i * stride + d * per_word);
#pragma unroll
        for (int j = 0; j < vector_words; ++j)
          words[e * vector_words + j] = packed[j];
      }
    } else if (used == Way::along_rows) {
#pragma unroll
      for (int e = 0; e < own_bundles; ++e) {
        const int number = own + e * block_threads;
        const int i = number % (tile / vector) * vector,
                  d = number / (tile / vector);
        Packed packed[per_word];
#pragma unroll
        for (int part = 0; part < per_word; ++part) {
          packed[part] = 0;
          if (i < count && d < depth_words)
            packed[part] =
                read_vector(at + (d * per_word + part) * deep_stride + i);
        }
        bundle(&words[e * bundle_words], packed);
      }
    } else {
#pragma unroll
      for (int e = 0; e < own_words; ++e)
        words[e] = read_word(at, single_row(own + e * block_threads),
                             single_depth(own + e * block_threads), deep);
    }
  }
  GRID_INLINE static void bundle(Word* to, const Packed* packed) {
#pragma unroll
    for (int j = 0; j < vector_words; ++j) {
      if constexpr (per_word == 1) {
        to[j] = packed[0][j];
      } else {
        const Word low = packed[0][j], high = packed[1][j];
        to[2 * j] = (low & 0xffff) | high << 16;
        to[2 * j + 1] = low >> 16 | (high & 0xffff0000);
      }
    }
  }

  /// Puts what was read to shared memory.
  GRID_INLINE void put(Shared<Word>* to) const {
    const int own = thread_again();
    if (used == Way::along_k) {
#pragma unroll
      for (int e = 0; e < own_words / vector_words; ++e) {
        const int number = own + e * block_threads;
        const int i = number / (depth_words / vector_words),
                  d = number % (depth_words / vector_words) * vector_words;
#pragma unroll
        for (int j = 0; j < vector_words; ++j)
          to[place_in_tile<tile>(d + j, i)] = words[e * vector_words + j];
      }
    } else if (used == Way::along_rows) {
#pragma unroll
      for (int e = 0; e < own_bundles; ++e) {
        const int number = own + e * block_threads;
        const int i = number % (tile / vector) * vector,
                  d = number / (tile / vector);
        if (d >= depth_words) break;
#pragma unroll
        for (int j = 0; j < bundle_words; j += vector_words) {
          Packed packed;
#pragma unroll
          for (int l = 0; l < vector_words; ++l)
            packed[l] = words[e * bundle_words + j + l];
          *(Shared<Packed>*)&to[place_in_tile<tile>(d, i + j)] = packed;
        }
      }
    } else {
#pragma unroll
      for (int e = 0; e < own_words; ++e)
        to[place_in_tile<tile>(single_depth(own + e * block_threads),
                               single_row(own + e * block_threads))] = words[e];
    }
  }
};

// ---- the product ------------------------------------------------------------

/// Where a block's square, or rectangle of `high` rows, lies. Blocks that run
/// together are neighbours, so that they read the same rows and columns.
struct Square {
  int64_t i, j, batch;
};
template <int high, int wide = high>
GRID_INLINE Square own_square(const DotCall& call) {
  constexpr int together = 8;
  const int across = static_cast<int>((call.n + wide - 1) / wide),
            down = static_cast<int>((call.m + high - 1) / high);
  const int number = block() % (across * down);
  const int band = number / (together * across) * together;
  const int height = down - band < together ? down - band : together;
  const int inside = number - band * across;
  return {static_cast<int64_t>(band + inside % height) * high,
          static_cast<int64_t>(inside / height) * wide,
          block() / (across * down)};
}

/// `Multiply` has the results of its thread: step(a, b, d) with words d of all
/// rows of both, `steps` words at once; step_one(a, b, d, elements) with the
/// last ones; store(c, height, width, n).
template <class Type, int tile, class Multiply>
GRID_INLINE void product_at(Square square, const typename Type::Element* a,
                            const typename Type::Element* b,
                            typename Multiply::Result* c, const DotCall& call) {
  using Word = typename Type::Word;
  using Tile = Operand<Type, tile>;
  constexpr int tile_words = depth_words * (tile + 8);
  alignas(16) static Shared<Word> rows[2 * tile_words], columns[2 * tile_words];
  Tile left(
      a + call.a_offset + square.batch * call.a_batch + square.i * call.a_row,
      call.a_row, call.a_column, call.m - square.i);
  Tile right(b + call.b_offset + square.batch * call.b_batch +
                 square.j * call.b_column,
             call.b_column, call.b_row, call.n - square.j);
  auto fetch = [&](int64_t k) __attribute__((always_inline)) {
    const int deep =
        static_cast<int>(call.k - k < Tile::depth ? call.k - k : Tile::depth);
    left.fetch(k, deep);
    right.fetch(k, deep);
  };
  Multiply multiply;
  fetch(0);
  int now = 0;
#pragma unroll 1
  for (int64_t k = 0; k < call.k; k += Tile::depth) {
    left.put(rows + now);
    right.put(columns + now);
    synchronise();
    if (k + Tile::depth < call.k) fetch(k + Tile::depth);
    const int64_t deep = call.k - k;
    if (!Multiply::exact || deep >= Tile::depth) {
#pragma unroll 1
      for (int d = 0; d < depth_words; d += Multiply::steps)
        multiply.step(rows + now, columns + now, d);
    } else {  // to add zeros would turn -0 to 0
#pragma unroll 1
      for (int e = 0; e < deep; ++e)
        multiply.step_one(rows + now, columns + now, e);
    }
    now ^= tile_words;
  }
  multiply.store(c + call.c_offset +
                     (square.batch * call.m + square.i) * call.n + square.j,
                 call.m - square.i, call.n - square.j, call.n);
}

template <class Type, int tile, class Multiply>
GRID_INLINE void product(const typename Type::Element* a,
                         const typename Type::Element* b,
                         typename Multiply::Result* c, const DotCall& call) {
  product_at<Type, tile, Multiply>(own_square<tile>(call), a, b, c, call);
}

/// A `Multiply` without matrix units: each thread has a part of the results, in
/// groups of neighbours; each result is one fma chain in the order of k, from
/// 0.
template <class Type, class Sum, int tile, bool brain = false, int wide = tile>
struct Chains {
  using Word = typename Type::Word;
  using Result = typename Type::Element;
  static constexpr bool exact = true;
  static constexpr int steps = 4;
  static constexpr int each = tile / 16, across = wide / 16;
  /// Neighbours that a thread has; it has groups of them.
  static constexpr int near = 16 / sizeof(Word);
  Sum sum[each][across] = {};

  GRID_INLINE static int place(int side, int number) {
    return number / near * (16 * near) + side * near + number % near;
  }
  GRID_INLINE static int row(int number) {
    return place(thread() / 16, number);
  }
  GRID_INLINE static int column(int number) {
    return place(thread() % 16, number);
  }
  GRID_INLINE static Sum part_of(Word word, int part) {
    if constexpr (Type::per_word == 1)
      return word;
    else
      return float_of<brain>(part ? word >> 16 : word & 0xffff);
  }
  GRID_INLINE void read(const Shared<Word>* from, int d, int side,
                        Word* to) const {
    using Packed = Vector<Word, near>;
#pragma unroll
    for (int i = 0; i < each; i += near) {
      const Packed packed =
          *(const Shared<Packed>*)&from[place_in_tile<tile>(d, place(side, i))];
#pragma unroll
      for (int j = 0; j < near; ++j) to[i + j] = packed[j];
    }
  }
  GRID_INLINE void add(const Word* left, const Word* right, int part) {
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int j = 0; j < across; ++j)
        sum[i][j] = __builtin_elementwise_fma(
            part_of(left[i], part), part_of(right[j], part), sum[i][j]);
  }
  GRID_INLINE void step(const Shared<Word>* a, const Shared<Word>* b, int d) {
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      Word left[each], right[each];
      read(a, d + s, thread() / 16, left);
      read(b, d + s, thread() % 16, right);
#pragma unroll
      for (int part = 0; part < Type::per_word; ++part) add(left, right, part);
    }
  }
  GRID_INLINE void step_one(const Shared<Word>* a, const Shared<Word>* b,
                            int element) {
    Word left[each], right[each];
    read(a, element / Type::per_word, thread() / 16, left);
    read(b, element / Type::per_word, thread() % 16, right);
    add(left, right, element % Type::per_word);
  }
  GRID_INLINE void store(Result* c, int64_t height, int64_t width,
                         int64_t n) const {
    const bool whole = width >= wide && n % near == 0 &&
                       reinterpret_cast<uint64_t>(c) % 16 == 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (row(i) >= height) continue;
      Result* at = c + row(i) * n;
#pragma unroll
      for (int j = 0; j < across; j += near) {
        if constexpr (Type::per_word == 1) {
          using Packed = Vector<Word, near>;
          Packed packed;
#pragma unroll
          for (int l = 0; l < near; ++l) packed[l] = sum[i][j + l];
          if (whole) {
            *(Global<Packed>*)(at + column(j)) = packed;
            continue;
          }
        }
#pragma unroll
        for (int l = 0; l < near; ++l)
          if (column(j + l) < width)
            *global(at + column(j + l)) = result_of(sum[i][j + l]);
      }
    }
  }
  GRID_INLINE static Result result_of(Sum value) {
    if constexpr (Type::per_word == 1)
      return value;
    else
      return half_of<brain>(value);
  }
};

}  // namespace unisono::grid
