#include "jit/plan/gpu_stages.h"

#include "jit/ir/reduce_order.h"
#include "jit/plan/gpu_tasks.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

/// Positions and targets are numbered in i32.
constexpr int64_t number_bytes = 4;

Kernel kernel_of(Nest nest, const std::vector<Argument>& arguments) {
  Kernel kernel{.nests = {}, .arguments = arguments};
  kernel.nests.push_back(std::move(nest));
  drop_arguments(kernel);
  return kernel;
}

/// The kernel's arguments and one more; its number is the last one's.
std::vector<Argument> with(const std::vector<Argument>& arguments,
                           BufferId buffer, DType dtype) {
  std::vector<Argument> all = arguments;
  all.push_back({buffer, dtype, false});
  return all;
}

Nest zeros(int64_t count, int argument) {
  Nest nest{.extents = {count}, .reduced = {false}, .exprs = {}};
  Expr zero{.dtype = DType::I32};
  zero.at = constant_affine(0, 1);
  nest.exprs.push_back(zero);
  Affine at = constant_affine(0, 1);
  at.factors[0] = 1;
  nest.stores.push_back({argument, at, 0});
  return nest;
}

/// Chunks of lines, which a block does each.
PlanSteps linked_scan(const Kernel& kernel, int64_t all_chunks, Plan& plan) {
  const DType dtype = kernel.nests[0].scan->dtype;
  const auto arguments =
      with(with(kernel.arguments,
                plan.add_buffer(all_chunks * byte_size(dtype)), dtype),
           plan.add_buffer((all_chunks + 1) * number_bytes), DType::I32);
  const int flags = static_cast<int>(arguments.size()) - 1;
  Nest linked = kernel.nests[0];
  linked.scan->part = Scan::Part::linked;
  linked.scan->carries = flags - 1;
  linked.scan->flags = flags;
  PlanSteps steps;
  steps.push_back({kernel_of(zeros(all_chunks + 1, flags), arguments)});
  steps.push_back({kernel_of(std::move(linked), arguments)});
  return steps;
}

/// Runs of columns, which a thread does each.
PlanSteps scan_in_runs(const Kernel& kernel, int64_t columns, int64_t runs,
                       Plan& plan) {
  const Nest& nest = kernel.nests[0];
  const DType dtype = nest.scan->dtype;
  const auto arguments =
      with(kernel.arguments, plan.add_buffer(columns * runs * byte_size(dtype)),
           dtype);
  const int scratch = static_cast<int>(arguments.size()) - 1;
  Nest totals = nest, rest = nest;
  totals.scan->part = Scan::Part::totals;
  totals.scan->argument = scratch;
  rest.scan->part = Scan::Part::rest;
  rest.scan->carries = scratch;
  Nest carries{// nobody asks for the last run's total
               .extents = {columns, runs - 1},
               .reduced = {false, true},
               .exprs = {}};
  carries.scan = nest.scan;
  carries.scan->part = Scan::Part::carries;
  carries.scan->contiguous = true;
  carries.scan->argument = scratch;
  carries.scan->at = constant_affine(0, 2);
  PlanSteps steps;
  for (Nest* stage : {&totals, &carries, &rest})
    steps.push_back({kernel_of(std::move(*stage), arguments)});
  return steps;
}

PlanSteps scan_stages(const Kernel& kernel, Plan& plan) {
  const Nest& nest = kernel.nests[0];
  const int64_t rows = nest.kept_points(), count = nest.points() / rows;
  const int64_t part =
      nest.scan->contiguous ? orders().reduce_chunk : orders().reduce_run;
  const int64_t parts = (count + part - 1) / part;
  if (parts < tuning().gpu_least_scanned_parts) return {};
  if (!nest.scan->contiguous)
    return rows < tuning().gpu_enough_scanned_columns
               ? scan_in_runs(kernel, rows, parts, plan)
               : PlanSteps();
  return rows < tuning().gpu_enough_scanned_lines
             ? linked_scan(kernel, rows * parts, plan)
             : PlanSteps();
}

/// The number of a position, row after row.
Affine position_of(const Nest& nest) {
  Affine position = constant_affine(0, nest.extents.size());
  int64_t stride = 1;
  for (size_t a = nest.extents.size(); a-- > 0;) {
    if (!nest.reduced[a]) continue;
    position.factors[a] = stride;
    stride *= nest.extents[a];
  }
  return position;
}

/// All points at once.
Nest at_once(Nest nest, Scatter::Part part) {
  nest.scatter->part = part;
  nest.scatter->position = position_of(nest);
  nest.reduced.assign(nest.reduced.size(), false);
  return nest;
}

/// For each position once, without the columns, along which no index changes:
/// what is written of it to `argument`.
Nest of_positions(Nest nest, Scatter::Part part, int argument) {
  for (size_t a = 0; a < nest.extents.size(); ++a)
    if (!nest.reduced[a]) nest.extents[a] = 1;
  nest = at_once(std::move(nest), part);
  Scatter& scatter = *nest.scatter;
  scatter.argument = argument;
  scatter.dtype = DType::I32;
  scatter.at = part == Scatter::Part::targets
                   ? scatter.position
                   : constant_affine(0, nest.extents.size());
  scatter.value = scatter.indices[0];
  prune(nest, std::vector<bool>(nest.exprs.size(), false));
  return nest;
}

bool atomic_adds(DType dtype) {
  return dtype == DType::I32 || dtype == DType::U32 || dtype == DType::I64 ||
         dtype == DType::U64;
}

PlanSteps winner_stages(const Kernel& kernel, int64_t targets, Plan& plan) {
  const auto arguments = with(
      kernel.arguments, plan.add_buffer(targets * number_bytes), DType::I32);
  const int winners = static_cast<int>(arguments.size()) - 1;
  Nest chosen = at_once(kernel.nests[0], Scatter::Part::chosen);
  chosen.scatter->targets = winners;
  PlanSteps steps;
  steps.push_back({kernel_of(zeros(targets, winners), arguments)});
  steps.push_back(
      {kernel_of(of_positions(kernel.nests[0], Scatter::Part::winners, winners),
                 arguments)});
  steps.push_back({kernel_of(std::move(chosen), arguments)});
  return steps;
}

PlanSteps sorted_stages(const Kernel& kernel, int64_t positions, Plan& plan) {
  const BufferId targets = plan.add_buffer(positions * number_bytes),
                 order = plan.add_buffer(positions * number_bytes);
  const auto arguments =
      with(with(kernel.arguments, targets, DType::I32), order, DType::I32);
  const int last = static_cast<int>(arguments.size()) - 1;
  Nest sorted = kernel.nests[0];
  sorted.scatter->part = Scatter::Part::sorted;
  sorted.scatter->targets = last - 1;
  sorted.scatter->order = last;
  PlanSteps steps;
  steps.push_back({kernel_of(
      of_positions(kernel.nests[0], Scatter::Part::targets, last - 1),
      arguments)});
  for (LaunchStep& task : sort_steps({.dtype = DType::I32,
                                      .length = positions,
                                      .argsort = true,
                                      .from = targets,
                                      .to = order},
                                     plan))
    steps.push_back({std::move(task)});
  steps.push_back({kernel_of(std::move(sorted), arguments)});
  return steps;
}

PlanSteps scatter_stages(const Kernel& kernel, Plan& plan) {
  const Nest& nest = kernel.nests[0];
  const Scatter& scatter = *nest.scatter;
  const int64_t columns = nest.kept_points(),
                positions = nest.points() / columns;
  if (columns >= tuning().gpu_enough_scattered_columns ||
      positions < tuning().gpu_least_scattered_positions ||
      positions >= INT32_MAX)
    return {};
  int64_t targets = 1;
  for (const Expr::IndexedAxis& axis : scatter.indexed)
    if (axis.size <= 0 || __builtin_mul_overflow(targets, axis.size, &targets))
      return {};
  if (targets >= INT32_MAX) return {};
  if (!scatter.add &&
      targets <= tuning().gpu_most_targets_a_position * positions)
    return winner_stages(kernel, targets, plan);
  if (!scatter.add || !atomic_adds(scatter.dtype))
    return sorted_stages(kernel, positions, plan);
  PlanSteps steps;
  steps.push_back(
      {kernel_of(at_once(nest, Scatter::Part::atomic), kernel.arguments)});
  return steps;
}

}  // namespace

PlanSteps gpu_stages(const Kernel& kernel, Plan& plan) {
  if (kernel.nests.size() != 1) return {};
  const Nest& nest = kernel.nests[0];
  if (!nest.stores.empty() || !nest.reductions.empty()) return {};
  if (nest.scan) return scan_stages(kernel, plan);
  if (nest.scatter) return scatter_stages(kernel, plan);
  return {};
}

}  // namespace unisono::jit
