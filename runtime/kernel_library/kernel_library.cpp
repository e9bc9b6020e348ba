#include "runtime/kernel_library/kernel_library.h"

#include <charconv>
#include <map>
#include <string>

#include "runtime/check.h"

namespace unisono {
namespace {

std::map<std::string, std::shared_ptr<const GridCode>, std::less<>> load_all() {
  std::map<std::string, GridCode> codes;
  for (const KernelModule& module : kernel_modules()) {
    const std::string_view file = module.name;
    const size_t dash = file.rfind('-');
    CHECK(dash != std::string_view::npos);
    int capability = 0;
    std::from_chars(file.data() + dash + 1, file.data() + file.size(),
                    capability);
    CHECK(capability > 0);
    codes[std::string(file.substr(0, dash))].images.push_back(
        {capability, module.ptx});
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
