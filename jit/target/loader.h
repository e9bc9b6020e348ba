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
/// executable at once. Code is freed with the last pointer to it, which may
/// outlive the loader. Thread-safe.
class Loader {
 public:
  /// With `profile` GDB's JIT interface is told of all objects, and the sizes
  /// of functions are known (LoadedCode::code_bytes).
  static Result<std::unique_ptr<Loader>> make(bool profile);
  virtual ~Loader() = default;
  /// `names` are the functions of the object that will be asked for. An error
  /// if the object needs a symbol that this process has not, or the system
  /// gives no memory.
  virtual Result<std::shared_ptr<LoadedCode>> load(
      std::span<const char> object, const std::vector<std::string>& names) = 0;
};

}  // namespace unisono::jit
