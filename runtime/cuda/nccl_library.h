#pragma once
// NCCL, NVIDIA's library that moves bytes between GPUs of several processes,
// opened at run time: nothing of it is needed to build, and without it they go
// by way of the host's memory.
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/cuda/shared_library.h"
#include "runtime/cuda/types.h"
#include "runtime/result.h"

namespace unisono::nccl {

// Values and layouts are those of nccl.h.
enum class Status : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};
enum class DataType : int { i8 = 0 };
using Comm = struct CommOpaque*;

/// What all who meet must know; one of them makes it.
struct UniqueId {
  char internal[128];
};

/// How a communicator behaves, as of version 2.14, which later ones take.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = INT_MIN;  // 0: calls return at once, in progress
};

/// The functions of nccl.def, by their names there. Immutable.
class Library final : public SharedLibrary {
 public:
  /// The library at `path`; "" is the system's. An error (device_lost) says in
  /// one line why there is none.
  static Result<std::shared_ptr<const Library>> open(const std::string& path);
  ~Library() override = default;

#define NCCL_FUNCTION(name, symbol, parameters) \
  Status(*name) parameters = nullptr;
#include "runtime/cuda/nccl.def"

  /// "2.21.5"
  std::string version() const;

 private:
  Library() = default;
  unisono::Status bind() override;

  int version_ = 0;
};

/// What a failed call said, in a few words.
const char* text_of(Status status);

}  // namespace unisono::nccl
