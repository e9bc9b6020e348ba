#pragma once
// How members' elements are combined, in the members tree (member_tree.h):
// what collectives of one process and of several have in common.
#include <array>
#include <bit>
#include <cstdint>
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

  /// out = the combination of devices begin ... end - 1.
  void reduce(int64_t begin, int64_t end, C* out) const {
    if (end - begin == 1) {
      const S* a = source(begin);
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<C>(a[i]);
    } else if (end - begin == 2) {
      const S *a = source(begin), *b = source(begin + 1);
      for (int64_t i = 0; i < count; ++i)
        out[i] = combine<op>(static_cast<C>(a[i]), static_cast<C>(b[i]));
    } else {
      int64_t middle = begin + member_tree_left(end - begin);
      std::array<C, reduce_block> right;
      reduce(begin, middle, out);
      reduce(middle, end, right.data());
      for (int64_t i = 0; i < count; ++i)
        out[i] = combine<op>(out[i], right[i]);
    }
  }
};

}  // namespace unisono
