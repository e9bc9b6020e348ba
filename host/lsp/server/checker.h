#pragma once
// The thread that checks texts.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "host/lsp/server/inbox.h"

namespace unisono::host::lsp {

/// Checks one text at a time, and tells `events` when it is done.
class Checker {
 public:
  explicit Checker(Queue<Event>& events)
      : events_(events), thread_([this] { work(); }) {}
  /// Its events are closed, or somebody takes them.
  ~Checker() {
    stop_ = true;
    jobs_.push({});
    thread_.join();
  }
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  /// Only when the one before is done.
  void start(const std::string& uri, int64_t version, CheckRequest request) {
    stop_ = false;
    jobs_.push({uri, version, std::move(request)});
  }
  /// Ends the check under way, which is done soon.
  void stop() { stop_ = true; }

 private:
  struct Job {
    std::string uri;
    int64_t version = 0;
    std::optional<CheckRequest> request = {};
  };
  void work();

  Queue<Event>& events_;
  Queue<Job> jobs_{2};
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace unisono::host::lsp
