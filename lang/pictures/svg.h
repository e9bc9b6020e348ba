#pragma once
// The text of an SVG picture, element by element. Lengths are pixels, y grows
// downwards.
#include <string>
#include <string_view>

namespace unisono::lang {

/// Size of letters for ticks and legends, and about how wide one is.
inline constexpr double letter_size = 12, letter_width = 6.7;
/// The place that a text takes, about: letters differ.
double text_width(std::string_view text, double size = letter_size);
/// At most `most` characters, the last of them `…` where some are left out.
std::string shortened(std::string_view text, size_t most);

class Svg {
 public:
  enum class Anchor { start, middle, end };

  Svg(double width, double height);
  void line(double x1, double y1, double x2, double y2,
            std::string_view colour);
  /// With an outline in `outline`, if that is not empty.
  void box(double x, double y, double width, double height,
           std::string_view fill, std::string_view outline = "");
  /// `y` is the line that letters stand on.
  void text(double x, double y, Anchor anchor, std::string_view text,
            double size = letter_size, bool bold = false);
  /// Upwards, about the point.
  void text_upwards(double x, double y, std::string_view text);
  /// Anything else, as it is.
  void raw(std::string_view element) { text_ += element; }
  /// The whole picture.
  std::string finish() &&;

 private:
  std::string text_;
};

}  // namespace unisono::lang
