#pragma once
// The range of numbers that an axis shows, and the places that it names.
#include <string>
#include <vector>

namespace unisono::lang {

/// The numbers that a picture has to show along one axis.
class Range {
 public:
  /// What is no number, or cannot be shown on a logarithmic axis, is left out.
  explicit Range(bool log) : log_(log) {}
  /// Whether an axis can show this: finite, and positive where it is
  /// logarithmic.
  bool shows(double value) const;
  void add(double value);
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  bool log() const { return log_; }

 private:
  bool log_;
  double low_ = 1e308, high_ = -1e308;
};

struct Tick {
  double value = 0;
  std::string label;  // empty: a line between those with a name
};

class Axis {
 public:
  enum class Ends { loose, tight };
  /// An axis over the range, with about `count` ticks. Loose ends go a little
  /// beyond it. A range of one number, or of none, becomes one around it.
  Axis(const Range& range, int count, Ends ends);
  /// 0 at the lower end, 1 at the upper one; of a number that the range shows.
  double place(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  /// "×10⁶", by which all labels are to be multiplied; empty: by 1.
  const std::string& factor() const { return factor_; }

 private:
  void linear_ticks(int count);
  void log_ticks(int count);

  bool log_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
  std::string factor_;
};

}  // namespace unisono::lang
