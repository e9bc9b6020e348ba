#include "jit/arrange/seen.h"

#include <algorithm>

namespace unisono::jit {
namespace {

bool is_seen(const PlanSteps& steps) {
  return std::ranges::any_of(
      steps, [](const PlanStep& step) { return jit::is_seen(step); });
}

}  // namespace

bool can_fail(const Kernel& kernel) {
  for (const Nest& nest : kernel.nests) {
    if (nest.scatter && nest.scatter->checked) return true;
    for (const Expr& expr : nest.exprs)
      if (expr.checked) return true;
  }
  return false;
}

bool is_seen(const PlanStep& step) {
  if (const auto* kernel = std::get_if<Kernel>(&step.what))
    return can_fail(*kernel);
  if (const auto* loop = std::get_if<LoopTask>(&step.what))
    return is_seen(*loop->condition) || is_seen(*loop->body);
  if (const auto* branch = std::get_if<IfTask>(&step.what))
    return is_seen(*branch->then_steps) || is_seen(*branch->else_steps);
  return std::holds_alternative<HostCallStep>(step.what);
}

}  // namespace unisono::jit
