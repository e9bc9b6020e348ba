#pragma once

namespace llvm {
class Module;
}

namespace unisono::jit {

/// Has AddressSanitizer or ThreadSanitizer watch what the module's code reads
/// and writes, in builds with them; the functions that it then calls are found
/// by `sanitizer_function`.
void instrument(llvm::Module& module);
/// The address of a function that instrumented code calls; null otherwise.
void* sanitizer_function(const char* name);

}  // namespace unisono::jit
