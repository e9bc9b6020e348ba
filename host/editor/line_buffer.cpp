#include "host/editor/line_buffer.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

constexpr size_t most_cuts = 32;
constexpr size_t most_undo_bytes = size_t{32} << 20;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}

}  // namespace

void LineBuffer::remember() {
  undo_.push_back({text_, cursor_});
  undo_bytes_ += text_.size();
  while (undo_bytes_ > most_undo_bytes && undo_.size() > 1) {
    undo_bytes_ -= undo_.front().text.size();
    undo_.pop_front();
  }
  typing_ = false;
}

void LineBuffer::undo() {
  typing_ = false;
  if (undo_.empty()) return;
  undo_bytes_ -= undo_.back().text.size();
  text_ = std::move(undo_.back().text);
  cursor_ = undo_.back().cursor;
  undo_.pop_back();
}

void LineBuffer::set(std::string text) {
  if (text == text_) {
    cursor_ = text_.size();
    return;
  }
  remember();
  text_ = std::move(text);
  cursor_ = text_.size();
}

void LineBuffer::clear() {
  text_.clear();
  cursor_ = 0;
  undo_.clear();
  undo_bytes_ = 0;
  typing_ = false;
}

void LineBuffer::insert(std::string_view text, bool typed) {
  const bool begins = text.find(' ') != text.npos;
  if (!typed || !typing_ || begins) remember();
  typing_ = typed;
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineBuffer::replace_from(size_t begin, std::string_view text) {
  remember();
  text_.replace(begin, cursor_ - begin, text);
  cursor_ = begin + text.size();
}

size_t LineBuffer::after(size_t position) const {
  if (position >= text_.size()) return text_.size();
  const auto length = [&](size_t at) -> size_t {
    return std::max(lang::decode_utf8(text_, at).length, 1U);
  };
  position += length(position);
  while (position < text_.size()) {
    const lang::CodePoint next = lang::decode_utf8(text_, position);
    if (next.length < 2 || lang::display_width(next.value) != 0) break;
    position += next.length;
  }
  return position;
}

size_t LineBuffer::before(size_t position) const {
  while (position > 0) {
    size_t begin = position - 1;
    for (size_t back = 1; back < 4 && begin > 0 &&
                          (static_cast<uint8_t>(text_[begin]) & 0xC0) == 0x80;
         ++back)
      --begin;
    const lang::CodePoint point = lang::decode_utf8(text_, begin);
    if (point.length != position - begin) return position - 1;  // no UTF-8
    position = begin;
    if (lang::display_width(point.value) != 0 || point.length < 2) break;
  }
  return position;
}

size_t LineBuffer::word_before(size_t position) const {
  while (position > 0 && !is_word(text_[position - 1])) --position;
  while (position > 0 && is_word(text_[position - 1])) --position;
  return position;
}

size_t LineBuffer::word_after(size_t position) const {
  while (position < text_.size() && !is_word(text_[position])) ++position;
  while (position < text_.size() && is_word(text_[position])) ++position;
  return position;
}

size_t LineBuffer::line_start(size_t position) const {
  const size_t end =
      position == 0 ? text_.npos : text_.rfind('\n', position - 1);
  return end == text_.npos ? 0 : end + 1;
}

size_t LineBuffer::line_end(size_t position) const {
  return std::min(text_.find('\n', position), text_.size());
}

size_t LineBuffer::column_in(size_t begin, size_t position) const {
  return static_cast<size_t>(lang::display_width(
      std::string_view(text_).substr(begin, position - begin)));
}

size_t LineBuffer::at_column(size_t begin, size_t column) const {
  size_t position = begin;
  const size_t end = line_end(begin);
  while (position < end && column_in(begin, after(position)) <= column)
    position = after(position);
  return position;
}

size_t LineBuffer::above(size_t position) const {
  const size_t start = line_start(position);
  if (start == 0) return text_.npos;
  return at_column(line_start(start - 1), column_in(start, position));
}

size_t LineBuffer::below(size_t position) const {
  const size_t end = line_end(position);
  if (end == text_.size()) return text_.npos;
  return at_column(end + 1, column_in(line_start(position), position));
}

void LineBuffer::erase(size_t begin, size_t end) {
  if (begin >= end) return;
  remember();
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void LineBuffer::cut(size_t begin, size_t end, bool again) {
  if (begin >= end) return;
  const std::string piece = text_.substr(begin, end - begin);
  const bool backwards = end == cursor_;
  if (!again || cuts_.empty())
    cuts_.push_back(piece);
  else if (backwards)
    cuts_.back().insert(0, piece);
  else
    cuts_.back() += piece;
  if (cuts_.size() > most_cuts) cuts_.erase(cuts_.begin());
  erase(begin, end);
}

void LineBuffer::paste_cut() {
  if (cuts_.empty()) return;
  chosen_cut_ = cuts_.size() - 1;
  pasted_begin_ = cursor_;
  insert(cuts_[chosen_cut_]);
}

void LineBuffer::paste_previous_cut() {
  if (cuts_.empty()) return;
  chosen_cut_ = (chosen_cut_ + cuts_.size() - 1) % cuts_.size();
  replace_from(pasted_begin_, cuts_[chosen_cut_]);
}

void LineBuffer::transpose() {
  const size_t right = cursor_ == line_end(cursor_) ? before(cursor_) : cursor_;
  if (right == line_start(right)) return;
  const size_t left = before(right), end = after(right);
  const std::string swapped =
      text_.substr(right, end - right) + text_.substr(left, right - left);
  cursor_ = end;
  replace_from(left, swapped);
}

void LineBuffer::change_word(Case wanted) {
  const size_t end = word_after(cursor_);
  std::string word = text_.substr(cursor_, end - cursor_);
  bool first = true;
  for (char& c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalpha(byte)) continue;
    const bool upper =
        wanted == Case::upper || (wanted == Case::capital && first);
    c = static_cast<char>(upper ? std::toupper(byte) : std::tolower(byte));
    first = false;
  }
  const size_t begin = cursor_;
  cursor_ = end;
  replace_from(begin, word);
}

}  // namespace unisono::host
