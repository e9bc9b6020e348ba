#include "lang/walk/tools.h"

#include <set>
#include <tuple>
#include <utility>

#include "lang/syntax/parser.h"
#include "lang/walk/walker.h"

namespace unisono::lang {

std::vector<KnownType> known_types(Walk& walk) {
  std::vector<KnownType> out;
  std::set<std::tuple<uint32_t, std::string_view>> seen;
  for (const TypeRecord& record : Walker(walk).state().types)
    if (seen.emplace(record.where.begin, record.type).second)
      out.push_back({record.where, record.name, record.type});
  return out;
}

void provide_module(Walk& walk, const std::string& path, std::string text) {
  Module& module = Walker(walk).state().modules[module_key(path)];
  if (module.program) return;
  const SourceFile& file = walk.sources().add(path, std::move(text));
  ParseResult parsed = parse(file, walk.diagnostics());
  module.program = std::move(parsed.program);
  module.failed = !parsed.ok;
}

}  // namespace unisono::lang
