#include "runtime/cuda/nccl_library.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace unisono::nccl {
namespace {

/// Communicators that do not block are known since then; another major version
/// may have other signatures.
constexpr int oldest_version = 21400, unknown_version = 30000;

}  // namespace

Result<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  std::vector<std::string> names = {path};
  if (path.empty()) names = {"libnccl.so.2", "libnccl.so"};
  std::shared_ptr<Library> library(new Library);
  TRY(library->open_first("NCCL", names));
  return std::shared_ptr<const Library>(std::move(library));
}

unisono::Status Library::bind() {
#define NCCL_FUNCTION(name, symbol, parameters) find(name, #symbol);
#include "runtime/cuda/nccl.def"
  if (missing())
    return unusable(
        fmt::format("{} is no NCCL of use: it has no `{}`", path(), missing()));
  if (get_version(&version_) != Status::success || version_ < oldest_version ||
      version_ >= unknown_version)
    return unusable(fmt::format(
        "NCCL {} is version {}; 2.14 or later is needed", path(), version()));
  return Unit{};
}

std::string Library::version() const {
  return fmt::format("{}.{}.{}", version_ / 10000, version_ % 10000 / 100,
                     version_ % 100);
}

const char* text_of(Status status) {
  switch (status) {
    case Status::success: return "success";
    case Status::unhandled_cuda_error: return "a call of CUDA failed";
    case Status::system_error: return "a call of the system failed";
    case Status::internal_error: return "an internal error";
    case Status::invalid_argument: return "an invalid argument";
    case Status::invalid_usage: return "invalid usage";
    case Status::remote_error: return "another process failed, or is gone";
    case Status::in_progress: return "it is not done yet";
  }
  return "an unknown error";
}

}  // namespace unisono::nccl
