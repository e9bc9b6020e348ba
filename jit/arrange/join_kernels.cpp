// Rows of stacks, above all: a turn stores one of each residual, a kernel each.
// Steps are visited in order; a kernel joins the last one that has room, if it
// depends on nothing between the two.
#include "jit/arrange/join_kernels.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

namespace unisono::jit {
namespace {

/// Points of a nest that is small, and nests of one kernel.
constexpr int64_t most_points = 4096;
constexpr size_t most_nests = 16;

bool cannot_fail(const Nest& nest) {
  return !nest.turns && (!nest.scatter || !nest.scatter->checked) &&
         std::ranges::none_of(nest.exprs,
                              [](const Expr& expr) { return expr.checked; });
}

bool is_small(const Nest& nest) {
  return nest.points() <= most_points && cannot_fail(nest);
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
      return other.buffer == argument.buffer && other.dtype == argument.dtype;
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
          others.nests.size() + kernel->nests.size() <= most_nests) {
        since.add(step);
        append(others, std::move(*kernel));
        before.sources.insert(before.sources.end(), step.sources.begin(),
                              step.sources.end());
        std::ranges::sort(before.sources);
        const auto again = std::ranges::unique(before.sources);
        before.sources.erase(again.begin(), again.end());
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

}  // namespace

void join_kernels(PlanSteps& steps, bool to_large_ones) {
  join_kernels(steps, to_large_ones, false);
}

}  // namespace unisono::jit
