#pragma once
// How work is ended that nobody wants any more (Ctrl-C). The thread that starts
// work names the flag that ends it, by a StopScope around the work; code that
// may take long polls the flag of its thread from time to time. A thread that
// helps another one sets a StopScope with that one's flag.
//
// A function that gives a Result fails with Error::Kind::cancelled. What has no
// such way out (the parser, passes, loops of the reference evaluator) throws
// Stopped, which is caught where a place in the program is known, or by the
// next Result; it never passes through generated code or a C library.
#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/result.h"

namespace unisono {

/// Thrown by poll_stop(); caught by the entry points of lang/ and host/.
struct Stopped {};

namespace detail {
inline constinit thread_local const std::atomic<bool>* stop_flag = nullptr;
}  // namespace detail

/// The flag that ends this thread's work; null if there is none.
inline const std::atomic<bool>* stop_flag() { return detail::stop_flag; }

/// Whether this thread's work shall end. Costs some nanoseconds.
inline bool stop_requested() {
  const std::atomic<bool>* flag = detail::stop_flag;
  return flag && flag->load(std::memory_order_relaxed);
}

/// Ends this thread's work if it shall end.
inline void poll_stop() {
  if (stop_requested()) throw Stopped();
}

inline Error stopped_error() {
  return {.kind = Error::Kind::cancelled, .message = "stopped"};
}

/// Returns f(), a Result or Status: `cancelled` if Stopped is thrown inside.
template <class F>
auto unless_stopped(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Stopped&) {
    return stopped_error();
  }
}

/// Makes `flag` the stop flag of this thread while this object lives; with null
/// nothing ends its work.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>* flag)
      : before_(detail::stop_flag) {
    detail::stop_flag = flag;
  }
  ~StopScope() { detail::stop_flag = before_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const std::atomic<bool>* before_;
};

/// poll_stop() once in so many units of work, for loops whose turns are short.
class StopPoll {
 public:
  explicit StopPoll(int64_t every) : every_(every), left_(every) {}
  void did(int64_t units) {
    if ((left_ -= units) > 0) return;
    left_ = every_;
    poll_stop();
  }

 private:
  const int64_t every_;
  int64_t left_;
};

/// Grows `bytes` to `size` with zeros, like resize, and polls.
inline void resize_in_pieces(std::vector<uint8_t>& bytes, int64_t size) {
  constexpr int64_t piece = int64_t{1} << 20;
  bytes.reserve(static_cast<size_t>(size));
  for (auto have = static_cast<int64_t>(bytes.size()); have < size;) {
    poll_stop();
    have = size - have < piece ? size : have + piece;
    bytes.resize(static_cast<size_t>(have));
  }
}

/// Calls f(begin, end) for pieces of 0 ... n-1 and polls between them.
template <class F>
void in_pieces(int64_t n, int64_t piece, F&& f) {
  for (int64_t begin = 0; begin < n; begin += piece) {
    poll_stop();
    f(begin, n - begin < piece ? n : begin + piece);
  }
}

}  // namespace unisono
