#pragma once
// From LLVM IR to PTX text, for one compute capability.
#include <memory>
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace unisono::jit {

/// The oldest compute capability that code is generated for, and the newest
/// that LLVM knows, whose PTX newer devices get.
inline constexpr int oldest_capability = 75, newest_capability = 90;

/// The capability that code for such a device is generated for: the newest that
/// LLVM knows and the device has.
int code_capability(int device_capability);

/// One thread at a time.
class NvptxTarget {
 public:
  /// `capability` is what code_capability gives.
  explicit NvptxTarget(int capability);
  ~NvptxTarget();
  /// Sets data layout and triple.
  void prepare(llvm::Module& module);
  /// The module, which is used up, as PTX. Fails (compile_failed) where the
  /// module or the PTX has something that verify_grid.h forbids, or that LLVM
  /// cannot translate.
  Result<std::string> ptx(llvm::Module& module);

 private:
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace unisono::jit
