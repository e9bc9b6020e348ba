#pragma once
#include "jit/kernel/grid_schedule.h"
#include "jit/plan/lowering.h"

namespace unisono::jit {

/// Sorts and most products are kernels of the library, and what has too few
/// units for a GPU's threads is done in stages (gpu_stages.h).
class GpuLowering final : public Lowering {
 public:
  const Machine& machine() const override { return machine_; }
  std::vector<LaunchStep> sort(const SortTask& task, Plan& plan) const override;
  PlanSteps product(DotTask dot, ir::Precision precision,
                    Plan& plan) const override;
  PlanSteps stages(const Kernel& kernel, Plan& plan) const override;

 private:
  Machine machine_ = grid_machine();
};

}  // namespace unisono::jit
