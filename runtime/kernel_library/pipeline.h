#pragma once
// Products of matrices whose tiles are copied to shared memory by `cp.async`,
// several stages ahead of the one that is multiplied, so that no tile passes
// through registers. Operands must be contiguous along one of their two axes
// and aligned (DotCall's strides and offsets: multiples of 16 bytes but along
// that axis); product.h has the rest.
#include "runtime/kernel_library/product.h"

namespace unisono::grid {

/// How a tile lies in memory: neighbours along k, or along its rows.
enum class Along : int { k, rows };

GRID_INLINE uint32_t shared_address(const Shared<uint8_t>* at) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(at));
}

/// 16 bytes, of which `present` are read and the others become 0.
GRID_INLINE void copy_sixteen(uint32_t to, const void* from, int present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(from), "r"(present)
               : "memory");
}
GRID_INLINE void copy_sixteen(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(to), "l"(from)
               : "memory");
}
GRID_INLINE void copy_four(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :
               : "r"(to), "l"(from)
               : "memory");
}
GRID_INLINE void copy_four(uint32_t to, const void* from, int present) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(from), "r"(present)
               : "memory");
}
GRID_INLINE void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until all groups but the last `under_way` have come.
template <int under_way>
GRID_INLINE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(under_way) : "memory");
}

/// The elements of `count` that are left from `begin` on, at most `most`.
GRID_INLINE int left_of(int64_t count, int64_t begin, int most) {
  const int64_t left = count - begin;
  return left <= 0 ? 0 : left < most ? static_cast<int>(left) : most;
}

/// A tile of elements of 16 bits, 32 deep, in pieces of 16 bytes. Along k, a
/// row has four pieces: piece p of row i lies at [i][p ^ i / 2 % 4]; along the
/// rows, piece p of depth d at [d][p ^ d % 8]. So the eight pieces of each
/// matrix that `ldmatrix` reads hit all banks.
template <Along along, int tile>
struct HalfTile {
  static constexpr int depth = 32, bytes = tile * depth * 2;
  static constexpr int own = bytes / 16 / block_threads;
  /// Between a thread's pieces: rows, or depths.
  static constexpr int apart =
      along == Along::k ? block_threads / 4 : block_threads / (tile / 8);
  const uint16_t* from[own];  // of this thread, at the next depth
  int64_t step;               // from one tile to the next
  int present[own];           // bytes of a piece, where all of k is there
  uint32_t to;                // the first piece's place

  GRID_INLINE HalfTile(const uint16_t* begin, int64_t stride,
                       int64_t deep_stride, int64_t rows) {
    const int number = thread();
    const int row = along == Along::k ? number / 4 : number / (tile / 8),
              piece = along == Along::k ? number % 4 : number % (tile / 8);
    const int64_t across = along == Along::k ? stride : deep_stride;
    step = along == Along::k ? depth : depth * deep_stride;
    to = static_cast<uint32_t>(
        along == Along::k ? row * 64 + (piece ^ (row / 2 % 4)) * 16
                          : row * (tile * 2) + (piece ^ (row % 8)) * 16);
#pragma unroll
    for (int e = 0; e < own; ++e) {
      const int at = row + e * apart;
      present[e] = along == Along::k ? (at < rows ? 16 : 0)
                                     : left_of(rows, piece * 8, 8) * 2;
      from[e] = begin + (present[e] ? at * across + piece * 8 : 0);
    }
  }

  /// Copies the next 32 along k, of which `left` are there; all of them, and
  /// all rows, where it is `whole`.
  template <bool whole>
  GRID_INLINE void copy(uint32_t tile_at, int left) {
#pragma unroll
    for (int e = 0; e < own; ++e) {
      const uint32_t at = tile_at + to +
                          static_cast<uint32_t>(
                              e * apart * (along == Along::k ? 64 : tile * 2));
      if constexpr (whole) {
        copy_sixteen(at, from[e]);
        from[e] += step;
        continue;
      }
      int bytes = present[e];
      if (left < depth) {
        const int number = thread();
        if constexpr (along == Along::k) {
          const int there = left_of(left, number % 4 * 8, 8) * 2;
          bytes = bytes < there ? bytes : there;
        } else {
          bytes = number / (tile / 8) + e * apart < left ? bytes : 0;
        }
      }
      copy_sixteen(at, from[e], bytes);
      from[e] += step;
    }
  }

  /// Of matrices `number` (8 rows from `row` + 8 `far`, 8 of k from 8 `deep`
  /// on) of 16 of k, where this lane's row lies.
  GRID_INLINE static uint32_t place(int row, int far, int deep) {
    const int lane = thread() % 8;
    if constexpr (along == Along::k) {
      const int i = row + far * 8 + lane;
      return static_cast<uint32_t>(i * 64 + (deep ^ (i / 2 % 4)) * 16);
    } else {
      const int d = deep * 8 + lane;
      return static_cast<uint32_t>(d * (tile * 2) +
                                   ((row / 8 + far) ^ (d % 8)) * 16);
    }
  }
  /// The same for the second 16 of k, and `by` * 16 rows further.
  GRID_INLINE static uint32_t moved(uint32_t place, int half, int by) {
    if constexpr (along == Along::k)
      return (place ^ static_cast<uint32_t>(half * 32)) +
             static_cast<uint32_t>(by * 16 * 64);
    else
      return (place ^ static_cast<uint32_t>(by * 32)) +
             static_cast<uint32_t>(half * 16 * tile * 2);
  }
  GRID_INLINE static void read(uint32_t at, uint32_t* to) {
    if constexpr (along == Along::k)
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
          : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
          : "r"(at)
          : "memory");
    else
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, "
          "[%4];"
          : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
          : "r"(at)
          : "memory");
  }
};

/// A tile of elements of 32 bits, 16 deep: row i of depth d lies at
/// [d][i ^ turn(d)], so that four rows are one access, and copies of neighbours
/// along k hit all banks; and, for matrix units, what they take (8 rows, 4 of
/// k).
template <Along along, int tile, bool for_units>
struct WordTile {
  static constexpr int depth = 16, bytes = tile * depth * 4;
  const float* from;  // of this thread, at the next depth
  int64_t stride;     // along k: of rows; along rows: of depths
  int left_rows;      // from this thread's first one on

  GRID_INLINE static int turn(int d) {
    return for_units ? d % 4 * 8 + d / 4 % 2 * 4 : d % 8 * 4;
  }
  GRID_INLINE static uint32_t place(int d, int i) {
    return static_cast<uint32_t>((d * tile + (i ^ turn(d))) * 4);
  }
  GRID_INLINE static int own_depth() {
    return along == Along::k ? thread() % 8 : thread() / (tile / 4);
  }
  GRID_INLINE static int own_row() {
    return along == Along::k ? thread() / 8 : thread() % (tile / 4) * 4;
  }
  GRID_INLINE WordTile(const float* begin, int64_t row_stride,
                       int64_t deep_stride, int64_t rows)
      : stride(along == Along::k ? row_stride : deep_stride),
        left_rows(static_cast<int>(rows < tile ? rows : tile) - own_row()) {
    const bool is_row = left_rows > 0;
    from = begin;
    if (is_row && along == Along::k) from += own_row() * stride + own_depth();
    if (is_row && along == Along::rows)
      from += own_depth() * stride + own_row();
  }
  /// Copies the next 16 along k, of which `left` are there; all of them, and
  /// all rows, where it is `whole`.
  template <bool whole>
  GRID_INLINE void copy(uint32_t to, int left) {
    if constexpr (along == Along::k) {
      // A warp: 4 rows, 8 of k, twice.
      const int d = own_depth();
      const int first = d < left ? 4 : 0, second = d + 8 < left ? 4 : 0;
      const float* at = from;
#pragma unroll
      for (int e = 0; e < tile / 32; ++e) {
        const uint32_t one = to + place(d, own_row()) + e * 32 * 4,
                       other = one + 8 * tile * 4;
        if constexpr (whole) {
          copy_four(one, at);
          copy_four(other, at + 8);
        } else {
          copy_four(one, at, e * 32 < left_rows ? first : 0);
          copy_four(other, at + 8, e * 32 < left_rows ? second : 0);
        }
        at += 32 * stride;
      }
      from += depth;
    } else {
      constexpr int apart = block_threads / (tile / 4);
      const int present = left_of(left_rows, 0, 4) * 4;
      const float* at = from;
#pragma unroll
      for (int e = 0; e < bytes / 16 / block_threads; ++e) {
        const int d = own_depth() + e * apart;
        // A turn is the same eight depths on.
        const uint32_t one =
            to + (apart % 8 == 0
                      ? place(own_depth(), own_row()) + e * apart * tile * 4
                      : place(d, own_row()));
        if constexpr (whole)
          copy_sixteen(one, at);
        else
          copy_sixteen(one, at, d < left ? present : 0);
        at += apart * stride;
      }
      from += depth * stride;
    }
  }
};

template <Along along, int tile>
using ChainTile = WordTile<along, tile, false>;
template <Along along, int tile>
using UnitTile = WordTile<along, tile, true>;

/// `Multiply` is as in product.h, over tiles Left and Right: step(a, b) with
/// the addresses of the tiles in shared memory; step_rest(a, b, deep) with the
/// last ones, of which `deep` elements along k exist, with zeros after them.
template <class Left, class Right, int high, int wide, int stages,
          class Multiply, class Element>
GRID_INLINE void pipelined(Shared<uint8_t>* buffer, const Element* a,
                           const Element* b, typename Multiply::Result* c,
                           const DotCall& call) {
  constexpr int depth = Left::depth;
  constexpr uint32_t stage = Left::bytes + Right::bytes;
  const Square square = own_square<high, wide>(call);
  Left left(
      a + call.a_offset + square.batch * call.a_batch + square.i * call.a_row,
      call.a_row, call.a_column, call.m - square.i);
  Right right(b + call.b_offset + square.batch * call.b_batch +
                  square.j * call.b_column,
              call.b_column, call.b_row, call.n - square.j);
  const uint32_t begin = shared_address(buffer), end = begin + stages * stage;
  const int tiles = static_cast<int>((call.k + depth - 1) / depth);
  const int rest = static_cast<int>(call.k - int64_t{tiles - 1} * depth);
  // Of tile number `number` along k.
  auto deep = [&](int number) __attribute__((always_inline)) {
    return number == tiles - 1 ? rest : depth;
  };
  const int whole = static_cast<int>(call.k / depth);
  // Tiles without edges are copied without asking for each piece whether it is
  // there; not by squares, which have no registers for two ways to copy.
  const bool inside =
      wide > high && square.i + high <= call.m && square.j + wide <= call.n;
  const int plain = inside ? whole : 0;
  auto copy = [&](uint32_t to, int number) __attribute__((always_inline)) {
    if (number < plain) {
      left.template copy<true>(to, depth);
      right.template copy<true>(to + Left::bytes, depth);
    } else if (number < tiles) {
      left.template copy<false>(to, deep(number));
      right.template copy<false>(to + Left::bytes, deep(number));
    }
    end_copies();
  };
  Multiply multiply;
#pragma unroll
  for (int s = 0; s < stages - 1; ++s) copy(begin + s * stage, s);
  uint32_t now = begin, next = begin + (stages - 1) * stage;
#pragma unroll 1
  for (int number = 0; number < whole; ++number) {
    wait_for_copies<stages - 2>();
    synchronise();  // of this stage all has come, and the one before is done
    copy(next, number + stages - 1);
    next = next + stage == end ? begin : next + stage;
    multiply.step(now, now + Left::bytes);
    now = now + stage == end ? begin : now + stage;
  }
  if (whole < tiles) {
    wait_for_copies<0>();
    synchronise();
    multiply.step_rest(now, now + Left::bytes, rest);
  }
  multiply.store(c + call.c_offset +
                     (square.batch * call.m + square.i) * call.n + square.j,
                 call.m - square.i, call.n - square.j, call.n);
}

/// Calls the instance of `go` for how the operands lie.
template <class Go>
GRID_INLINE void along_which(const DotCall& call, const Go& go) {
  const bool a_by_k = call.a_column == 1, b_by_k = call.b_row == 1;
  if (a_by_k && b_by_k)
    go.template operator()<Along::k, Along::k>();
  else if (a_by_k)
    go.template operator()<Along::k, Along::rows>();
  else if (b_by_k)
    go.template operator()<Along::rows, Along::k>();
  else
    go.template operator()<Along::rows, Along::rows>();
}

/// The kernel: `Tile<Along, rows>` and `Multiply<Left, Right>` make up its
/// parts; `buffer` has room for `stages` tiles of each operand.
template <template <Along, int> class Tile,
          template <class, class> class Multiply, int high, int wide,
          int stages, class Element, class Result>
GRID_INLINE void pipelined_in(Shared<uint8_t>* buffer, const Element* a,
                              const Element* b, Result* c,
                              const DotCall& call) {
  auto go = [&]<Along of_a, Along of_b>() __attribute__((always_inline)) {
    using Left = Tile<of_a, high>;
    using Right = Tile<of_b, wide>;
    pipelined<Left, Right, high, wide, stages, Multiply<Left, Right>>(
        buffer, a, b, c, call);
  };
  along_which(call, go);
}

/// Of squares, in as much shared memory as every launch has.
template <template <Along, int> class Tile,
          template <class, class> class Multiply, int tile, int stages,
          class Element, class Result>
GRID_INLINE void pipelined_product(const Element* a, const Element* b,
                                   Result* c, const DotCall& call) {
  alignas(256) static Shared<uint8_t>
      buffer[stages * 2 * Tile<Along::k, tile>::bytes];
  pipelined_in<Tile, Multiply, tile, tile, stages>(buffer, a, b, c, call);
}

/// Fma chains of f32 (Chains), from tiles of words.
template <int tile, int wide = tile>
struct WordChains : Chains<F32, float, tile, false, wide> {
  using Base = Chains<F32, float, tile, false, wide>;

  template <int rows>
  GRID_INLINE static void read(uint32_t at, uint32_t side, int d, float* to) {
    // Base::place(side, i), at depth d. Tiles begin at multiples of 256 bytes,
    // which neither `side` nor a turn reaches.
    const uint32_t own =
        (at + side) ^
        static_cast<uint32_t>(ChainTile<Along::k, rows>::turn(d) * 4);
#pragma unroll
    for (int i = 0; i < rows / 16; i += 4) {
      asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                   : "=f"(to[i]), "=f"(to[i + 1]), "=f"(to[i + 2]),
                     "=f"(to[i + 3])
                   : "r"(own + static_cast<uint32_t>(d * rows * 4 + i * 64)));
    }
  }
  /// Where this thread's rows and columns begin; kept along the loop only where
  /// registers are to spare.
  struct Sides {
    uint32_t left, right;
  };
  GRID_INLINE static Sides sides() {
    const int own = wide > tile ? thread() : thread_again();
    return {static_cast<uint32_t>(own / 16 * 16),
            static_cast<uint32_t>(own % 16 * 16)};
  }
  GRID_INLINE void add_at(uint32_t a, uint32_t b, Sides sides, int d) {
    float left[Base::each], right[Base::across];
    read<tile>(a, sides.left, d, left);
    read<wide>(b, sides.right, d, right);
    this->add(left, right, 0);
  }
  GRID_INLINE void step(uint32_t a, uint32_t b) {
    const Sides own = sides();
#pragma unroll
    for (int d = 0; d < depth_words; ++d) add_at(a, b, own, d);
  }
  GRID_INLINE void step_rest(uint32_t a, uint32_t b, int deep) {
#pragma unroll 1
    for (int d = 0; d < deep; ++d)  // zeros would turn -0 to 0
      add_at(a, b, sides(), d);
  }
};

}  // namespace unisono::grid
