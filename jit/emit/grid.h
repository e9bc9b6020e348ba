#pragma once
// From kernels to LLVM functions for GPUs: grids of threads, to be launched as
// GridLaunch says.
#include <cstdint>
#include <string>
#include <vector>

#include "jit/kernel/kernel.h"
#include "jit/kernel/source_lines.h"
#include "runtime/grid.h"

namespace llvm {
class Module;
}

namespace unisono::jit {

/// The function of a kernel, and the fields of its GridLaunch.
struct EmittedGrid {
  std::string name;
  int64_t blocks = 1;
  int threads = 1;
  std::vector<GridCheck> checks = {};
  int element_bits = 0;
};

/// Appends the kernel's function to the module, which is prepared for NVPTX.
/// With `lines`, which may be empty, the code says which lines it
/// computes (`.loc` in PTX).
EmittedGrid emit_grid(llvm::Module& module, const std::string& name,
                      const Kernel& kernel, const SourceLines& lines);

}  // namespace unisono::jit
