#pragma once
// One thread that looks at runs whose devices wait for one another, now and
// then: runs themselves do nothing for it.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace unisono {

/// What is looked at.
class Watched {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Watched() = default;
  /// Called from the watchdog's thread, about eight times in `limit`.
  virtual void look(Clock::time_point now) = 0;
};

/// Thread-safe. The thread starts with the first run that is watched, and
/// sleeps while there has been none for a while.
class Watchdog {
 public:
  Watchdog() = default;
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  void add(Watched& run, std::chrono::milliseconds limit);
  /// `run` is not looked at any more when this returns.
  void remove(Watched& run);

 private:
  struct Entry {
    Watched* run;
    std::chrono::milliseconds interval;
    Watched::Clock::time_point next;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Entry> runs_;
  bool sleeps_ = false;
  bool quit_ = false;
  std::chrono::milliseconds interval_{1000};  // shortest asked for so far
  std::thread thread_;
};

}  // namespace unisono
