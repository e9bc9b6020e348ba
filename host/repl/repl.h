#pragma once
// The session on a terminal.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/editor/editor.h"
#include "host/editor/terminal.h"
#include "host/repl/history.h"
#include "host/session/progress.h"
#include "host/session/session.h"

namespace unisono::host {

struct ReplOptions {
  std::string devices;  // as `--devices` names them
  /// What a session on devices of such a name is opened with; an error in one
  /// line if there are none. Output, stop flag and progress are the REPL's.
  std::function<Result<SessionOptions>(const std::string& devices)> open;
  std::string version;
  bool progress = true;  // `--no-progress` was not given
};

/// Reads inputs from standard input, which is a terminal, until it ends. Gives
/// the exit status: 0; 1 if there are no such devices, or the output cannot be
/// written any more.
int run_repl(ReplOptions options);

/// What `:set` changes.
struct ReplSettings {
  bool colour = false;
  bool progress = true;
  bool time = false;      // after each input, how long it took
  int64_t results = 100;  // so many values are kept as _1, _2, ...
};

/// The loop and its state; what is public is for commands. Not thread-safe.
class Repl {
 public:
  explicit Repl(ReplOptions options);
  ~Repl();
  int run();

  Session& session() { return *session_; }
  ReplSettings& settings() { return settings_; }
  const std::string& devices() const { return options_.devices; }
  /// Writes lines, each with its end.
  void say(std::string_view text);
  /// The same of a mistake in a command.
  void complain(const std::string& message);
  void leave() { left_ = true; }

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
  /// After this input: other devices, with what this session has.
  void change_devices(const std::string& devices) { wanted_devices_ = devices; }
  /// Imports files anew, and loads those of `load` again.
  void reload();
  /// Inputs that had no error, and names of files that were loaded.
  const std::vector<std::string>& inputs() const { return inputs_; }
  /// Another one each time, from 1 on.
  int next_number() { return ++numbers_; }
  /// The code of the last error; empty if there was none.
  const std::string& last_code() const { return last_code_; }
  /// "_3: f32[3] on cpu:0", the value below it.
  std::string shown(const std::string& name, const lang::Value& value);

 private:
  bool open_session();
  void open_devices(const std::string& devices);
  /// Until there is nothing more to read, or devices are to be changed, which
  /// ends the walk whose stack this runs on.
  void read_inputs();
  SessionOptions prepared(SessionOptions options);
  std::string prompt() const;
  Editor::Outcome read(std::string& text);
  Editor::Outcome read_plain(std::string& text);
  void obey(const std::string& text);
  bool run_input(const std::string& path, const std::string& text,
                 bool show_value);
  void keep_result(const lang::Value& value, lang::Span where);
  void show_messages();
  bool edits() const { return editor_ != nullptr; }

  ReplOptions options_;
  ReplSettings settings_;
  std::unique_ptr<Terminal> terminal_;
  std::unique_ptr<Editor> editor_;
  std::unique_ptr<ProgressBar> progress_;
  HistoryFile history_;
  bool history_works_ = true;
  std::unique_ptr<Session> session_;
  int input_count_ = 0, numbers_ = 0;
  std::vector<int> results_;  // the numbers of those that are kept
  std::vector<std::string> inputs_, loaded_;
  std::string last_code_;
  std::string plain_rest_;  // read, and not taken yet
  std::optional<std::string> wanted_devices_;
  bool begun_ = false;  // the editor shows the prompt of the next input
  bool left_ = false, output_closed_ = false;
};

}  // namespace unisono::host
