#pragma once
// What steps a kind of device takes for what is not simply a kernel of loops:
// cpu_lowering.h, gpu_lowering.h.
#include <cstdint>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/schedule.h"
#include "jit/plan/fuse.h"

namespace unisono::jit {

/// Each of `rows` lines of `length` elements sorted along the line, or
/// (argsort) the i32 positions that sort it. Ascending, stable, NaN last, -0.0
/// equal to 0.0. There are elements.
struct SortTask {
  DType dtype = DType::F32;
  int64_t rows = 1, length = 1;
  bool argsort = false;
  BufferId from = 0, to = 0;
};

/// One for each kind of device, held by its Generator. Immutable. What steps
/// need besides their operands is added to the plan.
class Lowering {
 public:
  virtual ~Lowering() = default;

  /// What kernels are made for.
  virtual const Machine& machine() const = 0;
  /// Launches of kernels that are ready-made.
  virtual std::vector<LaunchStep> sort(const SortTask& task,
                                       Plan& plan) const = 0;
  /// The steps of a product of matrices; none where the kernel that it
  /// otherwise becomes does as well. `dot` has its operands and its result; it
  /// may be of f16 or bf16.
  virtual PlanSteps product(DotTask dot, ir::Precision precision,
                            Plan& plan) const = 0;
  /// Several steps in place of a kernel which would leave the device idle; none
  /// where it stays as it is.
  virtual PlanSteps stages(const Kernel& kernel, Plan& plan) const = 0;
};

}  // namespace unisono::jit
