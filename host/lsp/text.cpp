#include "host/lsp/text.h"

#include <algorithm>
#include <utility>

namespace unisono::host::lsp {
namespace {

/// Marks of how many units stand before a byte, one in so many bytes: lines may
/// be as long as the text.
constexpr uint32_t mark_bytes = 1024;

/// The units that a byte begins: none if it continues a character.
uint32_t units_of(char byte, Encoding encoding) {
  const auto c = static_cast<unsigned char>(byte);
  switch (encoding) {
    case Encoding::utf8: return 1;
    case Encoding::utf16: return (c & 0xC0) == 0x80 ? 0 : c >= 0xF0 ? 2 : 1;
    case Encoding::utf32: return (c & 0xC0) == 0x80 ? 0 : 1;
  }
  return 1;
}

/// Whether a character begins with this byte.
bool is_first(char byte) { return (byte & 0xC0) != 0x80; }

}  // namespace

uint32_t units(std::string_view text, Encoding encoding) {
  if (encoding == Encoding::utf8) return static_cast<uint32_t>(text.size());
  uint32_t count = 0;
  for (const char c : text) count += units_of(c, encoding);
  return count;
}

Text::Text(std::string text) : text_(std::move(text)) { find_lines(); }

void Text::find_lines() {
  line_starts_.assign(1, 0);
  for (size_t at = 0;
       (at = text_.find_first_of("\r\n", at)) != std::string::npos;) {
    const bool two = text_.compare(at, 2, "\r\n") == 0;
    at += two ? 2 : 1;
    line_starts_.push_back(static_cast<uint32_t>(at));
  }
  marks_.assign(1, {});
  for (size_t at = mark_bytes; at <= text_.size(); at += mark_bytes) {
    const std::string_view part =
        std::string_view(text_).substr(at - mark_bytes, mark_bytes);
    marks_.push_back({marks_.back().utf16 + units(part, Encoding::utf16),
                      marks_.back().utf32 + units(part, Encoding::utf32)});
  }
}

uint32_t Text::units_before(uint32_t offset, Encoding encoding) const {
  if (encoding == Encoding::utf8) return offset;
  const Mark& mark = marks_[offset / mark_bytes];
  const uint32_t begin = offset / mark_bytes * mark_bytes;
  return (encoding == Encoding::utf16 ? mark.utf16 : mark.utf32) +
         units(std::string_view(text_).substr(begin, offset - begin), encoding);
}

std::string_view Text::line(uint32_t number) const {
  const uint32_t begin = line_starts_[number];
  const size_t end = number + 1 < line_starts_.size() ? line_starts_[number + 1]
                                                      : text_.size();
  std::string_view out = std::string_view(text_).substr(begin, end - begin);
  while (out.ends_with('\n') || out.ends_with('\r')) out.remove_suffix(1);
  return out;
}

uint32_t Text::offset(Position position, Encoding encoding) const {
  if (position.line >= line_starts_.size())
    return static_cast<uint32_t>(text_.size());
  const std::string_view text = line(position.line);
  // The character that holds the unit, by its first byte.
  size_t at = 0;
  uint32_t seen = 0;
  for (size_t next = 0; next <= text.size(); ++next) {
    const bool begins = next == text.size() || is_first(text[next]);
    if (begins && seen <= position.character) at = next;
    if (next == text.size() || seen > position.character) break;
    seen += units_of(text[next], encoding);
  }
  return line_starts_[position.line] + static_cast<uint32_t>(at);
}

uint32_t Text::line_of(uint32_t offset) const {
  const auto after =
      std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<uint32_t>(after - line_starts_.begin() - 1);
}

Position Text::position(uint32_t offset, Encoding encoding) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  const uint32_t number = line_of(offset);
  const std::string_view text = line(number);
  size_t end = std::min<size_t>(offset - line_starts_[number], text.size());
  while (end > 0 && end < text.size() && !is_first(text[end])) --end;
  const uint32_t begin = line_starts_[number];
  return {number, units_before(begin + static_cast<uint32_t>(end), encoding) -
                      units_before(begin, encoding)};
}

void Text::replace(Range range, std::string_view with, Encoding encoding) {
  uint32_t begin = offset(range.start, encoding);
  uint32_t end = offset(range.end, encoding);
  if (end < begin) std::swap(begin, end);
  text_.replace(begin, end - begin, with);
  find_lines();
}

Shift::Shift(std::string_view from, std::string_view to)
    : from_size_(static_cast<uint32_t>(from.size())),
      to_size_(static_cast<uint32_t>(to.size())) {
  const size_t least = std::min(from.size(), to.size());
  while (prefix_ < least && from[prefix_] == to[prefix_]) ++prefix_;
  while (suffix_ < least - prefix_ &&
         from[from.size() - 1 - suffix_] == to[to.size() - 1 - suffix_])
    ++suffix_;
}

uint32_t Shift::operator()(uint32_t offset) const {
  if (offset <= prefix_) return offset;
  if (offset >= from_size_ - suffix_) return offset + to_size_ - from_size_;
  return prefix_;
}

}  // namespace unisono::host::lsp
