#include "host/lsp/files.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <filesystem>

#include "lang/syntax/read_source.h"
#include "lang/walk/tools.h"

namespace unisono::host::lsp {
namespace {

/// More files than these are not kept.
constexpr size_t most_kept = 1000;

constexpr std::string_view file_scheme = "file://";

}  // namespace

std::string path_of_uri(std::string_view uri) {
  if (!uri.starts_with(file_scheme)) return std::string(uri);
  std::string_view rest = uri.substr(file_scheme.size());
  rest.remove_prefix(std::min(rest.find('/'), rest.size()));  // the host
  std::string out;
  for (size_t i = 0; i < rest.size(); ++i) {
    unsigned value = 0;
    const bool escape =
        rest[i] == '%' && i + 2 < rest.size() &&
        std::from_chars(&rest[i + 1], &rest[i + 1] + 2, value, 16).ptr ==
            &rest[i + 1] + 2;
    out += escape ? static_cast<char>(value) : rest[i];
    if (escape) i += 2;
  }
  return out;
}

std::string uri_of_path(std::string_view path) {
  if (!path.starts_with('/')) return std::string(path);
  constexpr std::string_view plain = "/-._~";
  std::string out(file_scheme);
  for (const char c : path)
    if (std::isalnum(static_cast<unsigned char>(c)) ||
        plain.find(c) != plain.npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

std::string file_key(const std::string& path) { return lang::module_key(path); }

Document& Files::open(const std::string& uri, int64_t version,
                      std::string text) {
  Document& document = documents_[uri];
  document = Document();
  document.uri = uri;
  document.path = path_of_uri(uri);
  document.key = file_key(document.path);
  document.version = version;
  document.text = Text(std::move(text));
  return document;
}

void Files::close(const std::string& uri) { documents_.erase(uri); }

Document* Files::find(const std::string& uri) {
  const auto found = documents_.find(uri);
  return found == documents_.end() ? nullptr : &found->second;
}

std::vector<Document*> Files::all() {
  std::vector<Document*> out;
  for (auto& [uri, document] : documents_) out.push_back(&document);
  return out;
}

std::shared_ptr<const Syntax> Files::syntax(Document& document) {
  if (!document.syntax) {
    document.syntax =
        std::make_shared<const Syntax>(document.path, document.text.str());
    if (document.syntax->ok()) document.good = document.syntax;
  }
  return document.syntax;
}

Document* Files::document(const std::string& path) {
  const std::string key = file_key(path);
  for (auto& [uri, document] : documents_)
    if (document.key == key) return &document;
  return nullptr;
}

std::shared_ptr<const Syntax> Files::file(const std::string& path) {
  if (Document* open = document(path)) return syntax(*open);
  const std::string key = file_key(path);
  if (const auto known = disk_.find(key); known != disk_.end())
    return known->second;
  std::error_code error;
  std::shared_ptr<const Syntax> out;
  // A pipe would be waited for.
  if (std::filesystem::is_regular_file(path, error))
    if (auto text = lang::read_source(path))
      out = std::make_shared<const Syntax>(path, std::move(*text));
  if (disk_.size() >= most_kept) disk_.clear();
  disk_[key] = out;
  return out;
}

/// The paths of the files that one imports, directly or not, by their keys.
std::map<std::string, std::string> Files::all_imports(const Syntax& syntax) {
  std::map<std::string, std::string> out;
  std::vector<std::string> waiting = syntax.imported_files();
  while (!waiting.empty()) {
    const std::string path = std::move(waiting.back());
    waiting.pop_back();
    if (!out.emplace(file_key(path), path).second) continue;
    if (const auto imported = file(path))
      for (std::string& next : imported->imported_files())
        waiting.push_back(std::move(next));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> Files::modules(
    const Syntax& syntax) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, path] : all_imports(syntax))
    if (const Document* open = document(path))
      out.emplace_back(path, open->text.str());
  return out;
}

bool Files::imports(const Syntax& syntax, const std::string& key) {
  return all_imports(syntax).contains(key);
}

}  // namespace unisono::host::lsp
