#include "lang/pictures/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace unisono::lang {
namespace {

/// With a little more beside them, differences of larger numbers overflow, and
/// steps between smaller ones vanish.
constexpr double largest = 1e280, smallest = 1e-270;

/// "10⁻⁶"
std::string power_of_ten(int exponent) {
  constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴",
                                    "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = "10";
  for (const char c : std::to_string(exponent))
    out += c == '-' ? "⁻" : digits[c - '0'];
  return out;
}

/// With a minus sign of the width of a digit.
std::string number(double value, int decimals) {
  std::string out = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool zero = out.find_first_not_of("0.") == out.npos;
  return value < 0 && !zero ? "−" + out : out;
}

int decade_of(double value) {
  return static_cast<int>(std::floor(std::log10(value) + 1e-9));
}

/// The label of a tick of a logarithmic axis.
std::string log_label(double value) {
  const int decade = decade_of(value);
  const double digit = std::round(value / std::pow(10.0, decade));
  if (decade >= -3 && decade <= 3) return number(value, std::max(0, -decade));
  return digit == 1 ? power_of_ten(decade)
                    : fmt::format("{:.0f}·{}", digit, power_of_ten(decade));
}

/// A step of 1, 2 or 5 times a power of ten, so that there are about `count`.
double nice_step(double span, int count) {
  const double raw = span / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= 1.4 * factor * power) return factor * power;
  return 10 * power;
}

}  // namespace

bool Range::shows(double value) const {
  return std::isfinite(value) && (!log_ || value > 0);
}

void Range::add(double value) {
  if (!shows(value)) return;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

Axis::Axis(const Range& range, int count, Ends ends) : log_(range.log()) {
  constexpr double beyond = 0.03;
  low_ = log_ ? 1 : 0;
  high_ = log_ ? 10 : 1;
  if (!range.empty()) {
    low_ = std::clamp(range.low(), -largest, largest);
    high_ = std::clamp(range.high(), -largest, largest);
    if (log_) low_ = std::max(low_, smallest);
    high_ = std::max(high_, low_);
    const double size = std::max(std::abs(low_), std::abs(high_));
    if (high_ - low_ <= std::max(size * 1e-12, smallest)) {
      const double middle = low_ + (high_ - low_) / 2;
      const double half = size < smallest ? 1 : size / 10;
      low_ = log_ ? middle / 3 : middle - half;
      high_ = log_ ? middle * 3 : middle + half;
    } else if (ends == Ends::loose && log_) {
      const double factor =
          std::exp(beyond * (std::log(high_) - std::log(low_)));
      low_ /= factor;
      high_ *= factor;
    } else if (ends == Ends::loose) {
      const double more = beyond * (high_ - low_);
      low_ -= more;
      high_ += more;
    }
  }
  if (log_)
    log_ticks(count);
  else
    linear_ticks(count);
}

double Axis::place(double value) const {
  const double place =
      log_ ? (std::log(value) - std::log(low_)) /
                 (std::log(high_) - std::log(low_))
           : (std::clamp(value, -largest, largest) - low_) / (high_ - low_);
  return std::clamp(place, 0.0, 1.0);
}

void Axis::linear_ticks(int count) {
  const double step = nice_step(high_ - low_, count);
  const double slack = step * 1e-6;
  std::vector<double> values;
  for (double k = std::ceil((low_ - slack) / step); k * step <= high_ + slack;
       ++k)
    values.push_back(k * step);
  double size = 0;
  for (const double value : values) size = std::max(size, std::abs(value));
  const bool long_labels = size >= 1e5 || (size > 0 && size < 1e-3);
  const int exponent = long_labels && size > 0 ? decade_of(size) : 0;
  if (exponent != 0) factor_ = "×" + power_of_ten(exponent);
  const int decimals = std::clamp(exponent - decade_of(step), 0, 12);
  for (const double value : values)
    ticks_.push_back(
        {value, number(value / std::pow(10.0, exponent), decimals)});
}

void Axis::log_ticks(int count) {
  const int first = decade_of(low_), last = decade_of(high_);
  const double decades = std::log10(high_) - std::log10(low_);
  const bool named_between = decades < 1.5;
  const int step = std::max(1, static_cast<int>(decades / count) + 1);
  for (int decade = first; decade <= last; ++decade) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10.0, decade);
      if (value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9)) continue;
      const bool whole = digit == 1 && decade % step == 0;
      const bool named = whole || (named_between && (digit == 2 || digit == 5));
      if (named || (decades <= 4 && digit > 1))
        ticks_.push_back({value, named ? log_label(value) : ""});
    }
  }
  const auto named = std::ranges::count_if(
      ticks_, [](const Tick& tick) { return !tick.label.empty(); });
  if (named >= 2) return;
  ticks_.clear();
  linear_ticks(count);
}

}  // namespace unisono::lang
