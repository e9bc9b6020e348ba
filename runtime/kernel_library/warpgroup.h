#pragma once
// Products of 16-bit elements by the matrix units of sm_90a, which take both
// operands from shared memory (`wgmma`): the eight warps of a block are two
// groups, each with 64 rows and all columns of its rectangle (wide.h). Four
// stages of tiles lie in shared memory: one is multiplied while another waits
// to be, and two are copied. What `cp.async` has written is made known to the
// matrix units by a fence of each thread that copied, before the block's
// barrier.
//
// Layouts are those of PTX with a swizzle of 128 bytes: lines of 64 elements,
// eight of them a piece of 1024 bytes, in which part p (16 bytes) of line l
// lies at p ^ l.
#include "runtime/kernel_library/matrix_unit.h"
#include "runtime/kernel_library/wide.h"

namespace unisono::grid {

/// A tile of `rows` rows, 64 deep. Along k, lines are rows; along the rows,
/// lines are depths, and 64 rows after the other have blocks of their own.
template <Along along, int rows>
struct LineTile {
  static constexpr int depth = 64, bytes = rows * depth * 2;
  static constexpr int own = bytes / 16 / block_threads;
  static constexpr int parts = along == Along::k ? depth / 8 : rows / 8;
  static constexpr int apart = block_threads / parts;  // lines
  static_assert(apart % 8 == 0);
  static constexpr bool turned = along == Along::rows;

  const uint16_t* from[own];  // of this thread, at the next depth
  int64_t step;               // from one tile to the next
  int present[own];           // bytes of a part, where all of k is there
  uint32_t to;                // the first part's place

  GRID_INLINE LineTile(const uint16_t* begin, int64_t stride,
                       int64_t deep_stride, int64_t count) {
    const int line = thread() / parts, part = thread() % parts;
    const int64_t across = along == Along::k ? stride : deep_stride;
    step = along == Along::k ? depth : depth * deep_stride;
    to = static_cast<uint32_t>(part / 8 * (64 * 128) + line * 128 +
                               (part % 8 ^ line % 8) * 16);
#pragma unroll
    for (int e = 0; e < own; ++e) {
      const int at = line + e * apart;
      present[e] = along == Along::k ? (at < count ? 16 : 0)
                                     : left_of(count, part * 8, 8) * 2;
      from[e] = begin + (present[e] ? at * across + part * 8 : 0);
    }
  }
  /// As HalfTile::copy, of the next 64.
  template <bool whole>
  GRID_INLINE void copy(uint32_t tile_at, int left) {
#pragma unroll
    for (int e = 0; e < own; ++e) {
      const uint32_t at = tile_at + to + static_cast<uint32_t>(e * apart * 128);
      if constexpr (whole) {
        copy_sixteen(at, from[e]);
      } else {
        const int line = thread() / parts, part = thread() % parts;
        int there = 16;
        if constexpr (along == Along::k)
          there = left_of(left, part * 8, 8) * 2;
        else
          there = line + e * apart < left ? 16 : 0;
        copy_sixteen(at, from[e], present[e] < there ? present[e] : there);
      }
      from[e] += step;
    }
  }
  /// What `wgmma` is told of the rows from `begin`, in bytes, on.
  GRID_INLINE static uint64_t described(uint32_t begin) {
    constexpr uint64_t swizzled = uint64_t{1} << 62;
    constexpr uint64_t next_lines = uint64_t{1024 / 16} << 32;
    constexpr uint64_t next_block = uint64_t{64 * 128 / 16} << 16;
    return begin / 16 | next_block | next_lines | swizzled;
  }
  /// Of the next 16 of k.
  static constexpr uint64_t next_described =
      (along == Along::k ? 16 * 2 : 16 * 128) / 16;
};

/// The sums of a thread are registers that only PTX knows, sum0 ... sum127,
/// since copies of registers between one `wgmma` and the next, which LLVM makes
/// of operands, would have each wait for the one before.
#define UNISONO_SUMS                                               \
  "sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, "   \
  "sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, "       \
  "sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, "       \
  "sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, "       \
  "sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, "       \
  "sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, "       \
  "sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, "       \
  "sum58, sum59, sum60, sum61, sum62, sum63, sum64, sum65, "       \
  "sum66, sum67, sum68, sum69, sum70, sum71, sum72, sum73, "       \
  "sum74, sum75, sum76, sum77, sum78, sum79, sum80, sum81, "       \
  "sum82, sum83, sum84, sum85, sum86, sum87, sum88, sum89, "       \
  "sum90, sum91, sum92, sum93, sum94, sum95, sum96, sum97, "       \
  "sum98, sum99, sum100, sum101, sum102, sum103, sum104, sum105, " \
  "sum106, sum107, sum108, sum109, sum110, sum111, sum112, "       \
  "sum113, sum114, sum115, sum116, sum117, sum118, sum119, "       \
  "sum120, sum121, sum122, sum123, sum124, sum125, sum126, sum127"

/// What the groups of warps multiply with, in a kernel that has called
/// declare_sums.
template <class Left, class Right, bool brain>
struct GroupUnit {
  /// Sets the sums to 0.
  GRID_INLINE static void begin() {
    each_sum([]<int number>() __attribute__((always_inline)) {
      asm volatile("mov.f32 sum%0, 0f00000000;" : : "n"(number) : "memory");
    });
  }
  /// Until all groups but the last `under_way` have been multiplied.
  template <int under_way>
  GRID_INLINE static void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(under_way)
                 : "memory");
  }
  /// After all have been multiplied.
  template <int number>
  GRID_INLINE static float sum() {
    float value;
    asm volatile("mov.f32 %0, sum%1;" : "=f"(value) : "n"(number) : "memory");
    return value;
  }
  template <int first = 0, class Do>
  GRID_INLINE static void each_sum(const Do& act) {
    if constexpr (first < wide_columns / 2) {
      act.template operator()<first>();
      each_sum<first + 1>(act);
    }
  }
  /// 16 of k.
  GRID_INLINE static void add(uint64_t a, uint64_t b) {
#define UNISONO_WGMMA(type)                                             \
  asm volatile(                                                         \
      "{ .reg .pred adds; setp.eq.u32 adds, 0, 0;\n"                    \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type      \
      " {" UNISONO_SUMS "}, %0, %1, adds, 1, 1, %2, %3; }"              \
      :                                                                 \
      : "l"(a), "l"(b), "n"(int{Left::turned}), "n"(int{Right::turned}) \
      : "memory")
    if constexpr (brain)
      UNISONO_WGMMA("bf16");
    else
      UNISONO_WGMMA("f16");
#undef UNISONO_WGMMA
  }
  /// Puts a whole stage under way.
  GRID_INLINE static void add_stage(uint32_t a, uint32_t b) {
    const int group = thread() / (4 * warp_threads);
    uint64_t left =
        Left::described(a + static_cast<uint32_t>(group * 64 * 128));
    uint64_t right = Right::described(b);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < Left::depth; k += 16) {
      add(left, right);
      left += Left::next_described;
      right += Right::next_described;
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }
  /// Two sums, rounded.
  template <int number>
  GRID_INLINE static uint32_t rounded() {
    const float low = sum<number>(), high = sum<number + 1>();
    if constexpr (brain) {
      uint32_t word;
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
      return word;
    }
    return half_of<brain>(low) | uint32_t{half_of<brain>(high)} << 16;
  }
  /// Of each eight columns a thread has two, in two rows. Neighbours exchange
  /// them, so that each has four, and lines are written in whole sectors.
  GRID_INLINE static void store(uint16_t* c, int64_t height, int64_t width,
                                int64_t n) {
    const int lane = thread() % warp_threads, odd = lane % 2;
    const int first_row = thread() / warp_threads * 16 + lane / 4,
              first_column = odd * 8 + lane % 4 / 2 * 4;
    const bool fours = n % 4 == 0 && reinterpret_cast<uint64_t>(c) % 8 == 0;
    each_sum([&]<int number>() __attribute__((always_inline)) {
      // Of 16 columns, in the upper row and in the lower one.
      if constexpr (number % 8 == 0 || number % 8 == 2) {
        const int row = first_row + number % 8 / 2 * 8,
                  column = first_column + number / 4 * 8;
        const uint32_t here = rounded<number>(), there = rounded<number + 4>();
        const auto other = static_cast<uint32_t>(__nvvm_shfl_sync_bfly_i32(
            -1, static_cast<int>(odd ? here : there), 1, 31));
        const Vector<uint32_t, 2> four = {odd ? other : here,
                                          odd ? there : other};
        if (row >= height) return;
        uint16_t* to = c + row * n + column;
        if (fours && column + 4 <= width) {
          *(Global<Vector<uint32_t, 2>>*)to = four;
          return;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (column + i < width)
            *global(to + i) =
                static_cast<uint16_t>(four[i / 2] >> (i % 2 * 16));
      }
    });
  }
};

/// Once in a kernel, before all else.
GRID_INLINE void declare_sums() { asm volatile(".reg .f32 sum<128>;"); }

/// Writes of this thread to shared memory, by whatever instruction, are seen by
/// matrix units that wait for this thread.
GRID_INLINE void show_to_matrix_units() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <class Left, class Right, bool brain, int stages>
GRID_INLINE void group_product(const uint16_t* a, const uint16_t* b,
                               uint16_t* c, const DotCall& call) {
  constexpr int depth = Left::depth;
  constexpr uint32_t stage = Left::bytes + Right::bytes;
  const Square square = own_square<wide_rows, wide_columns>(call);
  Left left(
      a + call.a_offset + square.batch * call.a_batch + square.i * call.a_row,
      call.a_row, call.a_column, call.m - square.i);
  Right right(b + call.b_offset + square.batch * call.b_batch +
                  square.j * call.b_column,
              call.b_column, call.b_row, call.n - square.j);
  // Pieces begin at multiples of their size.
  const uint32_t begin = (shared_address(launched) + 1023) / 1024 * 1024,
                 end = begin + stages * stage;
  const int tiles = static_cast<int>((call.k + depth - 1) / depth),
            whole = static_cast<int>(call.k / depth);
  const bool inside =
      square.i + wide_rows <= call.m && square.j + wide_columns <= call.n;
  const int plain = inside ? whole : 0;  // tiles without edges
  auto copy = [&](uint32_t to, int number) __attribute__((always_inline)) {
    if (number < plain) {
      left.template copy<true>(to, depth);
      right.template copy<true>(to + Left::bytes, depth);
    } else if (number < tiles) {
      const int deep =
          number < whole ? depth : static_cast<int>(call.k - whole * depth);
      left.template copy<false>(to, deep);
      right.template copy<false>(to + Left::bytes, deep);
    }
    end_copies();
  };
  constexpr int ahead = stages - 2;
#pragma unroll
  for (int s = 0; s < ahead; ++s) copy(begin + s * stage, s);
  using Unit = GroupUnit<Left, Right, brain>;
  Unit::begin();
  uint32_t now = begin, next = begin + ahead * stage;
#pragma unroll 1
  for (int number = 0; number < tiles; ++number) {
    wait_for_copies<ahead - 1>();
    show_to_matrix_units();
    // Of this stage all has come, and the one before the last is done.
    synchronise();
    Unit::add_stage(now, now + Left::bytes);
    copy(next, number + ahead);
    Unit::template wait<1>();
    now = now + stage == end ? begin : now + stage;
    next = next + stage == end ? begin : next + stage;
  }
  Unit::template wait<0>();
  Unit::store(c + call.c_offset + (square.batch * call.m + square.i) * call.n +
                  square.j,
              call.m - square.i, call.n - square.j, call.n);
}

/// The kernel.
template <bool brain, int stages>
GRID_INLINE void group_products(const uint16_t* a, const uint16_t* b,
                                uint16_t* c, const DotCall& call) {
  declare_sums();
  auto go = [&]<Along of_a, Along of_b>() __attribute__((always_inline)) {
    group_product<LineTile<of_a, wide_rows>, LineTile<of_b, wide_columns>,
                  brain, stages>(a, b, c, call);
  };
  along_which(call, go);
}

}  // namespace unisono::grid
