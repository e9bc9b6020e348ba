#include "host/session/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace unisono::host {
namespace {

constexpr auto patience = std::chrono::seconds(2);
constexpr auto pause = std::chrono::milliseconds(100);

/// 35.1, 1.2k, 3.4M
std::string short_number(double value) {
  for (const char* unit : {"", "k", "M", "G"}) {
    if (value < 1000) return fmt::format("{:.3g}{}", value, unit);
    value /= 1000;
  }
  return fmt::format("{:.3g}T", value);
}

/// 0:07, 12:40, 3:05:00
std::string clock_text(double seconds) {
  const auto all = static_cast<int64_t>(std::min(seconds, 1e9));
  const int64_t hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

}  // namespace

std::string progress_line(int64_t turns, int64_t all, double seconds,
                          int columns, std::string_view note) {
  const double rate = static_cast<double>(turns) / std::max(seconds, 1e-9);
  const std::string unit =
      rate >= 1 || turns == 0
          ? short_number(rate) + "/s"
          : fmt::format("{:.3g} s each", 1 / std::max(rate, 1e-9));
  std::string text;
  double part = 0;
  if (all > 0) {
    part = static_cast<double>(turns) / static_cast<double>(all);
    const double left = static_cast<double>(all - turns) / std::max(rate, 1e-9);
    text = fmt::format(
        "{:3.0f}% {}/{}  {}  {}", std::floor(100 * part), turns, all, unit,
        turns == all ? clock_text(seconds) : clock_text(left) + " left");
  } else {
    text = fmt::format("turn {}  {}  {}", turns + 1, unit, clock_text(seconds));
  }
  if (!note.empty()) text += fmt::format("  {}", note);
  const int room = std::min(30, columns - static_cast<int>(text.size()) - 4);
  if (all > 0 && room >= 5) {
    const int full = static_cast<int>(part * room);
    text =
        fmt::format("[{}{}] {}", std::string(static_cast<size_t>(full), '='),
                    std::string(static_cast<size_t>(room - full), ' '), text);
  }
  size_t end =
      std::min(text.size(), static_cast<size_t>(std::max(1, columns - 1)));
  // Not in the middle of a character.
  while (end < text.size() && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::optional<double> ProgressPace::due(const lang::LoopProgress& loop) {
  const Clock::time_point now = Clock::now();
  if (loop.turns == 0) began_ = drawn_ = now;
  if ((!loop.asked && now - began_ < patience) || now - drawn_ < pause)
    return std::nullopt;
  drawn_ = now;
  return seconds();
}

void ProgressBar::turn(const lang::LoopProgress& loop) {
  if (loop.turns == loop.all) return hide();
  const std::optional<double> seconds = pace_.due(loop);
  if (!seconds) return;
  const std::string note = loop.note ? (*loop.note)() : "";
  write_(fmt::format("\r{}\x1b[K", progress_line(loop.turns, loop.all, *seconds,
                                                 columns_(), note)));
  shown_ = true;
}

void ProgressBar::hide() {
  if (std::exchange(shown_, false)) write_("\r\x1b[K");
}

}  // namespace unisono::host
