#include "runtime/grid_library.h"

#include <map>
#include <string>

#include "runtime/check.h"

namespace unisono {
namespace {

/// What CMakeLists.txt has clang compile for.
constexpr int library_capability = 75;

std::map<std::string, std::shared_ptr<const GridCode>, std::less<>> load_all() {
  std::map<std::string, std::shared_ptr<const GridCode>, std::less<>> all;
  for (const GridModule& module : grid_modules()) {
    auto code = std::make_shared<GridCode>();
    code->images.push_back({library_capability, module.ptx});
    all.emplace(module.name, std::move(code));
  }
  return all;
}

}  // namespace

std::shared_ptr<const GridCode> grid_library(std::string_view name) {
  static const auto all = load_all();
  auto found = all.find(name);
  CHECK(found != all.end());
  return found->second;
}

}  // namespace unisono
