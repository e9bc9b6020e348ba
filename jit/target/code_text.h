#pragma once
#include <string>

namespace unisono::jit {

/// The stages of one compilation, rendered for `inspect --emit=` and for tests.
struct CodeText {
  /// Rendering takes longer than compiling, so what nobody reads is left out.
  bool wants_llvm = true, wants_assembly = true;

  std::string kernels = {};
  std::string llvm = {};      // one module, before LLVM's own passes
  std::string assembly = {};  // of the CPU, or PTX
};

}  // namespace unisono::jit
