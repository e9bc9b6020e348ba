#pragma once
// Large products of matrices: both operands packed into panels, then tiles of
// the result computed by a kernel that keeps its part of it in registers.
#include <cstdint>
#include <string>

#include "runtime/dtype.h"

namespace llvm {
class Module;
}

namespace unisono::jit {

/// c[b, i, j] = a[b, i, :] times b[b, :, j]: for each element one fma chain in
/// the order of k, from 0. Sizes are positive; offsets and strides count
/// elements; c is dense and row-major. f32 or f64.
struct DotShape {
  DType dtype = DType::F32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t a_offset = 0, a_batch = 0, a_row = 0, a_column = 1;
  int64_t b_offset = 0, b_batch = 0, b_row = 0, b_column = 1;
};

/// Whether packing pays for this product.
bool packs_well(const DotShape& shape);

/// Three functions with the calling convention of KernelFunction, to be
/// launched in this order:
///   pack_a(a, packed_a)  pack_b(b, packed_b)  multiply(packed_a, packed_b, c)
struct EmittedDot {
  struct Launch {
    std::string name;
    int64_t units = 1, grain = 1;
  };
  Launch pack_a, pack_b, multiply;
};
struct PackedBytes {
  int64_t a = 0, b = 0;
};
PackedBytes packed_bytes(const DotShape& shape, int vector_bytes);

/// Appends the functions to the module; `vector_bytes` is the width of the
/// machine's vectors: 16, 32 or 64.
EmittedDot emit_dot(llvm::Module& module, const std::string& name,
                    const DotShape& shape, int vector_bytes);

}  // namespace unisono::jit
