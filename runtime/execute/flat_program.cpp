#include "runtime/execute/flat_program.h"

#include <algorithm>

#include "runtime/check.h"
#include "runtime/execute/collective.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;

class Flattener {
 public:
  explicit Flattener(const Program& program) : program_(program) {}

  FlatProgram flatten() && {
    add_steps(program_.steps);
    add({.kind = Kind::end});
    return std::move(flat_);
  }

 private:
  void add_steps(const Steps& steps) {
    for (const Step& step : steps) {
      std::visit([this](const auto& what) { add_step(what); }, step.what);
      if (!step.once) continue;
      Instruction& instruction = flat_.instructions.back();
      CHECK(instruction.kind == Kind::launch || instruction.kind == Kind::copy);
      instruction.once = flat_.meets = true;
    }
  }

  void add_step(const LaunchStep& launch) {
    CHECK(launch.function || launch.grid);
    for (SlotId slot : launch.arguments) check_slot(slot, 0);
    flat_.most_arguments = std::max(flat_.most_arguments,
                                    static_cast<int>(launch.arguments.size()));
    float work = 0;
    if (launch.function)
      work = static_cast<float>(launch.units) /
             static_cast<float>(std::max<int64_t>(launch.grain, 1));
    add({.kind = Kind::launch,
         .step = &launch,
         .work = std::min(work, much_work)});
  }
  void add_step(const CopyStep& copy) {
    check_slot(copy.from, copy.bytes);
    check_slot(copy.to, copy.bytes);
    if (copy.bytes == 0 && end_collective(copy)) return;
    add({.kind = Kind::copy, .step = &copy});
  }
  void add_step(const HostCallStep& call) {
    CHECK(call.arguments.size() == call.bytes.size());
    CHECK(static_cast<size_t>(call.call) < program_.host_calls.size());
    for (size_t i = 0; i < call.arguments.size(); ++i)
      check_slot(call.arguments[i], call.bytes[i]);
    CHECK(call.results.size() == call.result_bytes.size());
    for (size_t i = 0; i < call.results.size(); ++i)
      check_slot(call.results[i], call.result_bytes[i]);
    CHECK(call.callers.empty() ||
          call.callers.size() == static_cast<size_t>(program_.devices));
    add({.kind = Kind::host_call,
         .step = &call,
         .work = std::min(call.work, much_work)});
  }
  void add_step(const CollectiveStep& step) {
    check_groups(step.groups);
    const auto team = static_cast<int64_t>(
        step.groups.empty() ? program_.devices : step.groups[0].size());
    const CollectiveBytes bytes = bytes_of(step, team);
    if (step.kind != CollectiveStep::Kind::all_reduce)
      for (const auto& group : step.groups)
        CHECK(group.size() == step.groups[0].size());
    check_slot(step.from, bytes.from);
    check_slot(step.to, bytes.to);
    check_pairs(step.pairs);
    flat_.meets = true;
    add({.kind = Kind::collective, .step = &step});
  }
  void add_step(const LoopStep& loop) {
    if (loop.turns >= 0) return add_counted(loop);
    check_slot(loop.flag, 1);
    int start = next();
    add_steps(*loop.condition);
    int leave = add({.kind = Kind::jump_if_false, .flag = loop.flag});
    add_steps(*loop.body);
    add({.kind = Kind::jump, .target = start});
    land(leave);
  }
  void add_counted(const LoopStep& loop) {
    const int id = static_cast<int>(flat_.loops.size());
    flat_.loops.push_back({.turns = loop.turns});
    add({.kind = Kind::repeat, .loop = id});
    const int start = add({.kind = Kind::next_turn, .loop = id});
    add_steps(*loop.body);
    FlatLoop& flat = flat_.loops[id];
    flat.begin = start + 1;
    flat.end = add({.kind = Kind::jump, .target = start});
    flat.work = flat.end - flat.begin;
    flat.straight = true;
    for (int pc = flat.begin; pc < flat.end; ++pc) {
      const Kind kind = flat_.instructions[pc].kind;
      flat.meets |= kind == Kind::collective || flat_.instructions[pc].once;
      flat.straight &= kind == Kind::launch || kind == Kind::copy ||
                       kind == Kind::collective;
    }
    land(start);
  }
  void add_step(const IfStep& branch) {
    check_slot(branch.flag, 1);
    int to_else = add({.kind = Kind::jump_if_false, .flag = branch.flag});
    add_steps(*branch.then_steps);
    if (branch.else_steps && !branch.else_steps->empty()) {
      int to_end = add({.kind = Kind::jump});
      land(to_else);
      add_steps(*branch.else_steps);
      land(to_end);
    } else {
      land(to_else);
    }
  }

  /// False: there is none before it.
  bool end_collective(const CopyStep& end) {
    double meanwhile = 0;
    for (size_t i = flat_.instructions.size(); i-- > 0;) {
      Instruction& before = flat_.instructions[i];
      if (before.kind == Kind::launch) {
        const auto& launch = before.as<LaunchStep>();
        meanwhile += launch.flops + static_cast<double>(launch.bytes);
        continue;
      }
      if (before.kind == Kind::copy) {
        meanwhile += static_cast<double>(before.as<CopyStep>().bytes);
        continue;
      }
      if (before.kind == Kind::collective_end) continue;
      // Calls of the host come in order, and jumps come from elsewhere.
      if (before.kind != Kind::collective) return false;
      const auto& step = before.as<CollectiveStep>();
      if (step.from != end.from || step.to != end.to) continue;
      before.meanwhile = std::max(meanwhile, 1.0);
      add({.kind = Kind::collective_end, .step = before.step});
      return true;
    }
    return false;
  }

  void check_slot(SlotId slot, int64_t bytes) const {
    CHECK(slot >= 0 && static_cast<size_t>(slot) < program_.slots.size());
    CHECK(program_.slots[slot].bytes >= bytes);
  }
  /// Each device is in one group.
  void check_groups(const Groups& groups) const {
    if (groups.empty()) return;
    std::vector<bool> seen(static_cast<size_t>(program_.devices));
    int count = 0;
    for (const auto& group : groups)
      for (int device : group) {
        CHECK(device >= 0 && device < program_.devices);
        CHECK(!seen[device]);
        seen[device] = true;
        ++count;
      }
    CHECK(count == program_.devices);
  }
  void check_pairs(const std::vector<std::pair<int, int>>& pairs) const {
    std::vector<bool> reached(static_cast<size_t>(program_.devices));
    for (auto [source, destination] : pairs) {
      CHECK(source >= 0 && source < program_.devices);
      CHECK(destination >= 0 && destination < program_.devices);
      CHECK(!reached[destination]);
      reached[destination] = true;
    }
  }
  int next() const { return static_cast<int>(flat_.instructions.size()); }
  int add(const Instruction& instruction) {
    flat_.instructions.push_back(instruction);
    return next() - 1;
  }
  void land(int jump) { flat_.instructions[jump].target = next(); }

  const Program& program_;
  FlatProgram flat_;
};

bool reads(const Instruction& instruction, const std::vector<bool>& slots) {
  const auto some = [&](const auto& list) {
    return std::ranges::any_of(list, [&](SlotId slot) { return slots[slot]; });
  };
  switch (instruction.kind) {
    case Kind::launch: return some(instruction.as<LaunchStep>().arguments);
    case Kind::copy: return slots[instruction.as<CopyStep>().from];
    case Kind::collective: return slots[instruction.as<CollectiveStep>().from];
    case Kind::host_call: return some(instruction.as<HostCallStep>().arguments);
    case Kind::jump_if_false: return slots[instruction.flag];
    case Kind::collective_end:
    case Kind::repeat:
    case Kind::next_turn:
    case Kind::jump:
    case Kind::end: break;
  }
  return false;
}

}  // namespace

FlatProgram flatten(const Program& program) {
  return Flattener(program).flatten();
}

int first_reader(const FlatProgram& flat, const std::vector<bool>& slots) {
  return static_cast<int>(
      std::ranges::find_if(flat.instructions,
                           [&](const Instruction& instruction) {
                             return reads(instruction, slots);
                           }) -
      flat.instructions.begin());
}

uint32_t source_of(const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::collective:
    case Kind::collective_end: return instruction.as<CollectiveStep>().source;
    case Kind::launch: {
      const auto& sources = instruction.as<LaunchStep>().sources;
      return sources.empty() ? 0 : sources[0];
    }
    case Kind::copy:
    case Kind::host_call:
    case Kind::repeat:
    case Kind::next_turn:
    case Kind::jump:
    case Kind::jump_if_false:
    case Kind::end: break;
  }
  return 0;
}

}  // namespace unisono
