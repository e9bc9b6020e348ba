#pragma once
// Products of matrices in tiles of the result, each computed by a kernel that
// keeps it in registers.
#include <cstdint>
#include <string>
#include <vector>

#include "jit/kernel/packed_dot.h"

namespace llvm {
class Module;
}

namespace unisono::jit {

/// Functions with the calling convention of KernelFunction, to be launched in
/// this order. By form (dot_form):
///   direct  multiply(a, b, c)
///   packed  pack_a(a, packed_a)  pack_b(b, packed_b)
///           multiply(packed_a, packed_b, c)
///   packed, with packs_b_in_units
///           pack_a(a, packed_a)  multiply(packed_a, b, c)
struct EmittedDot {
  struct Launch {
    std::string name;
    int64_t units = 1, grain = 1;
  };
  std::vector<Launch> launches;
};
/// Appends the functions to the module; `vector_bytes` is the width of the
/// machine's vectors: 16, 32 or 64.
EmittedDot emit_dot(llvm::Module& module, const std::string& name,
                    const DotShape& shape, int vector_bytes);

}  // namespace unisono::jit
