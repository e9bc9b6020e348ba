#pragma once
// Threads of the host that execute blocks.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace simcuda {

class Workers {
 public:
  /// `threads` counts the calling thread; 0 is one per processor.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  int count() const { return count_; }

  /// Runs body(0) ... body(n − 1) at once, n ≤ count(), or body(0) alone while
  /// another caller has the threads. Returns when all are done.
  void run(int n, const std::function<void(int)>& body);

 private:
  void work(int index);

  const int count_;
  std::mutex owner_;  // who has the threads
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  const std::function<void(int)>* body_ = nullptr;
  int wanted_ = 0;
  int busy_ = 0;
  uint64_t round_ = 0;
  bool quit_ = false;
};

}  // namespace simcuda
