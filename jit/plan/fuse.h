#pragma once
// From a graph to a plan: which nodes are computed together in one kernel, and
// the steps around kernels. Deterministic; time grows with the graph's size.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/kernel.h"
#include "jit/kernel/packed_dot.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

/// An array that steps read and write, before it has a place.
struct PlanBuffer {
  enum class Home : uint8_t { temporary, input, constant };
  Home home = Home::temporary;
  int64_t bytes = 0;
  int index = 0;  // input, constant: which
  /// The type of the value that is in it, and its place in the program, for the
  /// message that there is no memory for it; nothing of other buffers.
  std::optional<ir::Type> type = {};
  uint32_t source = 0;
  bool shared = false;  // as in Slot
};
using BufferId = SlotId;  // the plan's buffers become the program's slots

struct PlanStep;
using PlanSteps = std::vector<PlanStep>;

/// A matrix product in tiles (jit/emit/dot.h).
struct DotTask {
  DotShape shape;
  BufferId a = 0, b = 0, to = 0;
  BufferId packed_a = -1, packed_b = -1;  // where they are packed before it
};
/// Becomes a LoopStep. `turns`: how often the condition will hold; -1 if that
/// is not known.
struct LoopTask {
  std::unique_ptr<PlanSteps> condition, body;
  BufferId flag = 0;
  int64_t turns = -1;
};
/// Becomes an IfStep.
struct IfTask {
  BufferId flag = 0;
  std::unique_ptr<PlanSteps> then_steps = nullptr, else_steps = nullptr;
};
/// A step of a program, with buffers for slots; or a kernel or product, which
/// becomes a step once there is code for it. The kernel of a LaunchStep here is
/// a precompiled one.
struct PlanStep {
  std::variant<Kernel, DotTask, LaunchStep, CopyStep, CollectiveStep, LoopTask,
               IfTask, HostCallStep>
      what;
  /// The places in the program of what a launch computes, in its order; of a
  /// copy, the update of an array that it is for.
  std::vector<uint32_t> sources = {};
  bool once = false;  // as in Step
};

/// What a HostCallStep calls.
struct PlanHostCall {
  ir::Node node;
  std::vector<ir::Type> types = {};  // of its operands
};

/// A program before it has code and places in memory.
struct Plan {
  std::vector<PlanBuffer> buffers;
  std::vector<BufferId> inputs, outputs;
  std::vector<std::vector<uint8_t>> constants;
  std::vector<PlanHostCall> host_calls;
  PlanSteps steps;

  BufferId add_buffer(int64_t bytes) {
    buffers.push_back({PlanBuffer::Home::temporary, bytes, 0});
    return static_cast<BufferId>(buffers.size()) - 1;
  }
  BufferId add_buffer(const ir::Node& node) {
    const BufferId buffer = add_buffer(node.type.bytes());
    buffers[buffer].type = node.type;
    buffers[buffer].source = node.source;
    return buffer;
  }
  BufferId add_constant(std::vector<uint8_t> bytes) {
    const BufferId buffer = add_buffer(static_cast<int64_t>(bytes.size()));
    buffers[buffer].home = PlanBuffer::Home::constant;
    buffers[buffer].index = static_cast<int>(constants.size());
    constants.push_back(std::move(bytes));
    return buffer;
  }
};

class Lowering;

/// The plan of a graph, which is concrete and optimised, for devices with this
/// lowering. `checked`: whether failed checks are errors. Each output has a
/// buffer of its own, or is an input.
Plan fuse(const ir::Graph& graph, bool checked, const Lowering& lowering);

/// Calls `f(BufferId&, bool written)` for every buffer that a step, or a step
/// inside it, names.
template <class Step, class F>
void for_each_buffer(Step& step, const F& f) {
  auto inside = [&](auto& steps) {
    for (auto& inner : *steps) for_each_buffer(inner, f);
  };
  if (auto* kernel = std::get_if<Kernel>(&step.what)) {
    for (auto& argument : kernel->arguments)
      f(argument.buffer, argument.written);
  } else if (auto* native = std::get_if<LaunchStep>(&step.what)) {
    for (auto& argument : native->arguments) f(argument, true);
  } else if (auto* dot = std::get_if<DotTask>(&step.what)) {
    f(dot->a, false), f(dot->b, false);
    if (dot->packed_a >= 0) f(dot->packed_a, true);
    if (dot->packed_b >= 0) f(dot->packed_b, true);
    f(dot->to, true);
  } else if (auto* copy = std::get_if<CopyStep>(&step.what)) {
    f(copy->from, false), f(copy->to, true);
  } else if (auto* task = std::get_if<CollectiveStep>(&step.what)) {
    f(task->from, false), f(task->to, true);
  } else if (auto* host = std::get_if<HostCallStep>(&step.what)) {
    for (auto& argument : host->arguments) f(argument, false);
    for (auto& result : host->results) f(result, true);
  } else if (auto* loop = std::get_if<LoopTask>(&step.what)) {
    inside(loop->condition);
    f(loop->flag, false);
    inside(loop->body);
  } else {
    auto& branch = std::get<IfTask>(step.what);
    f(branch.flag, false);
    inside(branch.then_steps);
    inside(branch.else_steps);
  }
}

}  // namespace unisono::jit
