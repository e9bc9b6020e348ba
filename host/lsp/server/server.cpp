// Three threads. The reader takes messages from the client, and notes at once
// what is cancelled. The checker checks one text at a time. All else is the
// server's own thread, which alone writes: it applies changes, answers, and
// starts a check when nobody has typed for a moment.
#include "host/lsp/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "host/lsp/answers.h"
#include "host/lsp/queue.h"

namespace unisono::host::lsp {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A check begins when there was no change for so long, or when the first that
/// it will see is so old.
constexpr auto quiet_time = 40ms, longest_wait = 400ms;
/// What needs types waits so long for a check that is under way.
constexpr auto longest_answer = 500ms;
/// Messages that wait; who sends more waits, too.
constexpr size_t most_waiting = 2000;

/// A request's flag, which the reader sets when it is cancelled.
using Flag = std::shared_ptr<std::atomic<bool>>;

// ---- what the server's thread is told

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

/// An error that a request is answered with.
struct Refusal {
  ErrorCode code;
  std::string message;
};

/// What JSON says at a path of names; null if it says nothing there.
Json said(const Json& params, std::initializer_list<const char*> path) {
  const Json* at = &params;
  for (const char* name : path) {
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return *at;
}

/// An id that may be sent back.
bool is_id(const Json& id) { return id.is_string() || id.is_number_integer(); }

// ---- reader

/// Requests that were read and not answered yet.
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
  Queue<Event> events{most_waiting};
  Pending pending;
};

/// Copies of JSON recurse: no message that we know is nested so deep.
bool is_too_deep(std::string_view json) {
  constexpr int most = 200;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i)
    if (quoted && json[i] == '\\')
      ++i;
    else if (json[i] == '"')
      quoted = !quoted;
    else if (!quoted && (json[i] == '[' || json[i] == '{') && ++depth > most)
      return true;
    else if (!quoted && (json[i] == ']' || json[i] == '}'))
      --depth;
  return false;
}

Event read_message(const std::string& body, Pending& pending) {
  if (is_too_deep(body)) return WrongMessage{"the message is nested too deep"};
  FromClient event;
  event.message = Json::parse(body, nullptr, false);
  const Json& message = event.message;
  if (message.is_discarded()) return WrongMessage{"the message is no JSON"};
  const Json id = said(message, {"id"});
  if (is_id(id) && message.contains("method"))
    event.cancelled = pending.add(id);
  if (said(message, {"method"}) == "$/cancelRequest") {
    const Json cancelled = said(message, {"params", "id"});
    if (is_id(cancelled)) pending.cancel(cancelled);
  }
  return event;
}

void read_messages(int input, Inbox& inbox) {
  using Kind = MessageReader::Incoming::Kind;
  MessageReader reader(input);
  while (true) {
    try {
      const MessageReader::Incoming incoming = reader.next();
      if (incoming.kind == Kind::end) break;
      if (incoming.kind == Kind::message)
        inbox.events.push(read_message(incoming.body, inbox.pending));
      else
        inbox.events.push(
            WrongMessage{"the header has no length that can be read"});
    } catch (const std::exception&) {
      inbox.events.push(WrongMessage{"there is not enough memory for it"});
    }
  }
  inbox.events.push(EndOfInput{});
}

// ---- checker

/// Checks on a thread of its own, one text at a time.
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

  void work() {
    while (true) {
      std::optional<Job> job = jobs_.pop(std::nullopt);
      if (!job->request) return;
      std::shared_ptr<const Checked> checked;
      try {
        if (auto result = check(*job->request, &stop_))
          checked = std::make_shared<const Checked>(std::move(*result));
      } catch (const std::exception&) {
        // No memory: the text stays without messages.
      }
      events_.push(CheckDone{job->uri, job->version, std::move(checked)});
    }
  }

  Queue<Event>& events_;
  Queue<Job> jobs_{2};
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// ---- parameters

const Json& field(const Json& in, const char* name) {
  const auto found = in.is_object() ? in.find(name) : in.end();
  if (!in.is_object() || found == in.end())
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is missing", name)};
  return *found;
}

std::string text_field(const Json& in, const char* name) {
  const Json& value = field(in, name);
  if (!value.is_string())
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is no string", name)};
  return value.get<std::string>();
}

/// Numbers that no text reaches are its end.
uint32_t count_field(const Json& in, const char* name) {
  const Json& value = field(in, name);
  if (!value.is_number())
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is no number", name)};
  const double number = value.get<double>();
  return static_cast<uint32_t>(std::clamp(number, 0.0, 4e9));
}

Position position_of(const Json& json) {
  return {count_field(json, "line"), count_field(json, "character")};
}
Range range_of(const Json& json) {
  return {position_of(field(json, "start")), position_of(field(json, "end"))};
}

bool lists(const Json& list, const char* word) {
  return list.is_array() && std::ranges::find(list, Json(word)) != list.end();
}

// ---- server

class Server {
 public:
  explicit Server(const ServerOptions& options)
      : options_(options),
        inbox_(std::make_shared<Inbox>()),
        checker_(inbox_->events) {}

  int run() {
    // Nothing ends a read: this thread ends with the process.
    std::thread([inbox = inbox_, input = options_.input] {
      read_messages(input, *inbox);
    }).detach();
    while (!ended_)
      if (const auto problem = attempt([&] { step(); }))
        tell_client(problem->message);
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
  using Answer = Json (Server::*)(const Json& params);
  using Told = void (Server::*)(const Json& params);
  struct Request {
    Answer answer;
    bool wants_types = false;
  };

  void step() {
    const std::optional<Event> event = inbox_->events.pop(next_deadline());
    if (event) std::visit([this](const auto& e) { on(e); }, *event);
    if (ended_) return;
    answer_waiting();
    start_check();
  }

  std::optional<Clock::time_point> next_deadline() const {
    std::optional<Clock::time_point> out;
    const auto consider = [&](Clock::time_point time) {
      if (!out || time < *out) out = time;
    };
    for (const Waiting& w : waiting_) consider(w.until);
    if (!checking_ && !changed_.empty()) consider(check_time());
    return out;
  }

  // ---- messages
  void on(const EndOfInput&) { ended_ = true; }
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

  void send(const Json& message) {
    if (!write_message(options_.output, message)) ended_ = true;
  }
  void send_error(const Json& id, const Refusal& refusal) {
    if (is_id(id)) inbox_->pending.remove(id);
    send({{"jsonrpc", "2.0"},
          {"id", id},
          {"error",
           {{"code", static_cast<int>(refusal.code)},
            {"message", refusal.message}}}});
  }
  void send_result(const Json& id, Json result) {
    inbox_->pending.remove(id);
    send({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
  }
  void notify(const char* method, Json params) {
    send({{"jsonrpc", "2.0"},
          {"method", method},
          {"params", std::move(params)}});
  }
  void ask(const char* method, Json params) {
    Json message = {{"jsonrpc", "2.0"},
                    {"id", fmt::format("unisono-{}", ++asked_)},
                    {"method", method}};
    if (!params.is_null()) message["params"] = std::move(params);
    send(message);
  }

  /// Runs what may fail in any way, and gives the refusal if it does.
  template <class F>
  static std::optional<Refusal> attempt(F&& f) {
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

  void tell_client(const std::string& problem) {
    notify("window/logMessage", {{"type", 1}, {"message", problem}});
  }

  void tell(const std::string& method, const Json& params) {
    if (method == "exit") {
      ended_ = true;
      return;
    }
    static const std::map<std::string, Told, std::less<>> known = {
        {"initialized", &Server::initialized},
        {"textDocument/didOpen", &Server::did_open},
        {"textDocument/didChange", &Server::did_change},
        {"textDocument/didClose", &Server::did_close},
        {"textDocument/didSave", &Server::files_changed},
        {"workspace/didChangeWatchedFiles", &Server::files_changed},
    };
    const auto found = known.find(method);
    if (found == known.end() || !initialized_ || shut_down_) return;
    const auto problem = attempt([&] { (this->*found->second)(params); });
    if (problem) tell_client(fmt::format("{}: {}", method, problem->message));
  }

  static const Request* find_request(const std::string& method) {
    static const std::map<std::string, Request, std::less<>> known = {
        {"shutdown", {&Server::shutdown}},
        {"textDocument/hover", {&Server::on_hover, true}},
        {"textDocument/inlayHint", {&Server::on_hints, true}},
        {"textDocument/definition", {&Server::on_definition}},
        {"textDocument/references", {&Server::on_references}},
        {"textDocument/documentHighlight", {&Server::on_highlights}},
        {"textDocument/prepareRename", {&Server::on_prepare_rename}},
        {"textDocument/rename", {&Server::on_rename}},
        {"textDocument/completion", {&Server::on_completion}},
        {"textDocument/signatureHelp", {&Server::on_signature}},
        {"textDocument/documentSymbol", {&Server::on_symbols}},
        {"textDocument/foldingRange", {&Server::on_folds}},
        {"textDocument/formatting", {&Server::on_format}},
        {"textDocument/semanticTokens/full", {&Server::on_tokens}},
    };
    const auto found = known.find(method);
    return found == known.end() ? nullptr : &found->second;
  }

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
    const Request* known = find_request(method);
    if (!known)
      return send_error(id, {ErrorCode::method_not_found,
                             fmt::format("there is no method `{}`", method)});
    if (known->wants_types) {
      const Json uri = said(params, {"textDocument", "uri"});
      const Document* document =
          uri.is_string() ? files_.find(uri.get<std::string>()) : nullptr;
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
    cancel_flag_ = cancelled.get();
    const auto problem =
        attempt([&] { result = (this->*known.answer)(params); });
    cancel_flag_ = nullptr;
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
      const Document* document = files_.find(w.uri);
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
    client_.hint_refresh =
        can({"workspace", "inlayHint", "refreshSupport"}) == true;
    client_.watches = can({"workspace", "didChangeWatchedFiles",
                           "dynamicRegistration"}) == true;
    enter_workspace(params);
    initialized_ = true;
    return {
        {"serverInfo", {{"name", "unisono"}}},
        {"capabilities",
         {{"positionEncoding",
           client_.encoding == Encoding::utf8 ? "utf-8" : "utf-16"},
          {"textDocumentSync",
           {{"openClose", true}, {"change", 2}, {"save", true}}},
          {"hoverProvider", true},
          {"definitionProvider", true},
          {"referencesProvider", true},
          {"documentHighlightProvider", true},
          {"renameProvider", {{"prepareProvider", true}}},
          {"completionProvider", {{"triggerCharacters", Json::array({"."})}}},
          {"signatureHelpProvider",
           {{"triggerCharacters", Json::array({"(", ","})},
            {"retriggerCharacters", Json::array({"=", ")"})}}},
          {"documentFormattingProvider", true},
          {"documentSymbolProvider", true},
          {"foldingRangeProvider", true},
          {"inlayHintProvider", true},
          {"semanticTokensProvider",
           {{"legend", semantic_legend()}, {"full", true}}}}}};
  }

  /// Programs read data by paths relative to where they are run, which is the
  /// folder that the editor has open.
  static void enter_workspace(const Json& params) {
    Json uri = said(params, {"rootUri"});
    const Json folders = said(params, {"workspaceFolders"});
    if (folders.is_array() && !folders.empty()) uri = said(folders[0], {"uri"});
    // One that is not there changes nothing.
    if (uri.is_string())
      (void)!chdir(path_of_uri(uri.get<std::string>()).c_str());
  }

  void initialized(const Json&) {
    if (!client_.watches) return;
    const Json watcher = {{"globPattern", "**/*.uni"}};
    const Json registration = {
        {"id", "files"},
        {"method", "workspace/didChangeWatchedFiles"},
        {"registerOptions", {{"watchers", Json::array({watcher})}}}};
    ask("client/registerCapability",
        {{"registrations", Json::array({registration})}});
  }

  Json shutdown(const Json&) {
    shut_down_ = true;
    return nullptr;
  }

  // ---- documents
  void did_open(const Json& params) {
    const Json& item = field(params, "textDocument");
    const std::string uri = text_field(item, "uri");
    // Most editors count from 0 or 1; who gives none has no need of it.
    const Json version = item.value("version", Json(0));
    Document& document = files_.open(
        uri, version.is_number_integer() ? version.get<int64_t>() : 0,
        text_field(item, "text"));
    changed(document);
  }

  void did_change(const Json& params) {
    Document& document = document_of(params);
    const Json version = said(params, {"textDocument", "version"});
    const Json& changes = field(params, "contentChanges");
    if (!changes.is_array())
      throw Refusal{ErrorCode::invalid_params, "`contentChanges` is no list"};
    for (const Json& change : changes) {
      const std::string text = text_field(change, "text");
      if (change.contains("range") && !change["range"].is_null())
        document.text.replace(range_of(change["range"]), text,
                              client_.encoding);
      else
        document.text = Text(text);
    }
    document.version = version.is_number_integer() ? version.get<int64_t>()
                                                   : document.version + 1;
    document.syntax = nullptr;
    document.checked_version.reset();
    changed(document);
  }

  void did_close(const Json& params) {
    const Document& document = document_of(params);
    const std::string uri = document.uri, key = document.key;
    files_.close(uri);
    files_.forget_disk();
    changed_.erase(uri);
    publish(uri, std::nullopt, {});
    check_importers(key);
  }

  /// Of files that are not open, somebody has changed one.
  void files_changed(const Json&) {
    files_.forget_disk();
    for (Document* document : files_.all())
      if (!files_.syntax(*document)->imported_files().empty())
        recheck(*document);
  }

  Document& document_of(const Json& params) {
    const std::string uri = text_field(field(params, "textDocument"), "uri");
    Document* document = files_.find(uri);
    if (!document)
      throw Refusal{ErrorCode::invalid_params,
                    fmt::format("`{}` is not open", uri)};
    return *document;
  }

  // ---- checks
  void changed(Document& document) {
    recheck(document);
    if (checking_ == document.uri) checker_.stop();
    imports_may_change_ = true;
  }
  void recheck(Document& document) {
    const auto now = Clock::now();
    if (changed_.empty()) first_change_ = now;
    last_change_ = now;
    changed_.insert(document.uri);
  }
  Clock::time_point check_time() const {
    return std::min(last_change_ + quiet_time, first_change_ + longest_wait);
  }

  /// Other open documents that use a file are checked, too.
  void check_importers(const std::string& key) {
    for (Document* other : files_.all()) {
      if (other->key == key || changed_.contains(other->uri)) continue;
      if (files_.imports(*files_.syntax(*other), key)) recheck(*other);
    }
  }

  void start_check() {
    if (checking_ || changed_.empty() || Clock::now() < check_time()) return;
    if (std::exchange(imports_may_change_, false)) {
      const std::set<std::string> own = changed_;
      for (const std::string& uri : own)
        if (const Document* document = files_.find(uri))
          check_importers(document->key);
    }
    const std::string uri = *changed_.begin();
    changed_.erase(uri);
    Document* document = files_.find(uri);
    if (!document) return;
    const auto problem = attempt([&] {
      const auto syntax = files_.syntax(*document);
      checker_.start(uri, document->version,
                     {syntax, files_.modules(*syntax), options_.devices,
                      client_.encoding});
      checking_ = uri;
    });
    if (problem) document->checked_version = document->version;
  }

  void on(const CheckDone& done) {
    checking_.reset();
    Document* document = files_.find(done.uri);
    if (!document) return;
    if (!done.checked) {
      // A newer text stopped it, or the types of this one are not to be had.
      if (!changed_.contains(done.uri))
        document->checked_version = document->version;
      return;
    }
    if (done.checked->syntax->ok()) document->typed = done.checked;
    if (document->version != done.version || shut_down_) return;
    if (!changed_.contains(done.uri)) document->checked_version = done.version;
    publish(done.uri, done.version, done.checked->messages);
    if (client_.hint_refresh) ask("workspace/inlayHint/refresh", nullptr);
  }

  static Json to_json(const Range& r) {
    return {
        {"start", {{"line", r.start.line}, {"character", r.start.character}}},
        {"end", {{"line", r.end.line}, {"character", r.end.character}}}};
  }

  void publish(const std::string& uri, std::optional<int64_t> version,
               const std::vector<Message>& messages) {
    Json list = Json::array();
    for (const Message& m : messages) list.push_back(diagnostic(m));
    Json params = {{"uri", uri}, {"diagnostics", std::move(list)}};
    if (version) params["version"] = *version;
    notify("textDocument/publishDiagnostics", std::move(params));
  }

  Json diagnostic(const Message& m) {
    const auto severity = [&] {
      switch (m.severity) {
        case lang::Severity::error: return 1;
        case lang::Severity::warning: return 2;
        case lang::Severity::note: return 3;
        case lang::Severity::performance: return 4;
      }
      return 1;
    }();
    std::string text = m.text;
    Json related = Json::array();
    for (const auto& [place, note] : m.related) {
      const Document* open = files_.document(place.path);
      related.push_back({{"location",
                          {{"uri", open ? open->uri : uri_of_path(place.path)},
                           {"range", to_json(place.range)}}},
                         {"message", note}});
      if (!client_.related)
        text += fmt::format("\nnote: {} ({}:{}:{})", note, place.path,
                            place.range.start.line + 1,
                            place.range.start.character + 1);
    }
    Json out = {{"range", to_json(m.range)},
                {"severity", severity},
                {"code", m.code},
                {"source", "unisono"},
                {"message", std::move(text)}};
    if (client_.related && !related.empty())
      out["relatedInformation"] = std::move(related);
    return out;
  }

  // ---- requests about documents
  View view_of(const Json& params) {
    return {files_, library_, client_, document_of(params)};
  }
  static uint32_t offset_of(const View& view, const Json& params) {
    return view.offset(position_of(field(params, "position")));
  }
  static Json value_or_refuse(Result<Json> result) {
    if (!result)
      throw Refusal{ErrorCode::request_failed, result.error().message};
    return std::move(*result);
  }

  template <Json answer_at(View&, uint32_t)>
  Json at_position(const Json& params) {
    View view = view_of(params);
    return answer_at(view, offset_of(view, params));
  }
  template <Json answer_all(View&)>
  Json of_document(const Json& params) {
    View view = view_of(params);
    return answer_all(view);
  }
  Json on_hover(const Json& p) { return at_position<hover>(p); }
  Json on_definition(const Json& p) { return at_position<definition>(p); }
  Json on_highlights(const Json& p) { return at_position<highlights>(p); }
  Json on_completion(const Json& p) { return at_position<completions>(p); }
  Json on_signature(const Json& p) { return at_position<signature_help>(p); }
  Json on_symbols(const Json& p) { return of_document<symbols>(p); }
  Json on_folds(const Json& p) { return of_document<folds>(p); }
  Json on_format(const Json& p) { return of_document<format_edits>(p); }
  Json on_tokens(const Json& p) { return of_document<semantic_tokens>(p); }

  Json on_hints(const Json& params) {
    View view = view_of(params);
    const Range range = range_of(field(params, "range"));
    const auto [begin, end] =
        std::minmax(view.offset(range.start), view.offset(range.end));
    return inlay_hints(view, begin, end);
  }
  Json on_references(const Json& params) {
    View view = view_of(params);
    const Json with = said(params, {"context", "includeDeclaration"});
    return references(view, offset_of(view, params), with != false);
  }
  Json on_prepare_rename(const Json& params) {
    View view = view_of(params);
    return value_or_refuse(prepare_rename(view, offset_of(view, params)));
  }
  Json on_rename(const Json& params) {
    View view = view_of(params);
    return value_or_refuse(rename(view, offset_of(view, params),
                                  text_field(params, "newName"), cancel_flag_,
                                  options_.devices));
  }

  const ServerOptions options_;
  const std::shared_ptr<Inbox> inbox_;
  Library library_;
  Client client_;
  Files files_;
  bool initialized_ = false, shut_down_ = false, ended_ = false;
  int asked_ = 0;  // requests of ours
  std::deque<Waiting> waiting_;
  const std::atomic<bool>* cancel_flag_ = nullptr;  // of the present request

  std::set<std::string> changed_;  // documents that wait for a check, by URI
  Clock::time_point first_change_, last_change_;
  bool imports_may_change_ = false;
  std::optional<std::string> checking_;
  Checker checker_;
};

}  // namespace

int serve(const ServerOptions& options) {
  // A client that is gone is an error of the next write.
  std::signal(SIGPIPE, SIG_IGN);
  return Server(options).run();
}

}  // namespace unisono::host::lsp
