#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "host/lsp/answers.h"

namespace unisono::host::lsp {
namespace {

namespace fs = std::filesystem;

/// A folder may hold more than programs: so many entries are looked at, and so
/// many programs read. So many symbols are shown, as a person reads them.
constexpr int most_entries = 100'000, most_files = 1000;
constexpr size_t most_shown = 200;

/// SymbolKind.
int symbol_kind(const Definition& d) {
  constexpr int module = 2, function = 12, variable = 13, constant = 14,
                structure = 23;
  switch (d.kind) {
    case Definition::Kind::function: return function;
    case Definition::Kind::type: return structure;
    case Definition::Kind::module: return module;
    case Definition::Kind::axis:
    case Definition::Kind::size:
    case Definition::Kind::type_parameter: return constant;
    case Definition::Kind::variable:
    case Definition::Kind::parameter: return d.is_var ? variable : constant;
  }
  return variable;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// How far a name is from a query in lower case: 0 the same, 1 it begins with
/// it, 2 it has it inside, 3 its letters in their order; nothing else fits.
std::optional<int> distance(std::string_view name, std::string_view query) {
  const std::string own = lower(name);
  if (own == query) return 0;
  const size_t found = own.find(query);
  if (found != own.npos) return found == 0 ? 1 : 2;
  size_t at = 0;
  for (const char c : own)
    if (at < query.size() && c == query[at]) ++at;
  return at == query.size() ? std::optional(3) : std::nullopt;
}

/// The programs below a folder, without hidden folders.
std::vector<std::string> programs_in(const std::string& folder,
                                     const std::atomic<bool>* cancelled) {
  std::vector<std::string> out;
  std::error_code error;
  fs::recursive_directory_iterator at(
      folder, fs::directory_options::skip_permission_denied, error);
  for (int entries = 0; !error && at != fs::recursive_directory_iterator() &&
                        ++entries < most_entries && !*cancelled;
       at.increment(error)) {
    const fs::path& path = at->path();
    if (path.filename().string().starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (path.extension() == ".uni" && at->is_regular_file(ignored))
      out.push_back(path.string());
    if (out.size() >= static_cast<size_t>(most_files)) break;
  }
  std::ranges::sort(out);
  return out;
}

struct Symbol {
  int distance;
  std::string name, path;
  std::shared_ptr<const Syntax> file;
  const Definition* definition;
};

}  // namespace

Json workspace_symbols(Files& files, const Client& client,
                       const std::vector<std::string>& folders,
                       const std::string& query,
                       const std::atomic<bool>* cancelled) {
  std::vector<Symbol> found;
  std::set<std::string> seen;  // keys of files
  const std::string wanted = lower(query);
  const auto add = [&](const std::shared_ptr<const Syntax>& file) {
    if (!file || !seen.insert(file_key(file->path())).second) return;
    for (const Definition& d : file->names().definitions())
      if (const auto far = file->names().is_top_level(d) && !d.import
                               ? distance(d.name, wanted)
                               : std::nullopt)
        found.push_back({*far, std::string(d.name), file->path(), file, &d});
  };
  for (Document* document : files.all()) add(files.syntax(*document));
  for (const std::string& folder : folders)
    for (const std::string& path : programs_in(folder, cancelled))
      if (!*cancelled) add(files.file(path));
  std::ranges::sort(found, {}, [](const Symbol& s) {
    return std::tuple(s.distance, s.name, s.path, s.definition->where.begin);
  });
  if (found.size() > most_shown) found.resize(most_shown);
  Json out = Json::array();
  for (const Symbol& s : found) {
    const lang::Span where = s.definition->where;
    const Range r =
        s.file->text().range(where.begin, where.end, client.encoding);
    const Document* open = files.document(s.path);
    const Json range = {
        {"start", {{"line", r.start.line}, {"character", r.start.character}}},
        {"end", {{"line", r.end.line}, {"character", r.end.character}}}};
    out.push_back({{"name", s.name},
                   {"kind", symbol_kind(*s.definition)},
                   {"containerName", fs::path(s.path).filename().string()},
                   {"location",
                    {{"uri", open ? open->uri : uri_of_path(s.path)},
                     {"range", range}}}});
  }
  return out;
}

}  // namespace unisono::host::lsp
