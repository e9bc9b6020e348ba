#pragma once
// Admits only IR that is known to become right PTX, as LLVM's NVPTX back end
// ends the process on some operations, and prints wrong code for others. Errors
// are compile_failed.
#include <string_view>

#include "runtime/result.h"

namespace llvm {
class Module;
}

namespace unisono::jit {

/// Looks at every instruction before code generation: operations and
/// intrinsics of a list; no calls, traps, fences, float remainders or fast-math
/// flags; atomics only relaxed and on integers in global memory; pointers into
/// global, shared or the thread's own memory.
Status verify_grid(const llvm::Module& module);

/// Looks at the text that came out: nothing is called or imported, nothing
/// traps, and arithmetic is rounded as IEEE says.
Status verify_ptx(std::string_view ptx);

}  // namespace unisono::jit
