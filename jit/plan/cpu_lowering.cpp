#include "jit/plan/cpu_lowering.h"

#include <utility>

#include "jit/kernel/packed_dot.h"
#include "jit/plan/sort_kernels.h"

namespace unisono::jit {

std::vector<LaunchStep> CpuLowering::sort(const SortTask& task,
                                          Plan& plan) const {
  SortPlan sort = plan_sort(task.dtype, task.rows, task.length, task.argsort);
  const BufferId parameters = plan.add_constant(std::move(sort.parameters));
  const BufferId scratch = plan.add_buffer(sort.scratch_bytes);
  std::vector<LaunchStep> steps;
  for (SortPlan::Launch& launch : sort.launches)
    steps.push_back({launch.function,
                     std::move(launch.name),
                     {parameters, task.from, task.to, scratch},
                     launch.units,
                     launch.grain});
  return steps;
}

std::optional<PlanStep> CpuLowering::product(DotTask dot, ir::Precision,
                                             Plan& plan) const {
  if (!packs_well(dot.shape)) return std::nullopt;
  const PackedBytes bytes = packed_bytes(dot.shape, machine_.vector_bytes);
  dot.packed_a = plan.add_buffer(bytes.a);
  dot.packed_b = plan.add_buffer(bytes.b);
  return PlanStep{dot};
}

PlanSteps CpuLowering::stages(const Kernel&, Plan&) const { return {}; }

}  // namespace unisono::jit
