#include "lang/ops/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace unisono::lang {
namespace {

constexpr std::string_view float_types = "eEfFgG%", integer_types = "dxXob";

bool is_one_of(char c, std::string_view these) {
  return c != '\0' && these.find(c) != these.npos;
}

/// How many bytes the UTF-8 character at the start takes.
size_t first_character(std::string_view text) {
  size_t n = text.empty() ? 0 : 1;
  while (n < text.size() && (static_cast<uint8_t>(text[n]) & 0xc0) == 0x80) ++n;
  return n;
}

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// A spec, and what of it is left when nothing more fits its form.
struct SpecReader {
  explicit SpecReader(std::string_view spec) : rest(spec) {
    const size_t fill = first_character(rest);
    if (!is_one_of(at(0), "{}") && is_one_of(at(fill), "<>^")) {
      out.fill = rest.substr(0, fill);
      has_fill = true;
      rest.remove_prefix(fill);
    }
    if (is_one_of(at(0), "<>^")) out.align = take();
    if (is_one_of(at(0), "+- ")) {
      has_sign = true;
      out.sign = take();
    }
    if (at(0) == '0') {
      out.zeros = true;
      if (!has_fill) out.fill = rest.substr(0, 1);
      take();
    }
    width = digits();
    out.width = number(width);
    if (at(0) == ',') {
      out.grouped = true;
      take();
    }
    if (at(0) == '.') {
      take();
      precision = digits();
      out.precision = number(*precision);
    }
    if (!rest.empty()) out.type = take();
  }

  char at(size_t i) const { return i < rest.size() ? rest[i] : '\0'; }
  char take() {
    const char c = rest[0];
    rest.remove_prefix(1);
    return c;
  }
  std::string_view digits() {
    size_t n = 0;
    while (std::isdigit(static_cast<unsigned char>(at(n)))) ++n;
    const std::string_view found = rest.substr(0, n);
    rest.remove_prefix(n);
    return found;
  }

  FormatSpec out;
  bool has_fill = false, has_sign = false;
  std::string_view rest, width;
  std::optional<std::string_view> precision;
};

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

/// As wide as the spec says, in characters, as Python counts: what a terminal
/// makes of them is another matter.
std::string padded(std::string body, const FormatSpec& spec, char otherwise) {
  const size_t has = count_characters(body);
  const auto width = static_cast<size_t>(spec.width);
  if (has >= width) return body;
  const char align = spec.align ? spec.align : otherwise;
  const size_t left = align == '<'   ? 0
                      : align == '>' ? width - has
                                     : (width - has) / 2;
  std::string out;
  for (size_t i = 0; i < left; ++i) out += spec.fill;
  out += body;
  for (size_t i = left; i < width - has; ++i) out += spec.fill;
  return out;
}

/// `1234567.5` with commas between thousands.
std::string with_groups(std::string digits) {
  const size_t end =
      std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

/// A number's text without its sign, at the spec's width. Zeros stand between
/// the sign and the digits, unless it says where the number stands.
std::string laid_out(bool negative, const std::string& body,
                     const FormatSpec& spec) {
  std::string text = negative ? "-" : spec.sign == '-' ? "" : " ";
  if (!negative && spec.sign == '+') text = "+";
  const size_t used = text.size() + body.size();
  const auto width = static_cast<size_t>(spec.width);
  if (spec.zeros && !spec.align && used < width) text.append(width - used, '0');
  return padded(text + body, spec, '>');
}

std::string integer_text(uint64_t magnitude, bool negative,
                         const FormatSpec& spec) {
  if (spec.is_float()) {
    const auto value = static_cast<double>(magnitude);
    return format_float(negative ? -value : value, "", spec);
  }
  std::string body;
  switch (spec.type) {
    case 'x': body = fmt::format("{:x}", magnitude); break;
    case 'X': body = fmt::format("{:X}", magnitude); break;
    case 'o': body = fmt::format("{:o}", magnitude); break;
    case 'b': body = fmt::format("{:b}", magnitude); break;
    default: body = fmt::format("{}", magnitude);
  }
  if (spec.grouped) body = with_groups(std::move(body));
  return laid_out(negative, body, spec);
}

/// As Python shows a float by a precision without a type: so many digits, at
/// least one of them after the point, with an exponent where that cannot be.
std::string general_text(double magnitude, int precision) {
  if (!std::isfinite(magnitude)) return fmt::format("{}", magnitude);
  precision = std::max(precision, 1);
  const std::string text = fmt::format("{:.{}e}", magnitude, precision - 1);
  const Decimal decimal = read_scientific(text);
  const int point = decimal.exponent + 1;
  if (point <= -4 || point > precision - 1) {
    const std::string rest = decimal.digits.substr(1);
    return decimal.digits.substr(0, 1) + (rest.empty() ? "" : "." + rest) +
           text.substr(text.find('e'));
  }
  const int count = static_cast<int>(decimal.digits.size());
  return fmt::format("{:.{}f}", magnitude, std::max(count - point, 1));
}

}  // namespace

Decimal read_scientific(std::string_view text) {
  Decimal out;
  const size_t e = text.find('e');
  for (const char c : text.substr(0, e))
    if (c != '.') out.digits += c;
  while (out.digits.size() > 1 && out.digits.back() == '0')
    out.digits.pop_back();
  const int size = number(text.substr(e + 2));
  out.exponent = text[e + 1] == '-' ? -size : size;
  return out;
}

bool FormatSpec::is_float() const { return is_one_of(type, float_types); }

std::string check_spec(std::string_view spec, SpecClass what) {
  const SpecReader read(spec);
  const char type = read.out.type;
  if (read.width.size() > 3) return "the width is larger than 999";
  if (read.precision && read.precision->empty())
    return "digits are missing after the point";
  if (read.precision && read.precision->size() > 2)
    return "the precision is larger than 99";
  if (!read.rest.empty())
    return "it is not of the form `[align][width][,][.precision][type]`";
  switch (what) {
    case SpecClass::text:
    case SpecClass::boolean:
      if (type != '\0' && type != 's')
        return fmt::format("`{}` is not for text", type);
      if (read.has_sign) return "a sign is not for text";
      if (read.out.zeros) return "zeros before it are not for text";
      if (read.out.grouped) return "`,` is not for text";
      return "";
    case SpecClass::floating:
      if (type != '\0' && !read.out.is_float())
        return fmt::format("`{}` is not for floats", type);
      return "";
    case SpecClass::integer:
      if (type != '\0' && !read.out.is_float() &&
          !is_one_of(type, integer_types))
        return fmt::format("`{}` is not for integers", type);
      if (read.precision && !read.out.is_float())
        return "integers have no precision";
      if (read.out.grouped && is_one_of(type, "xXob"))
        return fmt::format("`,` is not for `{}`", type);
      return "";
  }
  return "";
}

FormatSpec read_spec(std::string_view spec) { return SpecReader(spec).out; }

std::string format_integer(int64_t value, const FormatSpec& spec) {
  const auto bits = static_cast<uint64_t>(value);
  return integer_text(value < 0 ? 0 - bits : bits, value < 0, spec);
}

std::string format_integer(uint64_t value, const FormatSpec& spec) {
  return integer_text(value, false, spec);
}

std::string format_float(double value, std::string shortest,
                         const FormatSpec& spec) {
  const double magnitude = std::fabs(value);
  // The sign of a NaN says nothing.
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string body;
  if (spec.type == '%') {
    body = fmt::format("{:.{}f}%", magnitude * 100, spec.precision.value_or(6));
  } else if (spec.type != '\0') {
    const std::string format =
        spec.precision ? fmt::format("{{:.{}{}}}", *spec.precision, spec.type)
                       : fmt::format("{{:{}}}", spec.type);
    body = fmt::format(fmt::runtime(format), magnitude);
  } else if (spec.precision) {
    body = general_text(magnitude, *spec.precision);
  } else {
    body = std::move(shortest);
    if (body.starts_with('-')) body.erase(0, 1);
  }
  if (spec.grouped) body = with_groups(std::move(body));
  return laid_out(negative, body, spec);
}

std::string format_text(std::string_view text, const FormatSpec& spec) {
  if (spec.precision) {
    size_t end = 0;
    for (int i = 0; i < *spec.precision && end < text.size(); ++i)
      end += first_character(text.substr(end));
    text = text.substr(0, end);
  }
  return padded(std::string(text), spec, '<');
}

}  // namespace unisono::lang
