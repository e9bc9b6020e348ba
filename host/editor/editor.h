#pragma once
// Reads an input from a terminal, which may have several lines.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "host/editor/keys.h"
#include "host/editor/line_buffer.h"
#include "host/editor/screen.h"
#include "host/editor/terminal.h"

namespace unisono::host {

/// What may stand in the place of the bytes from `begin` to the cursor.
/// What a line begins with that follows `line`: what that begins with, and two
/// spaces more if it ends with a bracket that opens.
std::string indent_after(std::string_view line);

struct Completions {
  size_t begin = 0;
  std::vector<std::string> words = {};
};

/// What the editor asks of who uses it. All but `complete` may be missing.
struct EditorHooks {
  /// Whether Enter ends the input.
  std::function<bool(const std::string& text)> complete;
  /// A style for each byte; nothing for a text that stays plain.
  std::function<std::vector<Style>(std::string_view text)> styles = nullptr;
  std::function<Completions(const std::string& text, size_t cursor)>
      completions = nullptr;
  /// What is inserted for what was pasted.
  std::function<std::string(std::string text)> pasted = nullptr;
};

struct KeyBinding {
  std::string_view key, help;  // no help: like the row before
};
/// All rows of bindings.def.
const std::vector<KeyBinding>& key_bindings();

/// Not thread-safe.
class Editor {
 public:
  Editor(Terminal& terminal, bool colour, EditorHooks hooks)
      : terminal_(terminal),
        screen_(terminal, colour),
        keys_(terminal),
        hooks_(std::move(hooks)) {}

  enum class Outcome { text, interrupted, ended };
  /// Shows the prompt, at the start of a line: what is typed from now on is for
  /// `read`, which the caller may prepare meanwhile.
  void begin(std::string prompt);
  /// The text that was accepted, without what is behind its last line. The
  /// terminal is in mode `running` afterwards.
  Outcome read(std::string& text);

  /// Inputs of before, the newest last.
  void set_history(std::vector<std::string> inputs);
  /// What was typed, unless it is what was typed before it.
  void add_to_history(const std::string& input);

 private:
  struct Binding;
  static const std::vector<Binding>& bindings();
  void press(const KeyPress& key);
  void draw();
  void go_to_history(size_t entry);
  void search_step(const KeyPress& key, bool& done);
  void find_match(size_t from);
  void complete_by(int step);
  void leave_candidates();
  void show_candidates(View& view) const;
  void indent_new_line();
  void dedent();

  // ---- what keys do (bindings.def)
  void accept();
  void new_line();
  void complete();
  void complete_back();
  void char_left();
  void char_right();
  void word_left();
  void word_right();
  void line_start();
  void line_end();
  void text_start();
  void text_end();
  void line_up();
  void line_down();
  void history_back();
  void history_on();
  void search();
  void erase_back();
  void erase_on();
  void erase_or_end();
  void cut_line_end();
  void cut_line_start();
  void cut_word_back();
  void cut_word_on();
  void paste_cut();
  void paste_previous_cut();
  void transpose();
  void upper();
  void lower();
  void capital();
  void undo();
  void clear_screen();
  void interrupt();
  void cancel();
  void suspend();

  Terminal& terminal_;
  Screen screen_;
  KeyReader keys_;
  EditorHooks hooks_;
  LineBuffer buffer_;
  std::string prompt_;
  bool done_ = false;
  Outcome outcome_ = Outcome::text;

  std::vector<std::string> history_;
  size_t history_at_ = 0;    // its size: the input that is being typed
  std::string typed_;        // that one, while another is shown
  std::string begins_with_;  // what `up` looks for

  struct Search {
    bool active = false, failed = false;
    std::string wanted;
    size_t at = 0;
    std::string before;  // the input when it began
  } search_;
  struct Candidates {
    Completions all;
    int chosen = -1;
    bool shown = false;
  } candidates_;
  /// What the last key did: `C-k C-k` cuts one piece, `M-y` follows `C-y`.
  bool cut_before_ = false, cuts_ = false;
  bool put_before_ = false, puts_ = false;
  bool moved_up_ = false, moves_up_ = false;
};

}  // namespace unisono::host
