#pragma once
// From LLVM IR to machine code of this process's processor, or to assembly.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/kernel/schedule.h"
#include "runtime/result.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace unisono::jit {

/// Machine code in memory; freed with the last pointer to it. Thread-safe.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// The address of a function of the module; null if there is none.
  virtual void* symbol(const std::string& name) const = 0;
  /// The bytes of a function's code; 0 if there is no such function, or the
  /// code is not for a profile.
  virtual int64_t code_bytes(const std::string& name) const = 0;
};

/// Called by one thread at a time.
class Target {
 public:
  virtual ~Target() = default;
  virtual const Machine& machine() const = 0;
  /// All that code depends on besides the module: processor and features.
  virtual const std::string& description() const = 0;
  /// Sets data layout and triple.
  virtual void prepare(llvm::Module& module) = 0;
  /// Where a module may be made that is given to `object`: then LLVM's passes
  /// need not be made for it. It holds no other module; valid until the next
  /// call.
  virtual llvm::LLVMContext& context() = 0;
  /// Machine code of the module, which is used up: an object file. Fails
  /// (compile_failed) where LLVM diagnoses an error. `plain`: its loops go
  /// along arrays element by element, so there are no addresses to be made
  /// simpler.
  virtual Result<std::vector<char>> object(llvm::Module& module,
                                           bool plain = false) = 0;
  /// An object file in memory, as code to be called. `names` are its functions
  /// that will be asked for.
  virtual Result<std::shared_ptr<LoadedCode>> load(
      std::span<const char> object, const std::vector<std::string>& names) = 0;
  /// The module, which is used up, as assembly text.
  virtual Result<std::string> assembly(llvm::Module& module,
                                       bool plain = false) = 0;
};

/// What CPU code is generated for.
struct CpuTargetOptions {
  /// Bytes of a vector: 16, 32 or 64; 0: the widest that the processor has.
  /// LLVM makes several vectors of one that is wider than the processor's,
  /// which is slower, with the same bits.
  int vector_bytes = 0;
  /// An x86 processor by LLVM's name ("x86-64-v4"); empty: this one. Code for
  /// one that this one is not may only be looked at.
  std::string cpu = {};
  /// Code is for a profile: sizes of functions are known, and debuggers are
  /// told of them.
  bool profile = false;
};

/// LLVM's x86 code generator, which takes milliseconds to start at the first
/// module. Never null.
std::unique_ptr<Target> make_cpu_target(const CpuTargetOptions& options = {});

/// Runs f(0) ... f(count - 1) at once and waits for them, each on a thread of
/// its own with a stack that LLVM's recursion over long chains of operations
/// does not exhaust. Where the system gives no thread, f runs on the caller's.
/// Rethrows the first exception.
void on_deep_stacks(size_t count, const std::function<void(size_t)>& f);

}  // namespace unisono::jit
