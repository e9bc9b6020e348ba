#pragma once
// Colours that people with any kind of colour vision can tell apart.
#include <cstddef>
#include <cstdint>
#include <string>

namespace unisono::lang {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// "#0072b2"
std::string to_string(Colour colour);

/// Of the series with this number, counted from 0: those of Okabe and Ito that
/// stand out from white, then the same again.
Colour series_colour(size_t series);
inline constexpr size_t series_colours = 7;

/// A point of the map `viridis`: dark blue at 0, yellow at 1, each step of
/// about the same strength. What lies outside is taken for the nearer end; NaN
/// is gray, which no number is.
Colour map_colour(double place);

}  // namespace unisono::lang
