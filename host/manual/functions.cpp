#include "host/manual/functions.h"

namespace unisono::host::manual {

std::vector<std::string_view> other_names(std::string_view builtin) {
  std::vector<std::string_view> out;
#define BUILTIN_ALIAS(other, name) \
  if (builtin == #name) out.emplace_back(#other);
#include "lang/context/builtins.def"
  return out;
}

const std::vector<ElsewhereName>& elsewhere_names() {
  static const std::vector<ElsewhereName> table = {
#define FOREIGN_NAME(name, help) {#name, help},
#include "lang/source/foreign_names.def"
  };
  return table;
}

}  // namespace unisono::host::manual
