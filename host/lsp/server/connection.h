#pragma once
// What goes to the client, and how a request is refused.
#include <fmt/format.h>

#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>

#include "host/lsp/messages.h"

namespace unisono::host::lsp {

/// An error that a request is answered with.
struct Refusal {
  ErrorCode code;
  std::string message;
};

/// Runs what may fail in any way, and gives the refusal if it does.
template <class F>
std::optional<Refusal> attempt(F&& f) {
  try {
    f();
    return std::nullopt;
  } catch (const Refusal& refusal) {
    return refusal;
  } catch (const Json::exception& error) {
    return Refusal{ErrorCode::invalid_params, error.what()};
  } catch (const std::bad_alloc&) {
    return Refusal{ErrorCode::internal_error, "there is not enough memory"};
  } catch (const std::exception& error) {
    return Refusal{ErrorCode::internal_error, error.what()};
  }
}

/// What JSON says at a path of names; null if it says nothing there.
Json said(const Json& params, std::initializer_list<const char*> path);

/// An id that may be sent back.
inline bool is_id(const Json& id) {
  return id.is_string() || id.is_number_integer();
}

/// One thread writes.
class Connection {
 public:
  explicit Connection(int output) : output_(output) {}

  void error(const Json& id, const Refusal& refusal) {
    send({{"jsonrpc", "2.0"},
          {"id", id},
          {"error",
           {{"code", static_cast<int>(refusal.code)},
            {"message", refusal.message}}}});
  }
  void result(const Json& id, Json result) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
  }
  void notify(const char* method, Json params) {
    send({{"jsonrpc", "2.0"},
          {"method", method},
          {"params", std::move(params)}});
  }
  /// A request of ours, whose answer says nothing that we need.
  void ask(const char* method, Json params) {
    Json message = {{"jsonrpc", "2.0"},
                    {"id", fmt::format("unisono-{}", ++asked_)},
                    {"method", method}};
    if (!params.is_null()) message["params"] = std::move(params);
    send(message);
  }
  /// Tells the person at the client.
  void log(const std::string& problem) {
    notify("window/logMessage", {{"type", 1}, {"message", problem}});
  }
  /// Nobody reads any more.
  bool closed() const { return closed_; }

 private:
  void send(const Json& message) {
    if (!write_message(output_, message)) closed_ = true;
  }

  const int output_;
  int asked_ = 0;
  bool closed_ = false;
};

}  // namespace unisono::host::lsp
