// Three threads. The reader takes messages from the client, and notes at once
// what is cancelled (inbox.h). The checker checks one text at a time
// (checker.h). All else is the server's own thread, which alone writes: it
// applies changes, answers, and starts a check when nobody has typed for a
// moment.
#include "host/lsp/server/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "host/lsp/server/parameters.h"
#include "host/lsp/server/requests.h"

namespace unisono::host::lsp {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// What needs types waits so long for a check that is under way.
constexpr auto longest_answer = 500ms;

class Server {
 public:
  explicit Server(const ServerOptions& options)
      : input_(options.input),
        inbox_(std::make_shared<Inbox>()),
        connection_(options.output),
        documents_(inbox_->events, client_, connection_, options.devices) {}

  int run() {
    // Nothing ends a read: this thread ends with the process.
    std::thread([inbox = inbox_, input = input_] {
      read_messages(input, *inbox);
    }).detach();
    while (!ended())
      if (const auto problem = attempt([&] { step(); }))
        connection_.log(problem->message);
    inbox_->events.close();
    return shut_down_ ? 0 : 1;
  }

 private:
  /// A request that waits for types.
  struct Waiting {
    Json id, params;
    std::string method, uri;
    Flag cancelled;
    Clock::time_point until;
  };
  using Told = void (Documents::*)(const Json& params);

  bool ended() const { return ended_ || connection_.closed(); }

  void step() {
    const std::optional<Event> event = inbox_->events.pop(next_deadline());
    if (event) std::visit([this](const auto& e) { on(e); }, *event);
    if (ended()) return;
    answer_waiting();
    documents_.start_check();
  }

  std::optional<Clock::time_point> next_deadline() const {
    std::optional<Clock::time_point> out = documents_.next_check();
    for (const Waiting& w : waiting_)
      if (!out || w.until < *out) out = w.until;
    return out;
  }

  // ---- events
  void on(const EndOfInput&) { ended_ = true; }
  void on(const CheckDone& done) { documents_.check_done(done, !shut_down_); }
  void on(const WrongMessage& wrong) {
    send_error(nullptr, {ErrorCode::parse_error, wrong.why});
  }
  void on(const FromClient& event) {
    const Json& message = event.message;
    const Json id = said(message, {"id"});
    const bool is_request = message.is_object() && message.contains("id");
    if (!message.is_object() || !message.contains("method") ||
        !message["method"].is_string()) {
      // An answer to what we asked for says nothing that we need.
      const bool answer = is_request && (message.contains("result") ||
                                         message.contains("error"));
      if (!answer)
        send_error(nullptr, {ErrorCode::invalid_request, "it has no method"});
      return;
    }
    const auto method = message["method"].get<std::string>();
    const Json params = message.value("params", Json::object());
    if (!is_request) return tell(method, params);
    if (!is_id(id))
      return send_error(nullptr, {ErrorCode::invalid_request,
                                  "an id is a number or a string"});
    request(id, method, params, event.cancelled);
  }

  void send_error(const Json& id, const Refusal& refusal) {
    if (is_id(id)) inbox_->pending.remove(id);
    connection_.error(id, refusal);
  }
  void send_result(const Json& id, Json result) {
    inbox_->pending.remove(id);
    connection_.result(id, std::move(result));
  }

  void tell(const std::string& method, const Json& params) {
    if (method == "exit") {
      ended_ = true;
      return;
    }
    static const std::map<std::string, Told, std::less<>> known = {
        {"textDocument/didOpen", &Documents::did_open},
        {"textDocument/didChange", &Documents::did_change},
        {"textDocument/didClose", &Documents::did_close},
        {"textDocument/didSave", &Documents::files_changed},
        {"workspace/didChangeWatchedFiles", &Documents::files_changed},
    };
    if (!initialized_ || shut_down_) return;
    if (method == "initialized") return initialized();
    const auto found = known.find(method);
    if (found == known.end()) return;
    const auto problem = attempt([&] { (documents_.*found->second)(params); });
    if (problem)
      connection_.log(fmt::format("{}: {}", method, problem->message));
  }

  // ---- requests
  void request(const Json& id, const std::string& method, const Json& params,
               const Flag& cancelled) {
    if (method == "initialize") {
      if (initialized_)
        return send_error(
            id, {ErrorCode::invalid_request, "it is initialized already"});
      Json result;
      const auto problem = attempt([&] { result = initialize(params); });
      return problem ? send_error(id, *problem)
                     : send_result(id, std::move(result));
    }
    if (!initialized_)
      return send_error(id, {ErrorCode::not_initialized,
                             "`initialize` is the first request"});
    if (shut_down_)
      return send_error(
          id, {ErrorCode::invalid_request, "`shutdown` was the last request"});
    if (method == "shutdown") {
      shut_down_ = true;
      return send_result(id, nullptr);
    }
    const Request* known = find_request(method);
    if (!known)
      return send_error(id, {ErrorCode::method_not_found,
                             fmt::format("there is no method `{}`", method)});
    if (known->wants_types) {
      const Json uri = said(params, {"textDocument", "uri"});
      const Document* document =
          uri.is_string() ? documents_.files().find(uri.get<std::string>())
                          : nullptr;
      if (document && document->checked_version != document->version) {
        waiting_.push_back({id, params, method, document->uri, cancelled,
                            Clock::now() + longest_answer});
        return;
      }
    }
    answer(id, *known, params, cancelled);
  }

  void answer(const Json& id, const Request& known, const Json& params,
              const Flag& cancelled) {
    if (*cancelled)
      return send_error(id, {ErrorCode::request_cancelled, "cancelled"});
    Json result;
    const auto problem = attempt([&] {
      result = known.answer({documents_, params, cancelled.get(), folders_});
    });
    if (problem)
      send_error(id, *cancelled
                         ? Refusal{ErrorCode::request_cancelled, "cancelled"}
                         : *problem);
    else
      send_result(id, std::move(result));
  }

  /// Those whose types are there, and those that waited long enough.
  void answer_waiting() {
    const auto now = Clock::now();
    for (size_t i = 0; i < waiting_.size();) {
      const Waiting& w = waiting_[i];
      const Document* document = documents_.files().find(w.uri);
      const bool ready = !document || *w.cancelled || now >= w.until ||
                         document->checked_version == document->version;
      if (!ready) {
        ++i;
        continue;
      }
      const Waiting taken = w;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      answer(taken.id, *find_request(taken.method), taken.params,
             taken.cancelled);
    }
  }

  // ---- life
  Json initialize(const Json& params) {
    const Json client = said(params, {"capabilities"});
    const auto can = [&](std::initializer_list<const char*> path) {
      return said(client, path);
    };
    const Json encodings = can({"general", "positionEncodings"});
    client_.encoding =
        lists(encodings, "utf-8") ? Encoding::utf8 : Encoding::utf16;
    client_.markdown =
        lists(can({"textDocument", "hover", "contentFormat"}), "markdown");
    client_.label_offsets =
        can({"textDocument", "signatureHelp", "signatureInformation",
             "parameterInformation", "labelOffsetSupport"}) == true;
    client_.related = can({"textDocument", "publishDiagnostics",
                           "relatedInformation"}) == true;
    client_.actions =
        can({"textDocument", "codeAction", "codeActionLiteralSupport"})
            .is_object();
    client_.hint_refresh =
        can({"workspace", "inlayHint", "refreshSupport"}) == true;
    client_.watches = can({"workspace", "didChangeWatchedFiles",
                           "dynamicRegistration"}) == true;
    enter_workspace(params);
    initialized_ = true;
    Json capabilities = request_capabilities();
    capabilities["positionEncoding"] =
        client_.encoding == Encoding::utf8 ? "utf-8" : "utf-16";
    capabilities["textDocumentSync"] = {
        {"openClose", true}, {"change", 2}, {"save", true}};
    return {{"serverInfo", {{"name", "unisono"}}},
            {"capabilities", std::move(capabilities)}};
  }

  /// Programs read data by paths relative to where they are run, which is the
  /// folder that the editor has open.
  void enter_workspace(const Json& params) {
    const Json folders = said(params, {"workspaceFolders"});
    const auto add = [&](const Json& uri) {
      if (uri.is_string())
        folders_.push_back(path_of_uri(uri.get<std::string>()));
    };
    if (folders.is_array())
      for (const Json& folder : folders) add(said(folder, {"uri"}));
    if (folders_.empty()) add(said(params, {"rootUri"}));
    // One that is not there changes nothing.
    if (!folders_.empty()) (void)!chdir(folders_[0].c_str());
  }

  void initialized() {
    if (!client_.watches) return;
    const Json watcher = {{"globPattern", "**/*.uni"}};
    const Json registration = {
        {"id", "files"},
        {"method", "workspace/didChangeWatchedFiles"},
        {"registerOptions", {{"watchers", Json::array({watcher})}}}};
    connection_.ask("client/registerCapability",
                    {{"registrations", Json::array({registration})}});
  }

  const int input_;
  const std::shared_ptr<Inbox> inbox_;
  Client client_;
  Connection connection_;
  std::vector<std::string> folders_;
  bool initialized_ = false, shut_down_ = false, ended_ = false;
  std::deque<Waiting> waiting_;
  Documents documents_;
};

}  // namespace

int serve(const ServerOptions& options) {
  // A client that is gone is an error of the next write.
  std::signal(SIGPIPE, SIG_IGN);
  return Server(options).run();
}

}  // namespace unisono::host::lsp
