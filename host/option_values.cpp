#include "host/option_values.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "jit/target/nvptx.h"

namespace unisono::host {

std::optional<int> parse_target(std::string_view text) {
  constexpr std::string_view prefix = "sm_";
  if (!text.starts_with(prefix)) return std::nullopt;
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] =
      std::from_chars(text.data() + prefix.size(), end, number);
  if (problem != std::errc() || stop != end ||
      number < jit::oldest_capability || number > newest_target)
    return std::nullopt;
  return number;
}

std::optional<double> parse_seconds(std::string_view text) {
  constexpr double most = 1e9;
  double seconds = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, problem] = std::from_chars(begin, end, seconds);
  if (problem != std::errc() || stop != end) return std::nullopt;
  if (!(seconds >= 0 && seconds <= most)) return std::nullopt;  // NaN, too
  return seconds;
}

std::optional<std::chrono::milliseconds> parse_watchdog(std::string_view text) {
  const auto seconds = parse_seconds(text);
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::ceil(*seconds * 1000)));
}

std::optional<lang::GivenType> parse_shape(const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == text.npos || sign == 0 || sign + 1 == text.size())
    return std::nullopt;
  lang::GivenType out{{}, text.substr(0, sign), text.substr(sign + 1)};
  const size_t dot = out.parameter.find('.');
  if (dot == text.npos) return out;
  out.function = out.parameter.substr(0, dot);
  out.parameter.erase(0, dot + 1);
  return out;
}

}  // namespace unisono::host
