#include "simcuda/machine/workers.h"

#include <algorithm>

namespace simcuda {

Workers::Workers(int threads)
    : count_(std::clamp(
          threads > 0 ? threads
                      : static_cast<int>(std::thread::hardware_concurrency()),
          1, 256)) {}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(int n, const std::function<void(int)>& body) {
  std::unique_lock owner(owner_, std::try_to_lock);
  if (!owner || n <= 1 || count_ == 1) return body(0);
  {
    std::lock_guard lock(mutex_);
    while (static_cast<int>(threads_.size()) < count_ - 1) {
      int index = static_cast<int>(threads_.size()) + 1;
      threads_.emplace_back([this, index] { work(index); });
    }
    body_ = &body;
    wanted_ = std::min(n, count_);
    busy_ = wanted_ - 1;
    ++round_;
  }
  wake_.notify_all();
  body(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

void Workers::work(int index) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return quit_ || round_ != seen; });
    if (quit_) return;
    seen = round_;
    if (index >= wanted_) continue;
    const std::function<void(int)>* body = body_;
    lock.unlock();
    (*body)(index);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace simcuda
