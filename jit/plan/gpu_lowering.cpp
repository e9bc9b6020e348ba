#include "jit/plan/gpu_lowering.h"

#include <utility>

#include "jit/kernel/grid_schedule.h"
#include "jit/plan/gpu_stages.h"
#include "jit/plan/gpu_tasks.h"

namespace unisono::jit {

std::vector<LaunchStep> GpuLowering::sort(const SortTask& task,
                                          Plan& plan) const {
  return sort_steps(task, plan);
}

PlanSteps GpuLowering::product(DotTask dot, ir::Precision precision,
                               Plan& plan) const {
  return product_steps(dot, precision, plan);
}

PlanSteps GpuLowering::stages(const Kernel& kernel, Plan& plan) const {
  return gpu_stages(kernel, plan);
}

}  // namespace unisono::jit
