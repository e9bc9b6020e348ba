#pragma once
// What a program prints, as messages to a notebook.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace unisono::host {

/// Text is shown at once if none was shown for a while, and else gathered for
/// that while: a loop that prints a line in each turn would otherwise make more
/// messages than a notebook takes. Thread-safe.
class OutputStream {
 public:
  /// `publish` sends a text to be shown; it is called by one thread at a time.
  explicit OutputStream(std::function<void(const std::string& text)> publish);
  ~OutputStream();
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  void write(std::string_view text);
  /// Shows what was gathered, then calls `other`, which sends another message;
  /// `publish` is not called meanwhile.
  void then(const std::function<void()>& other);

 private:
  using Clock = std::chrono::steady_clock;
  /// With the lock.
  void publish_gathered();
  void publish_late();

  std::function<void(const std::string& text)> publish_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string gathered_;
  Clock::time_point shown_;  // the last text
  bool ends_ = false;
  std::thread late_;  // publishes what no later text took along
};

}  // namespace unisono::host
