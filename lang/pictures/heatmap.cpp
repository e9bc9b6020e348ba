#include "lang/pictures/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lang/pictures/axis.h"
#include "lang/pictures/colours.h"
#include "lang/pictures/frame.h"
#include "lang/pictures/png.h"
#include "lang/pictures/svg.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

/// Sides of the picture's inside, and of the scale beside it.
constexpr double longest_side = 440, shortest_side = 80;
constexpr double scale_width = 16, scale_gap = 18;
/// More rows or columns than this cannot be seen.
constexpr int64_t most_cells = 1024;

std::string base64(std::string_view bytes) {
  constexpr const char* digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 |
             (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

/// The numbers at the ends of the scale.
Axis scale_of(const Matrix& matrix, const HeatmapOptions& options) {
  Range all(false);
  for (const double element : matrix.elements) all.add(element);
  Range range(false);
  range.add(options.low.value_or(all.empty() ? 0 : all.low()));
  range.add(options.high.value_or(all.empty() ? 1 : all.high()));
  return Axis(range, 6, Axis::Ends::tight);
}

/// The mean of those of a block that are numbers; NaN if there is none.
double mean_of(const Matrix& matrix, int64_t top, int64_t bottom, int64_t left,
               int64_t right) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t r = top; r < bottom; ++r)
    for (int64_t c = left; c < right; ++c) {
      const double element = matrix.elements[r * matrix.columns + c];
      if (std::isnan(element)) continue;
      sum += element;
      ++count;
    }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : sum / static_cast<double>(count);
}

/// At most `most_cells` rows and columns, by means of blocks.
Matrix reduced(const Matrix& matrix) {
  Matrix out{.rows = std::min(matrix.rows, most_cells),
             .columns = std::min(matrix.columns, most_cells),
             .elements = {}};
  for (int64_t r = 0; r < out.rows; ++r) {
    poll_stop();
    for (int64_t c = 0; c < out.columns; ++c)
      out.elements.push_back(mean_of(matrix, r * matrix.rows / out.rows,
                                     (r + 1) * matrix.rows / out.rows,
                                     c * matrix.columns / out.columns,
                                     (c + 1) * matrix.columns / out.columns));
  }
  return out;
}

Pixels pixels_of(const Matrix& matrix, const Axis& scale) {
  Pixels out{matrix.columns, matrix.rows, 3, {}};
  out.bytes.reserve(matrix.elements.size() * 3);
  for (size_t i = 0; i < matrix.elements.size(); ++i) {
    if (i % (size_t{1} << 16) == 0) poll_stop();
    const double element = matrix.elements[i];
    const Colour colour =
        map_colour(std::isnan(element) ? element : scale.place(element));
    out.bytes.insert(out.bytes.end(), {colour.red, colour.green, colour.blue});
  }
  return out;
}

/// An axis that counts cells, whose numbers stand at their middles.
Axis counting(int64_t cells) {
  constexpr int64_t most_ticks = 6;
  const int64_t shown = std::max<int64_t>(cells, 1);
  Range range(false);
  range.add(-0.5);
  range.add(static_cast<double>(shown) - 0.5);
  // So few that the step is a whole number.
  return Axis(range, static_cast<int>(std::min(shown, most_ticks)),
              Axis::Ends::tight);
}

/// Sides in the matrix's proportions, within limits.
std::pair<double, double> sides(const Matrix& matrix) {
  const auto rows = static_cast<double>(std::max<int64_t>(matrix.rows, 1));
  const auto columns =
      static_cast<double>(std::max<int64_t>(matrix.columns, 1));
  const double cell = longest_side / std::max(rows, columns);
  return {std::max(columns * cell, shortest_side),
          std::max(rows * cell, shortest_side)};
}

void draw_image(Svg& svg, const Frame& frame, const std::string& png) {
  svg.raw(fmt::format(
      "  <image x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "preserveAspectRatio=\"none\" style=\"image-rendering: pixelated\" "
      "href=\"data:image/png;base64,{}\"/>\n",
      frame.left, frame.top, frame.inner_width(), frame.inner_height(),
      base64(png)));
}

/// The scale of colours, with its numbers.
void draw_scale(Svg& svg, const Frame& frame, const Axis& scale) {
  const double left = frame.right + scale_gap, height = frame.inner_height();
  constexpr int steps = 8;
  svg.raw(
      "  <defs><linearGradient id=\"unisono-scale\" x1=\"0\" y1=\"1\" "
      "x2=\"0\" y2=\"0\">");
  for (int i = 0; i <= steps; ++i)
    svg.raw(fmt::format("<stop offset=\"{}\" stop-color=\"{}\"/>",
                        static_cast<double>(i) / steps,
                        to_string(map_colour(static_cast<double>(i) / steps))));
  svg.raw("</linearGradient></defs>\n");
  svg.box(left, frame.top, scale_width, height, "url(#unisono-scale)", "#666");
  for (const Tick& tick : scale.ticks()) {
    const double y = frame.bottom - scale.place(tick.value) * height;
    svg.line(left + scale_width, y, left + scale_width + 4, y, "#666");
    svg.text(left + scale_width + 8, y + 4, Svg::Anchor::start, tick.label);
  }
  if (!scale.factor().empty())
    svg.text(left, frame.top - 8, Svg::Anchor::start, scale.factor());
}

}  // namespace

Result<std::string> svg_of_heatmap(const Matrix& matrix,
                                   const HeatmapOptions& options) {
  const Axis scale = scale_of(matrix, options);
  const Axis x = counting(matrix.columns), y = counting(matrix.rows);
  const FrameText text{options.title, options.x_label, options.y_label};
  const auto [width, height] = sides(matrix);
  Frame frame =
      frame_around(width, height,
                   scale_gap + scale_width + 8 + widest_label(scale), y, text);
  if (!scale.factor().empty()) {
    constexpr double row = 20;
    frame.top += row;
    frame.bottom += row;
    frame.height += row;
  }
  Svg svg(frame.width, frame.height);
  if (matrix.elements.empty()) {
    svg.text((frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2,
             Svg::Anchor::middle, "no elements to show", 15);
  } else {
    const bool large = std::max(matrix.rows, matrix.columns) > most_cells;
    draw_image(svg, frame,
               TRY(png_of(large ? pixels_of(reduced(matrix), scale)
                                : pixels_of(matrix, scale))));
  }
  draw_frame(svg, frame, x, y, text, /*grid=*/false, /*y_down=*/true);
  draw_scale(svg, frame, scale);
  return std::move(svg).finish();
}

Result<std::string> png_of_heatmap(const Matrix& matrix,
                                   const HeatmapOptions& options) {
  return png_of(pixels_of(matrix, scale_of(matrix, options)));
}

}  // namespace unisono::lang
