#pragma once
// The texts that the client has open: their changes, and when they are checked.
#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "host/lsp/files.h"
#include "host/lsp/server/checker.h"
#include "host/lsp/server/connection.h"
#include "host/lsp/view.h"

namespace unisono::host::lsp {

/// Of the server's thread. A check starts when nobody has typed for a moment;
/// its messages go to the client.
class Documents {
 public:
  using Clock = std::chrono::steady_clock;

  Documents(Queue<Event>& events, const Client& client, Connection& connection,
            int devices)
      : client_(client),
        connection_(connection),
        devices_(devices),
        checker_(events) {}

  // ---- what the client tells
  void did_open(const Json& params);
  void did_change(const Json& params);
  void did_close(const Json& params);
  /// Of files that are not open, somebody has changed one.
  void files_changed(const Json& params);

  // ---- what requests ask
  Files& files() { return files_; }
  /// The one of `textDocument`; refuses what is not open.
  Document& of(const Json& params);
  View view(const Json& params) {
    return {files_, library_, client_, of(params)};
  }
  const Client& client() const { return client_; }
  int devices() const { return devices_; }

  // ---- checks
  /// When start_check will have something to do; nothing as long as one is
  /// under way, or there is nothing to check.
  std::optional<Clock::time_point> next_check() const;
  void start_check();
  /// `publishes`: tell the client.
  void check_done(const CheckDone& done, bool publishes);

 private:
  void changed(Document& document);
  void recheck(Document& document);
  Clock::time_point check_time() const;
  void check_importers(const std::string& key);
  void publish(const std::string& uri, std::optional<int64_t> version,
               const std::vector<Message>& messages);

  const Client& client_;
  Connection& connection_;
  const int devices_;
  Library library_;
  Files files_;
  std::set<std::string> changed_;  // documents that wait for a check, by URI
  Clock::time_point first_change_, last_change_;
  bool imports_may_change_ = false;
  std::optional<std::string> checking_;
  Checker checker_;
};

}  // namespace unisono::host::lsp
