#include "embed/stop.h"

#include <algorithm>

#include "runtime/signals.h"

namespace unisono::embed {

Deadlines::~Deadlines() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Deadlines::add(std::atomic<bool>& flag, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { work(); });
  }
  const auto added = waiting_.emplace(when, &flag);
  if (added == waiting_.begin()) wake_.notify_all();
}

void Deadlines::remove(std::atomic<bool>& flag, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = waiting_.equal_range(when);
  const auto found = std::find_if(
      begin, end, [&](const auto& entry) { return entry.second == &flag; });
  if (found != end) waiting_.erase(found);
}

void Deadlines::work() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (waiting_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto next = waiting_.begin();
    if (Clock::now() < next->first) {
      wake_.wait_until(lock, next->first);
      continue;
    }
    next->second->store(true, std::memory_order_relaxed);
    waiting_.erase(next);
  }
}

CallStop::CallStop(Deadlines& deadlines, const UnisonoCallOptions& options)
    : deadlines_(deadlines),
      stop_(options.stop),
      used_(options.stop || options.wall_nanoseconds > 0),
      timed_(options.wall_nanoseconds > 0) {
  if (options.wall_nanoseconds < 0 || options.steps < 0)
    refuse("a limit of a call is negative");
  if (timed_) {
    // Clocks count in 64 bits, too: a century is for ever.
    constexpr int64_t century = 3'000'000'000'000'000'000;
    deadline_ =
        Deadlines::Clock::now() +
        std::chrono::nanoseconds(std::min(options.wall_nanoseconds, century));
    deadlines_.add(flag_, deadline_);
  }
  if (!stop_) return;
  try {
    const std::lock_guard lock(stop_->mutex);
    stop_->calls.insert(&flag_);
    if (stop_->requested) flag_ = true;
  } catch (...) {
    if (timed_) deadlines_.remove(flag_, deadline_);
    throw;
  }
}

CallStop::~CallStop() {
  if (timed_) deadlines_.remove(flag_, deadline_);
  if (!stop_) return;
  const std::lock_guard lock(stop_->mutex);
  stop_->calls.erase(&flag_);
}

bool CallStop::is_late() const {
  if (!timed_ || Deadlines::Clock::now() < deadline_) return false;
  if (!stop_) return true;
  const std::lock_guard lock(stop_->mutex);
  return !stop_->requested;
}

}  // namespace unisono::embed

using namespace unisono::embed;

UnisonoError* unisono_stop_create(UnisonoStop** stop) {
  return guarded([&] {
    if (!stop) refuse("unisono_stop_create: the parameter `stop` is null");
    *stop = new UnisonoStop;
  });
}

UnisonoStop* unisono_stop_retain(UnisonoStop* stop) { return retain(stop); }
void unisono_stop_release(UnisonoStop* stop) { release(stop); }

void unisono_stop_request(UnisonoStop* stop) {
  if (!stop) return;
  const std::lock_guard lock(stop->mutex);
  stop->requested = true;
  for (std::atomic<bool>* call : stop->calls)
    call->store(true, std::memory_order_relaxed);
}

void unisono_stop_reset(UnisonoStop* stop) {
  if (!stop) return;
  const std::lock_guard lock(stop->mutex);
  stop->requested = false;
}
