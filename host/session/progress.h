#pragma once
// How far a loop of the host is, on a terminal: a line that comes after two
// seconds, at once if the program asked for it, and goes when there is
// something else to show.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lang/context/walk.h"

namespace unisono::host {

/// Not thread-safe.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;
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
  Clock::time_point began_, drawn_;
  bool shown_ = false;
};

/// The line itself, at most `columns` wide: of `all` (-1: nobody knows)
/// so many `turns` took so many seconds; `note` stands behind.
std::string progress_line(int64_t turns, int64_t all, double seconds,
                          int columns, std::string_view note = {});

}  // namespace unisono::host
