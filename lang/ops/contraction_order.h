#pragma once
// In which order einsum multiplies more than two operands.
#include <map>
#include <utility>
#include <vector>

namespace unisono::lang {

/// The pairs that are multiplied, one after the other: operands are numbered
/// from 0, and results after them, in the order of the pairs. Every operand has
/// the indices `labels[i]`, each once, and of the result's, `output`; an index
/// that nobody else has is summed over at once. Least multiplications win,
/// counted by `sizes` of indices, which are positive; where that is equal, the
/// order of the operands does. Of more than ten operands the others follow one
/// by one.
std::vector<std::pair<int, int>> contraction_order(
    const std::vector<std::vector<int>>& labels, const std::vector<int>& output,
    const std::map<int, double>& sizes);

}  // namespace unisono::lang
