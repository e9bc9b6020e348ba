#include "simcuda/ptx/lexer.h"

#include <bit>
#include <charconv>

namespace simcuda {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

class Lexer {
 public:
  Lexer(std::string_view source, std::vector<Token>& tokens, std::string& error)
      : source_(source), tokens_(tokens), error_(error) {}

  bool run() {
    while (skip_blank())
      if (!next()) return false;
    if (!error_.empty()) return false;
    add(Token::Kind::end, 0);
    return true;
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  bool fail(const std::string& what) {
    error_ = "line " + std::to_string(line_) + ": " + what;
    return false;
  }

  Token& add(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, source_.substr(at_, length), 0, 0, line_});
    at_ += length;
    return tokens_.back();
  }

  /// False at the end of the text, or in a comment that does not end.
  bool skip_blank() {
    while (at_ < source_.size()) {
      char c = source_[at_];
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        size_t close = source_.find("*/", at_ + 2);
        if (close == std::string_view::npos)
          return fail("a comment does not end");
        for (; at_ < close + 2; ++at_) line_ += source_[at_] == '\n';
      } else {
        return true;
      }
    }
    return false;
  }

  bool next() {
    char c = peek();
    if (is_digit(c)) return number();
    if (starts_word(c)) {
      size_t n = 1;
      while (true) {
        char d = peek(n);
        if (starts_word(d) || is_digit(d))
          ++n;
        else if (d == ':' && peek(n + 1) == ':')
          n += 2;  // shared::cta
        else
          break;
      }
      add(Token::Kind::word, n);
      return true;
    }
    if (c == '"') {
      size_t close = source_.find_first_of("\"\n", at_ + 1);
      if (close == std::string_view::npos || source_[close] == '\n')
        return fail("a string does not end");
      add(Token::Kind::string, close + 1 - at_);
      return true;
    }
    if (std::string_view("{}[]()<>,;:+-@!|=*&~").find(c) ==
        std::string_view::npos) {
      return fail(std::string("unexpected character `") + c + "`");
    }
    add(Token::Kind::punctuation, 1);
    return true;
  }

  bool number() {
    char mark = peek(1);
    size_t digits = mark == 'f' || mark == 'F' ? 8 : 16;
    bool hexadecimal_real = peek() == '0' && (mark == 'f' || mark == 'F' ||
                                              mark == 'd' || mark == 'D');
    if (hexadecimal_real) {
      uint64_t bits = 0;
      const char* begin = source_.data() + at_ + 2;
      const char* end =
          source_.data() + std::min(at_ + 2 + digits, source_.size());
      auto [stop, status] = std::from_chars(begin, end, bits, 16);
      if (status != std::errc() || stop != begin + digits)
        return fail("a malformed floating-point constant");
      Token& token = add(Token::Kind::real, 2 + digits);
      token.bits = bits;
      token.real_bytes = static_cast<uint8_t>(digits / 2);
      return true;
    }
    size_t n = 1;
    while (is_digit(peek(n)) || starts_word(peek(n))) ++n;
    std::string_view text = source_.substr(at_, n);
    if (text.find('.') != std::string_view::npos) {
      double value = 0;
      auto [stop, status] =
          std::from_chars(text.data(), text.data() + n, value);
      if (status != std::errc() || stop != text.data() + n)
        return fail("a malformed number");
      Token& token = add(Token::Kind::real, n);
      token.bits = std::bit_cast<uint64_t>(value);
      token.real_bytes = 8;
      return true;
    }
    int base = 10;
    size_t skip = 0, tail = text.back() == 'U' ? 1 : 0;
    if (text.starts_with("0x") || text.starts_with("0X")) base = 16, skip = 2;
    if (text.starts_with("0b")) base = 2, skip = 2;
    uint64_t value = 0;
    const char* end = text.data() + n - tail;
    auto [stop, status] = std::from_chars(text.data() + skip, end, value, base);
    if (status != std::errc() || stop != end) return fail("a malformed number");
    add(Token::Kind::integer, n).bits = value;
    return true;
  }

  std::string_view source_;
  std::vector<Token>& tokens_;
  std::string& error_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

bool tokenise(std::string_view source, std::vector<Token>& tokens,
              std::string& error) {
  return Lexer(source, tokens, error).run();
}

}  // namespace simcuda
