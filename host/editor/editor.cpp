#include "host/editor/editor.h"

#include <algorithm>
#include <utility>

#include "lang/source/utf8.h"

namespace unisono::host {

std::string indent_after(std::string_view line) {
  std::string indent(
      line.substr(0, std::min(line.find_first_not_of(' '), line.size())));
  const size_t last = line.find_last_not_of(' ');
  if (last != line.npos &&
      std::string_view("{[(").find(line[last]) != line.npos)
    indent += "  ";
  return indent;
}

struct Editor::Binding {
  KeyBinding row;
  void (Editor::*function)();
};

const std::vector<Editor::Binding>& Editor::bindings() {
  static const std::vector<Binding> all = {
#define BINDING(key, function, help) {{key, help}, &Editor::function},
#include "host/editor/bindings.def"
  };
  return all;
}

const std::vector<KeyBinding>& key_bindings() {
  static const std::vector<KeyBinding> all = {
#define BINDING(key, function, help) {key, help},
#include "host/editor/bindings.def"
  };
  return all;
}

// ---- one input -------------------------------------------------------------

void Editor::begin(std::string prompt) {
  prompt_ = std::move(prompt);
  buffer_.clear();
  history_at_ = history_.size();
  typed_.clear();
  search_ = {};
  candidates_ = {};
  done_ = cut_before_ = put_before_ = moved_up_ = false;
  terminal_.set(Terminal::Mode::editing);
  terminal_.write("\x1b[?2004h");  // pastes shall be marked
  draw();
}

Editor::Outcome Editor::read(std::string& text) {
  while (!done_) {
    const KeyPress key = keys_.next();
    press(key);
    if (terminal_.closed()) {
      outcome_ = Outcome::ended;
      done_ = true;
    }
    if (!done_ && !keys_.has_more()) draw();
  }
  leave_candidates();
  buffer_.move_to(buffer_.text().size());
  draw();
  screen_.finish();
  terminal_.write("\x1b[?2004l");
  terminal_.set(Terminal::Mode::running);
  text = buffer_.text();
  return outcome_;
}

void Editor::press(const KeyPress& key) {
  cuts_ = puts_ = moves_up_ = false;
  bool done = false;
  if (search_.active) search_step(key, done);
  if (done) return;
  const bool completes = key.name == "tab" || key.name == "back-tab" ||
                         key.kind == KeyPress::Kind::resized;
  if (!completes) leave_candidates();
  switch (key.kind) {
    case KeyPress::Kind::text:
      buffer_.insert(key.text, true);
      if (key.text.size() == 1) dedent();
      break;
    case KeyPress::Kind::paste:
      buffer_.insert(hooks_.pasted ? hooks_.pasted(key.text) : key.text);
      break;
    case KeyPress::Kind::resized: screen_.resized(); return;
    case KeyPress::Kind::ended:
      outcome_ = Outcome::ended;
      done_ = true;
      break;
    case KeyPress::Kind::key:
      for (const Binding& binding : bindings())
        if (binding.row.key == key.name) {
          (this->*binding.function)();
          break;
        }
  }
  cut_before_ = cuts_;
  put_before_ = puts_;
  moved_up_ = moves_up_;
}

void Editor::draw() {
  View view{prompt_, buffer_.text(), buffer_.cursor()};
  std::string prompt;
  if (search_.active) {
    prompt = std::string(search_.failed ? "(nothing has) " : "(search) ") +
             search_.wanted + ": ";
    view.prompt = prompt;
  }
  if (hooks_.styles) view.styles = hooks_.styles(view.text);
  show_candidates(view);
  screen_.show(view);
}

// ---- ends and lines --------------------------------------------------------

void Editor::accept() {
  if (!hooks_.complete(buffer_.text())) return indent_new_line();
  outcome_ = Outcome::text;
  done_ = true;
}

void Editor::new_line() { indent_new_line(); }

/// A paste that is not marked brings its own indentation.
void Editor::indent_new_line() {
  const std::string& text = buffer_.text();
  const size_t start = buffer_.line_start(buffer_.cursor());
  std::string indent = indent_after(
      std::string_view(text).substr(start, buffer_.cursor() - start));
  if (keys_.has_more()) indent.clear();
  buffer_.insert("\n" + indent);
}

/// A bracket that closes, alone on its line, stands where that began which it
/// closes.
void Editor::dedent() {
  const size_t start = buffer_.line_start(buffer_.cursor());
  const std::string line =
      buffer_.text().substr(start, buffer_.cursor() - start);
  const bool closes =
      line.size() > 2 && line.find_first_not_of(' ') == line.size() - 1 &&
      std::string_view("}])").find(line.back()) != std::string_view::npos;
  if (closes) buffer_.replace_from(start, line.substr(2));
}

void Editor::interrupt() {
  outcome_ = Outcome::interrupted;
  done_ = true;
}

void Editor::erase_or_end() {
  if (!buffer_.text().empty()) return erase_on();
  outcome_ = Outcome::ended;
  done_ = true;
}

void Editor::suspend() {
  screen_.finish();
  terminal_.write("\x1b[?2004l");
  terminal_.suspend();
  terminal_.set(Terminal::Mode::editing);
  terminal_.write("\x1b[?2004h");
}

void Editor::clear_screen() { screen_.clear(); }

// ---- moving ----------------------------------------------------------------

void Editor::char_left() { buffer_.move_to(buffer_.before(buffer_.cursor())); }
void Editor::char_right() { buffer_.move_to(buffer_.after(buffer_.cursor())); }
void Editor::word_left() {
  buffer_.move_to(buffer_.word_before(buffer_.cursor()));
}
void Editor::word_right() {
  buffer_.move_to(buffer_.word_after(buffer_.cursor()));
}
void Editor::line_start() {
  buffer_.move_to(buffer_.line_start(buffer_.cursor()));
}
void Editor::line_end() { buffer_.move_to(buffer_.line_end(buffer_.cursor())); }
void Editor::text_start() { buffer_.move_to(0); }
void Editor::text_end() { buffer_.move_to(buffer_.text().size()); }

void Editor::line_up() {
  const size_t above = buffer_.above(buffer_.cursor());
  if (above != std::string::npos && !moved_up_) return buffer_.move_to(above);
  if (!moved_up_) begins_with_ = buffer_.text().substr(0, buffer_.cursor());
  moves_up_ = true;
  for (size_t entry = history_at_; entry-- > 0;)
    if (history_[entry].starts_with(begins_with_) &&
        history_[entry] != buffer_.text())
      return go_to_history(entry);
}

void Editor::line_down() {
  const size_t below = buffer_.below(buffer_.cursor());
  if (below != std::string::npos && !moved_up_) return buffer_.move_to(below);
  if (!moved_up_) begins_with_.clear();
  moves_up_ = true;
  for (size_t entry = history_at_ + 1; entry < history_.size(); ++entry)
    if (history_[entry].starts_with(begins_with_) &&
        history_[entry] != buffer_.text())
      return go_to_history(entry);
  if (history_at_ < history_.size()) go_to_history(history_.size());
}

// ---- history ---------------------------------------------------------------

void Editor::go_to_history(size_t entry) {
  if (history_at_ == history_.size()) typed_ = buffer_.text();
  history_at_ = entry;
  buffer_.set(entry == history_.size() ? typed_ : history_[entry]);
}

void Editor::set_history(std::vector<std::string> inputs) {
  history_ = std::move(inputs);
  history_at_ = history_.size();
}

void Editor::add_to_history(const std::string& input) {
  if (history_.empty() || history_.back() != input) history_.push_back(input);
}

void Editor::history_back() {
  if (history_at_ > 0) go_to_history(history_at_ - 1);
}
void Editor::history_on() {
  if (history_at_ < history_.size()) go_to_history(history_at_ + 1);
}

void Editor::search() {
  search_ = {true, false, {}, history_.size(), buffer_.text()};
}

/// The newest entry before `from` that has the text.
void Editor::find_match(size_t from) {
  for (size_t entry = std::min(from, history_.size()); entry-- > 0;) {
    const size_t found = history_[entry].find(search_.wanted);
    if (found == std::string::npos) continue;
    search_.at = entry;
    search_.failed = false;
    buffer_.set(history_[entry]);
    buffer_.move_to(found);
    return;
  }
  search_.failed = true;
}

void Editor::search_step(const KeyPress& key, bool& done) {
  done = true;
  if (key.kind == KeyPress::Kind::text) {
    search_.wanted += key.text;
    return find_match(search_.at + 1);
  }
  if (key.name == "C-r") return find_match(search_.at);
  if (key.name == "backspace") {
    while (!search_.wanted.empty()) {
      const bool tail = (search_.wanted.back() & 0xC0) == 0x80;
      search_.wanted.pop_back();
      if (!tail) break;
    }
    return find_match(history_.size());
  }
  search_.active = false;
  if (key.name == "C-g" || key.name == "C-c") {
    buffer_.set(search_.before);
    return;
  }
  history_at_ = std::min(search_.at, history_.size());
  done = key.name == "escape";  // any other key does what it does
}

// ---- changing --------------------------------------------------------------

void Editor::erase_back() {
  buffer_.erase(buffer_.before(buffer_.cursor()), buffer_.cursor());
}
void Editor::erase_on() {
  buffer_.erase(buffer_.cursor(), buffer_.after(buffer_.cursor()));
}
void Editor::cut_line_end() {
  const size_t cursor = buffer_.cursor(), end = buffer_.line_end(cursor);
  buffer_.cut(cursor, end == cursor ? buffer_.after(cursor) : end, cut_before_);
  cuts_ = true;
}
void Editor::cut_line_start() {
  buffer_.cut(buffer_.line_start(buffer_.cursor()), buffer_.cursor(),
              cut_before_);
  cuts_ = true;
}
void Editor::cut_word_back() {
  buffer_.cut(buffer_.word_before(buffer_.cursor()), buffer_.cursor(),
              cut_before_);
  cuts_ = true;
}
void Editor::cut_word_on() {
  buffer_.cut(buffer_.cursor(), buffer_.word_after(buffer_.cursor()),
              cut_before_);
  cuts_ = true;
}
void Editor::paste_cut() {
  buffer_.paste_cut();
  puts_ = true;
}
void Editor::paste_previous_cut() {
  if (put_before_) buffer_.paste_previous_cut();
  puts_ = put_before_;
}
void Editor::transpose() { buffer_.transpose(); }
void Editor::upper() { buffer_.change_word(LineBuffer::Case::upper); }
void Editor::lower() { buffer_.change_word(LineBuffer::Case::lower); }
void Editor::capital() { buffer_.change_word(LineBuffer::Case::capital); }
void Editor::undo() { buffer_.undo(); }

// ---- completion ------------------------------------------------------------

void Editor::complete() {
  const std::string& text = buffer_.text();
  const size_t start = buffer_.line_start(buffer_.cursor());
  const bool indents = text.find_first_not_of(' ', start) >= buffer_.cursor();
  // At the start of a line, and in a paste that is not marked, it is a tab.
  if ((indents && start > 0) || !hooks_.completions || keys_.has_more())
    return buffer_.insert("  ");
  complete_by(1);
}

void Editor::complete_back() { complete_by(-1); }

void Editor::complete_by(int step) {
  Candidates& c = candidates_;
  if (c.shown) {
    const int count = static_cast<int>(c.all.words.size());
    c.chosen = c.chosen < 0 && step < 0 ? count - 1
                                        : (c.chosen + step + count) % count;
    return buffer_.replace_from(c.all.begin,
                                c.all.words[static_cast<size_t>(c.chosen)]);
  }
  if (!hooks_.completions) return;
  c.all = hooks_.completions(buffer_.text(), buffer_.cursor());
  if (c.all.words.empty()) return;
  std::string common = c.all.words[0];
  for (const std::string& word : c.all.words) {
    const auto [end, other] =
        std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(end, common.end());
  }
  while (!common.empty() && (common.back() & 0xC0) == 0x80) common.pop_back();
  const size_t typed = buffer_.cursor() - c.all.begin;
  if (common.size() > typed || c.all.words.size() == 1)
    buffer_.replace_from(c.all.begin, common);
  c.shown = c.all.words.size() > 1;
}

void Editor::leave_candidates() { candidates_ = {}; }

void Editor::cancel() {}

void Editor::show_candidates(View& view) const {
  if (!candidates_.shown) return;
  const TerminalSize size = terminal_.size();
  const auto& words = candidates_.all.words;
  int widest = 1;
  for (const std::string& word : words)
    widest = std::max(widest, lang::display_width(word));
  const int count = static_cast<int>(words.size());
  const int columns = std::max(1, (size.columns - 1) / (widest + 2));
  const int lines = (count + columns - 1) / columns;
  const int room = std::clamp(size.rows / 2 - 1, 1, 12);
  const int chosen_line =
      candidates_.chosen < 0 ? 0 : candidates_.chosen % lines;
  const int first =
      std::clamp(chosen_line - room / 2, 0, std::max(0, lines - room));
  const int end = std::min(lines, first + room);
  for (int line = first; line < end; ++line) {
    std::string text;
    for (int i = line; i < count; i += lines) {
      const std::string& word = words[static_cast<size_t>(i)];
      if (i == candidates_.chosen) {
        view.chosen_line = line - first;
        view.chosen_begin = text.size();
        view.chosen_end = text.size() + word.size();
      }
      text += word;
      text.append(static_cast<size_t>(widest + 2 - lang::display_width(word)),
                  ' ');
    }
    view.below.push_back(std::move(text));
  }
  if (end < lines)
    view.below.push_back("... " + std::to_string(count) + " in all");
}

}  // namespace unisono::host
