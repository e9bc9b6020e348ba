#pragma once
// The standard library's sources.
#include <string_view>
#include <vector>

#include "lang/source/source.h"

namespace unisono::lang {

/// One module of the standard library: its name in `import`, and its source.
struct StdlibModule {
  std::string_view name;
  std::string_view text;
};

/// All modules of stdlib/, sorted by name; embedded at build time.
const std::vector<StdlibModule>& stdlib_modules();

/// Whether there is a module of this name.
bool is_stdlib_module(std::string_view name);
/// Whether the names of this module are in scope without import.
bool is_prelude_module(std::string_view name);
/// Whether the place lies in a module of the standard library.
bool is_in_stdlib(Span where);

}  // namespace unisono::lang
