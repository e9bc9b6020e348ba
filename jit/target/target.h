#pragma once
// From LLVM IR to machine code for one kind of device.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "jit/kernel/schedule.h"
#include "runtime/result.h"

namespace llvm {
class Module;
}

namespace unisono::jit {

/// Machine code in memory; freed with the last pointer to it. Thread-safe.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// The address of a function of the module; null if there is none.
  virtual void* symbol(const std::string& name) const = 0;
  /// The bytes of its code; 0 if there is none, or not for a profile.
  virtual int64_t code_bytes(const std::string& name) const = 0;
};

/// One thread at a time.
class Target {
 public:
  virtual ~Target() = default;
  virtual const Machine& machine() const = 0;
  /// Sets data layout and triple.
  virtual void prepare(llvm::Module& module) = 0;
  /// Machine code of the module, which is used up. An error that the code
  /// generator diagnoses fails the compilation.
  virtual Result<std::shared_ptr<LoadedCode>> load(llvm::Module& module) = 0;
  /// The module, which is used up, as assembly text.
  virtual Result<std::string> assembly(llvm::Module& module) = 0;
};

/// What CPU code is generated for.
struct CpuTargetOptions {
  /// Of vectors: 16, 32 or 64; 0: the widest that the processor has. Of wider
  /// ones LLVM makes several: slower, and the same bits.
  int vector_bytes = 0;
  /// An x86 processor as LLVM calls it ("x86-64-v4"), which this one need not
  /// be: then the code is only to be looked at. Empty: this one.
  std::string cpu = {};
  /// Code is for a profile: its size is known, and debuggers are told of it.
  bool profile = false;
};

/// Wakes LLVM's x86 code generator.
std::unique_ptr<Target> make_cpu_target(const CpuTargetOptions& options = {});

/// Runs f(0) ... f(count - 1) at once, each on a thread of its own with a stack
/// that LLVM's recursion over long chains of operations does not exhaust, and
/// waits for them.
void on_deep_stacks(size_t count, const std::function<void(size_t)>& f);

}  // namespace unisono::jit
