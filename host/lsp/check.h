#pragma once
// A text checked: its messages, and the types of its names.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/lsp/fixes.h"
#include "host/lsp/syntax.h"
#include "host/lsp/text.h"
#include "lang/source/diagnostics.h"

namespace unisono::host::lsp {

/// A place in some file, as the protocol counts.
struct FilePlace {
  std::string path;  // "<stdlib>/nn.uni" in the library
  Range range;
};

/// A message at a place of the text that was checked. One about another file
/// stands where the text leads to it, and has its own place among the related.
struct Message {
  lang::Severity severity;
  std::string code;  // "U0412"
  Range range;
  std::string text;  // with facts and help, a line each
  std::vector<std::pair<FilePlace, std::string>> related;
  std::vector<Fix> fixes;  // of the text that was checked
};

struct Checked {
  std::shared_ptr<const Syntax> syntax;  // of the text
  std::vector<Message> messages;
  bool has_errors = false;
  /// By the first byte of the name that is bound; those with sizes as names,
  /// which hold for all calls, come first.
  std::map<uint32_t, std::vector<std::string>> types;
};

/// Whether a type speaks of sizes by name, and so of all calls: `f32[n, 3]`.
bool has_names_of_sizes(std::string_view type);

/// What to check: a text, and texts that stand for those of files which it
/// imports, by path.
struct CheckRequest {
  std::shared_ptr<const Syntax> syntax;
  std::vector<std::pair<std::string, std::string>> modules;
  int devices = 1;
  Encoding encoding = Encoding::utf16;
};

/// Runs nothing of it. Nothing when it was stopped. Any thread; needs no more
/// of its stack than others do.
std::optional<Checked> check(const CheckRequest& request,
                             const std::atomic<bool>* stop);

}  // namespace unisono::host::lsp
