#pragma once
// Names for functions of this process that code calls, as rare ones are
// (scalar_llvm.h). The code is kept on disk, and another process of the same
// build has its functions elsewhere, but at the same distance from one another.
#include <string>
#include <string_view>

namespace unisono::jit {

/// The symbol that stands for a function in every process of this build.
std::string symbol_of(const void* function);
/// The function of this process that such a symbol stands for; null if it is
/// another symbol.
void* function_of(std::string_view symbol);

}  // namespace unisono::jit
