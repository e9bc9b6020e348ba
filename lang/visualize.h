#pragma once
#include <string>

#include "runtime/array.h"

namespace unisono::lang {

/// A picture of where an array of rank 1 or 2 lives, in text: one box per
/// block, named by its device, as the blocks lie in the array. At most 78
/// columns; blocks that do not fit are left out in the middle, and it says so.
std::string draw_sharding(const unisono::Array& array);

}  // namespace unisono::lang
