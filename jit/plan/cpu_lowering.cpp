#include "jit/plan/cpu_lowering.h"

#include <utility>

#include "jit/kernel/chain_sums.h"
#include "jit/kernel/packed_dot.h"
#include "jit/kernel/row_sums.h"
#include "jit/sort/sort_kernels.h"

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

PlanSteps CpuLowering::product(DotTask dot, ir::Precision, Plan& plan) const {
  const DotForm form = dot_form(dot.shape);
  if (form == DotForm::nest) return {};
  if (form == DotForm::packed) {
    const PackedBytes bytes = packed_bytes(dot.shape, machine_.vector_bytes);
    dot.packed_a = plan.add_buffer(bytes.a);
    if (bytes.b > 0) dot.packed_b = plan.add_buffer(bytes.b);
  }
  PlanSteps steps;
  const BufferId to = dot.to;
  const int64_t chains = dot_chains(dot.shape);
  const int64_t elements = dot.shape.batch * dot.shape.m * dot.shape.n;
  const DType dtype = dot.shape.dtype;
  if (chains > 1)
    dot.to = plan.add_buffer(chains * elements * byte_size(dtype));
  steps.push_back({dot, {}});
  if (chains > 1)
    steps.push_back({sum_chains(dot.to, to, dtype, elements, chains)});
  return steps;
}

PlanSteps CpuLowering::stages(const Kernel& kernel, Plan& plan) const {
  Kernel first = kernel;
  const auto add_buffer = [&](DType dtype, int64_t elements) {
    return plan.add_buffer(elements * byte_size(dtype));
  };
  auto second = split_rows(first, machine_, add_buffer);
  if (!second) return {};
  PlanSteps steps;
  steps.push_back({std::move(first), {}});
  steps.push_back({std::move(*second), {}});
  return steps;
}

}  // namespace unisono::jit
