#pragma once
// The files of a workspace: those that an editor has open, and on disk those
// that they import.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/lsp/check.h"
#include "host/lsp/syntax.h"
#include "host/lsp/text.h"

namespace unisono::host::lsp {

/// "/home/me/a b.uni" of "file:///home/me/a%20b.uni"; another kind of URI is
/// its own path, of which there is no file.
std::string path_of_uri(std::string_view uri);
std::string uri_of_path(std::string_view path);

/// A file that an editor has open. What it holds on disk does not matter.
struct Document {
  std::string uri, path, key;
  int64_t version = 0;
  Text text;
  /// Of `text`, once somebody asks.
  std::shared_ptr<const Syntax> syntax;
  /// Of the newest text that parsed.
  std::shared_ptr<const Syntax> good;
  /// The newest result of a check of a text that parsed: what types there are.
  std::shared_ptr<const Checked> typed;
  /// The newest result of all.
  std::shared_ptr<const Checked> checked;
  /// The newest result was for this version.
  std::optional<int64_t> checked_version;
};

/// One thread at a time.
class Files {
 public:
  /// Replaces one of the same URI.
  Document& open(const std::string& uri, int64_t version, std::string text);
  void close(const std::string& uri);
  /// Null if it is not open.
  Document* find(const std::string& uri);
  std::vector<Document*> all();

  std::shared_ptr<const Syntax> syntax(Document& document);
  /// The file at a path, as it is in the editor or else on disk; null if there
  /// is none that can be read.
  std::shared_ptr<const Syntax> file(const std::string& path);
  /// The open document with that file; null if there is none.
  Document* document(const std::string& path);
  /// Texts for CheckRequest::modules: of open documents among the files that
  /// one imports, or that those import.
  std::vector<std::pair<std::string, std::string>> modules(
      const Syntax& syntax);
  /// Whether it imports the file, or one does that it imports.
  bool imports(const Syntax& syntax, const std::string& key);
  /// Looks at files on disk again.
  void forget_disk() { disk_.clear(); }

 private:
  std::map<std::string, std::string> all_imports(const Syntax& syntax);

  std::map<std::string, Document> documents_;                  // by URI
  std::map<std::string, std::shared_ptr<const Syntax>> disk_;  // by key
};

/// What tells one file from another, by whatever path it is found.
std::string file_key(const std::string& path);

}  // namespace unisono::host::lsp
