#include "host/editor/keys.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace unisono::host {
namespace {

/// What belongs to a key comes at once, or it was the escape key alone.
constexpr int escape_milliseconds = 50;
/// A paste that stops for so long has lost its end.
constexpr int paste_milliseconds = 3000;
constexpr char escape_byte = '\x1b';
constexpr std::string_view paste_end = "\x1b[201~";

bool is_control(char c) {
  return static_cast<uint8_t>(c) < 0x20 || c == '\x7f';
}

std::string control_name(char c) {
  switch (c) {
    case '\r':
    case '\n': return "enter";
    case '\t': return "tab";
    case '\x7f':
    case '\b': return "backspace";
    case '\0': return "C-space";
    default: break;
  }
  const char letter = static_cast<char>(c | 0x40);
  return {'C', '-',
          'A' <= letter && letter <= 'Z' ? static_cast<char>(letter | 0x20)
                                         : letter};
}

/// The keys whose sequences end with a letter.
std::string_view letter_key(char c) {
  switch (c) {
    case 'A': return "up";
    case 'B': return "down";
    case 'C': return "right";
    case 'D': return "left";
    case 'F': return "end";
    case 'H': return "home";
    case 'M': return "enter";
    case 'Z': return "back-tab";
    default: return "";
  }
}

/// Those that have a number.
std::string_view number_key(int number) {
  switch (number) {
    case 1:
    case 7: return "home";
    case 2: return "insert";
    case 3: return "delete";
    case 4:
    case 8: return "end";
    case 5: return "page-up";
    case 6: return "page-down";
    default: return "";
  }
}

/// xterm's: 1 and a bit each for shift, alt and control.
std::string with_modifiers(std::string_view key, int modifiers) {
  if (key.empty()) return "";
  const int bits = modifiers > 0 ? modifiers - 1 : 0;
  std::string out;
  if (bits & 4) out += "C-";
  if (bits & 2) out += "M-";
  return out + std::string(key);
}

KeyPress key(std::string name) {
  return {KeyPress::Kind::key, std::move(name)};
}

/// Lines end with \n, whatever the terminal sends for that.
std::string with_line_ends(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    }
  }
  return out;
}

}  // namespace

bool KeyReader::fill(int milliseconds) {
  if (ended_) return false;
  if (at_ > 0) bytes_.erase(0, std::exchange(at_, 0));
  for (;;) {
    switch (terminal_.wait(milliseconds)) {
      case Terminal::Event::bytes:
        ended_ = !terminal_.read(bytes_);
        return !ended_;
      case Terminal::Event::resized: resized_ = true; return false;
      case Terminal::Event::nothing:
        if (milliseconds >= 0) return false;
        break;
      case Terminal::Event::ended: ended_ = true; return false;
    }
  }
}

bool KeyReader::have(size_t bytes, int milliseconds) {
  while (bytes_.size() - at_ < bytes)
    if (!fill(milliseconds) && !std::exchange(resized_, false)) return false;
  return true;
}

bool KeyReader::has_more() {
  return at_ < bytes_.size() || (fill(0) && at_ < bytes_.size());
}

KeyPress KeyReader::next() {
  while (at_ == bytes_.size()) {
    if (ended_) return {};
    if (!fill(-1) && std::exchange(resized_, false))
      return {KeyPress::Kind::resized};
  }
  const char c = bytes_[at_];
  if (c == escape_byte) return escape();
  if (!is_control(c)) return text();
  ++at_;
  return key(control_name(c));
}

/// All characters that have come, so that a fast typist, or a paste that is not
/// marked, costs one drawing.
KeyPress KeyReader::text() {
  size_t end = at_;
  while (end < bytes_.size() && !is_control(bytes_[end])) ++end;
  // The rest of a character that is cut in two comes at once.
  for (size_t tail = end; end == bytes_.size() && tail > at_;) {
    const auto byte = static_cast<uint8_t>(bytes_[--tail]);
    if ((byte & 0xC0) == 0x80 && end - tail < 4) continue;
    const size_t length = byte >= 0xF0   ? 4
                          : byte >= 0xE0 ? 3
                          : byte >= 0xC0 ? 2
                                         : 1;
    const size_t begin = at_;
    if (end - tail < length && have(tail - begin + length, escape_milliseconds))
      end = at_ + (tail - begin) + length;
    break;
  }
  KeyPress out{KeyPress::Kind::text, {}, bytes_.substr(at_, end - at_)};
  at_ = end;
  return out;
}

KeyPress KeyReader::escape() {
  if (!have(2, escape_milliseconds)) {
    ++at_;
    return key("escape");
  }
  const char second = bytes_[at_ + 1];
  if (second == '[') {
    at_ += 2;
    return control_sequence();
  }
  if (second == 'O' && have(3, escape_milliseconds)) {
    const std::string name(letter_key(bytes_[at_ + 2]));
    at_ += 3;
    return key(name);
  }
  if (second == escape_byte) {
    ++at_;
    return key("escape");
  }
  at_ += 2;
  if (is_control(second)) return key("M-" + control_name(second));
  return key(std::string("M-") + second);
}

KeyPress KeyReader::control_sequence() {
  int numbers[2] = {0, 0};
  size_t count = 0;
  while (have(1, escape_milliseconds)) {
    const char c = bytes_[at_++];
    if ('0' <= c && c <= '9') {
      if (count < 2)
        numbers[count] = std::min(numbers[count] * 10 + c - '0', 9999);
    } else if (c == ';') {
      ++count;
    } else if ('@' <= c && c <= '~') {
      if (c == '~' && numbers[0] == 200) return paste();
      return key(with_modifiers(
          c == '~' ? number_key(numbers[0]) : letter_key(c), numbers[1]));
    } else if (is_control(c)) {
      break;  // no sequence of any terminal
    }
  }
  return key("");
}

KeyPress KeyReader::paste() {
  std::string all;
  for (;;) {
    const size_t from =
        all.size() < paste_end.size() ? 0 : all.size() - paste_end.size();
    all.append(bytes_, at_);
    at_ = bytes_.size();
    const size_t end = all.find(paste_end, from);
    if (end != all.npos) {
      bytes_ = all.substr(end + paste_end.size());
      at_ = 0;
      all.resize(end);
      break;
    }
    if (!have(1, paste_milliseconds)) break;
  }
  return {KeyPress::Kind::paste, {}, with_line_ends(all)};
}

}  // namespace unisono::host
