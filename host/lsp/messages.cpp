#include "host/lsp/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace unisono::host::lsp {
namespace {

/// Longer lines are no headers.
constexpr size_t max_line_bytes = 4096;

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

bool MessageReader::fill() {
  if (read_ > 0) buffer_.erase(0, std::exchange(read_, 0));
  char piece[1 << 16];
  ssize_t count;
  do {
    count = ::read(file_, piece, sizeof piece);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  buffer_.append(piece, static_cast<size_t>(count));
  return true;
}

/// The next line without its end, of a long one the last part.
std::optional<std::string> MessageReader::line() {
  size_t looked_at = read_;
  while (true) {
    const size_t end = buffer_.find('\n', looked_at);
    if (end != std::string::npos) {
      std::string out = buffer_.substr(read_, end - read_);
      read_ = end + 1;
      if (out.ends_with('\r')) out.pop_back();
      return out;
    }
    if (buffer_.size() - read_ > max_line_bytes)
      read_ = buffer_.size() - max_line_bytes;
    looked_at = buffer_.size() - read_;  // read_ becomes 0
    if (!fill()) return std::nullopt;
  }
}

MessageReader::Incoming MessageReader::next() {
  constexpr std::string_view key = "Content-Length";
  std::optional<size_t> length;
  bool bad = false;
  while (true) {
    const std::optional<std::string> header = line();
    if (!header) return {Incoming::Kind::end, {}};
    if (header->empty()) {
      if (length && !bad) break;
      if (bad) return {Incoming::Kind::bad_header, {}};
      continue;
    }
    const size_t colon = header->find(':');
    if (colon == std::string::npos) {
      bad = true;
      continue;
    }
    // What is left of a message that was too short or too long may stand before
    // the next header on its line.
    const std::string_view name = std::string_view(*header).substr(0, colon);
    if (!same_word(name.substr(name.size() - std::min(name.size(), key.size())),
                   key))
      continue;
    bad = name.size() != key.size();
    const std::string_view value =
        trimmed(std::string_view(*header).substr(colon + 1));
    size_t bytes = 0;
    const auto [stop, problem] =
        std::from_chars(value.data(), value.data() + value.size(), bytes);
    bad |= problem != std::errc() || stop != value.data() + value.size() ||
           bytes > max_message_bytes;
    length = bytes;
  }
  while (buffer_.size() - read_ < *length)
    if (!fill()) return {Incoming::Kind::end, {}};
  Incoming out{Incoming::Kind::message, buffer_.substr(read_, *length)};
  read_ += *length;
  return out;
}

Status write_message(int file, const Json& message) {
  // Text of a program may hold bytes that are no UTF-8.
  const std::string body =
      message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string all =
      fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
  for (size_t at = 0; at < all.size();) {
    const ssize_t count = ::write(file, all.data() + at, all.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Error{.kind = Error::Kind::io, .message = std::strerror(errno)};
    at += static_cast<size_t>(count);
  }
  return Unit{};
}

}  // namespace unisono::host::lsp
