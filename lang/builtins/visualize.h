#pragma once
#include <string>

#include "runtime/array.h"

namespace unisono::lang {

/// A picture of where an array lives, in text: one box per block, named by its
/// device, as the blocks lie in the array; with `colour`, each device has one
/// (ANSI escapes). At most 78 columns; blocks that do not fit are left out in
/// the middle, and the picture says so.
std::string draw_sharding(const unisono::Array& array, bool colour = false);

/// The same as an SVG picture, in the array's proportions: each block with its
/// device and the elements that it holds.
std::string svg_of_sharding(const unisono::Array& array);

}  // namespace unisono::lang
