#include "lang/pictures/colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace unisono::lang {

std::string to_string(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green,
                     colour.blue);
}

Colour series_colour(size_t series) {
  constexpr std::array<Colour, series_colours> colours = {{
      {0x00, 0x72, 0xb2},
      {0xd5, 0x5e, 0x00},
      {0x00, 0x9e, 0x73},
      {0xcc, 0x79, 0xa7},
      {0xe6, 0x9f, 0x00},
      {0x56, 0xb4, 0xe9},
      {0x00, 0x00, 0x00},
  }};
  return colours[series % series_colours];
}

Colour map_colour(double place) {
  constexpr std::array<Colour, 9> points = {{
      {0x44, 0x01, 0x54},
      {0x47, 0x2d, 0x7b},
      {0x3b, 0x52, 0x8b},
      {0x2c, 0x72, 0x8e},
      {0x21, 0x91, 0x8c},
      {0x28, 0xae, 0x80},
      {0x5e, 0xc9, 0x62},
      {0xad, 0xdc, 0x30},
      {0xfd, 0xe7, 0x25},
  }};
  constexpr Colour missing = {0xbd, 0xbd, 0xbd};
  if (std::isnan(place)) return missing;
  const double at = std::clamp(place, 0.0, 1.0) * (points.size() - 1);
  const size_t below = std::min(static_cast<size_t>(at), points.size() - 2);
  const double part = at - static_cast<double>(below);
  const auto between = [&](uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(std::lround(a + part * (b - a)));
  };
  const Colour& a = points[below];
  const Colour& b = points[below + 1];
  return {between(a.red, b.red), between(a.green, b.green),
          between(a.blue, b.blue)};
}

}  // namespace unisono::lang
