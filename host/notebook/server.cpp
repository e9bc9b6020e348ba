#include "host/notebook/server.h"

#include <string>
#include <utility>
#include <xeus/xmessage.hpp>
#include <xeus/xserver_shell_main.hpp>
#include <zmq.hpp>

namespace unisono::host {
namespace {

using Json = nlohmann::json;

/// xeus answers requests that it aborts, but does not say that nothing is busy
/// with them any more, for which JupyterLab waits.
class Server final : public xeus::xserver_shell_main {
 public:
  using xserver_shell_main::xserver_shell_main;

 private:
  void abort_queue_impl(const listener&, long polling_interval) override {
    xserver_shell_main::abort_queue_impl(
        [this](const xeus::xmessage& request) { abort(request); },
        polling_interval);
  }

  void abort(const xeus::xmessage& request) {
    const Json& header = request.header();
    std::string type = header.value("msg_type", "");
    constexpr std::string_view end = "_request";
    if (!type.ends_with(end)) return;
    type.replace(type.size() - end.size(), end.size(), "_reply");
    const auto header_of = [&](const std::string& message_type) {
      return xeus::make_header(message_type, header.value("username", ""),
                               header.value("session", ""));
    };
    const auto tell = [&](const char* state) {
      publish(
          xeus::xpub_message("status", header_of("status"), header,
                             Json::object(), {{"execution_state", state}}, {}),
          xeus::channel::SHELL);
    };
    tell("busy");
    send_shell(xeus::xmessage(request.identities(), header_of(type), header,
                              Json::object(), {{"status", "aborted"}}, {}));
    tell("idle");
  }
};

}  // namespace

std::unique_ptr<xeus::xserver> make_server(
    xeus::xcontext& context, const xeus::xconfiguration& configuration,
    Json::error_handler_t bad_utf8) {
  return std::make_unique<Server>(context.get_wrapped_context<zmq::context_t>(),
                                  configuration, bad_utf8);
}

}  // namespace unisono::host
