#pragma once
#include <span>
#include <string_view>

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

}  // namespace unisono::lang
