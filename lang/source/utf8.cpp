#include "lang/source/utf8.h"

#include <fmt/format.h>

namespace unisono::lang {
namespace {

bool in(char32_t value, char32_t first, char32_t last) {
  return first <= value && value <= last;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  uint32_t length = 0;
  char32_t value = 0;
  char32_t least = 0;
  if ((lead & 0xE0) == 0xC0)
    length = 2, value = lead & 0x1F, least = 0x80;
  else if ((lead & 0xF0) == 0xE0)
    length = 3, value = lead & 0x0F, least = 0x800;
  else if ((lead & 0xF8) == 0xF0)
    length = 4, value = lead & 0x07, least = 0x10000;
  else
    return {};
  if (text.size() - at < length) return {};
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  const bool valid =
      value >= least && value <= 0x10FFFF && !in(value, 0xD800, 0xDFFF);
  return valid ? CodePoint{value, length} : CodePoint{};
}

void append_utf8(std::string& out, char32_t value) {
  const auto put = [&](char32_t bits) { out += static_cast<char>(bits); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6), put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12), put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18), put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F)), put(0x80 | (value & 0x3F));
  }
}

int display_width(char32_t value) {
  if (value < 0x300) return 1;
  if (in(value, 0x300, 0x36F) || in(value, 0x200B, 0x200F) ||
      in(value, 0xFE00, 0xFE0F)) {
    return 0;
  }
  const bool wide = in(value, 0x1100, 0x115F) || in(value, 0x2E80, 0xA4CF) ||
                    in(value, 0xAC00, 0xD7A3) || in(value, 0xF900, 0xFAFF) ||
                    in(value, 0xFE30, 0xFE4F) || in(value, 0xFF00, 0xFF60) ||
                    in(value, 0xFFE0, 0xFFE6) || in(value, 0x1F300, 0x1FAFF) ||
                    in(value, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    width += point.length == 0 ? 1 : display_width(point.value);
    i += point.length == 0 ? 1 : point.length;
  }
  return width;
}

bool is_unprintable(char32_t value) {
  return (value < 0x20 && value != '\t') || in(value, 0x7F, 0x9F) ||
         in(value, 0x200B, 0x200F) || in(value, 0x2028, 0x202E) ||
         in(value, 0x2060, 0x2069) || value == 0xFEFF ||
         in(value, 0xFFF9, 0xFFFB) || in(value, 0xE0000, 0xE007F);
}

std::string visible(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[at++]));
      continue;
    }
    if (is_unprintable(point.value) && point.value != '\n')
      out += fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(point.value));
    else
      out += text.substr(at, point.length);
    at += point.length;
  }
  return out;
}

std::string code_point_name(char32_t value) {
  return fmt::format("U+{:04X}", static_cast<uint32_t>(value));
}

}  // namespace unisono::lang
