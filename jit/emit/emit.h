#pragma once
// Kernel to LLVM function, with the calling convention of KernelFunction. All
// vectors are written here: one instruction of the IR is one on the machine or
// a few, and nothing is left to a vectoriser.
#include <llvm/IR/IRBuilder.h>

#include <string>

#include "jit/kernel/kernel.h"
#include "jit/kernel/schedule.h"

namespace unisono::jit {

struct EmittedKernel {
  std::string name;
  int64_t units = 0, grain = 1;
};

/// What all generated functions have in common.
void add_attributes(llvm::Function& function);
/// A function to be filled, with the calling convention of KernelFunction.
llvm::Function* add_kernel_function(llvm::Module& module,
                                    const std::string& name);

/// The flags that say that a function's work is no longer wanted (pointers),
/// loaded from its KernelContext where the builder stands.
struct StopFlags {
  llvm::Value *stop = nullptr, *cancel = nullptr;
};
StopFlags stop_flags(llvm::IRBuilder<>& builder, llvm::Value* context);
/// Goes to `leave` if a flag is set; the builder goes on where none is.
void poll(llvm::IRBuilder<>& builder, const StopFlags& flags,
          llvm::BasicBlock* leave);

/// Appends the kernel's function to the module.
EmittedKernel emit_kernel(llvm::Module& module, const std::string& name,
                          const Kernel& kernel, const Machine& machine);

}  // namespace unisono::jit
