#pragma once
// The instruction sets that element loops are compiled for.
#include "jit/scalar/element.h"
#include "jit/scalar/step.h"

namespace unisono::jit {

/// element_loop and cast_loop (element.h), element_step and cast_step (step.h)
/// for one instruction set.
struct ElementLoops {
  ElementLoop (*row)(ir::Op op, DType dtype);
  ElementLoop (*cast)(DType from, DType to);
  StepFunction (*row_step)(ir::Op op, DType dtype);
  StepFunction (*cast_step)(DType from, DType to);
};

extern const ElementLoops baseline_loops;
/// For processors with AVX2, FMA and F16C.
extern const ElementLoops avx2_loops;

}  // namespace unisono::jit
