#include "host/manual/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace unisono::host::manual {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text)
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == '<')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  return out + "\"";
}

std::string relative(std::string_view from, std::string_view to) {
  const size_t mark = std::min(to.find('#'), to.size());
  const std::string_view fragment = to.substr(mark);
  to = to.substr(0, mark);
  if (from == to && !fragment.empty()) return std::string(fragment);
  // The folders that both are in.
  size_t common = 0;
  for (size_t i = 0; i < std::min(from.size(), to.size()) && from[i] == to[i];
       ++i)
    if (from[i] == '/') common = i + 1;
  std::string out;
  for (size_t i = common; i < from.size(); ++i)
    if (from[i] == '/') out += "../";
  for (const char c : to.substr(common))
    if (std::isalnum(static_cast<unsigned char>(c)) ||
        std::string_view("-_.~/").find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out + std::string(fragment);
}

std::string path_of_url(std::string_view url) {
  url = url.substr(0, url.find('#'));
  std::string out;
  for (size_t i = 0; i < url.size(); ++i) {
    unsigned value = 0;
    const char* digits = url.data() + i + 1;
    const bool is_code =
        url[i] == '%' && i + 2 < url.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += is_code ? static_cast<char>(value) : url[i];
    if (is_code) i += 2;
  }
  return out;
}

std::string slug(std::string_view title) {
  std::string out;
  for (const char c : title) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '_' || c == '-' || byte >= 0x80)
      out += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    else if (c == ' ')
      out += '-';
  }
  return out;
}

}  // namespace unisono::host::manual
