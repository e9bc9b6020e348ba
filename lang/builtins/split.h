#pragma once
#include "lang/context/call_of.h"

namespace unisono::lang {

/// `split` where `x` is a str: its words, or its parts between separators.
Value split_text(CallOf<"split">& call);

}  // namespace unisono::lang
