#pragma once
// Records what the devices of a session do, for `--trace` and `--stats`. Where
// neither is asked for there is no recorder, and the cost is a null pointer.
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace unisono {

/// Thread-safe.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Kind : uint8_t {
    kernel,
    copy,
    collective,
    wait,
    host,
    compile,
    loop,  // one of the host that went on as threaded code
  };
  static constexpr int kinds = 7;
  /// In place of a device's index, for what is on none: the host's end of a
  /// copy, the compiler.
  static constexpr int host = -1;

  struct Event {
    Kind kind = Kind::kernel;
    int device = host;  // where it happened; the destination of a copy
    int from = host;    // copy: its source
    /// Copy, collective: what this device gets or gives. Kernel: what it reads
    /// and writes, each element once (LaunchStep).
    int64_t bytes = 0;
    double flops = 0;     // kernel
    int64_t turns = 0;    // loop
    uint32_t source = 0;  // place in the program; 0: not known
    std::string name = {};
    std::vector<uint32_t> sources = {};  // kernel: places of what it computes
    Clock::time_point start = {}, end = {};
  };
  struct Total {
    int64_t count = 0, bytes = 0, turns = 0;
    double flops = 0;
    std::chrono::nanoseconds time{0};
  };

  /// `keep_events`: for a trace; else events are only counted.
  explicit Recorder(bool keep_events) : keep_events_(keep_events) {}

  void record(Event event);
  /// Counts a call that found what was compiled for an earlier one.
  void count_cache_hit();

  /// When this recorder was made.
  Clock::time_point started() const { return started_; }
  /// A copy of the events, in the order in which they were recorded, which is
  /// that of their ends. At most `most_events` are kept, the rest is only
  /// counted.
  std::vector<Event> events() const;
  /// How many events were not kept.
  int64_t dropped() const;
  /// Of a device, or `host`; zero if nothing was recorded.
  Total total(Kind kind, int device) const;
  /// Kernels by the places of what they compute, over all devices.
  std::map<std::vector<uint32_t>, Total> kernels() const;
  /// Loops by their places.
  std::map<uint32_t, Total> loops() const;
  /// By (from, to).
  std::map<std::pair<int, int>, Total> copies() const;
  int64_t cache_hits() const;

  static constexpr size_t most_events = 1'000'000;

 private:
  const bool keep_events_;
  const Clock::time_point started_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  int64_t dropped_ = 0;
  int64_t cache_hits_ = 0;
  std::map<int, std::array<Total, kinds>> totals_;
  std::map<std::pair<int, int>, Total> copies_;
  std::map<std::vector<uint32_t>, Total> kernels_;
  std::map<uint32_t, Total> loops_;
};

/// Records an event that lasts as long as this object, unless `recorder` is
/// null.
class Recording {
 public:
  Recording(Recorder* recorder, Recorder::Kind kind, int device)
      : recorder_(recorder) {
    if (!recorder_) return;
    event_.kind = kind;
    event_.device = device;
    event_.start = Recorder::Clock::now();
  }
  ~Recording() {
    if (!recorder_) return;
    event_.end = Recorder::Clock::now();
    recorder_->record(std::move(event_));
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// To be filled in; called only where there is a recorder.
  Recorder::Event& event() { return event_; }
  explicit operator bool() const { return recorder_ != nullptr; }

 private:
  Recorder* recorder_;
  Recorder::Event event_;
};

}  // namespace unisono
