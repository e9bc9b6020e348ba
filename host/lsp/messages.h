#pragma once
// Messages of the base protocol: JSON behind a header that says how long it is.
#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace unisono::host::lsp {

using Json = nlohmann::json;

/// Of JSON-RPC, and of the protocol.
enum class ErrorCode : int {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  not_initialized = -32002,
  request_failed = -32803,
  request_cancelled = -32800
};

/// Larger messages are taken for a wrong header: no text that we take is near.
inline constexpr size_t max_message_bytes = 64 << 20;

/// Reads messages from a file descriptor. What is no header is skipped, up to
/// the next line that is one.
class MessageReader {
 public:
  explicit MessageReader(int file) : file_(file) {}
  struct Incoming {
    enum class Kind : uint8_t { message, bad_header, end } kind;
    std::string body;  // of a message
  };
  /// Waits for the next one. `end` also when reading fails.
  Incoming next();

 private:
  bool fill();
  std::optional<std::string> line();

  int file_;
  std::string buffer_;
  size_t read_ = 0;  // bytes of the buffer that are used up
};

/// Writes to a file descriptor; an error when nobody reads it any more.
Status write_message(int file, const Json& message);

}  // namespace unisono::host::lsp
