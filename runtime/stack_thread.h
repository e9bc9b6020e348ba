#pragma once
// A thread with a stack of a given size, which std::thread has not.
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace unisono {

/// Starts a thread that runs `body`, which must not throw; the destructor waits
/// for its end.
class StackThread {
 public:
  StackThread(size_t stack_bytes, std::function<void()> body);
  StackThread(StackThread&&) = default;
  StackThread& operator=(StackThread&&) = delete;
  ~StackThread();
  /// False: the system gave no thread, and nothing runs.
  bool started() const { return started_ != nullptr; }

 private:
  std::unique_ptr<std::function<void()>> body_;
  struct Started {
    pthread_t thread;
  };
  std::unique_ptr<Started> started_;
};

}  // namespace unisono
