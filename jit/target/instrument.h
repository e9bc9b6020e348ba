#pragma once

namespace llvm {
class Module;
}

namespace unisono::jit {

/// In builds with AddressSanitizer or ThreadSanitizer, has it watch what the
/// module's code reads and writes; `sanitizer_function` finds the functions
/// that the code then calls.
void instrument(llvm::Module& module);
/// The address of a function that instrumented code calls; null if `name` is no
/// such function.
void* sanitizer_function(const char* name);

}  // namespace unisono::jit
