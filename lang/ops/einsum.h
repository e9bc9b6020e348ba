#pragma once
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"

namespace unisono::lang {

/// `einsum("bij,bjk->bik", a, b)`: axes with one letter are one index, indices
/// that the result does not name are summed over. Without `->` the result has
/// the letters that stand once, in alphabetical order; `...` stands for further
/// axes, which are broadcast. Operands are combined from left to right.
/// `subscripts_span` is where errors in the subscripts are shown.
Value einsum(Walk& walk, std::string_view subscripts,
             std::span<const CallArgument> operands, Span subscripts_span,
             Span where);

/// In which order einsum multiplies more than two operands
/// (contraction_order.cpp): the pairs that are multiplied, one after the other:
/// operands are numbered from 0, and results after them, in the order of the
/// pairs. Every operand has the indices `labels[i]`, each once, and of the
/// result's, `output`; an index that nobody else has is summed over at once.
/// Least multiplications win, counted by `sizes` of indices, which are
/// positive; where that is equal, the order of the operands does. Of more than
/// ten operands the others follow one by one.
std::vector<std::pair<int, int>> contraction_order(
    const std::vector<std::vector<int>>& labels, const std::vector<int>& output,
    const std::map<int, double>& sizes);

}  // namespace unisono::lang
