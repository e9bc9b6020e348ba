#pragma once
// What an input looks like on the terminal: wrapped, coloured, and with a part
// of it alone if it is taller than the terminal.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/editor/terminal.h"

namespace unisono::host {

enum class Style : uint8_t {
  plain,
  keyword,
  name,
  type,
  number,
  string,
  comment,
  mistake,
  prompt,
  dim,
  chosen,
};
/// What switches a terminal to it, from plain: "\x1b[34m".
std::string_view escape_of(Style style);
/// What switches back.
inline constexpr std::string_view escape_end = "\x1b[0m";
/// The text in a style, if `colour`, else as it is.
std::string styled(std::string_view text, Style style, bool colour);

/// What is shown.
struct View {
  std::string_view prompt;
  std::string_view text;
  size_t cursor = 0;
  /// Of each byte of the text; or nothing.
  std::vector<Style> styles = {};
  /// Lines below it, without controls; cut at the terminal's width.
  std::vector<std::string> below = {};
  /// The line of these that is chosen, or -1: its bytes.
  int chosen_line = -1;
  size_t chosen_begin = 0, chosen_end = 0;
};

/// Not thread-safe.
class Screen {
 public:
  Screen(Terminal& terminal, bool colour)
      : terminal_(terminal), colour_(colour) {}
  /// Draws it where the last one was drawn, or where the cursor is, at the
  /// start of a line.
  void show(const View& view);
  /// The last one stays, and the cursor is at the start of the line below.
  void finish();
  /// The terminal has another size, and has moved what it shows.
  void resized();
  /// Clears the terminal; the next drawing begins at its top.
  void clear();

 private:
  struct Row {
    std::string text;
    int width = 0;
  };
  Terminal& terminal_;
  bool colour_;
  std::vector<int> widths_;  // of the rows that are drawn
  int cursor_row_ = 0, cursor_column_ = 0;
  int first_ = 0;  // the first row of a tall text that is shown
};

}  // namespace unisono::host
