#pragma once
// What the server's thread is told, and the thread that reads messages.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "host/lsp/check.h"
#include "host/lsp/messages.h"
#include "host/lsp/server/queue.h"

namespace unisono::host::lsp {

/// A request's flag, which the reader sets when it is cancelled.
using Flag = std::shared_ptr<std::atomic<bool>>;

struct FromClient {
  Json message;
  Flag cancelled;  // of a request
};
struct WrongMessage {
  std::string why;
};
struct EndOfInput {};
struct CheckDone {
  std::string uri;
  int64_t version;
  std::shared_ptr<const Checked> checked;  // null: stopped, or no memory
};
using Event = std::variant<FromClient, WrongMessage, EndOfInput, CheckDone>;

/// Requests that were read and not answered yet. Any thread.
class Pending {
 public:
  Flag add(const Json& id) {
    const std::lock_guard lock(mutex_);
    return requests_[id.dump()] = std::make_shared<std::atomic<bool>>(false);
  }
  void remove(const Json& id) {
    const std::lock_guard lock(mutex_);
    requests_.erase(id.dump());
  }
  void cancel(const Json& id) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id.dump());
    if (found != requests_.end()) *found->second = true;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Flag> requests_;
};

/// What the reader and the server share; the reader may outlive the server.
struct Inbox {
  /// Messages that wait; who sends more waits, too.
  static constexpr size_t most_waiting = 2000;

  Queue<Event> events{most_waiting};
  Pending pending;
};

/// Reads until there is no more; what is cancelled is noted at once.
void read_messages(int input, Inbox& inbox);

}  // namespace unisono::host::lsp
