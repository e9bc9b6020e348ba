#include "host/repl/repl.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "host/repl/commands.h"
#include "host/repl/completion.h"
#include "host/session/help.h"
#include "host/repl/inputs.h"
#include "host/session/interrupt.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"
#include "lang/ops/print_value.h"
#include "lang/source/utf8.h"
#include "lang/syntax/read_source.h"
#include "runtime/stop.h"

namespace unisono::host {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// What people type who want to leave, or help, and is no program.
bool wants_to_leave(std::string_view text) {
  return text == "exit" || text == "quit" || text == "exit()" ||
         text == "quit()" || text == "q" || text == "\x04";
}

std::optional<std::string_view> wants_help(std::string_view text) {
  if (text == "help" || text == "help()") return "";
  if (text.starts_with("help(") && text.ends_with(')'))
    return text.substr(5, text.size() - 6);
  if (text.starts_with("help ")) return trimmed(text.substr(5));
  return std::nullopt;
}

/// See no-color.org.
bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return !no_colour || !*no_colour;
}

}  // namespace

Repl::Repl(ReplOptions options)
    : options_(std::move(options)), history_(history_path()) {
  settings_.progress = options_.progress;
  if (isatty(STDOUT_FILENO) == 0) return;
  const bool edits = Terminal::can_edit(std::getenv("TERM"));
  settings_.colour = edits && wants_colour();
  if (!edits) return;
  terminal_ = std::make_unique<Terminal>(STDIN_FILENO, STDOUT_FILENO);
  progress_ = std::make_unique<ProgressBar>(
      [this](std::string_view text) { terminal_->write(text); },
      [this] { return terminal_->size().columns; });
  EditorHooks hooks;
  hooks.complete = is_complete_input;
  if (settings_.colour) hooks.styles = styles_of;
  hooks.completions = [this](const std::string& text, size_t cursor) {
    return complete_input(*session_, text, cursor);
  };
  hooks.pasted = [](const std::string& text) {
    std::string out = without_prompts(text);
    while (out.ends_with('\n')) out.pop_back();  // Enter ends the input
    return out;
  };
  editor_ =
      std::make_unique<Editor>(*terminal_, settings_.colour, std::move(hooks));
}

Repl::~Repl() = default;

// ---- text out --------------------------------------------------------------

void Repl::say(std::string_view text) {
  if (progress_) progress_->hide();
  if (terminal_) {
    terminal_->write(text);
    output_closed_ = terminal_->closed();
    return;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  output_closed_ = std::fflush(stdout) != 0;
}

void Repl::complain(const std::string& message) {
  say(styled("error", Style::mistake, settings_.colour) + ": " +
      lang::visible(message) + "\n");
}

void Repl::show_messages() {
  lang::Diagnostics& diagnostics = session_->diagnostics();
  for (const lang::Diagnostic& diagnostic : diagnostics.all())
    if (diagnostic.severity == lang::Severity::error &&
        diagnostic.code != lang::Code::cancelled)
      last_code_ = lang::info(diagnostic.code).number;
  if (!diagnostics.empty()) say(lang::render(diagnostics, {settings_.colour}));
  diagnostics.truncate(0);
}

std::string Repl::prompt() const {
  if (!session_) return fmt::format("unisono[{}]> ", options_.devices);
  std::map<std::string, int> kinds;
  for (const Device* device : session_->runtime().devices())
    ++kinds[device->name().substr(0, device->name().find(':'))];
  std::string out;
  for (const auto& [kind, count] : kinds)
    out += fmt::format("{}{}×{}", out.empty() ? "" : " ", count, kind);
  return fmt::format("unisono[{}]> ", out);
}

// ---- text in ---------------------------------------------------------------

/// Lines as the terminal gives them, which knows nothing of editing, or of
/// which only the input is ours.
Editor::Outcome Repl::read_plain(std::string& text) {
  text.clear();
  say(prompt());
  for (;;) {
    const size_t end = plain_rest_.find('\n');
    if (end != plain_rest_.npos) {
      text += plain_rest_.substr(0, end);
      plain_rest_.erase(0, end + 1);
      if (text.ends_with('\r')) text.pop_back();
      if (is_complete_input(text)) return Editor::Outcome::text;
      text += '\n';
      say("... ");
      continue;
    }
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    constexpr int look_at_interrupts = 100;  // milliseconds
    const int ready = poll(&input, 1, look_at_interrupts);
    if (interrupt_flag()->load()) return Editor::Outcome::interrupted;
    if (ready <= 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      text += std::exchange(plain_rest_, "");
      return Editor::Outcome::ended;
    }
    plain_rest_.append(bytes.data(), static_cast<size_t>(count));
  }
}

Editor::Outcome Repl::read(std::string& text) {
  if (!edits()) return read_plain(text);
  return editor_->read(text);
}

// ---- the session -----------------------------------------------------------

SessionOptions Repl::prepared(SessionOptions options) {
  options.output = [this](std::string_view text) { say(text); };
  options.stop = interrupt_flag();
  options.interactive = true;
  options.colour = settings_.colour;
  if (progress_)
    options.progress = [this](int64_t turns, int64_t all) {
      if (settings_.progress) progress_->turn(turns, all);
    };
  return options;
}

bool Repl::open_session() {
  Result<SessionOptions> options = options_.open(options_.devices);
  if (!options) {
    complain(options.error().message);
    return false;
  }
  session_ = std::make_unique<Session>(prepared(std::move(*options)));
  return true;
}

void Repl::open_devices(const std::string& devices) {
  Result<SessionOptions> options = options_.open(devices);
  if (!options) {
    std::string message = options.error().message;
    if (message.starts_with("--")) message.replace(0, 2, ":");
    return complain(message);
  }
  const std::vector<std::string> lost =
      session_->change_devices(std::move(*options));
  options_.devices = devices;
  show_messages();
  if (lost.empty()) return;
  std::string names;
  for (const std::string& name : lost)
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name);
  say(
      fmt::format("not there any more, as they could not be defined again on "
                  "these devices: {}\n",
                  names));
}

// ---- inputs ----------------------------------------------------------------

std::string Repl::shown(const std::string& name, const lang::Value& value) {
  lang::Walk& walk = session_->walk();
  const lang::Span nowhere;
  const auto* function =
      value.get_if<std::shared_ptr<const lang::FunctionValue>>();
  if (function) return fmt::format("{}: {}\n", name, signature_of(**function));
  std::string type = lang::type_name(value);
  if (const auto* array = value.get_if<lang::ArrayValue>();
      array && (*array)->type.rank() > 0)
    type += " " + walk.force(*array, nowhere).sharding().to_string();
  lang::TextBuilder builder(walk);
  builder.value(value, "", nowhere, /*quoted=*/true);
  const std::string text = builder.finish().value.value_or("");
  const std::string head =
      styled(fmt::format("{}: {}", name, type), Style::dim, settings_.colour);
  if (text == type) return head + "\n";
  const bool one_line = text.find('\n') == text.npos &&
                        (!value.array() || value.array()->type.rank() == 0) &&
                        text.size() + type.size() < 72;
  // What a terminal would obey is shown as escapes.
  return fmt::format("{}{}{}\n", head, one_line ? " = " : "\n",
                     lang::visible(text));
}

void Repl::keep_result(const lang::Value& value, lang::Span where) {
  lang::Environment& names = session_->walk().results();
  const lang::Binding binding{value, false, false, where};
  names.names["ans"] = binding;
  names.names[fmt::format("_{}", input_count_)] = binding;
  results_.push_back(input_count_);
  while (results_.size() > static_cast<size_t>(settings_.results)) {
    names.names.erase(fmt::format("_{}", results_.front()));
    results_.erase(results_.begin());
  }
  ++names.version;
}

bool Repl::run_input(const std::string& path, const std::string& text,
                     bool show_value) {
  forget_interrupt();
  bool ok = false;
  const auto start = std::chrono::steady_clock::now();
  session_->walk().on_stack([&] {
    const lang::Program* program = session_->check(path, text);
    if (!program) return;
    show_messages();  // warnings come before what runs prints
    std::optional<lang::Value> last;
    ok = session_->run(*program, &last);
    if (!ok || !show_value || !last || last->is<lang::NoneValue>()) return;
    keep_result(*last, program->statements.back()->span);
    if (hides_result(text)) return;
    const std::string name = fmt::format("_{}", input_count_);
    say(shown(name, *last));
  });
  if (progress_) progress_->hide();
  // What a terminal shows for Ctrl-C stands on a line of its own.
  if (interrupt_flag()->load() && !edits()) say("\n");
  forget_interrupt();
  show_messages();
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  if (settings_.time) say(fmt::format("{:.3g} ms\n", took.count()));
  return ok;
}

bool Repl::evaluate(const std::string& text) {
  ++input_count_;
  const bool ok =
      run_input(fmt::format("<input {}>", input_count_), text, true);
  if (ok) inputs_.push_back(text);
  return ok;
}

bool Repl::load(const std::string& path) {
  Result<std::string> text = lang::read_source(path);
  if (!text) {
    complain(fmt::format("cannot read `{}`: {}", path, text.error().message));
    return false;
  }
  if (!run_input(path, *text, false)) return false;
  if (std::ranges::find(loaded_, path) == loaded_.end())
    loaded_.push_back(path);
  inputs_.push_back(std::move(*text));
  return true;
}

bool Repl::attempt(const std::string& text,
                   const std::function<bool(const lang::Program&)>& body,
                   std::optional<lang::Value>* last) {
  forget_interrupt();
  bool ok = false;
  session_->walk().on_stack([&] {
    const lang::Program* program = session_->check(
        fmt::format("<input {}>", input_count_ + 1), text, last);
    if (!program) return;
    show_messages();
    const auto& globals = session_->walk().globals();
    const auto before = globals->names;
    ok = body(*program);
    globals->names = before;
    ++globals->version;
  });
  show_messages();
  return ok;
}

void Repl::reload() {
  session_->walk().forget_files();
  // Each import of a file by the statement that it was.
  std::vector<std::string> imports;
  for (const auto& [name, binding] : session_->walk().globals()->names) {
    if (!binding.value.is<lang::ModuleValue>() || !binding.where) continue;
    const lang::Stmt* statement = session_->statement_at(binding.where);
    const auto* import =
        statement ? lang::as<lang::ImportStmt>(*statement) : nullptr;
    if (import && import->is_file) imports.emplace_back(statement->span.text());
  }
  bool ok = true;
  for (const std::string& text : imports)
    ok = run_input(fmt::format("<input {}>", input_count_), text, false) && ok;
  for (const std::string& path : std::vector<std::string>(loaded_))
    ok = load(path) && ok;
  if (imports.empty() && loaded_.empty())
    return say("nothing was imported or loaded from a file\n");
  if (ok)
    say(fmt::format("{} imports and {} loaded files are read anew\n",
                    imports.size(), loaded_.size()));
}

void Repl::obey(const std::string& text) {
  const std::string input = without_prompts(text);
  const std::string_view bare = trimmed(input);
  if (bare.empty()) return;
  if (bare[0] == ':') return run_command(*this, bare);
  if (bare == "?") return run_command(*this, ":help");
  // `?name`, `name?`, and twice for the source.
  std::string_view name = bare;
  size_t marks = 0;
  while (name.starts_with('?')) name.remove_prefix(1), ++marks;
  if (marks == 0)
    while (name.ends_with('?')) name.remove_suffix(1), ++marks;
  if (marks > 0 && bare.find('\n') == bare.npos) {
    name = trimmed(name);
    if (name.starts_with(':'))
      return run_command(*this, fmt::format(":help {}", name));
    if (marks == 1) return say(describe(*session_, name));
    const std::string source = source_of(*session_, name);
    return say(settings_.colour ? coloured(source) : source);
  }
  const auto& globals = session_->walk().globals();
  const auto is_defined = [&](std::string_view word) {
    return globals && globals->find(std::string(word)).first != nullptr;
  };
  const std::string_view word = bare.substr(0, bare.find_first_of("( "));
  if (!is_defined(word)) {
    if (wants_to_leave(bare)) return leave();
    if (const auto about = wants_help(bare))
      return run_command(*this, fmt::format(":help {}", *about));
  }
  evaluate(input);
}

int Repl::run() {
  const bool at_once = options_.devices.starts_with("cpu:");
  if (!at_once && !open_session()) return 1;
  hear_all_interrupts();
  say(fmt::format("Unisono {}; :help helps, :quit or Ctrl-D leaves\n",
                  options_.version));
  const std::string first_prompt =
      at_once ? fmt::format("unisono[{}×cpu]> ", options_.devices.substr(4))
              : prompt();
  if (edits()) editor_->begin(first_prompt);
  begun_ = edits();
  // The rest is prepared while the user reads, or types.
  if (!session_ && !open_session()) return 1;
  if (edits()) editor_->set_history(history_.load());
  while (!left_ && !output_closed_) {
    // One stack for all inputs: a new one takes a tenth of a millisecond.
    session_->walk().on_stack([&] { read_inputs(); });
    show_messages();
    if (const auto devices = std::exchange(wanted_devices_, std::nullopt))
      open_devices(*devices);
  }
  return output_closed_ ? 1 : 0;
}

void Repl::read_inputs() {
  for (std::string text; !left_ && !output_closed_ && !wanted_devices_;) {
    if (edits() && !begun_) editor_->begin(prompt());
    begun_ = false;
    const Editor::Outcome outcome = read(text);
    forget_interrupt();
    if (outcome == Editor::Outcome::interrupted) say(edits() ? "" : "\n");
    if (outcome == Editor::Outcome::ended) {
      if (!edits()) say("\n");
      return leave();
    }
    if (outcome != Editor::Outcome::text || trimmed(text).empty()) continue;
    if (edits()) {
      editor_->add_to_history(text);
      if (const Status kept = history_.add(text);
          !kept && std::exchange(history_works_, false))
        say(fmt::format("what is typed is not kept: {}: {}\n", history_path(),
                        kept.error().message));
    }
    obey(text);
  }
}

int run_repl(ReplOptions options) { return Repl(std::move(options)).run(); }

}  // namespace unisono::host
