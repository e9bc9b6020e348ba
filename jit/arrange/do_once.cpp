// Which arrays are the same on all devices is found first: what is computed
// from such arrays, without the device's position, under conditions that are
// the same, is the same. Then which of them are shared: those that only
// collectives and steps that are done once write. A step that is done once
// needs all devices at one place, so lists of steps are cut where devices meet,
// into segments: a meeting, steps that are done once, and what each device does
// for itself.
#include "jit/arrange/do_once.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "jit/arrange/seen.h"
#include "jit/ir/routines.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

bool knows_position(const Kernel& kernel) {
  for (const Nest& nest : kernel.nests)
    for (const Expr& expr : nest.exprs)
      if (expr.kind == Expr::Kind::position) return true;
  return false;
}

/// All devices get the same.
bool gives_all_the_same(const CollectiveStep& step) {
  return step.groups.empty() &&
         (step.kind == CollectiveStep::Kind::all_reduce ||
          step.kind == CollectiveStep::Kind::all_gather);
}

class Sharer {
 public:
  Sharer(Plan& plan, const std::vector<bool>& same)
      : plan_(plan), same_(plan.buffers.size()), shared_(same_) {
    for (size_t i = 0; i < same_.size(); ++i) {
      const PlanBuffer& buffer = plan.buffers[i];
      same_[i] = buffer.home != PlanBuffer::Home::input ||
                 same[static_cast<size_t>(buffer.index)];
    }
  }

  void run() {
    do {
      changed_ = false;
      find_same();
    } while (changed_);
    do {
      find_shared();
      refused_ = false;
      place_all(plan_.steps, true);
    } while (refused_);
    for (size_t i = 0; i < shared_.size(); ++i)
      plan_.buffers[i].shared = shared_[i];
    arrange(plan_.steps);
  }

 private:
  /// Places in a list of steps, in their new order.
  using Order = std::vector<size_t>;

  bool is_temporary(BufferId buffer) const {
    return plan_.buffers[buffer].home == PlanBuffer::Home::temporary;
  }
  /// Ready-made kernels do not say which arguments they write.
  void for_each_written(const PlanStep& step, auto&& f) const {
    for_each_buffer(step, [&](BufferId buffer, bool written) {
      if (written && is_temporary(buffer)) f(buffer);
    });
  }
  void for_each_read(const PlanStep& step, auto&& f) const {
    const bool all = std::holds_alternative<LaunchStep>(step.what);
    for_each_buffer(step, [&](BufferId buffer, bool written) {
      if (!written || all) f(buffer);
    });
  }

  /// Calls `f(steps, condition)` for the lists in a loop or branch: whether
  /// they are done does not depend on the device if `condition` is the same.
  static void for_each_inside(auto& step, auto&& f) {
    if (auto* loop = std::get_if<LoopTask>(&step.what)) {
      f(*loop->condition, loop->turns < 0 ? loop->flag : -1);
      f(*loop->body, loop->turns < 0 ? loop->flag : -1);
    }
    if (auto* branch = std::get_if<IfTask>(&step.what)) {
      f(*branch->then_steps, branch->flag);
      f(*branch->else_steps, branch->flag);
    }
  }
  static bool is_control(const PlanStep& step) {
    return std::holds_alternative<LoopTask>(step.what) ||
           std::holds_alternative<IfTask>(step.what);
  }

  // ---- what is the same ----------------------------------------------------

  bool reads_the_same(const PlanStep& step) const {
    bool same = true;
    for_each_read(step, [&](BufferId buffer) { same = same && same_[buffer]; });
    return same;
  }
  bool gives_the_same(const PlanStep& step) const {
    if (const auto* kernel = std::get_if<Kernel>(&step.what))
      return !knows_position(*kernel) && reads_the_same(step);
    if (const auto* collective = std::get_if<CollectiveStep>(&step.what))
      return gives_all_the_same(*collective);
    if (const auto* call = std::get_if<HostCallStep>(&step.what))
      return ir::is_routine(ir::attrs<ir::HostCallAttrs>(
                 plan_.host_calls[call->call].node)) &&
             reads_the_same(step);
    return reads_the_same(step);
  }
  /// Asks `stays(step, everywhere)` of each step: what others write no longer
  /// is in `known`. Notes a change.
  void keep(std::vector<bool>& known, const PlanSteps& steps, bool everywhere,
            auto&& stays) {
    for (const PlanStep& step : steps) {
      poll_stop();
      if (is_control(step)) {
        for_each_inside(step, [&](const PlanSteps& inside, BufferId flag) {
          keep(known, inside, everywhere && (flag < 0 || same_[flag]), stays);
        });
        continue;
      }
      if (stays(step, everywhere)) continue;
      for_each_written(step, [&](BufferId buffer) {
        changed_ = changed_ || known[buffer];
        known[buffer] = false;
      });
    }
  }
  void find_same() {
    keep(same_, plan_.steps, true, [&](const PlanStep& step, bool everywhere) {
      return everywhere && gives_the_same(step);
    });
  }

  // ---- what is shared ------------------------------------------------------

  void find_shared() {
    for (size_t i = 0; i < shared_.size(); ++i)
      shared_[i] =
          same_[i] && plan_.buffers[i].home != PlanBuffer::Home::constant;
    do {
      changed_ = false;
      once_.clear();
      keep(shared_, plan_.steps, true,
           [&](const PlanStep& step, bool everywhere) {
             if (std::holds_alternative<CollectiveStep>(step.what))
               return gives_the_same(step);
             const bool once = everywhere && may_be_once(step);
             if (once) once_.insert(&step);
             return once;
           });
    } while (changed_);
  }
  /// No collective: all devices take part in that.
  bool may_be_once(const PlanStep& step) const {
    if (std::holds_alternative<HostCallStep>(step.what) ||
        alone_.contains(&step) || !gives_the_same(step))
      return false;
    if (const auto* kernel = std::get_if<Kernel>(&step.what))
      if (can_fail(*kernel)) return false;
    bool shared = true;
    for_each_written(
        step, [&](BufferId buffer) { shared = shared && shared_[buffer]; });
    return shared;
  }

  // ---- where devices meet --------------------------------------------------

  /// What the steps of a part of a list read and write.
  struct Touched {
    std::unordered_set<BufferId> read, written;
    void clear() { read.clear(), written.clear(); }
  };
  void touch(const PlanStep& step, Touched& touched) const {
    for_each_read(step, [&](BufferId buffer) { touched.read.insert(buffer); });
    for_each_written(step,
                     [&](BufferId buffer) { touched.written.insert(buffer); });
  }
  /// Whether the step may not change places with what has been touched.
  bool depends(const PlanStep& step, const Touched& touched) const {
    bool found = false;
    for_each_read(step, [&](BufferId buffer) {
      found = found || touched.written.contains(buffer);
    });
    for_each_written(step, [&](BufferId buffer) {
      found = found || touched.read.contains(buffer) ||
              touched.written.contains(buffer);
    });
    return found;
  }

  void place_all(const PlanSteps& steps, bool outside) {
    orders_[&steps] = place(steps, outside);
    for (const PlanStep& step : steps)
      for_each_inside(step, [&](const PlanSteps& inside, BufferId) {
        place_all(inside, false);
      });
  }

  /// The order of a list. `outside`: it is in no loop or branch, so a meeting
  /// more is one in each run.
  Order place(const PlanSteps& steps, bool outside) {
    const bool meets =
        outside || std::ranges::any_of(steps, [](const PlanStep& step) {
          return std::holds_alternative<CollectiveStep>(step.what);
        });
    Order order, rest;  // rest: behind what is done once in this segment
    Touched by_rest;
    // Before the first meeting: what waits for it.
    Order waiting;
    Touched by_waiting;
    bool met = outside;
    for (size_t i = 0; i < steps.size(); ++i) {
      const PlanStep& step = steps[i];
      poll_stop();
      if (!once_.contains(&step)) {
        if (!waiting.empty() && depends(step, by_waiting))
          refuse(steps, waiting, step);
        if (std::holds_alternative<CollectiveStep>(step.what)) {
          std::ranges::move(rest, std::back_inserter(order));
          rest.clear();
          by_rest.clear();
          order.push_back(i);
          std::ranges::move(waiting, std::back_inserter(order));
          waiting.clear();
          by_waiting.clear();
          met = true;
        } else {
          rest.push_back(i);
          touch(step, by_rest);
        }
      } else if (!meets) {
        keep_with_each(step);
      } else if (!met) {
        waiting.push_back(i);
        touch(step, by_waiting);
      } else if (!depends(step, by_rest)) {
        order.push_back(i);
      } else if (outside && !rest_is_seen(steps, rest)) {
        std::ranges::move(rest, std::back_inserter(order));
        rest.clear();
        by_rest.clear();
        order.push_back(i);
      } else {
        keep_with_each(step);
      }
    }
    std::ranges::move(rest, std::back_inserter(order));
    return order;
  }

  static bool rest_is_seen(const PlanSteps& steps, const Order& rest) {
    return std::ranges::any_of(rest,
                               [&](size_t i) { return is_seen(steps[i]); });
  }

  /// What waits for the next meeting, and is needed before it.
  void refuse(const PlanSteps& steps, const Order& waiting,
              const PlanStep& reader) {
    Touched by_reader;
    touch(reader, by_reader);
    for (const size_t i : waiting)
      if (depends(steps[i], by_reader)) keep_with_each(steps[i]);
  }
  void keep_with_each(const PlanStep& step) {
    alone_.insert(&step);
    refused_ = true;
  }

  void arrange(PlanSteps& steps) {
    const Order order = std::move(orders_.at(&steps));
    for (PlanStep& step : steps) {
      step.once = once_.contains(&step);
      for_each_inside(step,
                      [&](PlanSteps& inside, BufferId) { arrange(inside); });
    }
    PlanSteps arranged;
    arranged.reserve(steps.size());
    for (const size_t i : order) arranged.push_back(std::move(steps[i]));
    steps = std::move(arranged);
  }

  Plan& plan_;
  std::vector<bool> same_, shared_;  // by buffer
  std::unordered_set<const PlanStep*> once_;
  std::unordered_set<const PlanStep*> alone_;  // stay with each device
  std::unordered_map<const PlanSteps*, Order> orders_;
  bool changed_ = false, refused_ = false;
};

}  // namespace

void do_once(Plan& plan, const std::vector<bool>& same) {
  Sharer(plan, same).run();
}

}  // namespace unisono::jit
