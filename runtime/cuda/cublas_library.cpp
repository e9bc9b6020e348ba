#include "runtime/cuda/cublas_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <type_traits>
#include <vector>

namespace unisono::cublas {
namespace {

/// Signatures are known to be those of cublas.def from the first up to before
/// the second.
constexpr size_t oldest_version = 120000, unknown_version = 140000;

Error unusable(std::string why) {
  return {.kind = Error::Kind::device_lost, .message = std::move(why)};
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::open(const std::string& path,
                                                     int driver_version) {
  std::vector<std::string> names = {path};
  if (path.empty()) {
    names = {"libcublasLt.so.12", "libcublasLt.so"};
    if (driver_version >= 13000)
      names.insert(names.begin(), "libcublasLt.so.13");
  }
  std::string why;
  for (const std::string& name : names) {
    std::shared_ptr<Library> library(new Library);
    library->path_ = name;
    // It stays: what it has registered with the driver may be asked for later.
    library->library_ =
        dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library->library_) {
      if (why.empty()) why = fmt::format("there is no cuBLASLt: {}", dlerror());
      continue;
    }
    unisono::Status bound = library->bind();
    if (bound) return std::shared_ptr<const Library>(std::move(library));
    why = bound.error().message;
  }
  return unusable(std::move(why));
}

Library::~Library() {
  if (library_) dlclose(library_);
}

unisono::Status Library::bind() {
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library_, symbol));
    if (!function && !missing) missing = symbol;
  };
  size_t (*get_version)() = nullptr;
  find(get_version, "cublasLtGetVersion");
#define CUBLASLT_FUNCTION(name, symbol, parameters) find(name, #symbol);
#include "runtime/cuda/cublas.def"
  if (missing)
    return unusable(
        fmt::format("{} is no cuBLASLt: it has no `{}`", path_, missing));
  version_ = get_version();
  if (version_ < oldest_version || version_ >= unknown_version)
    return unusable(
        fmt::format("cuBLASLt {} is version {}.{}; 12 or 13 is needed", path_,
                    version_ / 10000, version_ % 10000 / 100));
  return Unit{};
}

}  // namespace unisono::cublas
