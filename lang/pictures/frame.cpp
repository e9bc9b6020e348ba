#include "lang/pictures/frame.h"

#include <algorithm>

namespace unisono::lang {
namespace {

constexpr double margin = 16, tick_length = 5, row = 20;
constexpr const char* line_colour = "#666";
constexpr const char* grid_colour = "#e4e4e4";
constexpr const char* fine_grid_colour = "#f3f3f3";

}  // namespace

double widest_label(const Axis& axis) {
  double widest = text_width(axis.factor());
  for (const Tick& tick : axis.ticks())
    widest = std::max(widest, text_width(tick.label));
  return widest;
}

Frame frame_around(double inner_width, double inner_height, double beside,
                   const Axis& y, const FrameText& text) {
  Frame frame;
  frame.left = margin + widest_label(y) + tick_length + 4 +
               (text.y_label.empty() ? 0 : row + 4);
  frame.top = margin + (text.title.empty() ? 0 : row + 6) +
              (y.factor().empty() ? 0 : row);
  frame.right = frame.left + inner_width;
  frame.bottom = frame.top + inner_height;
  frame.width = frame.right + beside + margin + 8;
  frame.height = frame.bottom + tick_length + row +
                 (text.x_label.empty() ? 0 : row) + margin;
  return frame;
}

void draw_frame(Svg& svg, const Frame& frame, const Axis& x, const Axis& y,
                const FrameText& text, bool grid, bool y_down) {
  using Anchor = Svg::Anchor;
  const auto colour = [](const Tick& tick) {
    return tick.label.empty() ? fine_grid_colour : grid_colour;
  };
  for (const Tick& tick : x.ticks()) {
    const double at = frame.left + x.place(tick.value) * frame.inner_width();
    if (grid) svg.line(at, frame.top, at, frame.bottom, colour(tick));
    const double length = tick.label.empty() ? tick_length / 2 : tick_length;
    svg.line(at, frame.bottom, at, frame.bottom + length, line_colour);
    if (!tick.label.empty())
      svg.text(at, frame.bottom + tick_length + 14, Anchor::middle, tick.label);
  }
  for (const Tick& tick : y.ticks()) {
    const double up = y.place(tick.value) * frame.inner_height();
    const double at = y_down ? frame.top + up : frame.bottom - up;
    if (grid) svg.line(frame.left, at, frame.right, at, colour(tick));
    const double length = tick.label.empty() ? tick_length / 2 : tick_length;
    svg.line(frame.left - length, at, frame.left, at, line_colour);
    if (!tick.label.empty())
      svg.text(frame.left - tick_length - 4, at + 4, Anchor::end, tick.label);
  }
  svg.box(frame.left, frame.top, frame.inner_width(), frame.inner_height(),
          "none", line_colour);
  if (!y.factor().empty())
    svg.text(frame.left, frame.top - 8, Anchor::start, y.factor());
  const double below = frame.bottom + tick_length + 14;
  if (!x.factor().empty())
    svg.text(frame.right, below + 15, Anchor::end, x.factor());
  const double middle = (frame.left + frame.right) / 2;
  svg.text(middle, margin + 12, Anchor::middle, shortened(text.title, 80), 15,
           true);
  svg.text(middle, below + row, Anchor::middle, shortened(text.x_label, 80),
           13);
  svg.text_upwards(margin + 10, (frame.top + frame.bottom) / 2,
                   shortened(text.y_label, 50));
}

}  // namespace unisono::lang
