#include "host/repl/repl.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "host/editor/editor.h"
#include "host/editor/terminal.h"
#include "host/interactive/completion.h"
#include "host/interactive/inputs.h"
#include "host/repl/history.h"
#include "host/session/interrupt.h"
#include "host/session/progress.h"
#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

/// See no-color.org.
bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return !no_colour || !*no_colour;
}

/// The loop and its state.
class Repl final : Frontend {
 public:
  explicit Repl(ReplOptions options);
  int run();

 private:
  void prepare(SessionOptions& options) override;
  void say(std::string_view text) override;
  void complain(const std::string& message) override;
  void show(const lang::Diagnostics& messages) override;
  void show_value(const std::string& name, const ShownValue& value) override;
  void finished(bool interrupted) override;
  void leave() override { left_ = true; }
  bool has_colours() const override { return colour_; }
  std::string key_hint() const override;
  std::string key_list() const override;

  bool open_session();
  /// Until there is nothing more to read, or devices are to be changed, which
  /// ends the walk whose stack this runs on.
  void read_inputs();
  std::string prompt();
  Editor::Outcome read(std::string& text);
  Editor::Outcome read_plain(std::string& text);
  bool edits() const { return editor_ != nullptr; }

  std::string version_;
  bool colour_ = false;
  std::unique_ptr<Terminal> terminal_;
  std::unique_ptr<Editor> editor_;
  std::unique_ptr<ProgressBar> progress_;
  HistoryFile history_;
  bool history_works_ = true;
  std::string plain_rest_;  // read, and not taken yet
  std::string pending_;     // of an input, what was not obeyed yet
  bool begun_ = false;      // the editor shows the prompt of the next input
  bool left_ = false, output_closed_ = false;
  InteractiveShell shell_;
};

Repl::Repl(ReplOptions options)
    : version_(std::move(options.version)),
      history_(history_path()),
      shell_(std::move(options.shell), *this) {
  if (isatty(STDOUT_FILENO) == 0) return;
  const bool edits = Terminal::can_edit(std::getenv("TERM"));
  colour_ = edits && wants_colour();
  if (!edits) return;
  terminal_ = std::make_unique<Terminal>(STDIN_FILENO, STDOUT_FILENO);
  progress_ = std::make_unique<ProgressBar>(
      [this](std::string_view text) { terminal_->write(text); },
      [this] { return terminal_->size().columns; });
  EditorHooks hooks;
  hooks.complete = is_complete_input;
  if (colour_) hooks.styles = styles_of;
  hooks.completions = [this](const std::string& text, size_t cursor) {
    return complete_input(shell_.session(), text, cursor);
  };
  hooks.pasted = [](const std::string& text) {
    std::string out = without_prompts(text);
    while (out.ends_with('\n')) out.pop_back();  // Enter ends the input
    return out;
  };
  editor_ = std::make_unique<Editor>(*terminal_, colour_, std::move(hooks));
}

// ---- text out --------------------------------------------------------------

void Repl::say(std::string_view text) {
  const WokenByInterrupts woken;
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
  say(styled("error", Style::mistake, colour_) + ": " + lang::visible(message) +
      "\n");
}

void Repl::show(const lang::Diagnostics& messages) {
  say(lang::render(messages, {colour_}));
}

void Repl::show_value(const std::string& name, const ShownValue& value) {
  if (value.type.empty()) return say(fmt::format("{}: {}\n", name, value.text));
  const std::string head =
      styled(fmt::format("{}: {}", name, value.type), Style::dim, colour_);
  if (value.text.empty()) return say(head + "\n");
  say(fmt::format("{}{}{}\n", head, value.one_line ? " = " : "\n", value.text));
}

void Repl::finished(bool interrupted) {
  if (progress_) progress_->hide();
  // What a terminal shows for Ctrl-C stands on a line of its own.
  if (interrupted && !edits()) say("\n");
}

std::string Repl::key_hint() const {
  return "Tab completes; Ctrl-C stops what runs; `:help keys` lists the "
         "keys\n";
}

std::string Repl::key_list() const {
  std::string keys, help, out;
  const auto flush = [&] {
    if (!help.empty()) out += fmt::format("  {:28} {}\n", keys, help);
  };
  for (const KeyBinding& row : key_bindings()) {
    if (row.help.empty()) {
      keys += fmt::format(", {}", row.key);
      continue;
    }
    flush();
    keys = row.key;
    help = row.help;
  }
  flush();
  return out + "C- is Ctrl, M- is Alt, or Esc before it\n";
}

std::string Repl::prompt() {
  if (!shell_.is_open()) return fmt::format("unisono[{}]> ", shell_.devices());
  std::map<std::string, int> kinds;
  for (const Device* device : shell_.session().runtime().devices())
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

void Repl::prepare(SessionOptions& options) {
  options.output = [this](std::string_view text) { say(text); };
  if (progress_)
    options.progress = [this](const lang::LoopProgress& loop) {
      if (shell_.settings().progress) progress_->turn(loop);
    };
}

bool Repl::open_session() {
  const Status opened = shell_.open();
  if (!opened) complain(opened.error().message);
  return static_cast<bool>(opened);
}

int Repl::run() {
  const bool at_once = shell_.devices().starts_with("cpu:");
  if (!at_once && !open_session()) return 1;
  hear_all_interrupts();
  say(fmt::format("Unisono {}; :help helps, :quit or Ctrl-D leaves\n",
                  version_));
  const std::string first_prompt =
      at_once ? fmt::format("unisono[{}×cpu]> ", shell_.devices().substr(4))
              : prompt();
  if (edits()) editor_->begin(first_prompt);
  begun_ = edits();
  // The rest is prepared while the user reads, or types.
  if (!shell_.is_open() && !open_session()) return 1;
  if (edits()) editor_->set_history(history_.load());
  while (!left_ && !output_closed_) {
    // One stack for all inputs: a new one takes a tenth of a millisecond.
    shell_.session().walk().on_stack([&] { read_inputs(); });
    shell_.settle();
  }
  return output_closed_ ? 1 : 0;
}

void Repl::read_inputs() {
  for (std::string text;
       !left_ && !output_closed_ && !shell_.wants_devices();) {
    if (!pending_.empty()) {
      pending_ = shell_.obey(std::exchange(pending_, {}));
      continue;
    }
    if (edits() && !begun_) editor_->begin(prompt());
    begun_ = false;
    const Editor::Outcome outcome = read(text);
    forget_interrupt();
    if (outcome == Editor::Outcome::interrupted) say(edits() ? "" : "\n");
    if (outcome == Editor::Outcome::ended) {
      if (!edits()) say("\n");
      return leave();
    }
    if (outcome != Editor::Outcome::text ||
        text.find_first_not_of(" \t\n") == text.npos)
      continue;
    if (edits()) {
      editor_->add_to_history(text);
      if (const Status kept = history_.add(text);
          !kept && std::exchange(history_works_, false))
        say(fmt::format("what is typed is not kept: {}: {}\n", history_path(),
                        kept.error().message));
    }
    pending_ = text;
  }
}

}  // namespace

int run_repl(ReplOptions options) { return Repl(std::move(options)).run(); }

}  // namespace unisono::host
