#include "host/editor/screen.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

constexpr int tab_columns = 4;

/// One character of a text as it is shown: escapes for what a terminal would
/// obey.
struct Glyph {
  std::string_view bytes;  // of the text
  std::string shown;
  int width = 1;
};

Glyph glyph_at(std::string_view text, size_t at) {
  const lang::CodePoint point = lang::decode_utf8(text, at);
  if (point.length == 0)
    return {text.substr(at, 1),
            fmt::format("\\x{:02x}", static_cast<uint8_t>(text[at])), 4};
  const std::string_view bytes = text.substr(at, point.length);
  if (point.value == '\t')
    return {bytes, std::string(tab_columns, ' '), tab_columns};
  if (point.value < 0x20)
    return {bytes, {'^', static_cast<char>(point.value | 0x40)}, 2};
  if (lang::is_unprintable(point.value)) {
    std::string name =
        fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(point.value));
    const int width = static_cast<int>(name.size());
    return {bytes, std::move(name), width};
  }
  return {bytes, std::string(bytes), lang::display_width(point.value)};
}

/// Puts characters into rows; only those of a window are kept.
class Layout {
 public:
  Layout(int columns, bool colour) : columns_(columns), colour_(colour) {
    rows_.emplace_back();
  }

  void add(std::string_view text, Style style) {
    for (size_t at = 0; at < text.size();) {
      const Glyph glyph = glyph_at(text, at);
      put(glyph, style);
      at += glyph.bytes.size();
    }
  }
  void put(const Glyph& glyph, Style style) {
    make_room(glyph.width);
    if (style != style_ && colour_) {
      if (style_ != Style::plain) rows_.back() += escape_end;
      rows_.back() += escape_of(style);
      style_ = style;
    }
    rows_.back() += glyph.shown;
    width_ += glyph.width;
  }
  /// A row has place for so many columns more, or another one begins.
  void make_room(int width) {
    if (width_ + width > columns_) new_row();
  }
  void new_row() {
    if (style_ != Style::plain) rows_.back() += escape_end;
    style_ = Style::plain;
    widths_.push_back(width_);
    rows_.emplace_back();
    width_ = 0;
  }
  int row() const { return static_cast<int>(rows_.size()) - 1; }
  int column() const { return width_; }
  std::vector<std::string> take_rows(std::vector<int>& widths) {
    new_row();
    rows_.pop_back();
    widths = std::move(widths_);
    return std::move(rows_);
  }

 private:
  int columns_;
  bool colour_;
  Style style_ = Style::plain;
  int width_ = 0;
  std::vector<std::string> rows_;
  std::vector<int> widths_;
};

/// At most `columns` wide.
std::string cut(std::string_view text, int columns, int& width) {
  std::string out;
  width = 0;
  for (size_t at = 0; at < text.size();) {
    const Glyph glyph = glyph_at(text, at);
    if (width + glyph.width > columns) break;
    out += glyph.shown;
    width += glyph.width;
    at += glyph.bytes.size();
  }
  return out;
}

}  // namespace

std::string_view escape_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::keyword: return "\x1b[35m";
    case Style::name: return "\x1b[36m";
    case Style::type: return "\x1b[33m";
    case Style::number: return "\x1b[34m";
    case Style::string: return "\x1b[32m";
    case Style::comment: return "\x1b[2m";
    case Style::mistake: return "\x1b[31m";
    case Style::prompt: return "\x1b[1;32m";
    case Style::dim: return "\x1b[2m";
    case Style::chosen: return "\x1b[7m";
  }
  __builtin_unreachable();
}

std::string styled(std::string_view text, Style style, bool colour) {
  if (!colour || text.empty() || style == Style::plain)
    return std::string(text);
  return fmt::format("{}{}{}", escape_of(style), text, escape_end);
}

void Screen::show(const View& view) {
  const TerminalSize size = terminal_.size();
  // A character in the last column leaves the cursor in doubt.
  Layout layout(size.columns, colour_);
  layout.add(view.prompt, Style::prompt);
  const int indent =
      std::min(lang::display_width(view.prompt), size.columns / 2);
  const std::string more =
      indent < 4 ? std::string(static_cast<size_t>(indent), ' ')
                 : std::string(static_cast<size_t>(indent) - 4, ' ') + "... ";
  int cursor_row = 0, cursor_column = 0;
  for (size_t at = 0; at < view.text.size();) {
    const bool line_end = view.text[at] == '\n';
    const Glyph glyph = line_end ? Glyph{view.text.substr(at, 1), "", 0}
                                 : glyph_at(view.text, at);
    if (glyph.width > 0) layout.make_room(glyph.width);
    if (at == view.cursor) {
      cursor_row = layout.row();
      cursor_column = std::min(layout.column(), size.columns - 1);
    }
    if (line_end) {
      layout.new_row();
      layout.add(more, Style::dim);
    } else {
      layout.put(glyph,
                 at < view.styles.size() ? view.styles[at] : Style::plain);
    }
    at += glyph.bytes.size();
  }
  if (view.cursor >= view.text.size()) {
    layout.make_room(1);
    cursor_row = layout.row();
    cursor_column = layout.column();
  }
  std::vector<int> widths;
  std::vector<std::string> rows = layout.take_rows(widths);

  // Of a tall text the part around the cursor.
  const int all = static_cast<int>(rows.size());
  const int below =
      std::min(static_cast<int>(view.below.size()), std::max(0, size.rows - 2));
  const int room = std::max(1, size.rows - below);
  if (all <= room) first_ = 0;
  first_ = std::clamp(first_, std::max(0, cursor_row - room + 1), cursor_row);
  first_ = std::min(first_, std::max(0, all - room));
  const int last = std::min(all, first_ + room);
  rows = {rows.begin() + first_, rows.begin() + last};
  widths = {widths.begin() + first_, widths.begin() + last};
  for (int i = 0; i < below; ++i) {
    int width = 0;
    std::string line = view.below[static_cast<size_t>(i)];
    if (i == view.chosen_line && colour_ && view.chosen_end <= line.size()) {
      const std::string_view text = line;
      int first = 0, middle = 0, rest = 0;
      const std::string a =
          cut(text.substr(0, view.chosen_begin), size.columns - 1, first);
      const std::string b = cut(
          text.substr(view.chosen_begin, view.chosen_end - view.chosen_begin),
          size.columns - 1 - first, middle);
      const std::string c = cut(text.substr(view.chosen_end),
                                size.columns - 1 - first - middle, rest);
      line = a + styled(b, Style::chosen, true) + c;
      width = first + middle + rest;
    } else {
      line = styled(cut(line, size.columns - 1, width), Style::dim, colour_);
    }
    rows.push_back(std::move(line));
    widths.push_back(width);
  }

  std::string out;
  if (cursor_row_ > 0) out += fmt::format("\x1b[{}A", cursor_row_);
  out += '\r';
  for (size_t i = 0; i < rows.size(); ++i)
    out += rows[i] + (widths[i] < size.columns ? "\x1b[K" : "") +
           (i + 1 < rows.size() ? "\r\n" : "");
  out += "\x1b[J";
  widths_ = std::move(widths);
  cursor_row_ = cursor_row - first_;
  cursor_column_ = cursor_column;
  const int up = static_cast<int>(widths_.size()) - 1 - cursor_row_;
  if (up > 0) out += fmt::format("\x1b[{}A", up);
  out += '\r';
  if (cursor_column_ > 0) out += fmt::format("\x1b[{}C", cursor_column_);
  terminal_.write(out);
}

void Screen::finish() {
  const int down = static_cast<int>(widths_.size()) - 1 - cursor_row_;
  if (!widths_.empty())
    terminal_.write((down > 0 ? fmt::format("\x1b[{}B", down) : "") + "\r\n");
  widths_.clear();
  cursor_row_ = cursor_column_ = first_ = 0;
}

void Screen::resized() {
  // Rows that have become too long are several now.
  const int columns = terminal_.size().columns;
  int above = cursor_column_ / columns;
  for (int i = 0; i < cursor_row_; ++i)
    above +=
        std::max(1, (widths_[static_cast<size_t>(i)] + columns - 1) / columns);
  cursor_row_ = above;
}

void Screen::clear() {
  terminal_.write("\x1b[H\x1b[2J");
  widths_.clear();
  cursor_row_ = cursor_column_ = first_ = 0;
}

}  // namespace unisono::host
