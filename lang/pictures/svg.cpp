#include "lang/pictures/svg.h"

#include <fmt/format.h>

#include <algorithm>

namespace unisono::lang {
namespace {

bool begins_character(char c) { return (c & 0xC0) != 0x80; }

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_character));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      out += ' ';  // XML has no way to say most of these
    else
      out += c;
  return out;
}

const char* name(Svg::Anchor anchor) {
  switch (anchor) {
    case Svg::Anchor::start: return "start";
    case Svg::Anchor::middle: return "middle";
    case Svg::Anchor::end: return "end";
  }
  __builtin_unreachable();
}

}  // namespace

double text_width(std::string_view text, double size) {
  return static_cast<double>(characters(text)) * letter_width * size /
         letter_size;
}

std::string shortened(std::string_view text, size_t most) {
  if (characters(text) <= most) return std::string(text);
  size_t end = 0;
  for (size_t left = most; end < text.size(); ++end)
    if (begins_character(text[end]) && left-- == 1) break;
  return std::string(text.substr(0, end)) + "…";
}

Svg::Svg(double width, double height)
    : text_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
          "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
          "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" "
          "fill=\"#222\">\n"
          "  <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
          width, height)) {}

void Svg::line(double x1, double y1, double x2, double y2,
               std::string_view colour) {
  text_ += fmt::format(
      "  <line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
      "stroke=\"{}\"/>\n",
      x1, y1, x2, y2, colour);
}

void Svg::box(double x, double y, double width, double height,
              std::string_view fill, std::string_view outline) {
  text_ += fmt::format(
      "  <rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"{}\"",
      x, y, width, height, fill);
  if (!outline.empty()) text_ += fmt::format(" stroke=\"{}\"", outline);
  text_ += "/>\n";
}

void Svg::text(double x, double y, Anchor anchor, std::string_view text,
               double size, bool bold) {
  text_ += fmt::format(
      "  <text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" "
      "text-anchor=\"{}\"{}>{}</text>\n",
      x, y, size, name(anchor), bold ? " font-weight=\"bold\"" : "",
      escaped(text));
}

void Svg::text_upwards(double x, double y, std::string_view text) {
  text_ += fmt::format(
      "  <text x=\"{0:.1f}\" y=\"{1:.1f}\" font-size=\"13\" "
      "text-anchor=\"middle\" transform=\"rotate(-90 {0:.1f} "
      "{1:.1f})\">{2}</text>\n",
      x, y, escaped(text));
}

std::string Svg::finish() && { return std::move(text_) + "</svg>\n"; }

}  // namespace unisono::lang
