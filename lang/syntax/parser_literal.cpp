// Numbers and strings. The lexer has found where they end.
#include <charconv>
#include <cmath>
#include <limits>

#include "lang/source/utf8.h"
#include "lang/syntax/literal_range.h"
#include "lang/syntax/parser_impl.h"

namespace unisono::lang {
namespace {

bool is_digit_of(char c, int base) {
  if ('0' <= c && c <= '9') return c - '0' < base;
  const char lower = static_cast<char>(c | 0x20);
  return base == 16 && 'a' <= lower && lower <= 'f';
}

/// The length of digits with single underscores between them; 0 if malformed.
size_t digit_run(std::string_view text, int base) {
  size_t length = 0;
  while (length < text.size()) {
    const bool separator = text[length] == '_' && length > 0 &&
                           length + 1 < text.size() &&
                           is_digit_of(text[length + 1], base);
    if (!separator && !is_digit_of(text[length], base)) break;
    ++length;
  }
  return length;
}

/// Of `e-3` at the start; 0 where digits do not follow.
size_t exponent_length(std::string_view text) {
  if (!text.starts_with('e') && !text.starts_with('E')) return 0;
  const size_t sign = text.substr(1).find_first_of("+-") == 0 ? 1 : 0;
  const size_t digits = digit_run(text.substr(1 + sign), 10);
  return digits == 0 ? 0 : 1 + sign + digits;
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '_') out += c;
  return out;
}

/// Of a decimal number out of the range of double: too large, not too small?
bool overflows(std::string_view digits) {
  const size_t e = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, e);
  long exponent = 0;
  if (e != digits.npos) {
    const bool negative = digits[e + 1] == '-';
    const bool sign = negative || digits[e + 1] == '+';
    for (const char c : digits.substr(e + 1 + (sign ? 1 : 0)))
      exponent = std::min(exponent * 10 + (c - '0'), 1'000'000'000L);
    if (negative) exponent = -exponent;
  }
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_of("123456789");
  if (first == mantissa.npos) return false;
  const long magnitude = static_cast<long>(point) - static_cast<long>(first);
  return magnitude + exponent > 0;
}

/// The largest magnitude that a literal of the type may have: one more than
/// the largest value where a minus sign stands before it.
uint64_t largest(DType dtype, bool negated) {
  const int bits = static_cast<int>(byte_size(dtype)) * 8;
  if (is_unsigned(dtype))
    return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return (uint64_t{1} << (bits - 1)) - (negated ? 0 : 1);
}

int hex_value(char c) {
  if (!is_digit_of(c, 16)) return -1;
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/// What was meant by a suffix that is no element type.
std::string suffix_help(std::string_view number, std::string_view suffix,
                        bool is_float) {
  if (suffix[0] == '_') return "one `_` may stand between two digits";
  if (suffix == "f" || suffix == "F")
    return fmt::format("write `{}f32`", number);
  if (suffix == "j" || suffix == "i" || suffix == "im")
    return "a complex number is a record: `(re = 0.0, im = 1.0)`; see `import "
           "complex`";
  if (!is_float && (suffix == "u" || suffix == "U"))
    return fmt::format("write `{}u32`", number);
  if (!is_float && (suffix == "l" || suffix == "L"))
    return fmt::format("write `{}i64`", number);
  if ('0' <= suffix[0] && suffix[0] <= '9')
    return "a suffix is an element type: `2u8`, `1f64`";
  return fmt::format(
      "a suffix is an element type, as in `2u8`; a product is `{} * {}`",
      number, suffix);
}

}  // namespace

// ---- Numbers

ExprPtr Parser::bad_number(std::string_view help) {
  if (Diagnostic* mistake = report(Code::bad_number, here(), text_of(token())))
    mistake->set_help(std::string(help));
  return nullptr;
}

ExprPtr Parser::number(bool negated) {
  const std::string_view text = text_of(token());
  int base = 10;
  size_t start = 0;
  if (text.size() > 1 && text[0] == '0') {
    base = text[1] == 'x' ? 16 : text[1] == 'b' ? 2 : text[1] == 'o' ? 8 : 10;
    if (base != 10) start = 2;
  }
  const bool is_float = token().kind == TokenKind::Float;
  size_t end = start + digit_run(text.substr(start), base);
  if (end == start) return bad_number("a digit is missing");
  if (is_float) {
    if (end < text.size() && text[end] == '.') {
      ++end;
      end += digit_run(text.substr(end), 10);
    }
    end += exponent_length(text.substr(end));
  }
  const std::string digits =
      without_underscores(text.substr(start, end - start));
  const std::string_view suffix = text.substr(end);
  const std::optional<DType> dtype = dtype_from_name(suffix);
  if (!suffix.empty() && (!dtype || is_bool(*dtype)))
    return bad_number(suffix_help(text.substr(0, end), suffix, is_float));
  if (is_float && dtype && !is_floating(*dtype)) {
    return bad_number(
        "a number with a fraction or an exponent takes a suffix "
        "of a floating type");
  }
  const bool leading_zero = digits.size() > 1 && digits[0] == '0';
  if (const std::string whole =
          leading_zero ? grouped_digits(index_) : std::string();
      base == 10 && !is_float && !whole.empty())
    return bad_number(fmt::format("digits are grouped by `_`: `{}`", whole));
  if (base == 10 && !is_float && leading_zero)
    return bad_number("leave out the leading zeros; octal is `0o17`");
  if (base != 10 && dtype && is_floating(*dtype))
    return bad_number("a floating number is decimal");
  if (is_float || (dtype && is_floating(*dtype)))
    return floating(digits, dtype);
  return integer(digits, base, dtype, negated);
}

ExprPtr Parser::integer(std::string_view digits, int base,
                        std::optional<DType> dtype, bool negated) {
  auto node = std::make_unique<IntLiteral>();
  node->suffix = dtype;
  const auto read = std::from_chars(
      digits.data(), digits.data() + digits.size(), node->value, base);
  // In `-128i8 ** 2` the sign comes last.
  const TokenKind next = token_after().kind;
  const bool minus_is_next_to_it =
      negated && infix_precedence(next) < Precedence::Unary;
  const bool too_large =
      read.ec != std::errc() ||
      (dtype && node->value > largest(*dtype, minus_is_next_to_it));
  if (too_large) {
    report(Code::number_too_large, here(), text_of(token()),
           dtype ? unisono::name(*dtype) : "an integer");
    return nullptr;
  }
  const uint32_t begin = token().begin;
  advance();
  return finish(std::move(node), begin);
}

ExprPtr Parser::floating(std::string_view digits, std::optional<DType> dtype) {
  auto node = std::make_unique<FloatLiteral>();
  node->suffix = dtype;
  const auto read = std::from_chars(digits.data(),
                                    digits.data() + digits.size(), node->value);
  bool too_large = false;
  if (read.ec == std::errc::result_out_of_range) {
    too_large = overflows(digits);
    node->value = 0;
  }
  if (too_large || (dtype && !stays_finite(node->value, *dtype))) {
    report(Code::number_too_large, here(), text_of(token()),
           unisono::name(dtype.value_or(DType::F64)));
    return nullptr;
  }
  const uint32_t begin = token().begin;
  advance();
  return finish(std::move(node), begin);
}

// ---- Strings

ExprPtr Parser::string() {
  const Token whole = token();
  const std::string_view text = state_.file.text();
  auto node = std::make_unique<StringLiteral>();
  const uint32_t end = whole.end - 1;  // the closing quote
  uint32_t at = whole.begin + 1;
  while (at < end) {
    StringPiece& piece = node->pieces.emplace_back();
    const uint32_t begin = at;
    if (text[at] == '{') {
      const auto close = find_interpolation_end(text, at + 1);
      if (!string_piece(at + 1, *close, &piece)) return nullptr;
      at = close->close + 1;
    } else if (!string_text(&at, end, &piece.text)) {
      return nullptr;
    }
    piece.span = {&state_.file, begin, at};
  }
  advance();
  return finish(std::move(node), whole.begin);
}

/// Text up to the next interpolation or the end.
bool Parser::string_text(uint32_t* at, uint32_t end, std::string* out) {
  const std::string_view text = state_.file.text();
  while (*at < end && text[*at] != '{') {
    const char c = text[*at];
    if (c == '\\') {
      if (!escape(at, end, out)) return false;
      continue;
    }
    if (c == '}') {
      const Span where = {&state_.file, *at, *at + 1};
      if (Diagnostic* mistake = report(Code::stray_brace, where, "}"))
        mistake->set_help("write `\\}` for a brace");
      return false;
    }
    *out += c;
    ++*at;
  }
  return true;
}

bool Parser::escape(uint32_t* at, uint32_t end, std::string* out) {
  const std::string_view text = state_.file.text();
  const uint32_t begin = *at;
  const char c = text[begin + 1];
  *at += 2;
  constexpr std::string_view names = "nt\\\"{}";
  constexpr std::string_view values = "\n\t\\\"{}";
  if (const size_t i = names.find(c); i != names.npos) {
    *out += values[i];
    return true;
  }
  if (c == 'u' && *at < end && text[*at] == '{') {
    char32_t value = 0;
    uint32_t digits = 0;
    for (++*at; *at < end && hex_value(text[*at]) >= 0 && digits < 7; ++*at) {
      value = value * 16 + static_cast<char32_t>(hex_value(text[*at]));
      ++digits;
    }
    const bool surrogate = 0xD800 <= value && value <= 0xDFFF;
    const bool closed = *at < end && text[*at] == '}';
    if (closed && digits > 0 && value <= 0x10FFFF && !surrogate) {
      ++*at;
      append_utf8(*out, value);
      return true;
    }
  }
  const CodePoint escaped = decode_utf8(text, begin + 1);
  const Span where = {&state_.file, begin, begin + 1 + escaped.length};
  if (Diagnostic* mistake = report(Code::bad_escape, where, where.text())) {
    mistake->set_help(
        "there are `\\n`, `\\t`, `\\\\`, `\\\"`, `\\{`, `\\}` and "
        "`\\u{1f600}`");
  }
  return false;
}

/// `{}` and `{:.2f}`: the first may be filled by `.format(x)` of Python.
std::string Parser::without_value_help(InterpolationEnd end) const {
  const std::string_view text = state_.file.text();
  const std::string_view spec = text.substr(end.colon, end.close - end.colon);
  const std::string_view after = text.substr(token().end);
  constexpr std::string_view method = ".format(";
  const size_t last = after.find_first_of(",()\n", method.size());
  const bool filled = after.starts_with(method) && last != after.npos &&
                      last > method.size() && after[last] != '(';
  if (filled)
    return fmt::format("a string shows values in it: `{{{}{}}}`",
                       after.substr(method.size(), last - method.size()), spec);
  if (!spec.empty())
    return fmt::format("a value stands before the colon: `{{value{}}}`", spec);
  return "write `\\{` for a brace, `{value}` for a value";
}

bool Parser::string_piece(uint32_t begin, InterpolationEnd end,
                          StringPiece* out) {
  const std::string_view text = state_.file.text();
  const std::string_view body = text.substr(begin, end.colon - begin);
  if (body.find_first_not_of(" \t") == body.npos || body[0] == '{') {
    const Span where = {&state_.file, begin - 1, begin};
    if (Diagnostic* mistake = report(Code::stray_brace, where, "{"))
      mistake->set_help(without_value_help(end));
    return false;
  }
  if (state_.string_nesting >= max_string_nesting) {
    report(Code::nesting_too_deep, here(), max_string_nesting);
    return false;
  }
  const size_t errors = state_.diagnostics.error_count();
  Parser inner(state_,
               lex_part(state_.file, begin, end.colon, state_.diagnostics));
  ++state_.string_nesting;
  out->value = inner.interpolation();
  --state_.string_nesting;
  if (end.colon < end.close)
    out->spec = text.substr(end.colon + 1, end.close - end.colon - 1);
  // A mistake in there is one of this token, and already known.
  if (state_.diagnostics.error_count() > errors) {
    error_index_ = index_;
    brackets_at_error_ = open_brackets_;
    return false;
  }
  return out->value != nullptr;
}

/// A string without interpolations.
bool Parser::plain_string(Name* out, std::string_view what) {
  const Span where = here();
  if (!at(TokenKind::String)) {
    expected("a string");
    return false;
  }
  const ExprPtr literal = string();
  if (!literal) return false;
  std::optional<std::string> text = as<StringLiteral>(*literal)->plain_text();
  if (!text) {
    report(Code::unexpected_token, where,
           fmt::format("plain text for {}", what), "an interpolation");
    return false;
  }
  *out = {std::move(*text), where};
  return true;
}

}  // namespace unisono::lang
