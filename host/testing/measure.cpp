#include "host/testing/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace unisono::host {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Sums for mean and standard error, sample by sample (Welford).
class Moments {
 public:
  void add(double sample) {
    ++count_;
    const double distance = sample - mean_;
    mean_ += distance / count_;
    squares_ += distance * (sample - mean_);
  }
  double mean() const { return mean_; }
  double standard_error() const {
    return std::sqrt(squares_ / (count_ - 1) / count_);
  }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

}  // namespace

Measurement statistics(std::vector<double> samples, int64_t each) {
  constexpr double normal_95 = 1.96;
  constexpr size_t least_for_interval = 6;
  std::ranges::sort(samples);
  const size_t n = samples.size();
  Measurement out;
  out.runs = static_cast<int64_t>(n) * each;
  for (const double sample : samples)
    out.mean += sample / static_cast<double>(n);
  out.median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
  out.low = samples.front();
  out.high = samples.back();
  if (n >= least_for_interval) {
    // So many of n samples lie below the true median as heads fall of n coins.
    const double half = normal_95 * std::sqrt(static_cast<double>(n)) / 2;
    const double middle = static_cast<double>(n) / 2;
    const double below = std::floor(middle - half) - 1;
    const double above = std::ceil(middle + half);
    out.low = samples[static_cast<size_t>(std::max(below, 0.0))];
    out.high = samples[std::min(static_cast<size_t>(above), n - 1)];
  }
  out.samples = std::move(samples);
  return out;
}

std::optional<Measurement> measure(const std::function<bool()>& run,
                                   const MeasureOptions& options) {
  constexpr double warm_seconds = 0.1, sample_seconds = 1e-3;
  constexpr int warm_runs = 3;
  constexpr size_t least_samples = 3, least_for_mean = 10;
  constexpr size_t most_samples = 100'000;
  constexpr double stable_error = 0.01;
  double fastest = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < warm_runs || seconds_since(begin) < warm_seconds; ++i) {
    const bool late = seconds_since(begin) > options.most_seconds;
    if (i > 0 && late) break;
    const Clock::time_point start = Clock::now();
    if (!run()) return std::nullopt;
    const double seconds = seconds_since(start);
    if (i == 0 || seconds < fastest) fastest = seconds;
  }
  const auto each = static_cast<int64_t>(std::clamp(
      std::ceil(sample_seconds / std::max(fastest, 1e-9)), 1.0, 1e6));
  const double least = std::min(options.least_seconds, options.most_seconds);
  std::vector<double> samples;
  Moments moments;
  bool stable = false;
  const Clock::time_point first = Clock::now();
  while (samples.size() < most_samples) {
    const double elapsed = seconds_since(first);
    stable = samples.size() >= least_for_mean && elapsed >= least &&
             2 * moments.standard_error() <= stable_error * moments.mean();
    if (stable) break;
    if (samples.size() >= least_samples && elapsed >= options.most_seconds)
      break;
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < each; ++i)
      if (!run()) return std::nullopt;
    samples.push_back(seconds_since(start) / static_cast<double>(each));
    moments.add(samples.back());
  }
  Measurement out = statistics(std::move(samples), each);
  out.stable = stable;
  return out;
}

Traffic traffic_of(const Recorder& recorder, int devices) {
  using Kind = Recorder::Kind;
  Traffic out;
  int64_t bytes = 0, moved = 0;
  for (int d = 0; d < devices; ++d) {
    const Recorder::Total kernels = recorder.total(Kind::kernel, d);
    out.flops += kernels.flops;
    out.kernels |= kernels.count > 0;
    bytes += kernels.bytes;
    moved += recorder.total(Kind::copy, d).bytes +
             recorder.total(Kind::collective, d).bytes;
  }
  out.bytes = static_cast<double>(bytes) + 2 * static_cast<double>(moved);
  return out;
}

std::string time_text(double seconds) {
  constexpr double rounds_up = 999.5;
  constexpr std::pair<double, const char*> units[] = {
      {1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}};
  for (const auto& [unit, name] : units)
    if (seconds < rounds_up * unit)
      return fmt::format("{:.3g} {}", seconds / unit, name);
  return seconds < rounds_up ? fmt::format("{:.3g} s", seconds)
                             : fmt::format("{:.0f} s", seconds);
}

}  // namespace unisono::host
