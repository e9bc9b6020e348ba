#pragma once
// A session that a person talks to: inputs, `:commands` and `?name` go in,
// values and messages come out.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/session/session.h"
#include "runtime/result.h"

namespace unisono::host {

/// How a value is shown.
struct ShownValue {
  /// Its type, and where it lies if it is an array: "f32[3] on cpu:0". Empty
  /// for functions, whose text says all.
  std::string type;
  /// Without controls that a terminal would obey. Empty if the type says all.
  std::string text;
  /// Short enough to stand behind its type.
  bool one_line = false;
};

/// Where a person sees a shell: a terminal, a notebook. Functions are called by
/// the thread that uses the shell.
class Frontend {
 public:
  virtual ~Frontend() = default;
  /// Sets what is the frontend's of the options of a session: its output, and
  /// what it can show beside text.
  virtual void prepare(SessionOptions& options) = 0;
  /// What commands say: lines, each with its end.
  virtual void say(std::string_view text) = 0;
  /// A mistake in a command: one line without its end.
  virtual void complain(const std::string& message) = 0;
  /// Messages about an input, at least one.
  virtual void show(const lang::Diagnostics& messages) = 0;
  /// The value of an input; `name` is "_3".
  virtual void show_value(const std::string& name, const ShownValue& value) = 0;
  /// An input has run, and its messages come; or it was interrupted.
  virtual void finished(bool interrupted) = 0;
  /// The person wants to leave.
  virtual void leave() = 0;
  /// Whether text may have escapes for colours.
  virtual bool has_colours() const = 0;
  /// What the keys do that one needs first: a line with its end.
  virtual std::string key_hint() const = 0;
  /// What all keys do: lines, each with its end.
  virtual std::string key_list() const = 0;
};

struct ShellOptions {
  std::string devices;  // as `--devices` names them
  /// What a session on devices of such a name is opened with; an error in one
  /// line if there are none.
  std::function<Result<SessionOptions>(const std::string& devices)> open;
  bool progress = true;
};

/// What `:set` changes.
struct ShellSettings {
  bool progress = true;   // whether a terminal shows how far loops are
  bool time = false;      // after each input, how long it took
  int64_t results = 100;  // so many values are kept as _1, _2, ...
};

/// An interrupt (host/session/interrupt.h) stops what it runs. Not thread-safe.
class InteractiveShell {
 public:
  /// `frontend` outlives it.
  InteractiveShell(ShellOptions options, Frontend& frontend);
  ~InteractiveShell();

  /// Before all that follows: opens the devices.
  Status open();
  bool is_open() const { return session_ != nullptr; }
  Session& session() { return *session_; }
  Frontend& frontend() { return frontend_; }
  ShellSettings& settings() { return settings_; }
  const std::string& devices() const { return options_.devices; }

  /// Does what the text asks for: a program is run and its value shown, a
  /// command or question answered. Prompts that were copied along are ignored.
  /// Gives what stands below a command that is a line, and was not looked at.
  std::string obey(const std::string& text);
  /// Shows messages that there are, and opens devices that `:devices` asked
  /// for; after `obey`, and not on the stack of the session's walk, which ends
  /// with the old devices.
  void settle();
  bool wants_devices() const { return wanted_devices_.has_value(); }
  /// The next program is input `number`, its value `_NUMBER`; without this it
  /// is one more than the last one.
  void set_next_number(int number) { input_count_ = number - 1; }

  // ---- for commands

  void say(std::string_view text) { frontend_.say(text); }
  void complain(const std::string& message) { frontend_.complain(message); }
  /// Reads, checks and runs an input; shows messages, and the value of its last
  /// statement unless a `;` hides it. False if there was an error: then all
  /// names are what they were.
  bool evaluate(const std::string& text);
  /// The same of a file, whose values are not shown.
  bool load(const std::string& path);
  /// Checks a text and gives it to `body`, without anything that stays: names
  /// are afterwards what they were. False if it has errors, or `body` is false.
  bool attempt(const std::string& text,
               const std::function<bool(const lang::Program&)>& body,
               std::optional<lang::Value>* last = nullptr);
  /// In `attempt`: runs the program, and gives its value; nothing after an
  /// error, or if it has none.
  std::optional<ShownValue> value_of(const lang::Program& program);
  /// After this input: other devices, with what this session has.
  void change_devices(const std::string& devices) { wanted_devices_ = devices; }
  /// Imports files anew, and loads those of `load` again.
  void reload();
  /// Inputs that had no error, and texts of files that were loaded.
  const std::vector<std::string>& inputs() const { return inputs_; }
  /// Another one each time, from 1 on.
  int next_number() { return ++numbers_; }
  /// The code of the last error; empty if there was none.
  const std::string& last_code() const { return last_code_; }

 private:
  Result<SessionOptions> opened(const std::string& devices);
  void open_devices(const std::string& devices);
  /// `?name`, `exit`, `help(name)`: false if it is none of these.
  bool answer(std::string_view question);
  bool run_input(const std::string& path, const std::string& text,
                 bool show_value);
  ShownValue shown(const lang::Value& value);
  void keep_result(const lang::Value& value, lang::Span where);
  void show_messages();

  ShellOptions options_;
  Frontend& frontend_;
  ShellSettings settings_;
  std::unique_ptr<Session> session_;
  int input_count_ = 0, numbers_ = 0;
  std::vector<int> results_;  // the numbers of those that are kept
  std::vector<std::string> inputs_, loaded_;
  std::string last_code_;
  std::optional<std::string> wanted_devices_;
};

}  // namespace unisono::host
