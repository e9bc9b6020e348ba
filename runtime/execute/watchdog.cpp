#include "runtime/execute/watchdog.h"

#include <algorithm>
#include <system_error>

#include "runtime/signals.h"

namespace unisono {
namespace {
using std::chrono::milliseconds;
constexpr milliseconds longest_interval{1000};
/// Intervals without a run until the thread sleeps.
constexpr int idle_intervals = 8;
}  // namespace

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::add(Watched& run, milliseconds limit) {
  const milliseconds interval =
      std::clamp(limit / 8, milliseconds(1), longest_interval);
  std::lock_guard lock(mutex_);
  runs_.push_back({&run, interval, Watched::Clock::now() + interval});
  if (interval < interval_ || sleeps_) {
    interval_ = std::min(interval, interval_);
    wake_.notify_all();
  }
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // The system gives no more threads: nobody watches.
  }
}

void Watchdog::remove(Watched& run) {
  std::lock_guard lock(mutex_);
  std::erase_if(runs_, [&](const Entry& entry) { return entry.run == &run; });
}

void Watchdog::work() {
  std::unique_lock lock(mutex_);
  int idle = 0;
  while (!quit_) {
    if (runs_.empty() && ++idle > idle_intervals) {
      sleeps_ = true;
      wake_.wait(lock, [&] { return quit_ || !runs_.empty(); });
      sleeps_ = false;
      idle = 0;
    }
    wake_.wait_for(lock, interval_, [&] { return quit_; });
    const auto now = Watched::Clock::now();
    for (Entry& entry : runs_) {
      idle = 0;
      if (now < entry.next) continue;
      entry.next = now + entry.interval;
      entry.run->look(now);
    }
  }
}

}  // namespace unisono
