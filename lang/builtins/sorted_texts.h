#pragma once
// The orders of words: `sort` and `argsort` of a tuple of `str`s.
#include "lang/context/call_of.h"

namespace unisono::lang {

/// Whether it is a tuple of `str`s alone, and not empty.
bool is_texts(const Value& value);

/// The call's `x`, which is that, in the order of its characters' numbers; or,
/// with `positions`, the positions that bring it there. Equal ones keep their
/// order.
Value sorted_texts(CallOf<"sort">& call, bool positions, bool descending);

}  // namespace unisono::lang
