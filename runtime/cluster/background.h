#pragma once
// A thread that does one thing after the other, in the order in which they were
// given to it: exchanges of a program's processes, while others compute.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/result.h"

namespace unisono {

/// One thread at a time gives and asks.
class Background {
 public:
  Background() = default;
  ~Background();
  Background(const Background&) = delete;

  using Ticket = uint64_t;
  /// Does `work`, which must not throw, unless something before it has failed;
  /// then calls `done`. Both from its thread, which starts with the first one.
  Ticket begin(std::function<Status()> work, std::function<void()> done);
  /// All that was begun until then is done.
  bool is_done(Ticket ticket) const {
    return done_.load(std::memory_order_acquire) >= ticket;
  }
  /// Returns when all that was begun is done.
  void wait();
  /// Whether it is its own thread that asks.
  bool is_here() const;
  /// The last ticket that was given.
  Ticket last() const { return given_; }
  /// Of what is done, the error; nothing is done after one.
  Status status() const;

 private:
  struct Task {
    std::function<Status()> work;
    std::function<void()> done;
  };
  void run();

  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Task> tasks_;
  std::optional<Error> error_;
  bool quit_ = false;
  Ticket given_ = 0;
  std::atomic<Ticket> done_{0};
  std::thread thread_;
};

}  // namespace unisono
