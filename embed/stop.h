#pragma once
// What ends a call: the host's stop, or its deadline.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "embed/counted.h"
#include "embed/unisono.h"

/// Sets the flags of the calls that it was given to.
struct UnisonoStop : unisono::embed::Counted<UnisonoStop> {
  std::mutex mutex;
  bool requested = false;
  std::set<std::atomic<bool>*> calls;
};

namespace unisono::embed {

/// Sets flags when their time has come, by a thread that begins with the first
/// of them. Thread-safe.
class Deadlines {
 public:
  using Clock = std::chrono::steady_clock;
  Deadlines() = default;
  Deadlines(const Deadlines&) = delete;
  ~Deadlines();
  void add(std::atomic<bool>& flag, Clock::time_point when);
  /// Afterwards the flag is not touched any more.
  void remove(std::atomic<bool>& flag, Clock::time_point when);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<Clock::time_point, std::atomic<bool>*> waiting_;
  std::thread thread_;
  bool quit_ = false;
};

/// The flag of one call, while it lives.
class CallStop {
 public:
  /// Refused if the options are no sensible ones.
  CallStop(Deadlines& deadlines, const UnisonoCallOptions& options);
  ~CallStop();
  CallStop(const CallStop&) = delete;
  CallStop& operator=(const CallStop&) = delete;
  /// Null if nothing ends the call.
  const std::atomic<bool>* flag() const { return used_ ? &flag_ : nullptr; }
  /// Whether it was ended by its deadline, not by the host.
  bool is_late() const;

 private:
  Deadlines& deadlines_;
  UnisonoStop* const stop_;
  const bool used_, timed_;
  Deadlines::Clock::time_point deadline_;
  std::atomic<bool> flag_{false};
};

}  // namespace unisono::embed
