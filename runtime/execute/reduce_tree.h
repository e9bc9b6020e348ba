#pragma once
// How members' elements are combined, in the members tree (member_tree.h):
// what collectives of one process and of several have in common.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "runtime/dtype.h"
#include "runtime/execute/program.h"
#include "runtime/member_tree.h"

namespace unisono {

/// Elements are combined in blocks that stay in the first-level cache, with one
/// more block for each level of the tree.
inline constexpr int64_t reduce_block = 512;

/// Integers wrap; of a number and NaN the extremum is NaN.
template <ReduceOp op, class T>
T combine(T a, T b) {
  if constexpr (op == ReduceOp::sum) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  } else if constexpr (std::is_integral_v<T>) {
    return (op == ReduceOp::max ? a > b : a < b) ? a : b;
  } else {
    // Equal numbers have equal bits, or are zeros: of these the largest is +0
    // and the smallest -0.
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    auto x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    T equal = std::bit_cast<T>(op == ReduceOp::max ? x & y : x | y);
    bool first = op == ReduceOp::max ? a > b : a < b;
    T result = a == b ? equal : first ? a : b;
    return a != a ? a : result;
  }
}

/// What elements of a type are combined in. A bool is stored, and compared, as
/// a byte; f16 and bf16 are combined in f32 and rounded once, at the end.
template <DType dtype>
using CombinedIn =
    std::conditional_t<dtype == DType::Bool, typename StorageOf<dtype>::type,
                       typename ComputeOf<dtype>::type>;

/// One block's tree: elements `offset` ... `offset + count - 1` of all devices.
/// S is how an element is stored, C what it is combined in.
template <ReduceOp op, class S, class C>
struct BlockTree {
  std::span<const void* const> from;
  int64_t offset;
  int64_t count;

  const S* source(int64_t device) const {
    return static_cast<const S*>(from[device]) + offset;
  }

  /// out = the combination of devices begin ... end - 1. Small trees are
  /// computed in registers.
  void reduce(int64_t begin, int64_t end, C* __restrict out) const {
    switch (end - begin) {
      case 1: return reduce_few<1>(begin, out);
      case 2: return reduce_few<2>(begin, out);
      case 4: return reduce_few<4>(begin, out);
      case 8: return reduce_few<8>(begin, out);
      default: break;
    }
    int64_t middle = begin + member_tree_left(end - begin);
    std::array<C, reduce_block> right;
    reduce(begin, middle, out);
    reduce(middle, end, right.data());
    for (int64_t i = 0; i < count; ++i) out[i] = combine<op>(out[i], right[i]);
  }

 private:
  template <int devices>
  void reduce_few(int64_t begin, C* __restrict out) const {
    std::array<const S*, devices> sources;
    for (int d = 0; d < devices; ++d) sources[d] = source(begin + d);
    for (int64_t i = 0; i < count; ++i)
      out[i] = combined<0, devices>(sources, i);
  }
  template <int first, int devices, size_t all>
  static C combined(const std::array<const S*, all>& sources, int64_t i) {
    if constexpr (devices == 1) {
      return static_cast<C>(sources[first][i]);
    } else {
      constexpr int half = devices / 2;
      return combine<op>(combined<first, half>(sources, i),
                         combined<first + half, half>(sources, i));
    }
  }
};

/// The members tree over partial results: partial p is of places begins[p] ...
/// begins[p + 1] - 1.
template <ReduceOp op, class C>
struct PartialTree {
  std::span<const void* const> from;
  std::span<const int64_t> begins;
  int64_t offset;
  int64_t count;

  /// out is no partial's.
  void reduce(int64_t begin, int64_t end, C* __restrict out) const {
    if (const C* one = partial(begin, end)) {
      std::memcpy(out, one, static_cast<size_t>(count) * sizeof(C));
      return;
    }
    const int64_t middle = begin + member_tree_left(end - begin);
    const C* left = partial(begin, middle);
    const C* right = partial(middle, end);
    std::array<C, reduce_block> block;
    if (!right) {
      reduce(middle, end, block.data());
      right = block.data();
    }
    if (left) return combine_two(left, right, out);
    reduce(begin, middle, out);
    for (int64_t i = 0; i < count; ++i) out[i] = combine<op>(out[i], right[i]);
  }

 private:
  /// The block of these places' partial; null if there are several. With one
  /// of them it begins in any case.
  const C* partial(int64_t begin, int64_t end) const {
    const auto at = std::ranges::lower_bound(begins, begin) - begins.begin();
    if (begins[at + 1] != end) return nullptr;
    return static_cast<const C*>(from[at]) + offset;
  }
  /// A processor stops at pages of memory that it has not asked for before.
  void combine_two(const C* left, const C* right, C* __restrict out) const {
    constexpr int64_t line = 64 / sizeof(C), ahead = (4 << 10) / sizeof(C);
    for (int64_t i = 0; i < count; i += line) {
      __builtin_prefetch(left + i + ahead);
      __builtin_prefetch(right + i + ahead);
    }
    for (int64_t i = 0; i < count; ++i) out[i] = combine<op>(left[i], right[i]);
  }
};

/// Elements first ... last - 1 of all partial results, to each of `to`.
template <ReduceOp op, class S, class C>
void combine_partials(std::span<const void* const> from,
                      std::span<const int64_t> begins, int64_t first,
                      int64_t last, std::span<void* const> to) {
  std::array<C, reduce_block> result;
  [[maybe_unused]] std::array<S, reduce_block> rounded;
  for (int64_t i = first; i < last; i += reduce_block) {
    const int64_t count = std::min(reduce_block, last - i);
    PartialTree<op, C>{from, begins, i, count}.reduce(
        begins.front(), begins.back(), result.data());
    const void* stored = result.data();
    if constexpr (!std::is_same_v<S, C>) {
      for (int64_t k = 0; k < count; ++k)
        rounded[k] = static_cast<S>(result[k]);
      stored = rounded.data();
    }
    for (void* target : to)
      std::memcpy(static_cast<S*>(target) + i, stored,
                  static_cast<size_t>(count) * sizeof(S));
  }
}

/// The same, not rounded yet.
template <ReduceOp op, class C>
void merge_partials(std::span<const void* const> from,
                    std::span<const int64_t> begins, int64_t first,
                    int64_t last, C* to) {
  for (int64_t i = first; i < last; i += reduce_block)
    PartialTree<op, C>{from, begins, i, std::min(reduce_block, last - i)}
        .reduce(begins.front(), begins.back(), to + i);
}

/// out (C) = the combination of all of `from`, elements first ... last - 1.
template <ReduceOp op, class S, class C>
void combine_own(std::span<const void* const> from, int64_t first, int64_t last,
                 int64_t offset, C* out) {
  for (int64_t i = first; i < last; i += reduce_block) {
    const int64_t count = std::min(reduce_block, last - i);
    BlockTree<op, S, C>{from, offset + i, count}.reduce(
        0, static_cast<int64_t>(from.size()), out + i);
  }
}

/// body.operator()<op, S, C>()
template <class Body>
void with_reduction(DType dtype, ReduceOp op, Body&& body) {
  with_dtype(dtype, [&]<DType D>() {
    using S = typename StorageOf<D>::type;
    using C = CombinedIn<D>;
    switch (op) {
      case ReduceOp::sum:
        return body.template operator()<ReduceOp::sum, S, C>();
      case ReduceOp::max:
        return body.template operator()<ReduceOp::max, S, C>();
      case ReduceOp::min:
        return body.template operator()<ReduceOp::min, S, C>();
    }
  });
}

inline int64_t combined_size(DType dtype) {
  return with_dtype(dtype, []<DType D>() -> int64_t {
    return static_cast<int64_t>(sizeof(CombinedIn<D>));
  });
}

}  // namespace unisono
