#pragma once
// Positions as the protocol counts them, and bytes as everything else does.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::host::lsp {

/// In what a position counts along its line; client and server agree on one.
enum class Encoding : uint8_t { utf8, utf16, utf32 };

/// Lines and characters count from 0.
struct Position {
  uint32_t line = 0, character = 0;
  bool operator==(const Position&) const = default;
};
struct Range {
  Position start, end;
  bool operator==(const Range&) const = default;
};

/// The units of a text without line ends.
uint32_t units(std::string_view text, Encoding encoding);

/// A text and where its lines begin; `\n`, `\r\n` and `\r` end a line.
class Text {
 public:
  explicit Text(std::string text = "");

  const std::string& str() const { return text_; }
  /// The byte at a position; beyond the end of a line its end, beyond the last
  /// line that of the text, inside of a character the first byte of that.
  uint32_t offset(Position position, Encoding encoding) const;
  /// The position of a byte; one inside of a character is that of its first.
  Position position(uint32_t offset, Encoding encoding) const;
  Range range(uint32_t begin, uint32_t end, Encoding encoding) const {
    return {position(begin, encoding), position(end, encoding)};
  }
  /// The number of the line that holds a byte, from 0.
  uint32_t line_of(uint32_t offset) const;
  /// The bytes of the range become `with`. One that is reversed is what lies
  /// between its ends.
  void replace(Range range, std::string_view with, Encoding encoding);

 private:
  void find_lines();
  /// A line without its end.
  std::string_view line(uint32_t number) const;

  /// The units from the start of the text to a byte.
  uint32_t units_before(uint32_t offset, Encoding encoding) const;

  std::string text_;
  std::vector<uint32_t> line_starts_;
  struct Mark {
    uint32_t utf16 = 0, utf32 = 0;
  };
  std::vector<Mark> marks_;
};

/// How offsets of one text relate to those of another that was made of it by an
/// edit: what stands before and behind the edit stays.
class Shift {
 public:
  Shift(std::string_view from, std::string_view to);
  /// Where the byte of `from` is in `to`; inside of the edit, its begin.
  uint32_t operator()(uint32_t offset) const;
  /// Whether a byte is outside of the edit.
  bool keeps(uint32_t offset) const {
    return offset <= prefix_ || offset >= from_size_ - suffix_;
  }

 private:
  uint32_t from_size_, to_size_, prefix_ = 0, suffix_ = 0;
};

}  // namespace unisono::host::lsp
