#pragma once
// How long something takes that can be done again: `unisono bench`, `:bench`.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/recorder.h"

namespace unisono::host {

/// Times are seconds of one run.
struct Measurement {
  /// Each the mean of several runs where one is short; ascending.
  std::vector<double> samples;
  int64_t runs = 0;  // in all samples
  double mean = 0, median = 0;
  /// The interval that has the true median with 95 % confidence, whatever the
  /// times are distributed like: between two of the samples, by their ranks. Of
  /// fewer than six samples all of them.
  double low = 0, high = 0;
  /// Whether the mean was stable before the time was up.
  bool stable = false;
};

struct MeasureOptions {
  /// After this many seconds of samples there are enough, though the mean is
  /// not stable.
  double most_seconds = 5;
  /// Fewer seconds of samples are not enough.
  double least_seconds = 0.3;
};

/// First runs that are not measured, in which what is compiled gets compiled:
/// at least three, for at least 0.1 s. Then samples of at least 1 ms each,
/// until the mean is stable (twice its standard error is at most 1 % of it,
/// after at least ten samples) or the time is up; three samples at least.
/// Nothing if a run failed, which `run` says by false.
std::optional<Measurement> measure(const std::function<bool()>& run,
                                   const MeasureOptions& options);

/// The statistics of samples of `each` runs: at least one.
Measurement statistics(std::vector<double> samples, int64_t each);

/// What one run does: operations on floats, and bytes of arrays that kernels
/// read and write. What is copied or combined between devices is read and
/// written, so it counts twice.
struct Traffic {
  double flops = 0, bytes = 0;
  bool kernels = false;  // something was computed by kernels at all
};
Traffic traffic_of(const Recorder& recorder, int devices);

/// "1.23 ms"
std::string time_text(double seconds);

}  // namespace unisono::host
