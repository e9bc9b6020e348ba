#pragma once
// What one element of a map operation is, as loops over C++ scalars: the rows
// of jit/ir/ops.def instantiated for the algebra of scalar.h. No LLVM.
// jit/emit/element_llvm.h has the same table as code for the emitter.
#include <cstdint>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/scalar/element_error.h"
#include "runtime/dtype.h"

namespace unisono::jit {

/// out[i] = operation(in[0][i * stride[0]], in[1][i * stride[1]], ...) for
/// i = 0 ... n-1. Elements are as stored (a bool is 0 or 1; anything but 0 is
/// read as true); strides count elements, and 0 repeats one element. `out` is
/// dense, and may be an operand of the same element size with stride 1, or
/// lie after the elements still to be read. Where an element is at fault, the
/// first fault goes to `*error` (may be null) and its result is 0.
using ElementLoop = void (*)(void* out, const void* const* in,
                             const int64_t* stride, int64_t n,
                             ElementError* error);

/// The loop of a map operation whose operands have element type `dtype`; for
/// `select`, that of its second and third operand (the first is bool). The
/// result has `dtype` too, or bool for comparisons and predicates. Null where
/// the row's class does not admit `dtype`, and for `cast` and operations that
/// are no map.
ElementLoop element_loop(ir::Op op, DType dtype);

/// The loop of `cast`: floats to integers saturate and NaN gives 0, integers
/// to integers wrap, to bool is "!= 0", to floats rounds once.
ElementLoop cast_loop(DType from, DType to);

/// The bytes of one stored element with this value, converted as `cast` does.
std::vector<uint8_t> element_bytes(DType dtype, int64_t value);
std::vector<uint8_t> element_bytes(DType dtype, double value);

}  // namespace unisono::jit
