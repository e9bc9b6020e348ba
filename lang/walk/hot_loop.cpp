// Loops on the host that take many turns go on as code: what is left of one is
// traced, as in a compiled function, from the values that its variables have
// now, and runs as threaded code (jit/bytecode) or, if that takes long, as
// machine code. All give the same bits, so nobody can tell, but by the clock.
// What cannot be traced stays with the walk.
#include <algorithm>
#include <chrono>
#include <utility>

#include "jit/bytecode/bytecode.h"
#include "jit/reference/nodes.h"
#include "jit/transform/transforms.h"
#include "lang/maps/executable.h"
#include "lang/walk/walker.h"

namespace unisono::lang {
namespace {

/// Turns that are walked before the loop goes on as code, and how many must be
/// left, where that is known: an attempt costs about what some turns do.
constexpr uint64_t turns_before = 1;
constexpr uint64_t while_turns_before = 4;
constexpr uint64_t turns_left_least = 6;
/// A loop for which that was not possible so often is left alone.
constexpr int most_failures = 2;
/// A turn that computes more bytes than this in one operation is not slow for
/// being walked.
constexpr int64_t large_work = 64 * 1024;

/// The bytes of the largest array that the graph computes by one operation,
/// but for elements that are read and written.
int64_t largest_work(const ir::Graph& graph) {
  int64_t most = 0;
  const auto grow = [&](int64_t bytes) { most = std::max(most, bytes); };
  for (const ir::Node& node : graph.nodes) {
    switch (ir::kind(node.op)) {
      case ir::Kind::control:
        if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs)) {
          grow(largest_work(*a->then_graph));
          grow(largest_work(*a->else_graph));
        }
        if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) {
          grow(largest_work(*a->condition));
          grow(largest_work(*a->body));
        }
        break;
      case ir::Kind::index:
        for (size_t i = 1; i < node.inputs.size(); ++i)
          grow(graph.type(node.inputs[i]).bytes());
        if (node.op == ir::Op::gather) grow(node.type.bytes());
        break;
      case ir::Kind::source:
        if (node.op == ir::Op::iota) grow(node.type.bytes());
        break;
      case ir::Kind::map:
      case ir::Kind::reduce:
      case ir::Kind::argreduce:
      case ir::Kind::scan:
      case ir::Kind::move:
      case ir::Kind::dot:
      case ir::Kind::sort:
      case ir::Kind::collective:
      case ir::Kind::host:
        grow(node.type.bytes());
        for (const ir::NodeId operand : node.inputs)
          grow(graph.type(operand).bytes());
        break;
    }
  }
  return most;
}

bool is_spread(const unisono::Array& array) {
  return array.sharding().is_split() && array.sharding().devices.size() > 1;
}

}  // namespace

/// A loop's graph, and what belongs to its inputs and outputs.
struct Walker::LoopCode {
  std::shared_ptr<const ir::Graph> graph;
  std::vector<unisono::Array> inputs;
  std::vector<Assigned> changes;
  /// The leaves of the changes' new values that the graph computes, in the
  /// order of its outputs.
  std::vector<ArrayValue> outputs;
};

bool Walker::is_hot(const Stmt& loop, uint64_t turns,
                    std::optional<uint64_t> left) {
  if (turns < (left ? turns_before : while_turns_before)) return false;
  if (left && *left < turns_left_least) return false;
  const Machine& machine = walk_.machine();
  if (machine.reference_only || machine.compile_only ||
      machine.limits.steps > 0 || s_.attempt)
    return false;
  const auto failures = s_.not_code.find(&loop);
  return failures == s_.not_code.end() || failures->second < most_failures;
}

std::optional<Walker::LoopCode> Walker::trace_loop(
    const std::function<void()>& walk_loop) {
  LoopCode code;
  std::shared_ptr<GraphScope> scope;
  {
    // What goes wrong here goes wrong again, and is told, when it is walked.
    const Saved<bool> attempt(s_.attempt, true), gave_up(s_.gave_up),
        stopped(s_.stopped);
    const Saved<uint64_t> steps(s_.steps, 0);
    JournalScope journal(*this);
    try {
      scope = walk_.trace(walk_loop);
    } catch (const Failure&) {
      return std::nullopt;
    }
    code.changes = journal.finish();
  }
  for (const Assigned& change : code.changes)
    for_each_leaf(change.after, [&](const Value& leaf) {
      const auto* array = leaf.get_if<ArrayValue>();
      if (array && (*array)->node >= 0 && !(*array)->array &&
          !(*array)->constant &&
          std::ranges::find(code.outputs, *array) == code.outputs.end())
        code.outputs.push_back(*array);
    });
  code.graph = std::make_shared<const ir::Graph>(
      jit::cse_dce(scope->finish(code.outputs)));
  for (const ArrayValue& capture : scope->captures()) {
    if (!capture->array || is_spread(*capture->array)) return std::nullopt;
    code.inputs.push_back(*capture->array);
  }
  if (largest_work(*code.graph) > large_work) return std::nullopt;
  return code;
}

bool Walker::run_as_code(const Stmt& loop,
                         const std::function<void()>& walk_loop) {
  walk_.flush(loop.span);
  std::optional<LoopCode> code = trace_loop(walk_loop);
  poll(loop.span);  // if that is why there is none
  std::shared_ptr<const jit::Bytecode> bytecode;
  if (code)
    bytecode = jit::Bytecode::lower(code->graph, walk_.machine().checked);
  if (!bytecode) {
    ++s_.not_code[&loop];
    return false;
  }
  const std::vector<unisono::Array> results =
      run_code(*bytecode, *code, loop.span);
  for (Assigned& change : code->changes) {
    Value value = map_leaves(change.after, [&](const Value& leaf) -> Value {
      const auto* array = leaf.get_if<ArrayValue>();
      const auto output = array ? std::ranges::find(code->outputs, *array)
                                : code->outputs.end();
      if (output == code->outputs.end()) return leaf;
      const ArrayValue computed =
          walk_.from_array(results[output - code->outputs.begin()]);
      computed->weak = (*array)->weak;
      return computed;
    });
    assign(change.environment, change.name, std::move(value), change.where);
  }
  return true;
}

std::vector<unisono::Array> Walker::run_code(const jit::Bytecode& bytecode,
                                             const LoopCode& code, Span where) {
  using jit::reference::Value;
  Machine& machine = walk_.machine();
  CopyCounter counter{.recorder = machine.recorder};
  std::vector<std::vector<uint8_t>> copies;
  std::vector<Value> inputs;
  for (const unisono::Array& array : code.inputs) {
    // Memory of a CPU is the host's.
    if (array.sharding().devices[0]->kind() == DeviceKind::cpu) {
      inputs.push_back(
          Value::view(static_cast<const uint8_t*>(array.blocks()[0]->data()),
                      array.bytes()));
      continue;
    }
    auto bytes = array_to_host(array, &counter);
    if (!bytes) walk_.fail(bytes.error(), where);
    copies.push_back(*std::move(bytes));
    inputs.push_back(Value::view(copies.back().data(), array.bytes()));
  }
  jit::ReferenceOptions options;
  options.checked = machine.checked;
  options.host_call = host_caller(machine, nullptr);
  auto outcome = bytecode.run_values(std::move(inputs), options);
  if (!outcome) walk_.fail(outcome.error(), where);
  std::vector<unisono::Array> results;
  for (size_t i = 0; i < outcome->values.size(); ++i) {
    const ir::Type& type = bytecode.output_types()[i];
    const Value value = jit::reference::dense(outcome->values[i], type);
    if (!value.ok()) walk_.fail(jit::reference::out_of_memory(type), where);
    auto array = array_from_host(*machine.runtime->devices()[0], type.dtype,
                                 type.sizes(), value.data());
    if (!array) walk_.fail(array.error(), where);
    results.push_back(*std::move(array));
  }
  return results;
}

}  // namespace unisono::lang
