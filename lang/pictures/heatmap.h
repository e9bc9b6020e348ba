#pragma once
// A matrix as colours.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace unisono::lang {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> elements;  // row-major
};

struct HeatmapOptions {
  std::string title, x_label, y_label;
  /// The numbers at the ends of the scale of colours; if they are not given,
  /// the least and the largest element.
  std::optional<double> low, high;
};

/// An SVG picture: row 0 on top, axes that count rows and columns, and the
/// scale of colours beside it. NaN is gray. A matrix with sides of more than
/// 1,024 is shown by means of blocks of its elements. Errors as of png_of;
/// throws Stopped.
Result<std::string> svg_of_heatmap(const Matrix& matrix,
                                   const HeatmapOptions& options);

/// The colours alone, as a .png file with one pixel for each element. Both
/// sides are from 1 to most_png_pixels.
Result<std::string> png_of_heatmap(const Matrix& matrix,
                                   const HeatmapOptions& options);

}  // namespace unisono::lang
