// Axes and pictures.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lang/pictures/axis.h"
#include "lang/pictures/colours.h"
#include "lang/pictures/heatmap.h"
#include "lang/pictures/plot.h"
#include "lang/pictures/png.h"
#include "lang/pictures/svg.h"

using namespace unisono::lang;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Range range_of(const std::vector<double>& values, bool log = false) {
  Range range(log);
  for (const double value : values) range.add(value);
  return range;
}

std::string labels(const Axis& axis) {
  std::string out;
  for (const Tick& tick : axis.ticks())
    if (!tick.label.empty()) out += (out.empty() ? "" : " ") + tick.label;
  return out + axis.factor();
}

std::string linear(const std::vector<double>& values) {
  return labels(Axis(range_of(values), 5, Axis::Ends::loose));
}

std::string logarithmic(const std::vector<double>& values) {
  return labels(Axis(range_of(values, true), 6, Axis::Ends::loose));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
  return found;
}

Series series(std::vector<double> y) {
  Series out{.label = "a", .x = {}, .y = std::move(y)};
  for (size_t i = 0; i < out.y.size(); ++i)
    out.x.push_back(static_cast<double>(i));
  return out;
}

std::string plot(std::vector<double> y) {
  const std::vector<Series> all = {series(std::move(y))};
  return svg_of_plot(all, PlotOptions());
}

}  // namespace

TEST_CASE("ticks are round numbers") {
  CHECK(linear({0, 10}) == "0 2 4 6 8 10");
  CHECK(linear({-1, 1}) == "−1.0 −0.5 0.0 0.5 1.0");
  CHECK(linear({3, 4}) == "3.0 3.2 3.4 3.6 3.8 4.0");
  CHECK(linear({0, 2e6}) == "0.0 0.5 1.0 1.5 2.0×10⁶");
  CHECK(linear({0, 4e-5}) == "0 1 2 3 4×10⁻⁵");
}

TEST_CASE("ticks of logarithmic axes") {
  CHECK(logarithmic({1, 1000}) == "1 10 100 1000");
  CHECK(logarithmic({1e-6, 1e6}) == "10⁻⁶ 0.001 1 1000 10⁶");
  CHECK(logarithmic({2, 30}) == "2 5 10 20");
  CHECK(logarithmic({1e5, 3e5}) == "10⁵ 2·10⁵");
  // What has no logarithm is left out.
  CHECK(logarithmic({-1, 0, 1, 10}) == "1 2 5 10");
}

TEST_CASE("axes of any numbers have ticks and an inside") {
  const std::vector<double> values = {
      0,   1,    -1,           5,    1e-320, 1e308,   -1e308, 1e-200,
      inf, -inf, not_a_number, 3e38, 1e15,   1e15 + 1};
  for (const bool log : {false, true})
    for (const double a : values)
      for (const double b : values) {
        CAPTURE(a);
        CAPTURE(b);
        CAPTURE(log);
        const Axis axis(range_of({a, b}, log), 6, Axis::Ends::loose);
        CHECK(axis.low() < axis.high());
        CHECK(std::isfinite(axis.high() - axis.low()));
        CHECK(axis.ticks().size() < 100);
        for (const double value : {a, b}) {
          if (!Range(log).shows(value)) continue;
          CHECK(axis.place(value) >= 0);
          CHECK(axis.place(value) <= 1);
        }
      }
}

TEST_CASE("a plot has gaps, and says when it is empty") {
  CHECK(count(plot({1, 2, 3, 4}), "<path") == 1);
  CHECK(count(plot({1, 2, 3, 4}), "M") == 1);
  CHECK(count(plot({1, 2, not_a_number, 3, 4}), "M") == 2);
  CHECK(count(plot({1, inf, 3, 4, -inf}), "M") == 2);
  CHECK(count(plot({}), "no points to show") == 1);
  CHECK(count(plot({not_a_number, not_a_number}), "no points to show") == 1);
  CHECK(count(plot({7, 7, 7}), "no points to show") == 0);
}

TEST_CASE("a plot of very many points stays small") {
  std::vector<double> y;
  for (int i = 0; i < 300'000; ++i) y.push_back(std::sin(i) * i);
  const std::string line = plot(y);
  CHECK(line.size() < 100'000);
  const std::vector<Series> all = {series(y)};
  PlotOptions points;
  points.style = PlotOptions::Style::points;
  CHECK(svg_of_plot(all, points).size() < 3'000'000);
}

TEST_CASE("texts cannot break a picture") {
  PlotOptions options;
  options.title = "<script>&\x01\n";
  const std::string text = svg_of_plot({}, options);
  CHECK(count(text, "<script>") == 0);
  CHECK(count(text, "&lt;script&gt;&amp;  ") == 1);
  CHECK(shortened("äöüß", 4) == "äöüß");
  CHECK(shortened("äöüßx", 4) == "äöü…");
}

TEST_CASE("colours of a scale") {
  CHECK(to_string(map_colour(0)) == "#440154");
  CHECK(to_string(map_colour(1)) == "#fde725");
  CHECK(map_colour(-5) == map_colour(0));
  CHECK(map_colour(inf) == map_colour(1));
  CHECK(to_string(map_colour(not_a_number)) == "#bdbdbd");
}

TEST_CASE("heatmaps of odd matrices") {
  for (const Matrix& matrix :
       {Matrix{0, 0, {}}, Matrix{0, 7, {}}, Matrix{1, 1, {not_a_number}},
        Matrix{2, 2, {inf, -inf, not_a_number, 0}},
        Matrix{1, 5000, std::vector<double>(5000, 2.0)}}) {
    const auto picture = svg_of_heatmap(matrix, HeatmapOptions());
    REQUIRE(picture);
    CHECK(picture->ends_with("</svg>\n"));
    CHECK(count(*picture, "no elements") == (matrix.elements.empty() ? 1 : 0));
  }
}

TEST_CASE("pixels as a file") {
  const auto file = png_of({2, 1, 3, {255, 0, 0, 0, 0, 255}});
  REQUIRE(file);
  CHECK(file->starts_with("\x89PNG\r\n"));
}
