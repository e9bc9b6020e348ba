#pragma once
// Text as UTF-8, and how a terminal shows it.
#include <cstdint>
#include <string>
#include <string_view>

namespace unisono::lang {

/// A code point and its length in bytes; length 0 if the bytes are not UTF-8.
struct CodePoint {
  char32_t value = 0;
  uint32_t length = 0;
};
/// The code point at `at`, which is less than the size. Strict: no overlong
/// forms, no surrogates, nothing above U+10FFFF.
CodePoint decode_utf8(std::string_view text, size_t at);
void append_utf8(std::string& out, char32_t value);

/// Columns on a terminal: 0 for combining marks, 2 for wide characters.
int display_width(char32_t value);
int display_width(std::string_view text);

/// Characters that change how text looks without being seen, or that a
/// terminal obeys: controls other than tab, bidirectional overrides.
bool is_unprintable(char32_t value);
/// Text of the command line for a terminal: escapes stand for all that is
/// unprintable or not UTF-8, except for line ends.
std::string visible(std::string_view text);
/// "U+202E"
std::string code_point_name(char32_t value);

}  // namespace unisono::lang
