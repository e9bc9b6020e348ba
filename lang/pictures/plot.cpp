// A line of many points is drawn as what it covers in each column of pixels:
// its first, least, largest and last point there. Of points that fall on one
// pixel one is drawn.
#include "lang/pictures/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lang/pictures/axis.h"
#include "lang/pictures/colours.h"
#include "lang/pictures/frame.h"
#include "lang/pictures/svg.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

constexpr double inner_width = 600, inner_height = 360;
constexpr size_t most_legend_rows = 18, most_label_letters = 28;
constexpr size_t poll_each = size_t{1} << 16;

struct Point {
  double x = 0, y = 0;  // pixels
  bool operator==(const Point&) const = default;
};
using Run = std::vector<Point>;  // without gaps

class Plot {
 public:
  Plot(std::span<const Series> series, const PlotOptions& options)
      : series_(series),
        options_(options),
        x_(axis(&Series::x, &Series::y, options.x_log, options.y_log, 7)),
        y_(axis(&Series::y, &Series::x, options.y_log, options.x_log, 6)),
        frame_(frame_around(inner_width, inner_height, legend_width(), y_,
                            text())),
        svg_(frame_.width, frame_.height) {}

  std::string draw() {
    draw_frame(svg_, frame_, x_, y_, text(), /*grid=*/true, /*y_down=*/false);
    bool any = false;
    for (size_t s = 0; s < series_.size(); ++s) any |= draw_series(s);
    if (!any)
      svg_.text((frame_.left + frame_.right) / 2,
                (frame_.top + frame_.bottom) / 2, Svg::Anchor::middle,
                "no points to show", 15);
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  FrameText text() const {
    return {options_.title, options_.x_label, options_.y_label};
  }

  /// Over all points that can be shown: those whose other coordinate can.
  Axis axis(std::vector<double> Series::* along,
            std::vector<double> Series::* across, bool log, bool across_log,
            int count) const {
    Range range(log);
    const Range other(across_log);
    for (const Series& series : series_) {
      const std::vector<double>& values = series.*along;
      for (size_t i = 0; i < values.size(); ++i) {
        if (i % poll_each == 0) poll_stop();
        if (other.shows((series.*across)[i])) range.add(values[i]);
      }
    }
    return Axis(range, count, Axis::Ends::loose);
  }

  size_t legend_rows() const {
    return options_.legend ? std::min(series_.size(), most_legend_rows) : 0;
  }

  double legend_width() const {
    double widest = 0;
    for (const Series& series : series_.first(legend_rows()))
      widest = std::max(
          widest, text_width(shortened(series.label, most_label_letters)));
    return legend_rows() == 0 ? 0 : widest + 44;
  }

  Point point(double x, double y) const {
    return {frame_.left + x_.place(x) * frame_.inner_width(),
            frame_.bottom - y_.place(y) * frame_.inner_height()};
  }

  /// What is between gaps.
  std::vector<Run> runs_of(const Series& series) const {
    const Range x(options_.x_log), y(options_.y_log);
    std::vector<Run> runs(1);
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (i % poll_each == 0) poll_stop();
      if (x.shows(series.x[i]) && y.shows(series.y[i]))
        runs.back().push_back(point(series.x[i], series.y[i]));
      else if (!runs.back().empty())
        runs.emplace_back();
    }
    if (runs.back().empty()) runs.pop_back();
    return runs;
  }

  /// The points that are drawn of a run with many.
  static Run thinned(const Run& run) {
    Run out;
    const auto add = [&](const Point& p) {
      if (out.empty() || !(out.back() == p)) out.push_back(p);
    };
    for (size_t begin = 0; begin < run.size();) {
      poll_stop();
      const double column = std::floor(run[begin].x);
      size_t end = begin, least = begin, most = begin;
      for (; end < run.size() && std::floor(run[end].x) == column; ++end) {
        if (run[end].y < run[least].y) least = end;
        if (run[end].y > run[most].y) most = end;
      }
      add(run[begin]);
      add(run[std::min(least, most)]);
      add(run[std::max(least, most)]);
      add(run[end - 1]);
      begin = end;
    }
    return out;
  }

  /// Once around, dashes tell series of one colour apart.
  static const char* dashes(size_t series) {
    constexpr std::array<const char*, 3> kinds = {
        "", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""};
    return kinds[series / series_colours % kinds.size()];
  }

  static std::string stroke(size_t series, bool points) {
    return fmt::format(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
        "stroke-linecap=\"round\" stroke-linejoin=\"round\"{}",
        to_string(series_colour(series)), points ? 4.5 : 1.8,
        points ? "" : dashes(series));
  }

  /// Points as lines of no length with round ends.
  static void add_point(std::string& path, const Point& p) {
    path += fmt::format("M{:.1f} {:.1f}h0", p.x, p.y);
  }

  std::string points_path(const std::vector<Run>& runs) const {
    const auto columns = static_cast<size_t>(frame_.inner_width()) + 2;
    const auto rows = static_cast<size_t>(frame_.inner_height()) + 2;
    std::vector<bool> taken(columns * rows);
    std::string path;
    for (const Run& run : runs)
      for (const Point& p : run) {
        const auto column = static_cast<size_t>(p.x - frame_.left);
        const auto row = static_cast<size_t>(p.y - frame_.top);
        auto place = taken[row * columns + column];
        if (!place) add_point(path, p);
        place = true;
      }
    return path;
  }

  void draw_path(size_t s, const std::string& path, bool points) {
    if (path.empty()) return;
    svg_.raw(fmt::format("  <path {} d=\"{}\"/>\n", stroke(s, points), path));
  }

  /// Whether there was anything to draw.
  bool draw_series(size_t s) {
    constexpr size_t few = 4 * static_cast<size_t>(inner_width);
    const std::vector<Run> runs = runs_of(series_[s]);
    if (options_.style == PlotOptions::Style::points) {
      draw_path(s, points_path(runs), true);
      return !runs.empty();
    }
    std::string lines, points;
    for (const Run& run : runs) {
      const Run drawn = run.size() > few ? thinned(run) : run;
      if (drawn.size() == 1) add_point(points, drawn[0]);
      for (size_t i = 0; i < drawn.size() && drawn.size() > 1; ++i)
        lines += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", drawn[i].x,
                             drawn[i].y);
    }
    draw_path(s, lines, false);
    draw_path(s, points, true);
    return !runs.empty();
  }

  void draw_legend() {
    constexpr double row = 19;
    const bool points = options_.style == PlotOptions::Style::points;
    const double x = frame_.right + 14;
    double y = frame_.top + 10;
    for (size_t s = 0; s < legend_rows(); ++s, y += row) {
      draw_path(s,
                points ? fmt::format("M{:.1f} {:.1f}h0", x + 11, y)
                       : fmt::format("M{:.1f} {:.1f}h22", x, y),
                points);
      svg_.text(x + 30, y + 4, Svg::Anchor::start,
                shortened(series_[s].label, most_label_letters));
    }
    if (options_.legend && series_.size() > legend_rows())
      svg_.text(x, y + 4, Svg::Anchor::start,
                fmt::format("and {} more", series_.size() - legend_rows()));
  }

  std::span<const Series> series_;
  const PlotOptions& options_;
  const Axis x_, y_;
  const Frame frame_;
  Svg svg_;
};

}  // namespace

std::string svg_of_plot(std::span<const Series> series,
                        const PlotOptions& options) {
  return Plot(series, options).draw();
}

}  // namespace unisono::lang
