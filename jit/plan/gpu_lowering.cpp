#include "jit/plan/gpu_lowering.h"

#include <utility>

#include "jit/kernel/grid_schedule.h"
#include "jit/kernel/work.h"
#include "jit/plan/gpu_stages.h"
#include "jit/plan/gpu_tasks.h"

namespace unisono::jit {

const Machine& GpuLowering::machine() const { return grid_machine; }

std::vector<LaunchStep> GpuLowering::sort(const SortTask& task,
                                          Plan& plan) const {
  return sort_steps(task, plan);
}

std::optional<PlanStep> GpuLowering::product(DotTask dot,
                                             ir::Precision precision,
                                             Plan&) const {
  auto launch = product_launch(dot.shape, precision);
  if (!launch) return std::nullopt;
  LaunchStep step{.name = launch->entry, .arguments = {dot.a, dot.b, dot.to}};
  step.grid = std::move(launch);
  const Work work = work_of(dot.shape);
  step.flops = work.flops;
  step.bytes = work.bytes;
  return PlanStep{std::move(step)};
}

PlanSteps GpuLowering::stages(const Kernel& kernel, Plan& plan) const {
  return gpu_stages(kernel, plan);
}

}  // namespace unisono::jit
