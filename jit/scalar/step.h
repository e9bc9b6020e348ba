#pragma once
// One step of threaded code: an elementwise operation on scalars in registers.
// Each step does its work and calls the next one in tail position, so a run of
// steps is a chain of jumps. No LLVM; jit/bytecode makes and runs the code.
#include <cstdint>

#include "jit/ir/graph.h"
#include "jit/scalar/element_error.h"
#include "runtime/dtype.h"

namespace unisono::jit {

struct Step;

/// What the steps of one run share, besides registers. A step that ends the run
/// returns instead of calling the next one.
struct StepRun {
  /// Whether an element at fault ends the run; else its result is 0.
  bool checked = true;
  ElementError error;
  const Step* failed = nullptr;  // the step that met it
};

/// A register holds one element as it is stored (f16 and bf16 as 16 bits, bool
/// as 0 or 1) in its low bytes; the others mean nothing.
using StepFunction = void (*)(const Step* step, uint64_t* registers,
                              StepRun* run);

struct Step {
  StepFunction function = nullptr;
  uint32_t out = 0;  // a register
  uint32_t in[3] = {};
  int64_t number = 0;  // what else it must know
};

/// The step of a map operation: `out` = operation(in[0], in[1], ...). Operands
/// are as for element_loop (element.h), and it is null where that is.
StepFunction element_step(ir::Op op, DType dtype);

/// The step of `cast`, as cast_loop.
StepFunction cast_step(DType from, DType to);

}  // namespace unisono::jit
