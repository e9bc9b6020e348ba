#include "runtime/cuda/cublas_library.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace unisono::cublas {
namespace {

/// Signatures are known to be those of cublas.def from the first up to before
/// the second.
constexpr size_t oldest_version = 120000, unknown_version = 140000;

}  // namespace

Result<std::shared_ptr<const Library>> Library::open(const std::string& path,
                                                     int driver_version) {
  std::vector<std::string> names = {path};
  if (path.empty()) {
    names = {"libcublasLt.so.12", "libcublasLt.so"};
    if (driver_version >= 13000)
      names.insert(names.begin(), "libcublasLt.so.13");
  }
  std::shared_ptr<Library> library(new Library);
  TRY(library->open_first("cuBLASLt", names));
  return std::shared_ptr<const Library>(std::move(library));
}

unisono::Status Library::bind() {
  size_t (*get_version)() = nullptr;
  find(get_version, "cublasLtGetVersion");
#define CUBLASLT_FUNCTION(name, symbol, parameters) find(name, #symbol);
#include "runtime/cuda/cublas.def"
  if (missing())
    return unusable(
        fmt::format("{} is no cuBLASLt: it has no `{}`", path(), missing()));
  version_ = get_version();
  if (version_ < oldest_version || version_ >= unknown_version)
    return unusable(
        fmt::format("cuBLASLt {} is version {}.{}; 12 or 13 is needed", path(),
                    version_ / 10000, version_ % 10000 / 100));
  return Unit{};
}

}  // namespace unisono::cublas
