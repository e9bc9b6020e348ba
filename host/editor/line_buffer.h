#pragma once
// The text that is being edited: a cursor in it, what was cut, what can be
// undone. Positions are bytes, and lie between characters: what is no UTF-8 is
// a character of one byte, and marks belong to the character before them.
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::host {

class LineBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }
  /// Another text, with the cursor at its end; can be undone.
  void set(std::string text);
  void move_to(size_t position) { cursor_ = position; }
  /// What was cut stays; all else begins anew.
  void clear();

  /// At the cursor, which moves behind it. Typed characters are undone word by
  /// word.
  void insert(std::string_view text, bool typed = false);
  /// Puts `text` in the place of the bytes from `begin` to the cursor.
  void replace_from(size_t begin, std::string_view text);

  size_t before(size_t position) const;  // the character before
  size_t after(size_t position) const;
  size_t word_before(size_t position) const;
  size_t word_after(size_t position) const;
  size_t line_start(size_t position) const;
  size_t line_end(size_t position) const;
  /// The same column of the line above or below; npos if there is none.
  size_t above(size_t position) const;
  size_t below(size_t position) const;

  void erase(size_t begin, size_t end);
  /// Cuts: what is cut in a row, forwards or backwards, is one piece.
  void cut(size_t begin, size_t end, bool again);
  void paste_cut();
  /// What was pasted by paste_cut() straight before becomes the cut before it.
  void paste_previous_cut();

  void transpose();
  enum class Case { upper, lower, capital };
  void change_word(Case wanted);

  void undo();

 private:
  struct State {
    std::string text;
    size_t cursor;
  };
  void remember();
  size_t column_in(size_t begin, size_t position) const;
  size_t at_column(size_t begin, size_t column) const;

  std::string text_;
  size_t cursor_ = 0;
  std::vector<std::string> cuts_;
  size_t chosen_cut_ = 0, pasted_begin_ = 0;
  std::deque<State> undo_;
  size_t undo_bytes_ = 0;
  bool typing_ = false;  // what is typed now belongs to the last state
};

}  // namespace unisono::host
