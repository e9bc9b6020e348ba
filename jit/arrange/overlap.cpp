#include "jit/arrange/overlap.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "jit/arrange/seen.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

bool is_control(const PlanStep& step) {
  return std::holds_alternative<LoopTask>(step.what) ||
         std::holds_alternative<IfTask>(step.what);
}

bool is_kernel(const PlanStep& step) {
  return std::holds_alternative<Kernel>(step.what) ||
         std::holds_alternative<DotTask>(step.what) ||
         std::holds_alternative<LaunchStep>(step.what);
}

/// Whether the step may not come while the collective is under way. Ready-made
/// kernels say that they write all; then nothing is lost.
bool stops(const PlanStep& step, const CollectiveStep& collective) {
  if (is_control(step) || is_seen(step)) return true;
  bool found = false;
  for_each_buffer(step, [&](BufferId buffer, bool written) {
    found = found || buffer == collective.to ||
            (written && buffer == collective.from);
  });
  return found;
}

void in_list(PlanSteps& steps) {
  for (size_t at = 0; at < steps.size(); ++at) {
    poll_stop();
    const auto* collective = std::get_if<CollectiveStep>(&steps[at].what);
    if (!collective) continue;
    const CopyStep ends{.from = collective->from, .to = collective->to};
    size_t begin = at, end = at + 1;
    bool kernels = false;
    for (; begin > 0 && !stops(steps[begin - 1], *collective); --begin)
      kernels = kernels || is_kernel(steps[begin - 1]);
    for (; end < steps.size() && !stops(steps[end], *collective); ++end)
      kernels = kernels || is_kernel(steps[end]);
    if (!kernels) continue;
    const auto place = [&](size_t i) {
      return steps.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::rotate(place(begin), place(at), place(at + 1));
    steps.insert(place(end), {.what = ends});
  }
}

void in_all_lists(PlanSteps& steps) {
  for (PlanStep& step : steps) {
    if (auto* loop = std::get_if<LoopTask>(&step.what)) {
      in_all_lists(*loop->condition);
      in_all_lists(*loop->body);
    }
    if (auto* branch = std::get_if<IfTask>(&step.what)) {
      in_all_lists(*branch->then_steps);
      in_all_lists(*branch->else_steps);
    }
  }
  in_list(steps);
}

}  // namespace

void overlap_collectives(Plan& plan) { in_all_lists(plan.steps); }

}  // namespace unisono::jit
