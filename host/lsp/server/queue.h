#pragma once
// What the server's threads tell one another.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace unisono::host::lsp {

/// First in, first out, from any thread to any thread. Whoever adds to a full
/// one waits.
template <class T>
class Queue {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Queue(size_t most) : most_(most) {}

  void push(T value) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return items_.size() < most_ || closed_; });
    items_.push_back(std::move(value));
    there_.notify_one();
  }
  /// From now on nobody waits for room.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }
  /// The next one; nothing if there is none until then.
  std::optional<T> pop(std::optional<Clock::time_point> until) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return !items_.empty(); };
    if (!until)
      there_.wait(lock, there);
    else if (!there_.wait_until(lock, *until, there))
      return std::nullopt;
    std::optional<T> out = std::move(items_.front());
    items_.pop_front();
    room_.notify_one();
    return out;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable there_, room_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace unisono::host::lsp
