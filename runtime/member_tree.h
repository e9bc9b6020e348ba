#pragma once
// The members tree, the one order in which reductions combine operands over
// members (and chunks): neighbours first, in aligned blocks of powers of two,
// so 0+1, 2+3, then (0+1)+(2+3); a last odd one passes up unchanged. Seen from
// the top, the left part's size is the largest power of two below the count.
#include <bit>
#include <cstdint>

namespace unisono {

/// Size of the left part of `count` > 1 operands.
constexpr int64_t member_tree_left(int64_t count) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count) - 1));
}

/// Combines load(begin) ... load(end - 1), at least one, in the members tree.
template <class Load, class Combine>
auto member_tree(int64_t begin, int64_t end, Load&& load, Combine&& combine)
    -> decltype(load(begin)) {
  if (end - begin == 1) return load(begin);
  int64_t middle = begin + member_tree_left(end - begin);
  auto left = member_tree(begin, middle, load, combine);
  auto right = member_tree(middle, end, load, combine);
  return combine(left, right);
}

}  // namespace unisono
