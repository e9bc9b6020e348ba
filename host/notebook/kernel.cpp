#include "host/notebook/kernel.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <xeus/xeus_context.hpp>
#include <xeus/xinterpreter.hpp>
#include <xeus/xkernel.hpp>
#include <xeus/xkernel_configuration.hpp>
#include <zmq.hpp>

#include "host/editor/editor.h"
#include "host/interactive/completion.h"
#include "host/interactive/inputs.h"
#include "host/notebook/history.h"
#include "host/notebook/output.h"
#include "host/notebook/server.h"
#include "host/session/help.h"
#include "host/session/interrupt.h"
#include "host/session/progress.h"
#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

using Json = nlohmann::json;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Jupyter counts code points; the byte where the one begins with the number
/// `points`, or the end.
size_t byte_at(std::string_view text, int points) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (!continues_character(text[at]) && points-- <= 0) break;
  return at;
}

int points_before(std::string_view text, size_t byte) {
  return static_cast<int>(std::ranges::count_if(
      text.substr(0, byte), [](char c) { return !continues_character(c); }));
}

std::string base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with a zero behind
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// "f32[3] on cpu:0" and the value below it, or "f32 = 56.0".
std::string text_of(const ShownValue& value) {
  if (value.type.empty() || value.text.empty()) return value.type + value.text;
  return fmt::format("{}{}{}", value.type, value.one_line ? " = " : "\n",
                     value.text);
}

/// What made a cell fail.
struct CellError {
  std::string name, message;
  std::vector<std::string> lines;  // as it is shown
};

/// Requests come on one thread, shutdown on another.
class Kernel final : public xeus::xinterpreter, public Frontend {
 public:
  Kernel(ShellOptions options, std::string version)
      : version_(std::move(version)),
        output_([this](const std::string& text) {
          publish_stream("stdout", text);
        }),
        shell_(std::move(options), *this) {}

  Status open() { return shell_.open(); }
  /// For the kernel, which owns it.
  std::unique_ptr<xeus::xhistory_manager> take_history() {
    return std::move(history_owner_);
  }
  /// Set when it shuts down; for any thread, which may outlive it.
  std::shared_ptr<const std::atomic<bool>> ends() const { return ends_; }

 private:
  // ---- requests (xeus)
  void configure_impl() override {}
  Json execute_request_impl(int number, const std::string& code, bool silent,
                            bool store_history, Json user_expressions,
                            bool allow_stdin) override;
  Json complete_request_impl(const std::string& code, int cursor) override;
  Json inspect_request_impl(const std::string& code, int cursor,
                            int detail_level) override;
  Json is_complete_request_impl(const std::string& code) override;
  Json kernel_info_request_impl() override;
  void shutdown_request_impl() override;

  // ---- what the shell shows (Frontend)
  void prepare(SessionOptions& options) override;
  void say(std::string_view text) override { print(text); }
  void complain(const std::string& message) override;
  void show(const lang::Diagnostics& messages) override;
  void show_value(const std::string& name, const ShownValue& value) override;
  void finished(bool) override {}
  void leave() override;
  bool has_colours() const override { return true; }
  std::string key_hint() const override {
    return "Tab completes, Shift-Tab tells of a name; the stop button stops "
           "what runs\n";
  }
  std::string key_list() const override {
    return "the keys are those of the notebook\n";
  }

  /// Calls `body` where the session may be asked.
  void on_session(const std::function<void()>& body) {
    shell_.session().walk().on_stack(body);
  }
  void run_cell(const std::string& code);
  Json value_of(const std::string& expression);
  void print(std::string_view text) {
    if (!silent_) output_.write(text);
  }
  /// Sends a message behind what was printed.
  void publish(const std::function<void()>& message) {
    if (!silent_) output_.then(message);
  }
  void show_picture(std::string_view type, std::string_view bytes);
  void show_progress(const lang::LoopProgress& loop);

  std::string version_;
  OutputStream output_;
  std::unique_ptr<KernelHistory> history_owner_ =
      std::make_unique<KernelHistory>();
  KernelHistory* history_ = history_owner_.get();
  InteractiveShell shell_;
  std::shared_ptr<std::atomic<bool>> ends_ =
      std::make_shared<std::atomic<bool>>(false);

  int progress_displays_ = 0;  // so many there were

  // Of the cell that runs.
  ProgressPace progress_pace_;
  std::string progress_display_;  // of the loop that runs; empty: not shown
  int number_ = 0;
  bool silent_ = false, leaves_ = false;
  std::optional<CellError> error_;
};

// ---- cells -----------------------------------------------------------------

Json error_reply(const CellError& error) {
  return {{"status", "error"},
          {"ename", error.name},
          {"evalue", error.message},
          {"traceback", error.lines}};
}

void Kernel::run_cell(const std::string& code) {
  try {
    for (std::string rest = code; !rest.empty() && !error_;) {
      on_session([&] { rest = shell_.obey(rest); });
      shell_.settle();
    }
  } catch (const std::exception& exception) {
    complain(fmt::format("a mistake in unisono itself: {}", exception.what()));
  }
}

Json Kernel::execute_request_impl(int number, const std::string& code,
                                  bool silent, bool store_history,
                                  Json user_expressions, bool) {
  if (*ends_) return {{"status", "aborted"}};
  number_ = number;
  silent_ = silent;
  leaves_ = false;
  error_.reset();
  progress_display_.clear();
  if (store_history) history_->add(number, code);
  shell_.set_next_number(number);
  run_cell(code);
  publish([&] {
    if (error_)
      publish_execution_error(error_->name, error_->message, error_->lines);
  });
  if (error_) return error_reply(*error_);
  Json values = Json::object();
  for (const auto& [name, expression] : user_expressions.items())
    values[name] =
        value_of(expression.is_string() ? expression.get<std::string>() : "");
  Json payload = Json::array();
  if (leaves_)
    payload.push_back({{"source", "ask_exit"}, {"keepkernel", false}});
  return {{"status", "ok"},
          {"payload", std::move(payload)},
          {"user_expressions", std::move(values)}};
}

/// For `user_expressions`: as a cell whose output goes nowhere.
Json Kernel::value_of(const std::string& expression) {
  silent_ = true;
  error_.reset();
  std::optional<ShownValue> value;
  shell_.attempt(expression, [&](const lang::Program& program) {
    value = shell_.value_of(program);
    return value.has_value();
  });
  if (error_) return error_reply(*error_);
  Json data = Json::object();
  if (value) data["text/plain"] = text_of(*value);
  return {{"status", "ok"}, {"data", data}, {"metadata", Json::object()}};
}

void Kernel::prepare(SessionOptions& options) {
  options.output = [this](std::string_view text) { print(text); };
  options.show_picture = [this](std::string_view type, std::string_view bytes) {
    show_picture(type, bytes);
  };
  options.progress = [this](const lang::LoopProgress& loop) {
    if (shell_.settings().progress) show_progress(loop);
  };
}

/// A display below the cell, which changes as the loop goes on, and at its end
/// says how long that took.
void Kernel::show_progress(const lang::LoopProgress& loop) {
  constexpr int columns = 80;
  const bool ended = loop.turns == loop.all;
  if (ended ? progress_display_.empty() : !progress_pace_.due(loop).has_value())
    return;
  const std::string note = loop.note ? (*loop.note)() : "";
  Json data = {
      {"text/plain", progress_line(loop.turns, loop.all,
                                   progress_pace_.seconds(), columns, note)}};
  const bool first = progress_display_.empty();
  if (first)
    progress_display_ =
        fmt::format("unisono-progress-{}", ++progress_displays_);
  Json transient = {{"display_id", progress_display_}};
  publish([&] {
    if (first)
      display_data(std::move(data), Json::object(), std::move(transient));
    else
      update_display_data(std::move(data), Json::object(),
                          std::move(transient));
  });
  if (ended) progress_display_.clear();
}

void Kernel::show_picture(std::string_view type, std::string_view bytes) {
  // Text is sent as it is, all else in letters.
  const bool text = type == "image/svg+xml";
  Json data = {
      {"text/plain", fmt::format("<{}, {} bytes>", type, bytes.size())}};
  data[std::string(type)] = text ? std::string(bytes) : base64(bytes);
  publish(
      [&] { display_data(std::move(data), Json::object(), Json::object()); });
}

void Kernel::complain(const std::string& message) {
  const std::string text = lang::visible(message);
  error_ = CellError{
      "error", text, {styled("error", Style::mistake, true) + ": " + text}};
}

void Kernel::show(const lang::Diagnostics& messages) {
  lang::Diagnostics errors, others;
  for (const lang::Diagnostic& message : messages.all())
    (message.severity == lang::Severity::error ? errors : others).add(message);
  if (!others.empty())
    publish([&] { publish_stream("stderr", lang::render(others, {true})); });
  if (errors.empty()) return;
  const lang::Diagnostic& first = errors.all()[0];
  error_ = CellError{std::string(lang::info(first.code).number), first.message,
                     lines_of(lang::render(errors, {true}))};
}

void Kernel::show_value(const std::string&, const ShownValue& value) {
  publish([&] {
    publish_execution_result(number_, {{"text/plain", text_of(value)}},
                             Json::object());
  });
}

void Kernel::leave() {
  leaves_ = true;
  say("the notebook's menu ends its kernel\n");
}

// ---- while typing ----------------------------------------------------------

Json Kernel::complete_request_impl(const std::string& code, int cursor) {
  const size_t at = byte_at(code, cursor);
  Completions found;
  on_session([&] { found = complete_input(shell_.session(), code, at); });
  if (found.words.empty()) found.begin = at;
  return {{"status", "ok"},
          {"matches", found.words},
          {"cursor_start", points_before(code, found.begin)},
          {"cursor_end", points_before(code, at)},
          {"metadata", Json::object()}};
}

Json Kernel::inspect_request_impl(const std::string& code, int cursor,
                                  int detail_level) {
  std::optional<std::string> text;
  on_session([&] {
    Session& session = shell_.session();
    const std::string name = name_at(session, code, byte_at(code, cursor));
    if (name.empty()) return;
    text = description_of(session, name);
    if (text && detail_level > 0)
      *text += "\n" + coloured(source_of(session, name));
  });
  Json data = Json::object();
  if (text) data["text/plain"] = *text;
  return {{"status", "ok"},
          {"found", text.has_value()},
          {"data", std::move(data)},
          {"metadata", Json::object()}};
}

Json Kernel::is_complete_request_impl(const std::string& code) {
  switch (state_of_input(code)) {
    case InputState::complete: return {{"status", "complete"}};
    case InputState::invalid: return {{"status", "invalid"}};
    case InputState::incomplete: break;
  }
  const size_t line = code.rfind('\n') + 1;  // npos + 1 is 0
  return {{"status", "incomplete"},
          {"indent", indent_after(std::string_view(code).substr(line))}};
}

Json Kernel::kernel_info_request_impl() {
  return {{"status", "ok"},
          {"implementation", "unisono"},
          {"implementation_version", version_},
          {"language_info",
           {{"name", "unisono"},
            {"version", version_},
            {"mimetype", "text/x-unisono"},
            {"file_extension", ".uni"},
            // Of the languages that colour is known for, the nearest.
            {"pygments_lexer", "python"},
            {"codemirror_mode", "python"},
            {"nbconvert_exporter", "script"}}},
          {"banner", fmt::format("Unisono {}; :help helps", version_)},
          {"debugger", false},
          {"help_links", Json::array()}};
}

void Kernel::shutdown_request_impl() {
  *ends_ = true;
  kill(getpid(), SIGINT);
}

// ---- the process -----------------------------------------------------------

void set_interrupts(int how) {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  pthread_sigmask(how, &interrupts, nullptr);
}

/// A thread of its own hears interrupts, as calls of zmq on others would end
/// with EINTR. It also ends the process if Jupyter, which has started it, is
/// gone without a word.
void watch(std::shared_ptr<const std::atomic<bool>> ends) {
  static constexpr std::chrono::seconds period{1};
  const bool by_jupyter = std::getenv("JPY_PARENT_PID") != nullptr;
  std::thread([ends = std::move(ends), by_jupyter, parent = getppid()] {
    set_interrupts(SIG_UNBLOCK);
    for (;;) {
      std::this_thread::sleep_for(period);
      if (by_jupyter && getppid() != parent) _exit(1);
      // A cell may have begun just when it was told to stop.
      if (*ends) kill(getpid(), SIGINT);
    }
  }).detach();
}

int cannot_begin(std::string_view what) {
  fmt::print(stderr, "error: {}\n", what);
  return 1;
}

}  // namespace

int run_kernel(KernelOptions options) {
  set_interrupts(SIG_BLOCK);  // on this thread, and those that it starts
  hear_all_interrupts();
  auto kernel = std::make_unique<Kernel>(std::move(options.shell),
                                         std::move(options.version));
  if (const Status opened = kernel->open(); !opened)
    return cannot_begin(opened.error().message);
  watch(kernel->ends());
  std::clog.rdbuf(nullptr);  // where xeus says its version
  try {
    auto history = kernel->take_history();
    xeus::xkernel server(xeus::load_configuration(options.connection_file),
                         xeus::get_user_name(),
                         xeus::make_context<zmq::context_t>(),
                         std::move(kernel), make_server, std::move(history),
                         nullptr, xeus::make_null_debugger, Json::object(),
                         Json::error_handler_t::replace);
    server.start();  // does not come back
  } catch (const std::exception& exception) {
    return cannot_begin(
        fmt::format("`{}` is no connection file, or not usable: {}",
                    lang::visible(options.connection_file), exception.what()));
  }
  return 0;
}

}  // namespace unisono::host
