#include "runtime/kernel_library/kernel_library.h"

#include <charconv>
#include <map>
#include <string>

#include "runtime/check.h"

namespace unisono {
namespace {

/// What GRID_SHARED_MEMORY (wide.h) says in the text, or 0.
unsigned shared_bytes(std::string_view ptx) {
  constexpr std::string_view says = "// shared memory of a block: ";
  unsigned bytes = 0;
  const size_t at = ptx.find(says);
  if (at != std::string_view::npos) {
    const std::string_view number = ptx.substr(at + says.size());
    std::from_chars(number.data(), number.data() + number.size(), bytes);
  }
  return bytes;
}

std::map<std::string, std::shared_ptr<const GridCode>, std::less<>> load_all() {
  std::map<std::string, GridCode> codes;
  for (const KernelModule& module : kernel_modules()) {
    const std::string_view file = module.name;
    const size_t dash = file.rfind('-');
    CHECK(dash != std::string_view::npos);
    GridCode::Image image{.ptx = module.ptx,
                          .exact = file.ends_with('a'),
                          .shared_bytes = shared_bytes(module.ptx)};
    std::from_chars(file.data() + dash + 1, file.data() + file.size(),
                    image.capability);
    CHECK(image.capability > 0);
    codes[std::string(file.substr(0, dash))].images.push_back(std::move(image));
  }
  std::map<std::string, std::shared_ptr<const GridCode>, std::less<>> all;
  for (auto& [name, code] : codes)
    all.emplace(name, std::make_shared<const GridCode>(std::move(code)));
  return all;
}

}  // namespace

std::shared_ptr<const GridCode> kernel_library(std::string_view name) {
  static const auto all = load_all();
  auto found = all.find(name);
  CHECK(found != all.end());
  return found->second;
}

}  // namespace unisono
