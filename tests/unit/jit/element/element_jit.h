#pragma once
// Compiles element operations for the host, for tests: plain loops around
// emit_element and emit_cast.
#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "jit/emit/element_llvm.h"

namespace unisono::jit {

/// out[i] = f(in[0][i], in[1][i], in[2][i]), faults[i] = whether it is at
/// fault, for i < n, a multiple of the lanes.
using CompiledLoop = void (*)(void* out, uint8_t* faults, const void* const* in,
                              int64_t n);

class ElementJit {
 public:
  /// `cpu` "" is the host's with all its features.
  explicit ElementJit(const std::string& cpu);

  struct Loop {
    std::string name;
    std::vector<DType> operands;
    DType result;
    unsigned lanes;
    std::function<llvm::Value*(EmitContext&, llvm::ArrayRef<llvm::Value*>)>
        emit;
  };
  /// Adds a module with these loops; they are compiled when looked up.
  void add(const std::vector<Loop>& loops);
  CompiledLoop operator[](const std::string& name);

  bool native_half = false;
  bool native_exponents = false;
  unsigned row_lanes = 0;
  bool in_process = false;

 private:
  void emit(llvm::Module& module, const Loop& loop);
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

}  // namespace unisono::jit
