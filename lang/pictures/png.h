#pragma once
// Pixels as the bytes of a .png file.
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace unisono::lang {

struct Pixels {
  int64_t width = 0, height = 0;
  int channels = 1;            // 1 gray, 3 red, green, blue, 4 and opacity
  std::vector<uint8_t> bytes;  // rows from the top, pixels from the left
};

/// Sides that a .png file can have.
inline constexpr int64_t most_png_pixels = 1'000'000;

/// Errors: out_of_memory, and cancelled where it is stopped. Both sides are
/// from 1 to most_png_pixels.
Result<std::string> png_of(const Pixels& pixels);

}  // namespace unisono::lang
