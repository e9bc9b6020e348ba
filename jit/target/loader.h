#pragma once
// Machine code in memory, through LLVM's ORC.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/target/target.h"
#include "runtime/result.h"

namespace unisono::jit {

/// Links objects into this process with JITLink. Memory is never writable and
/// executable at once; what was loaded is freed with the last pointer to it,
/// also after the loader. Thread-safe.
class Loader {
 public:
  /// With `profile` GDB's JIT interface is told of all objects, and sizes of
  /// code are known.
  static Result<std::unique_ptr<Loader>> make(bool profile);
  virtual ~Loader() = default;
  /// `names` are the functions of the object that will be asked for. An error
  /// if it needs what this process has not, or the system gives no memory.
  virtual Result<std::shared_ptr<LoadedCode>> load(
      std::span<const char> object, const std::vector<std::string>& names) = 0;
};

}  // namespace unisono::jit
