#pragma once
// Graph to plan: which nodes are computed together in one kernel, and the
// steps around kernels. Deterministic; time grows with the graph's size.
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel.h"

namespace unisono::jit {

/// An array that steps read and write, before it has a place.
struct PlanBuffer {
  enum class Home : uint8_t { temporary, input, constant };
  Home home = Home::temporary;
  int64_t bytes = 0;
  int index = 0;  // input, constant: which
};
using BufferId = int;

struct PlanStep;
using PlanSteps = std::vector<PlanStep>;

struct SortTask {
  BufferId from = 0, to = 0;
  DType dtype = DType::F32;
  int64_t rows = 0, length = 0;
  bool positions = false;  // argsort
};
struct CopyTask {
  BufferId from = 0, to = 0;
  int64_t bytes = 0;
};
struct CollectiveTask {
  ir::Op op = ir::Op::all_reduce;
  BufferId from = 0, to = 0;
  DType dtype = DType::F32;
  int64_t elements = 0;  // of `from`
  ir::CollectiveAttrs attrs = {};
  uint32_t source = 0;
};
struct LoopTask {
  std::unique_ptr<PlanSteps> condition, body;
  BufferId flag = 0;
};
struct IfTask {
  BufferId flag = 0;
  std::unique_ptr<PlanSteps> then_steps = nullptr, else_steps = nullptr;
};
struct HostTask {
  std::vector<BufferId> arguments;
  int call = 0;  // index into Plan::host_calls
};

struct PlanStep {
  std::variant<Kernel, SortTask, CopyTask, CollectiveTask, LoopTask, IfTask,
               HostTask>
      what;
};

struct PlanHostCall {
  ir::Node node;
  std::vector<ir::Type> types = {};  // of its operands
};

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
};

/// `graph` is concrete and optimised. Each output has a buffer of its own, or
/// is an input.
Plan fuse(const ir::Graph& graph, bool checked);

/// Calls `f(buffer)`, which gives a buffer, for every buffer that the steps
/// name, and puts what it gives in its place.
template <class F>
void rename_buffers(PlanSteps& steps, const F& f) {
  for (PlanStep& step : steps) {
    if (auto* kernel = std::get_if<Kernel>(&step.what)) {
      for (Argument& argument : kernel->arguments)
        argument.buffer = f(argument.buffer);
    } else if (auto* sort = std::get_if<SortTask>(&step.what)) {
      sort->from = f(sort->from), sort->to = f(sort->to);
    } else if (auto* copy = std::get_if<CopyTask>(&step.what)) {
      copy->from = f(copy->from), copy->to = f(copy->to);
    } else if (auto* task = std::get_if<CollectiveTask>(&step.what)) {
      task->from = f(task->from), task->to = f(task->to);
    } else if (auto* loop = std::get_if<LoopTask>(&step.what)) {
      loop->flag = f(loop->flag);
      rename_buffers(*loop->condition, f);
      rename_buffers(*loop->body, f);
    } else if (auto* branch = std::get_if<IfTask>(&step.what)) {
      branch->flag = f(branch->flag);
      rename_buffers(*branch->then_steps, f);
      rename_buffers(*branch->else_steps, f);
    } else if (auto* host = std::get_if<HostTask>(&step.what)) {
      for (BufferId& argument : host->arguments) argument = f(argument);
    }
  }
}

}  // namespace unisono::jit
