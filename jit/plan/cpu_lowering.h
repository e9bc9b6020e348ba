#pragma once
#include "jit/plan/lowering.h"

namespace unisono::jit {

/// Sorts are functions of ours, large products are done in tiles, and a
/// processor's few threads are busy with any kernel.
class CpuLowering final : public Lowering {
 public:
  explicit CpuLowering(const Machine& machine) : machine_(machine) {}

  const Machine& machine() const override { return machine_; }
  std::vector<LaunchStep> sort(const SortTask& task, Plan& plan) const override;
  PlanSteps product(DotTask dot, ir::Precision precision,
                    Plan& plan) const override;
  PlanSteps stages(const Kernel& kernel, Plan& plan) const override;

 private:
  const Machine machine_;
};

}  // namespace unisono::jit
