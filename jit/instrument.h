#pragma once

namespace llvm {
class Module;
}

namespace unisono::jit {

/// Has AddressSanitizer watch what the module's code reads and writes, in
/// builds with it; `__asan_...` functions are then found by `asan_function`.
void instrument(llvm::Module& module);
/// The address of a function that instrumented code calls; null otherwise.
void* asan_function(const char* name);

}  // namespace unisono::jit
