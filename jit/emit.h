#pragma once
// Kernel to LLVM function, with the calling convention of KernelFunction. All
// vectors are written here: one instruction of the IR is one on the machine or
// a few, and nothing is left to a vectoriser.
#include <string>

#include "jit/kernel.h"
#include "jit/schedule.h"

namespace llvm {
class Module;
}

namespace unisono::jit {

struct EmittedKernel {
  std::string name;
  int64_t units = 0, grain = 1;
};

/// Appends the kernel's function to the module.
EmittedKernel emit_kernel(llvm::Module& module, const std::string& name,
                          const Kernel& kernel, const Machine& machine);

}  // namespace unisono::jit
