#pragma once
// What stands around the numbers of a picture: title, axes, labels, and a place
// to the right for more.
#include <string>

#include "lang/pictures/axis.h"
#include "lang/pictures/svg.h"

namespace unisono::lang {

struct FrameText {
  std::string title, x_label, y_label;
};

/// Where numbers are drawn, in a picture of `width` and `height`.
struct Frame {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width = 0, height = 0;

  double inner_width() const { return right - left; }
  double inner_height() const { return bottom - top; }
};

/// A frame with an inside of this size, and `beside` pixels to its right.
Frame frame_around(double inner_width, double inner_height, double beside,
                   const Axis& y, const FrameText& text);

/// The widest label of an axis.
double widest_label(const Axis& axis);

/// Draws titles, labels, and the axes with their ticks. With `grid`, lines
/// through the frame at each tick. `y_down`: y grows downwards.
void draw_frame(Svg& svg, const Frame& frame, const Axis& x, const Axis& y,
                const FrameText& text, bool grid, bool y_down);

}  // namespace unisono::lang
