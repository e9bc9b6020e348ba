// Linear scan over the buffers' lifetimes in the order of steps. A buffer that
// a kernel reads for the last time, element by element where it writes a new
// one, gives its place to the new one at once. On CPUs what an all_reduce
// combines lies where its result goes, if nobody needs it behind. Shared
// buffers have an arena of their own.
#include "jit/arrange/memory_plan.h"

#include <algorithm>
#include <map>

#include "jit/kernel/schedule.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

constexpr int64_t alignment = 64;

struct Lifetime {
  int first = -1, last = -1;  // positions of steps
};

struct Positions {
  std::vector<Lifetime> lifetimes;
  /// Kernels by position; null for other steps.
  std::vector<const Kernel*> kernels;
  std::vector<const PlanStep*> at;
  std::vector<int> lists;       // by position: the list that has the step
  std::vector<Lifetime> loops;  // from the step to its end, inner ones first
  int last_list = 0;

  /// Position 0 is before all steps: there inputs have their contents.
  void begin() { add(nullptr, nullptr, 0); }

  void add(const Kernel* kernel, const PlanStep* step, int list) {
    kernels.push_back(kernel);
    at.push_back(step);
    lists.push_back(list);
  }

  void touch(BufferId buffer, int position) {
    Lifetime& life = lifetimes[buffer];
    if (life.first < 0) life.first = position;
    life.last = std::max(life.last, position);
  }
  void visit(const PlanSteps& steps);
  void keep_results_of_loops();
};

/// Numbers the steps; what a loop uses but does not make lives until its end.
void Positions::visit(const PlanSteps& steps) {
  const int list = ++last_list;
  for (const PlanStep& step : steps) {
    const int position = static_cast<int>(kernels.size());
    add(std::get_if<Kernel>(&step.what), &step, list);
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      visit(*loop->condition);
      touch(loop->flag, static_cast<int>(kernels.size()));
      add(nullptr, &step, list);
      visit(*loop->body);
      const int end = static_cast<int>(kernels.size());
      add(nullptr, &step, list);
      touch(loop->flag, end);
      for (Lifetime& life : lifetimes)
        if (life.first >= 0 && life.first < position && life.last >= position)
          life.last = end;
      loops.push_back({position, end});
      continue;
    }
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      touch(branch->flag, position);
      visit(*branch->then_steps);
      visit(*branch->else_steps);
      continue;
    }
    for_each_buffer(step,
                    [&](BufferId buffer, bool) { touch(buffer, position); });
  }
}

/// What is first written in a loop and read behind it is a stack, of which
/// each turn writes a row: no turn may use its place for anything else.
void Positions::keep_results_of_loops() {
  for (const Lifetime& loop : loops)
    for (Lifetime& life : lifetimes)
      if (life.first > loop.first && life.first <= loop.last &&
          life.last > loop.last)
        life.first = loop.first;
}

/// Free parts of the arena, by offset.
class Arena {
 public:
  int64_t take(int64_t bytes) {
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at)
      if (at->second >= bytes &&
          (best == free_.end() || at->second < best->second))
        best = at;
    if (best == free_.end()) {
      // Grow, from the free part at the end if there is one.
      int64_t offset = end_;
      if (!free_.empty()) {
        auto last = std::prev(free_.end());
        if (last->first + last->second == end_) {
          offset = last->first;
          free_.erase(last);
        }
      }
      end_ = offset + bytes;
      return offset;
    }
    const int64_t offset = best->first, size = best->second;
    free_.erase(best);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    return offset;
  }
  void give(int64_t offset, int64_t bytes) {
    auto at = free_.emplace(offset, bytes).first;
    auto next = std::next(at);
    if (next != free_.end() && at->first + at->second == next->first) {
      at->second += next->second;
      free_.erase(next);
    }
    if (at != free_.begin()) {
      auto before = std::prev(at);
      if (before->first + before->second == at->first) {
        before->second += at->second;
        free_.erase(at);
      }
    }
  }
  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> free_;
  int64_t end_ = 0;
};

int64_t rounded(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A buffer that dies at `position` and whose place `buffer` may take.
BufferId overwritten(const Kernel& kernel, BufferId buffer, int position,
                     const Plan& plan, const Positions& positions,
                     const std::vector<bool>& given) {
  int written = -1;
  for (size_t i = 0; i < kernel.arguments.size(); ++i)
    if (kernel.arguments[i].buffer == buffer) written = static_cast<int>(i);
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const BufferId other = kernel.arguments[i].buffer;
    if (kernel.arguments[i].written || other == buffer || given[other] ||
        positions.lifetimes[other].last != position ||
        plan.buffers[other].shared != plan.buffers[buffer].shared ||
        plan.buffers[other].bytes != plan.buffers[buffer].bytes)
      continue;
    if (may_overwrite(kernel, static_cast<int>(i), written)) return other;
  }
  return -1;
}

/// The kernel, which has an argument `buffer`, overwrites `old`, element by
/// element, by it.
bool overwrites(const Kernel& kernel, BufferId old, BufferId buffer) {
  int read = -1, written = -1, count = 0;
  for (const Argument& argument : kernel.arguments) {
    if (argument.buffer == old) read = count;
    if (argument.buffer == buffer) written = count;
    ++count;
  }
  return read >= 0 && may_overwrite(kernel, read, written);
}

/// Whether from the step that makes the operand on, to the all_reduce at
/// `position`, nobody needs what is in the place of its result: in a loop that
/// is the variable of the turn before.
bool result_place_is_free(const CollectiveStep& step, int position,
                          const Positions& positions) {
  const Lifetime& operand = positions.lifetimes[step.from];
  if (positions.lists[operand.first] != positions.lists[position]) return false;
  bool free = true;
  for (int p = operand.first; p < position; ++p) {
    const Kernel* kernel = positions.kernels[p];
    if (p == operand.first && kernel && overwrites(*kernel, step.to, step.from))
      continue;
    for_each_buffer(*positions.at[p], [&](BufferId buffer, bool) {
      free = free && buffer != step.to;
    });
  }
  return free;
}

/// Whether nobody reads the operand behind the all_reduce at `position`. Where
/// its end stands apart, that names both once more.
bool operand_ends(const CollectiveStep& step, int position,
                  const Positions& positions) {
  const int last = positions.lifetimes[step.from].last;
  if (last == position) return true;
  const auto* end = std::get_if<CopyStep>(&positions.at[last]->what);
  if (!end || end->bytes != 0 || end->from != step.from || end->to != step.to)
    return false;
  bool alone = true;
  for (int p = position + 1; p < last; ++p)
    for_each_buffer(*positions.at[p], [&](BufferId buffer, bool) {
      alone = alone && buffer != step.from;
    });
  return alone;
}

/// An all_reduce leaves its result where the operand is.
struct InPlace {
  /// By operand: the result that has a place already, or -1.
  std::vector<BufferId> results;
  /// By result: the operand whose place it takes then, or -1.
  std::vector<BufferId> operands;
};

InPlace combined_in_place(const Plan& plan, const Positions& positions,
                          const std::vector<Slot>& slots,
                          const std::vector<bool>& fixed,
                          const std::vector<bool>& is_host) {
  InPlace found;
  found.results.resize(plan.buffers.size(), -1);
  found.operands.resize(plan.buffers.size(), -1);
  std::vector<bool> taken = fixed;
  for (size_t position = 1; position < positions.at.size(); ++position) {
    poll_stop();
    const auto* step =
        std::get_if<CollectiveStep>(&positions.at[position]->what);
    if (!step || step->kind != CollectiveStep::Kind::all_reduce) continue;
    const BufferId operand = step->from, result = step->to;
    const int at = static_cast<int>(position);
    if (operand == result || taken[operand] ||
        plan.buffers[operand].shared != plan.buffers[result].shared ||
        !operand_ends(*step, at, positions))
      continue;
    if (!fixed[result] && positions.lifetimes[result].first == at) {
      found.operands[result] = operand;
    } else if (!is_host[operand] && slots[result].home != Slot::Home::input &&
               result_place_is_free(*step, at, positions)) {
      found.results[operand] = result;
      taken[result] = true;
    } else {
      continue;
    }
    taken[operand] = true;
  }
  return found;
}

/// For a buffer that only passes from one loop of a kernel to the next: the
/// result of that kernel in whose place it lies; -1 for others.
std::vector<BufferId> result_hosts(const Plan& plan, const Positions& positions,
                                   const std::vector<bool>& fixed) {
  std::vector<BufferId> hosts(plan.buffers.size(), -1);
  std::vector<bool> is_host(plan.buffers.size());
  for (size_t position = 0; position < positions.kernels.size(); ++position) {
    poll_stop();
    const Kernel* kernel = positions.kernels[position];
    if (!kernel) continue;
    const auto& arguments = kernel->arguments;
    auto begins_here = [&](BufferId buffer) {
      return positions.lifetimes[buffer].first == static_cast<int>(position);
    };
    for (size_t early = 0; early < arguments.size(); ++early) {
      const BufferId guest = arguments[early].buffer;
      if (!arguments[early].written || fixed[guest] || !begins_here(guest) ||
          positions.lifetimes[guest].last != static_cast<int>(position))
        continue;
      for (size_t late = 0; late < arguments.size(); ++late) {
        const BufferId host = arguments[late].buffer;
        if (late == early || !arguments[late].written || !begins_here(host) ||
            is_host[host] || hosts[host] >= 0 ||
            !may_share(*kernel, static_cast<int>(early),
                       static_cast<int>(late)))
          continue;
        hosts[guest] = host;
        is_host[host] = true;
        break;
      }
    }
  }
  return hosts;
}

/// The donated input whose place an output may take from the step at which it
/// is first written; -1 if there is none.
BufferId donor(const Plan& plan, const Positions& positions, BufferId output,
               const std::vector<bool>& free_inputs) {
  const int first = positions.lifetimes[output].first;
  for (BufferId input : plan.inputs) {
    if (!free_inputs[input] ||
        plan.buffers[input].shared != plan.buffers[output].shared ||
        plan.buffers[input].bytes != plan.buffers[output].bytes)
      continue;
    const int last = positions.lifetimes[input].last;
    if (last < first) return input;
    if (last > first) continue;
    // The step that reads the input last, and writes the output first.
    const PlanStep& step = *positions.at[first];
    if (std::holds_alternative<CopyStep>(step.what)) return input;
    const auto* kernel = std::get_if<Kernel>(&step.what);
    if (kernel && overwrites(*kernel, input, output)) return input;
  }
  return -1;
}

/// Outputs go where donated inputs are.
void reuse_inputs(const Plan& plan, const Positions& positions,
                  const std::vector<bool>& donated,
                  const std::vector<bool>& is_host, MemoryPlan& result) {
  std::vector<bool> free_inputs(plan.buffers.size());
  for (size_t i = 0; i < donated.size(); ++i)
    free_inputs[plan.inputs[i]] = donated[i];
  for (BufferId output : plan.outputs) free_inputs[output] = false;
  for (BufferId output : plan.outputs) {
    Slot& slot = result.slots[output];
    if (slot.home != Slot::Home::output || is_host[output] || slot.bytes == 0)
      continue;
    const BufferId input = donor(plan, positions, output, free_inputs);
    if (input < 0) continue;
    free_inputs[input] = false;
    slot = result.slots[input];
    result.overwritten.push_back(slot.index);
  }
}

bool is_one_place(const Slot& a, const Slot& b) {
  return a.home == b.home && a.shared == b.shared &&
         (a.home == Slot::Home::arena ? a.offset == b.offset
                                      : a.index == b.index);
}

bool overwrites_operand(const Kernel& kernel, const std::vector<Slot>& slots) {
  for (const Argument& read : kernel.arguments)
    for (const Argument& written : kernel.arguments)
      if (!read.written && written.written &&
          is_one_place(slots[read.buffer], slots[written.buffer]))
        return true;
  return false;
}

}  // namespace

void mark_overwriting(PlanSteps& steps, const std::vector<Slot>& slots) {
  for (PlanStep& step : steps) {
    if (auto* kernel = std::get_if<Kernel>(&step.what)) {
      kernel->overwrites = overwrites_operand(*kernel, slots);
    } else if (auto* loop = std::get_if<LoopTask>(&step.what)) {
      mark_overwriting(*loop->condition, slots);
      mark_overwriting(*loop->body, slots);
    } else if (auto* branch = std::get_if<IfTask>(&step.what)) {
      mark_overwriting(*branch->then_steps, slots);
      mark_overwriting(*branch->else_steps, slots);
    }
  }
}

MemoryPlan plan_memory(const Plan& plan, const std::vector<bool>& donated,
                       bool in_place) {
  MemoryPlan result;
  const size_t count = plan.buffers.size();
  result.slots.resize(count);
  std::vector<bool> fixed(count), given(count);
  for (size_t i = 0; i < count; ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    Slot& slot = result.slots[i];
    slot.bytes = buffer.bytes;
    slot.index = buffer.index;
    slot.shared = buffer.shared;
    fixed[i] = buffer.home != PlanBuffer::Home::temporary;
    if (buffer.home == PlanBuffer::Home::input) slot.home = Slot::Home::input;
    if (buffer.home == PlanBuffer::Home::constant)
      slot.home = Slot::Home::constant;
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const BufferId output = plan.outputs[i];
    if (fixed[output]) continue;
    fixed[output] = true;
    result.slots[output].home = Slot::Home::output;
    result.slots[output].index = static_cast<int>(i);
  }

  Positions positions;
  positions.lifetimes.resize(count);
  positions.begin();
  for (size_t i = 0; i < donated.size(); ++i)
    if (donated[i]) positions.touch(plan.inputs[i], 0);
  positions.visit(plan.steps);
  positions.keep_results_of_loops();
  std::vector<std::vector<BufferId>> starts(positions.kernels.size()),
      ends(positions.kernels.size());
  const std::vector<BufferId> hosts = result_hosts(plan, positions, fixed);
  std::vector<bool> is_host(count);
  for (BufferId host : hosts)
    if (host >= 0) is_host[host] = true;
  reuse_inputs(plan, positions, donated, is_host, result);
  std::vector<BufferId> operands(count, -1), results(count, -1);
  if (in_place) {
    InPlace found =
        combined_in_place(plan, positions, result.slots, fixed, is_host);
    operands = std::move(found.operands);
    results = std::move(found.results);
  }
  for (size_t i = 0; i < count; ++i) {
    if (fixed[i] || hosts[i] >= 0 || results[i] >= 0 ||
        positions.lifetimes[i].first < 0)
      continue;
    starts[positions.lifetimes[i].first].push_back(static_cast<BufferId>(i));
    ends[positions.lifetimes[i].last].push_back(static_cast<BufferId>(i));
  }
  Arena arenas[2];  // the devices' own, and the shared one
  std::vector<bool> fixed_or_given = fixed;
  for (size_t position = 0; position < starts.size(); ++position) {
    poll_stop();
    for (BufferId buffer : starts[position]) {
      Arena& arena = arenas[plan.buffers[buffer].shared];
      const Kernel* kernel = positions.kernels[position];
      BufferId other = operands[buffer];
      if (kernel && !is_host[buffer])
        other = overwritten(*kernel, buffer, static_cast<int>(position), plan,
                            positions, fixed_or_given);
      if (other >= 0) {
        fixed_or_given[other] = true;
        result.slots[buffer].offset = result.slots[other].offset;
      } else {
        result.slots[buffer].offset =
            arena.take(rounded(plan.buffers[buffer].bytes));
      }
    }
    for (BufferId buffer : ends[position])
      if (!fixed_or_given[buffer])
        arenas[plan.buffers[buffer].shared].give(
            result.slots[buffer].offset, rounded(plan.buffers[buffer].bytes));
  }
  for (size_t i = 0; i < count; ++i)
    if (hosts[i] >= 0) result.slots[i] = result.slots[hosts[i]];
  for (size_t i = 0; i < count; ++i)
    if (results[i] >= 0) result.slots[i] = result.slots[results[i]];
  result.arena_bytes = arenas[0].end();
  result.shared_arena_bytes = arenas[1].end();
  return result;
}

}  // namespace unisono::jit
