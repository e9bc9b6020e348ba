#pragma once
// The requests about documents, by the names of their methods.
#include <atomic>
#include <string>
#include <vector>

#include "host/lsp/server/documents.h"

namespace unisono::host::lsp {

/// What a request is answered from.
struct Asked {
  Documents& documents;
  const Json& params;
  /// Set when the client does not want the answer any more.
  const std::atomic<bool>* cancelled;
  /// The folders that the client has open.
  const std::vector<std::string>& folders;
};

struct Request {
  /// Throws a Refusal.
  Json (*answer)(const Asked& asked);
  /// It waits a moment for a check that is under way.
  bool wants_types = false;
};

/// Null if there is no such method.
const Request* find_request(const std::string& method);
/// What of the capabilities belongs to them.
Json request_capabilities();

}  // namespace unisono::host::lsp
