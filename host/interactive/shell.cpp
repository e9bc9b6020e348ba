#include "host/interactive/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "host/interactive/commands.h"
#include "host/interactive/inputs.h"
#include "host/session/help.h"
#include "host/session/interrupt.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"
#include "lang/ops/print_value.h"
#include "lang/source/utf8.h"
#include "lang/syntax/read_source.h"

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

}  // namespace

InteractiveShell::InteractiveShell(ShellOptions options, Frontend& frontend)
    : options_(std::move(options)), frontend_(frontend) {
  settings_.progress = options_.progress;
}

InteractiveShell::~InteractiveShell() = default;

// ---- the session -----------------------------------------------------------

Result<SessionOptions> InteractiveShell::opened(const std::string& devices) {
  SessionOptions options = TRY(options_.open(devices));
  frontend_.prepare(options);
  options.stop = interrupt_flag();
  options.interactive = true;
  options.colour = frontend_.has_colours();
  return options;
}

Status InteractiveShell::open() {
  session_ = std::make_unique<Session>(TRY(opened(options_.devices)));
  return Unit{};
}

void InteractiveShell::open_devices(const std::string& devices) {
  Result<SessionOptions> options = opened(devices);
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

void InteractiveShell::settle() {
  show_messages();
  session_->runtime().give_back_unused();
  if (const auto devices = std::exchange(wanted_devices_, std::nullopt))
    open_devices(*devices);
}

void InteractiveShell::show_messages() {
  lang::Diagnostics& diagnostics = session_->diagnostics();
  for (const lang::Diagnostic& diagnostic : diagnostics.all())
    if (diagnostic.severity == lang::Severity::error &&
        diagnostic.code != lang::Code::cancelled)
      last_code_ = lang::info(diagnostic.code).number;
  if (!diagnostics.empty()) frontend_.show(diagnostics);
  diagnostics.truncate(0);
}

// ---- inputs ----------------------------------------------------------------

ShownValue InteractiveShell::shown(const lang::Value& value) {
  lang::Walk& walk = session_->walk();
  const lang::Span nowhere;
  ShownValue out;
  if (const auto* function =
          value.get_if<std::shared_ptr<const lang::FunctionValue>>()) {
    out.text = signature_of(**function);
    return out;
  }
  out.type = lang::type_name(value);
  const auto* array = value.get_if<lang::ArrayValue>();
  if (array && (*array)->type.rank() > 0)
    out.type += " " + walk.force(*array, nowhere).sharding().to_string();
  lang::TextBuilder builder(walk);
  builder.value(value, "", nowhere, /*quoted=*/true);
  const lang::Text shown = builder.finish().value;
  const std::string text = shown ? *shown : "";
  if (text == out.type) return out;
  out.one_line = text.find('\n') == text.npos &&
                 (!value.array() || value.array()->type.rank() == 0) &&
                 text.size() + out.type.size() < 72;
  out.text = lang::visible(text);
  return out;
}

void InteractiveShell::keep_result(const lang::Value& value, lang::Span where) {
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

bool InteractiveShell::run_input(const std::string& path,
                                 const std::string& text, bool show_value) {
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
    frontend_.show_value(fmt::format("_{}", input_count_), shown(*last));
  });
  frontend_.finished(interrupt_flag()->load());
  forget_interrupt();
  show_messages();
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  if (settings_.time) say(fmt::format("{:.3g} ms\n", took.count()));
  return ok;
}

bool InteractiveShell::evaluate(const std::string& text) {
  ++input_count_;
  const bool ok =
      run_input(fmt::format("<input {}>", input_count_), text, true);
  if (ok) inputs_.push_back(text);
  return ok;
}

bool InteractiveShell::load(const std::string& path) {
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

bool InteractiveShell::attempt(
    const std::string& text,
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

std::optional<ShownValue> InteractiveShell::value_of(
    const lang::Program& program) {
  std::optional<lang::Value> last;
  if (!session_->run(program, &last) || !last) return std::nullopt;
  return shown(*last);
}

void InteractiveShell::reload() {
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

std::string InteractiveShell::obey(const std::string& text) {
  const std::string input = without_prompts(text);
  const std::string_view bare = trimmed(input);
  if (bare.empty()) return {};
  if (bare[0] == ':') {
    const std::string_view rest = after_command(bare);
    run_command(*this, bare.substr(0, bare.size() - rest.size()));
    return std::string(rest);
  }
  if (bare[0] == '%' || bare[0] == '!') {
    complain(help_on_magic(bare));
    return {};
  }
  const size_t line_end = std::min(bare.find('\n'), bare.size());
  if (bare[0] == '?' || line_end == bare.size()) {
    if (answer(trimmed(bare.substr(0, line_end))))
      return std::string(bare.substr(line_end));
  }
  evaluate(input);
  return {};
}

bool InteractiveShell::answer(std::string_view question) {
  if (question == "?") {
    run_command(*this, ":help");
    return true;
  }
  // `?name`, `name?`, and twice for the source.
  std::string_view name = question;
  size_t marks = 0;
  while (name.starts_with('?')) name.remove_prefix(1), ++marks;
  if (marks == 0)
    while (name.ends_with('?')) name.remove_suffix(1), ++marks;
  if (marks > 0) {
    name = trimmed(name);
    if (name.starts_with(':'))
      run_command(*this, fmt::format(":help {}", name));
    else if (marks == 1)
      say(describe(*session_, name));
    else if (const std::string source = source_of(*session_, name);
             frontend_.has_colours())
      say(coloured(source));
    else
      say(source);
    return true;
  }
  const auto& globals = session_->walk().globals();
  const std::string word(question.substr(0, question.find_first_of("( ")));
  if (globals && globals->find(word).first != nullptr) return false;
  if (wants_to_leave(question)) {
    frontend_.leave();
    return true;
  }
  const auto about = wants_help(question);
  if (about) run_command(*this, fmt::format(":help {}", *about));
  return about.has_value();
}

}  // namespace unisono::host
