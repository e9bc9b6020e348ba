// One pass over the bytes. Strings are the only part with structure: a string
// ends at its quote, and an interpolation in it may hold strings again.
#include "lang/syntax/lexer.h"

#include <array>

#include <fmt/format.h>

#include "lang/source/foreign_names.h"
#include "lang/source/utf8.h"
#include "lang/syntax/precedence.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

struct Word {
  std::string_view text;
  TokenKind kind;
};

constexpr Word punctuation[] = {
#define PUNCTUATION(name, text, line_end) {text, TokenKind::name},
#include "lang/syntax/token.def"
};
constexpr Word keywords[] = {
#define KEYWORD(name, text, line_end) {text, TokenKind::name},
#include "lang/syntax/token.def"
};

/// Whether `text` begins with the word. Most words differ in the first letter.
bool begins(std::string_view text, const Word& word) {
  return text[0] == word.text[0] && text.starts_with(word.text);
}

/// `op=` exists for arithmetic and bits.
bool has_compound(TokenKind kind) {
  const BinaryRule* rule = binary_rule(kind);
  if (!rule) return false;
  const OpClass cls = class_of(rule->op);
  return cls == OpClass::arithmetic || cls == OpClass::bits;
}

/// ASCII that may stand in comments and strings.
bool is_plain(char c) { return ' ' <= c && c <= '~'; }
bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_ascii_letter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}
std::string_view hint_for(char32_t stray) {
  switch (stray) {
    case '\'':
    case 0x2018:
    case 0x2019:
    case 0x201C:
    case 0x201D: return "a string stands in double quotes: \"text\"";
    case '!': return "write `not`";
    case '$': return "a name is written without `$`";
    case '\\':
      return "a line goes on by itself after an operator, a comma or an "
             "opening "
             "bracket";
    case 0xA0:
    case 0x3000: return "replace it by an ordinary space";
    case 0x2212:
    case 0x2013: return "replace it by `-`";
    case 0xD7:
    case 0xB7: return "replace it by `*`";
    case 0xF7: return "replace it by `/`";
    case 0x2264: return "replace it by `<=`";
    case 0x2265: return "replace it by `>=`";
    case 0x2260: return "replace it by `!=`";
    case 0x2192: return "replace it by `->`, or `=>` in a function";
    case 0x221E: return "write `inf`";
    case 0x221A: return "write `sqrt(x)`";
    case 0x2208: return "write `in`";
    case 0xB2: return "write `x ** 2`";
    default: return {};
  }
}

class Lexer {
 public:
  Lexer(const SourceFile& file, uint32_t begin, uint32_t end, bool part,
        Diagnostics& diagnostics)
      : file_(file),
        text_(file.text().substr(0, end)),
        at_(begin),
        part_(part),
        diagnostics_(diagnostics) {}

  Tokens run() {
    const size_t errors_before = diagnostics_.error_count();
    if (!part_ && at_ == 0 && text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    while (at_ < text_.size()) {
      if (diagnostics_.error_count() >= errors_before + max_errors) {
        at_ = static_cast<uint32_t>(text_.size());
        break;
      }
      if (stop_requested()) {
        diagnostics_.report(Code::cancelled, span(at_, at_ + 1));
        throw Stopped();
      }
      next();
    }
    add(part_ ? TokenKind::EndOfPart : TokenKind::EndOfFile, at_);
    return std::move(out_);
  }

 private:
  char peek(uint32_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::string_view rest() const { return text_.substr(at_); }
  Span span(uint32_t begin, uint32_t end) const { return {&file_, begin, end}; }

  void add(TokenKind kind, uint32_t begin) {
    out_.tokens.push_back({kind, line_start_, begin, at_});
    line_start_ = false;
  }

  void next() {
    const char c = peek();
    const bool line_end = c == '\n' || (c == '\r' && peek(1) == '\n');
    if (line_end || c == ' ' || c == '\t') {
      at_ += c == '\r' ? 2 : 1;
      if (line_end) line_start_ = true;
    } else if (c == '#' && !part_) {
      comment();
    } else if (foreign_comment()) {
      // reported, and skipped
    } else if (is_digit(c)) {
      number();
    } else if (c == '"') {
      string();
    } else if (word_length() > 0) {
      word();
    } else if (!punctuation_mark()) {
      stray();
    }
  }

  void comment() {
    const uint32_t begin = at_;
    const size_t line_end = text_.find('\n', at_);
    uint32_t end =
        static_cast<uint32_t>(line_end == text_.npos ? text_.size() : line_end);
    at_ = end;
    while (end > begin && (text_[end - 1] == '\r' || text_[end - 1] == ' ' ||
                           text_[end - 1] == '\t')) {
      --end;
    }
    const bool own_line = line_start_ || out_.tokens.empty();
    out_.comments.push_back({span(begin, end), own_line});
    check_printable(begin, end);
  }

  /// A line of C's, MATLAB's or Lua's comments: where a line end ends a
  /// statement, no operator can begin one.
  bool foreign_comment() {
    const bool lines_matter = brackets_.empty() || brackets_.back() == '{';
    const bool begins = line_start_ || out_.tokens.empty();
    if (part_ || !begins || !lines_matter) return false;
    const bool block = rest().starts_with("/*");
    const bool line = rest().starts_with("//") || rest().starts_with("--[[") ||
                      rest().starts_with("-- ") || rest().starts_with("% ") ||
                      rest().starts_with("%%");
    if (!block && !line) return false;
    const uint32_t begin = at_;
    const std::string_view sign = rest().substr(0, peek() == '%' ? 1 : 2);
    const size_t end = block ? text_.find("*/", at_) : text_.find('\n', at_);
    at_ = static_cast<uint32_t>(end == text_.npos ? text_.size()
                                                  : end + (block ? 2 : 0));
    diagnostics_
        .report(Code::line_starts_with_operator,
                span(begin, begin + static_cast<uint32_t>(sign.size())), sign)
        .set_help(fmt::format("a comment starts with `#`; to go on with the "
                              "line above, move `{}` to its end",
                              sign));
    return true;
  }

  /// Everything that belongs to a number, right or wrong; the parser reads it.
  void number() {
    const uint32_t begin = at_;
    const bool field =
        !out_.tokens.empty() && out_.tokens.back().kind == TokenKind::Dot;
    const auto word_part = [&] {
      while (is_digit(peek()) || is_ascii_letter(peek())) ++at_;
    };
    const auto digits = [&] {
      while (is_digit(peek()) || peek() == '_') ++at_;
    };
    const bool prefixed =
        peek() == '0' && (peek(1) == 'x' || peek(1) == 'b' || peek(1) == 'o');
    bool is_float = false;
    if (!field && !prefixed) {
      digits();
      const char next = peek(1);
      const bool name =
          is_ascii_letter(next) || static_cast<uint8_t>(next) >= 0x80;
      const bool point = peek() == '.' && next != '.' && !name;
      if (point) {
        ++at_;
        digits();
        is_float = true;
      }
      const uint32_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
        at_ += 1 + sign;
        digits();
        is_float = true;
      }
    }
    word_part();
    add(is_float ? TokenKind::Float : TokenKind::Integer, begin);
  }

  /// Python's long strings: one mistake up to where they end.
  bool long_string() {
    if (!rest().starts_with("\"\"\"") || part_) return false;
    const uint32_t begin = at_;
    const size_t end = text_.find("\"\"\"", at_ + 3);
    at_ = static_cast<uint32_t>(end == text_.npos ? text_.size() : end + 3);
    diagnostics_
        .report(Code::stray_character, span(begin, begin + 3),
                std::string_view("`\"\"\"`"))
        .set_help(
            "a string stands in one pair of quotes, on one line; what a "
            "function does is told by `##` lines before its `def`");
    add(TokenKind::Invalid, begin);
    return true;
  }

  void string() {
    if (long_string()) return;
    const uint32_t begin = at_++;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') return unterminated(begin);
      const char c = text_[at_++];
      if (c == '"') break;
      if (c == '\\' && at_ < text_.size() && text_[at_] != '\n') {
        const bool unicode = text_[at_] == 'u' && peek(1) == '{';
        at_ += unicode ? 2 : 1;
      } else if (c == '{') {
        const auto end = find_interpolation_end(text_, at_);
        if (!end) return unterminated(begin);
        at_ = end->close + 1;
      }
    }
    const bool fine = part_ || check_printable(begin, at_);
    add(fine ? TokenKind::String : TokenKind::Invalid, begin);
  }

  void unterminated(uint32_t begin) {
    const size_t line_end = text_.find('\n', begin);
    at_ =
        static_cast<uint32_t>(line_end == text_.npos ? text_.size() : line_end);
    uint32_t end = at_;
    if (end > begin && text_[end - 1] == '\r') --end;
    diagnostics_.report(Code::unterminated_string, span(begin, end))
        .set_help(
            "close it with `\"`; a line end in a string is `\\n`, a brace "
            "`\\{`");
    add(TokenKind::Invalid, begin);
  }

  uint32_t word_length() const {
    uint32_t length = 0;
    while (at_ + length < text_.size()) {
      const char c = text_[at_ + length];
      if (is_ascii_letter(c) || (length > 0 && is_digit(c))) {
        ++length;
        continue;
      }
      if (static_cast<uint8_t>(c) < 0x80) break;
      const CodePoint point = decode_utf8(text_, at_ + length);
      if (point.length == 0 || !is_foreign_letter(point.value)) break;
      length += point.length;
    }
    return length;
  }

  void word() {
    const uint32_t begin = at_;
    const uint32_t length = word_length();
    at_ += length;
    const std::string_view text = text_.substr(begin, length);
    TokenKind kind = TokenKind::Identifier;
    for (const Word& keyword : keywords)
      if (keyword.text.size() == length && begins(text, keyword))
        kind = keyword.kind;
    add(kind, begin);
  }

  bool punctuation_mark() {
    const uint32_t begin = at_;
    for (const Word& mark : punctuation) {
      if (!begins(rest(), mark)) continue;
      at_ += static_cast<uint32_t>(mark.text.size());
      note_bracket(mark.text[0]);
      const bool compound =
          has_compound(mark.kind) && peek() == '=' && peek(1) != '=';
      if (compound) ++at_;
      add(compound ? TokenKind::CompoundAssign : mark.kind, begin);
      return true;
    }
    return false;
  }

  /// Keeps the brackets that are open.
  void note_bracket(char c) {
    if (c == '(' || c == '[' || c == '{') brackets_ += c;
    if ((c == ')' || c == ']' || c == '}') && !brackets_.empty())
      brackets_.pop_back();
  }

  /// A quote that touches the operand before it: a transpose of MATLAB's.
  bool is_transpose() const {
    if (peek() != '\'' || out_.tokens.empty()) return false;
    const Token& before = out_.tokens.back();
    const bool operand = before.kind == TokenKind::RightParen ||
                         before.kind == TokenKind::RightBracket ||
                         before.kind == TokenKind::Identifier;
    const bool prefix = before.kind == TokenKind::Identifier &&
                        before.end - before.begin == 1 &&
                        std::string_view("fFrRbu").find(text_[before.begin]) !=
                            std::string_view::npos;
    return operand && !prefix && before.end == at_;
  }

  /// `5!`, `push!(x, 1)`, `println!("hi")`: what touches the sign; empty if
  /// nothing does.
  std::string exclamation_help(uint32_t begin) const {
    if (out_.tokens.empty() || out_.tokens.back().end != begin) return {};
    const Token& before = out_.tokens.back();
    const std::string word(
        text_.substr(before.begin, before.end - before.begin));
    const bool named = before.kind == TokenKind::Identifier;
    if (named && part_) return "a format stands behind a `:`, as in `{x:8.3f}`";
    if (named && (peek() == '(' || peek() == '[' || peek() == '{')) {
      const std::string_view method = foreign_field_help(word);
      return method.empty() ? "leave out the `!`" : std::string(method);
    }
    if (named || before.kind == TokenKind::Integer)
      return fmt::format("write `factorial({})`", word);
    return before.kind == TokenKind::RightParen ? "write `factorial(n)`" : "";
  }

  std::string stray_help(char32_t c, uint32_t begin, bool transpose) {
    if (transpose) return "a transpose is `transpose(x)`";
    if (std::string help = c == '!' ? exclamation_help(begin) : "";
        !help.empty())
      return help;
    const bool ends_line = at_ >= text_.size() || peek() == '\n';
    if (c == '\\' && !ends_line)
      return "there is no such operator; write `solve(a, b)`";
    return std::string(hint_for(c));
  }

  /// A run of characters that begin no token is one mistake; so is text in
  /// quotes that are not ours.
  void stray() {
    const uint32_t begin = at_;
    const CodePoint first = decode_utf8(text_, at_);
    const bool transpose = is_transpose();
    const std::string_view line = rest().substr(0, rest().find('\n'));
    const std::string_view closer = first.value == '\''     ? "'"
                                    : first.value == 0x2018 ? "\u2019"
                                    : first.value == 0x201C ? "\u201D"
                                                            : "";
    const size_t quote = closer.empty() ? line.npos : line.find(closer, 1);
    if (quote != line.npos && !transpose)
      at_ += static_cast<uint32_t>(quote + closer.size());
    else
      at_ += first.length == 0 ? 1 : first.length;
    while (at_ < text_.size() && decode_utf8(text_, at_).value == first.value)
      at_ += first.length == 0 ? 1 : first.length;
    const std::string_view shown = text_.substr(begin, first.length);
    Diagnostic& mistake =
        diagnostics_.report(Code::stray_character, span(begin, at_),
                            is_unprintable(first.value) || first.value == 0xA0
                                ? code_point_name(first.value)
                                : fmt::format("`{}`", shown));
    mistake.set_help(stray_help(first.value, begin, transpose));
    add(TokenKind::Invalid, begin);
  }

  /// In comments and strings everything may stand but what a reader cannot see
  /// and a terminal obeys.
  bool check_printable(uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end;) {
      if (is_plain(text_[i])) {
        ++i;
        continue;
      }
      const CodePoint point = decode_utf8(text_, i);
      const uint32_t length = point.length == 0 ? 1 : point.length;
      if (is_unprintable(point.value)) {
        diagnostics_
            .report(Code::stray_character, span(i, i + length),
                    code_point_name(point.value))
            .set_help(fmt::format("in a string, write `\\u{{{:x}}}`",
                                  static_cast<uint32_t>(point.value)));
        return false;
      }
      i += length;
    }
    return true;
  }

  const SourceFile& file_;
  std::string_view text_;
  uint32_t at_;
  bool part_;
  bool line_start_ = false;
  std::string brackets_;  // that are open, innermost last
  Diagnostics& diagnostics_;
  Tokens out_;
};

/// The first byte that is not UTF-8, or the size.
size_t first_invalid_byte(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const CodePoint point = decode_utf8(text, at);
    if (point.length == 0) return at;
    at += point.length;
  }
  return at;
}

Tokens nothing(const SourceFile& file) {
  const auto end = static_cast<uint32_t>(file.text().size());
  return {{{TokenKind::EndOfFile, true, end, end}}, {}};
}

}  // namespace

std::optional<InterpolationEnd> find_interpolation_end(std::string_view text,
                                                       uint32_t begin) {
  // What encloses the current byte, innermost last: `"` a string, else the
  // bracket that closes.
  std::string inside = "}";
  std::optional<uint32_t> colon;
  for (uint32_t i = begin; i < text.size() && text[i] != '\n'; ++i) {
    const char c = text[i];
    if (inside.back() == '"') {
      if (c == '"') inside.pop_back();
      if (c == '{') inside += '}';
      if (c == '\\' && i + 1 < text.size() && text[i + 1] != '\n')
        i += text.substr(i + 1).starts_with("u{") ? 2 : 1;
      continue;
    }
    if (inside.size() == 1 && colon && c != '}') continue;  // the format
    if (c == '"') inside += '"';
    if (c == '(') inside += ')';
    if (c == '[') inside += ']';
    if (c == '{') inside += '}';
    if (c == ':' && inside.size() == 1) colon = i;
    if (c == inside.back() && c != '"') {
      inside.pop_back();
      if (inside.empty()) return InterpolationEnd{colon.value_or(i), i};
    }
  }
  return std::nullopt;
}

bool is_foreign_letter(char32_t c) {
  return (0xC0 <= c && c <= 0x24F && c != 0xD7 && c != 0xF7) ||
         (0x370 <= c && c <= 0x3FF) || (0x400 <= c && c <= 0x52F);
}

Tokens lex(const SourceFile& file, Diagnostics& diagnostics) {
  const std::string_view text = file.text();
  if (text.size() > max_file_bytes) {
    diagnostics.report(Code::too_long, {&file, 0, 0}, "the file",
                       max_file_bytes, "bytes");
    return nothing(file);
  }
  const auto size = static_cast<uint32_t>(text.size());
  if (const auto bad = static_cast<uint32_t>(first_invalid_byte(text));
      bad < size) {
    diagnostics.report(Code::invalid_utf8, {&file, bad, bad + 1},
                       fmt::format("{:02x}", static_cast<uint8_t>(text[bad])),
                       bad);
    return nothing(file);
  }
  return Lexer(file, 0, size, false, diagnostics).run();
}

Tokens lex_lines(const SourceFile& file, uint32_t begin, uint32_t end,
                 Diagnostics& diagnostics) {
  return Lexer(file, begin, end, false, diagnostics).run();
}

Tokens lex_part(const SourceFile& file, uint32_t begin, uint32_t end,
                Diagnostics& diagnostics) {
  return Lexer(file, begin, end, true, diagnostics).run();
}

}  // namespace unisono::lang
