#pragma once
#include <string_view>
#include <vector>

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

}  // namespace unisono::lang
