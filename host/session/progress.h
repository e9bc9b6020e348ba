#pragma once
// How far a loop of the host is: a line that comes after two seconds, at once
// if the program asked for it. On a terminal it goes when there is something
// else to show.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lang/context/walk.h"

namespace unisono::host {

/// When a line is drawn: not for short loops, and not too often. Not
/// thread-safe.
class ProgressPace {
 public:
  /// The seconds that the loop has taken, if a line is to be drawn now.
  std::optional<double> due(const lang::LoopProgress& loop);
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - began_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_, drawn_;
};

/// Not thread-safe.
class ProgressBar {
 public:
  /// Writes to a terminal, of which `columns` tells the width.
  ProgressBar(std::function<void(std::string_view)> write,
              std::function<int()> columns)
      : write_(std::move(write)), columns_(std::move(columns)) {}

  /// As lang::Machine::progress is told it.
  void turn(const lang::LoopProgress& loop);
  /// Before anything else is written.
  void hide();

 private:
  std::function<void(std::string_view)> write_;
  std::function<int()> columns_;
  ProgressPace pace_;
  bool shown_ = false;
};

/// The line itself, at most `columns` wide: of `all` (-1: nobody knows)
/// so many `turns` took so many seconds; `note` stands behind. What is left is
/// guessed; of a loop that has ended it says how long that took.
std::string progress_line(int64_t turns, int64_t all, double seconds,
                          int columns, std::string_view note = {});

}  // namespace unisono::host
