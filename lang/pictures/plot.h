#pragma once
// Numbers over numbers, as a picture.
#include <span>
#include <string>
#include <vector>

namespace unisono::lang {

struct Series {
  std::string label;
  std::vector<double> x, y;  // of one length
};

struct PlotOptions {
  enum class Style { line, points };
  std::string title, x_label, y_label;
  Style style = Style::line;
  bool x_log = false, y_log = false;
  /// Whether labels are shown.
  bool legend = false;
};

/// An SVG picture of all series in one frame. Points that are not finite, or
/// not positive where an axis is logarithmic, are left out, and lines have a
/// gap there; without any, the picture says so. Its size does not grow with the
/// series: where a line has more points than the picture has columns, what is
/// drawn of each column covers what lies in it. Throws Stopped.
std::string svg_of_plot(std::span<const Series> series,
                        const PlotOptions& options);

}  // namespace unisono::lang
