#pragma once
// The instruction sets that element loops are compiled for.
#include "jit/scalar/element.h"

namespace unisono::jit {

/// element_loop and cast_loop (element.h) for one instruction set.
struct ElementLoops {
  ElementLoop (*row)(ir::Op op, DType dtype);
  ElementLoop (*cast)(DType from, DType to);
};

extern const ElementLoops baseline_loops;
/// For processors with AVX2, FMA and F16C.
extern const ElementLoops avx2_loops;

}  // namespace unisono::jit
