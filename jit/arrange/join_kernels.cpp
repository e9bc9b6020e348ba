// Rows of stacks, above all: a turn stores one of each residual, a kernel each.
// Steps are visited in order; a kernel joins the last one that has room, if it
// depends on nothing between the two.
#include "jit/arrange/join_kernels.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "jit/kernel/row_sums.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

bool cannot_fail(const Nest& nest) {
  return !nest.turns && (!nest.scatter || !nest.scatter->checked) &&
         std::ranges::none_of(nest.exprs,
                              [](const Expr& expr) { return expr.checked; });
}

bool is_small(const Nest& nest) {
  return nest.points() <= tuning().most_joined_points && cannot_fail(nest);
}

struct Touched {
  std::unordered_set<BufferId> read, written;

  void add(const PlanStep& step) {
    for_each_buffer(step, [&](BufferId buffer, bool is_written) {
      (is_written ? written : read).insert(buffer);
    });
  }
  /// Ready-made kernels say that they write all; then nothing is lost.
  bool orders(const PlanStep& step) const {
    bool found = false;
    for_each_buffer(step, [&](BufferId buffer, bool is_written) {
      found = found || written.contains(buffer) ||
              (is_written && read.contains(buffer));
    });
    return found;
  }
};

void append(Kernel& to, Kernel from) {
  std::vector<int> places;
  for (const Argument& argument : from.arguments) {
    auto known = std::ranges::find_if(to.arguments, [&](const Argument& other) {
      return other.buffer == argument.buffer && other.dtype == argument.dtype &&
             other.written == argument.written;
    });
    places.push_back(static_cast<int>(known - to.arguments.begin()));
    if (known == to.arguments.end()) to.arguments.push_back(argument);
  }
  for (Nest& nest : from.nests) {
    for_each_argument(nest,
                      [&](int& argument) { argument = places[argument]; });
    to.nests.push_back(std::move(nest));
  }
}

void add_sources(PlanStep& to, const PlanStep& from) {
  to.sources.insert(to.sources.end(), from.sources.begin(), from.sources.end());
  std::ranges::sort(to.sources);
  const auto again = std::ranges::unique(to.sources);
  to.sources.erase(again.begin(), again.end());
}

void join_in_turn(PlanSteps& steps, bool to_large_ones) {
  PlanSteps out;
  size_t last = 0;  // the kernel that others may join, one past it
  Touched since;    // by it, and by what comes behind
  for (PlanStep& step : steps) {
    auto* kernel = std::get_if<Kernel>(&step.what);
    const bool small = kernel && std::ranges::all_of(kernel->nests, is_small);
    const bool has_room =
        small || (to_large_ones && kernel &&
                  std::ranges::all_of(kernel->nests, cannot_fail));
    if (small && last > 0) {
      PlanStep& before = out[last - 1];
      auto& others = std::get<Kernel>(before.what);
      if (before.once == step.once && !since.orders(step) &&
          others.nests.size() + kernel->nests.size() <=
              tuning().most_joined_nests) {
        since.add(step);
        append(others, std::move(*kernel));
        add_sources(before, step);
        continue;
      }
    }
    if (has_room) since = {};
    since.add(step);
    out.push_back(std::move(step));
    if (has_room) last = out.size();
  }
  steps = std::move(out);
}

void join_kernels(PlanSteps& steps, bool to_large_ones, bool in_turn) {
  for (PlanStep& step : steps) {
    if (auto* loop = std::get_if<LoopTask>(&step.what))
      join_kernels(*loop->body, to_large_ones, true);
    if (auto* branch = std::get_if<IfTask>(&step.what)) {
      join_kernels(*branch->then_steps, to_large_ones, in_turn);
      join_kernels(*branch->else_steps, to_large_ones, in_turn);
    }
  }
  if (in_turn) join_in_turn(steps, to_large_ones);
}

/// Whether both read a buffer, or the second what the first writes.
bool share_rows(const Kernel& rows, const Kernel& sums) {
  return std::ranges::any_of(sums.arguments, [&](const Argument& argument) {
    return !argument.written &&
           std::ranges::any_of(rows.arguments, [&](const Argument& other) {
             return other.buffer == argument.buffer;
           });
  });
}

/// Joins step `at` to an earlier one. False if it stays.
bool join_to_rows(PlanSteps& steps, size_t at, const Machine& machine) {
  const auto* sums = std::get_if<Kernel>(&steps[at].what);
  if (!sums || sums->nests.size() != 1 || !can_add_rows(sums->nests[0]))
    return false;
  Touched between;
  const size_t first = at - std::min(at, tuning().most_steps_between);
  for (size_t i = at; i-- > first;) {
    PlanStep& step = steps[i];
    const auto* rows = std::get_if<Kernel>(&step.what);
    if (rows && rows->nests.size() == 1 && step.once == steps[at].once &&
        share_rows(*rows, *sums)) {
      Kernel joined = *rows;
      append(joined, *sums);
      if (rows_and_sums(joined, machine)) {
        step.what = std::move(joined);
        add_sources(step, steps[at]);
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
        return true;
      }
    }
    between.add(step);
    if (between.orders(steps[at])) return false;
  }
  return false;
}

bool is_small_reduction(const Kernel& kernel) {
  return std::ranges::all_of(kernel.nests, [](const Nest& nest) {
    return !nest.reductions.empty() &&
           nest.points() <= tuning().gpu_most_joined_leaves &&
           cannot_fail(nest);
  });
}

/// Joins step `at` to the first that it may be joined to: what depends on it
/// then may come early, too. False if it stays.
bool join_to_reduction(PlanSteps& steps, size_t at) {
  auto* own = std::get_if<Kernel>(&steps[at].what);
  if (!own || !is_small_reduction(*own)) return false;
  Touched between;
  PlanStep* found = nullptr;
  const size_t first = at - std::min(at, tuning().most_steps_between);
  for (size_t i = at; i-- > first;) {
    PlanStep& step = steps[i];
    between.add(step);
    if (between.orders(steps[at])) break;
    const auto* other = std::get_if<Kernel>(&step.what);
    if (other && step.once == steps[at].once && is_small_reduction(*other) &&
        other->nests.size() + own->nests.size() <= tuning().most_joined_nests)
      found = &step;
  }
  if (!found) return false;
  append(std::get<Kernel>(found->what), std::move(*own));
  add_sources(*found, steps[at]);
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

}  // namespace

void join_reductions(PlanSteps& steps) {
  for (size_t i = 0; i < steps.size();) {
    if (auto* loop = std::get_if<LoopTask>(&steps[i].what))
      join_reductions(*loop->body);
    if (auto* branch = std::get_if<IfTask>(&steps[i].what)) {
      join_reductions(*branch->then_steps);
      join_reductions(*branch->else_steps);
    }
    if (!join_to_reduction(steps, i)) ++i;
  }
}

void join_kernels(PlanSteps& steps, bool to_large_ones) {
  join_kernels(steps, to_large_ones, false);
}

void join_row_sums(PlanSteps& steps, const Machine& machine) {
  for (size_t i = 0; i < steps.size();) {
    if (auto* loop = std::get_if<LoopTask>(&steps[i].what))
      join_row_sums(*loop->body, machine);
    if (auto* branch = std::get_if<IfTask>(&steps[i].what)) {
      join_row_sums(*branch->then_steps, machine);
      join_row_sums(*branch->else_steps, machine);
    }
    if (!join_to_rows(steps, i, machine)) ++i;
  }
}

}  // namespace unisono::jit
