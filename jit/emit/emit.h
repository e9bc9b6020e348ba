#pragma once
// From kernels to LLVM functions for CPUs, with the calling convention of
// KernelFunction. The emitter writes all vectors itself: one instruction of the
// IR is one of the machine or a few, and nothing is left to a vectoriser.
#include <llvm/IR/IRBuilder.h>

#include <string>

#include "jit/kernel/kernel.h"
#include "jit/kernel/schedule.h"

namespace unisono::jit {

/// The function of a kernel, and the units and grain of its LaunchStep.
struct EmittedKernel {
  std::string name;
  int64_t units = 0, grain = 1;
};

/// Adds the attributes that all generated functions have.
void add_attributes(llvm::Function& function);
/// A function to be filled, with the calling convention of KernelFunction.
llvm::Function* add_kernel_function(llvm::Module& module,
                                    const std::string& name);

/// Pointers to the flags that say that a function's work is no longer wanted;
/// stop_flags loads them from its KernelContext where the builder stands.
struct StopFlags {
  llvm::Value *stop = nullptr, *cancel = nullptr;
};
StopFlags stop_flags(llvm::IRBuilder<>& builder, llvm::Value* context);
/// Branches to `leave` if a flag is set; the builder goes on where none is.
void poll(llvm::IRBuilder<>& builder, const StopFlags& flags,
          llvm::BasicBlock* leave);

/// Appends the kernel's function to the module.
EmittedKernel emit_kernel(llvm::Module& module, const std::string& name,
                          const Kernel& kernel, const Machine& machine);

}  // namespace unisono::jit
