#include "jit/plan/join_copies.h"

#include <algorithm>

#include "jit/kernel/schedule.h"

namespace unisono::jit {
namespace {

/// Follows the two buffers through steps; `replaced` says whether the result
/// has been begun. False if it may not lie where `before` does.
bool may_go_on(const PlanSteps& steps, BufferId before, BufferId result,
               bool& replaced) {
  for (const PlanStep& step : steps) {
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      if (branch->flag == before && replaced) return false;
      bool in_else = replaced;
      if (!may_go_on(*branch->then_steps, before, result, replaced) ||
          !may_go_on(*branch->else_steps, before, result, in_else))
        return false;
      replaced |= in_else;
      continue;
    }
    bool reads = false, writes = false;
    int read_argument = -1, written_argument = -1, number = 0;
    for_each_buffer(step, [&](BufferId buffer, bool written) {
      if (buffer == before) reads = true, read_argument = number;
      if (buffer == result && written) writes = true, written_argument = number;
      ++number;
    });
    if (reads && replaced) return false;
    if (!writes) continue;
    const auto* copy = std::get_if<CopyStep>(&step.what);
    if (copy && copy->from == before) continue;  // the base of a scatter
    const auto* kernel = std::get_if<Kernel>(&step.what);
    if (reads &&
        !(kernel && may_overwrite(*kernel, read_argument, written_argument)))
      return false;
    replaced = true;
  }
  return true;
}

/// Which step of a list touches each buffer first and last.
struct Touches {
  std::vector<int> first, last;

  Touches(const Plan& plan, const PlanSteps& steps)
      : first(plan.buffers.size(), -1), last(plan.buffers.size(), -1) {
    for (size_t i = 0; i < steps.size(); ++i)
      for_each_buffer(steps[i], [&](BufferId buffer, bool) {
        if (first[buffer] < 0) first[buffer] = static_cast<int>(i);
        last[buffer] = static_cast<int>(i);
      });
  }
};

/// Calls `f` for the copies that a step is, or that stand in its branches.
template <class F>
void for_each_copy(const PlanStep& step, const F& f) {
  if (const auto* copy = std::get_if<CopyStep>(&step.what)) f(*copy);
  if (const auto* branch = std::get_if<IfTask>(&step.what))
    for (const auto* steps : {&*branch->then_steps, &*branch->else_steps})
      for (const PlanStep& inner : *steps) for_each_copy(inner, f);
}

/// Copies that copy nothing, in branches and loops, too.
void drop_idle(PlanSteps& steps) {
  std::erase_if(steps, [](PlanStep& step) {
    if (auto* branch = std::get_if<IfTask>(&step.what)) {
      drop_idle(*branch->then_steps);
      drop_idle(*branch->else_steps);
    }
    if (auto* loop = std::get_if<LoopTask>(&step.what)) {
      drop_idle(*loop->condition);
      drop_idle(*loop->body);
    }
    const auto* copy = std::get_if<CopyStep>(&step.what);
    return copy && copy->from == copy->to;
  });
}

}  // namespace

bool may_replace(const PlanSteps& steps, BufferId before, BufferId result) {
  bool replaced = false;
  return may_go_on(steps, before, result, replaced) && replaced;
}

namespace {
void visit_copies(
    const PlanSteps& steps, bool in_loop,
    const std::function<void(uint32_t source, int64_t bytes)>& f) {
  for (const PlanStep& step : steps) {
    if (const auto* loop = std::get_if<LoopTask>(&step.what))
      visit_copies(*loop->body, true, f);
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      visit_copies(*branch->then_steps, in_loop, f);
      visit_copies(*branch->else_steps, in_loop, f);
    }
    const auto* copy = std::get_if<CopyStep>(&step.what);
    if (copy && in_loop && !step.sources.empty())
      f(step.sources[0], copy->bytes);
  }
}
}  // namespace

void for_each_copied_update(
    const PlanSteps& steps,
    const std::function<void(uint32_t source, int64_t bytes)>& f) {
  visit_copies(steps, false, f);
}

void rename(PlanSteps& steps, BufferId from, BufferId to) {
  for (PlanStep& step : steps)
    for_each_buffer(step, [&](BufferId& buffer, bool) {
      if (buffer == from) buffer = to;
    });
  drop_idle(steps);
}

void join_copies(const Plan& plan, BufferId first,
                 const std::vector<BufferId>& outputs, PlanSteps& steps) {
  const Touches touches(plan, steps);
  std::vector<bool> is_output(plan.buffers.size());
  for (const BufferId output : outputs) is_output[output] = true;
  // By buffer: the copy that it is joined with, and whether one is.
  std::vector<BufferId> joined(plan.buffers.size(), -1);
  std::vector<bool> taken(plan.buffers.size());
  bool any = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int here = static_cast<int>(i);
    const bool is_branch = std::holds_alternative<IfTask>(steps[i].what);
    for_each_copy(steps[i], [&](const CopyStep& copy) {
      const bool own = copy.from >= first && plan.buffers[copy.from].home ==
                                                 PlanBuffer::Home::temporary;
      if (!own || is_output[copy.from] || joined[copy.from] >= 0 ||
          taken[copy.to] || touches.first[copy.from] == here ||
          touches.last[copy.from] != here || touches.first[copy.to] != here ||
          plan.buffers[copy.from].bytes != plan.buffers[copy.to].bytes)
        return;
      bool replaced = false;
      if (is_branch) {
        const auto& branch = std::get<IfTask>(steps[i].what);
        bool in_else = false;
        if (branch.flag == copy.from ||
            !may_go_on(*branch.then_steps, copy.from, copy.to, replaced) ||
            !may_go_on(*branch.else_steps, copy.from, copy.to, in_else))
          return;
      }
      joined[copy.from] = copy.to;
      taken[copy.to] = any = true;
    });
  }
  if (!any) return;
  for (PlanStep& step : steps)
    for_each_buffer(step, [&](BufferId& buffer, bool) {
      while (joined[buffer] >= 0) buffer = joined[buffer];
    });
  drop_idle(steps);
}

}  // namespace unisono::jit
