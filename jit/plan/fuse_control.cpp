// Branches and loops. The carries of a loop have one place each; what the body
// makes of them is written there at once where nobody reads the old value any
// more, large ones otherwise go back and forth between two places, and small
// ones are copied.
#include <algorithm>
#include <optional>

#include "jit/ir/kinds.h"
#include "jit/plan/fuser.h"
#include "jit/plan/join_copies.h"
#include "jit/plan/known_turns.h"
#include "jit/plan/point_loop.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

/// Carries of this size have two places rather than be copied.
constexpr int64_t large_carry_bytes = 1 << 12;
/// Steps of a body that may stand twice.
constexpr size_t most_doubled_steps = 100;

/// Copies `from` to `to`, one by one, as if all at once.
void copy_all(Plan& plan, std::vector<BufferId> from,
              const std::vector<BufferId>& to, PlanSteps& steps) {
  auto bytes = [&](BufferId buffer) { return plan.buffers[buffer].bytes; };
  for (size_t i = 0; i < from.size(); ++i) {
    auto end = to.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(to.begin(), end, from[i]) == end || bytes(from[i]) == 0)
      continue;
    const BufferId saved = plan.add_buffer(bytes(from[i]));
    steps.push_back({CopyStep{from[i], saved, bytes(saved)}});
    from[i] = saved;
  }
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i] && bytes(to[i]) > 0)
      steps.push_back({CopyStep{from[i], to[i], bytes(to[i])}});
}

bool is_straight(const PlanSteps& steps) {
  return std::none_of(steps.begin(), steps.end(), [](const PlanStep& step) {
    return std::holds_alternative<LoopTask>(step.what) ||
           std::holds_alternative<IfTask>(step.what) ||
           std::holds_alternative<HostCallStep>(step.what);
  });
}

}  // namespace

/// The steps of a subgraph, with `outputs` set to where its results are.
PlanSteps Fuser::lower(const Graph& graph, const std::vector<BufferId>& inputs,
                       std::vector<BufferId>& outputs) {
  PlanSteps steps;
  outputs = Fuser(plan_, graph, inputs, sources_.checked, lowering_).run(steps);
  return steps;
}

/// The same with its results in `places`, which the subgraph may read only
/// where a place is one of `inputs`.
PlanSteps Fuser::lower_to(const Graph& graph,
                          const std::vector<BufferId>& inputs,
                          const std::vector<BufferId>& places) {
  const auto first = static_cast<BufferId>(plan_.buffers.size());
  std::vector<BufferId> outputs;
  PlanSteps steps = lower(graph, inputs, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BufferId own = outputs[i], place = places[i];
    if (own < first || plan_.buffers[own].home != PlanBuffer::Home::temporary)
      continue;
    const bool is_input =
        std::find(inputs.begin(), inputs.end(), place) != inputs.end();
    const bool is_result =
        std::find(outputs.begin(), outputs.end(), place) != outputs.end();
    if (is_input && (is_result || !may_replace(steps, place, own))) continue;
    rename(steps, own, place);
    std::replace(outputs.begin(), outputs.end(), own, place);
  }
  copy_all(plan_, outputs, places, steps);
  return steps;
}

void Fuser::place_if(NodeId id) {
  const Node& node = graph_[id];
  const auto& attrs = ir::attrs<ir::IfAttrs>(node);
  const BufferId flag = materialise(node.inputs[0]);
  std::vector<BufferId> captures, results;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    captures.push_back(materialise(node.inputs[i]));
  for (int i = 0; i < ir::result_count(node); ++i)
    results.push_back(plan_.add_buffer(ir::result_type(node, i).bytes()));
  auto branch = [&](const Graph& graph) {
    return std::make_unique<PlanSteps>(lower_to(graph, captures, results));
  };
  IfTask task{.flag = flag};
  task.then_steps = branch(*attrs.then_graph);
  task.else_steps = branch(*attrs.else_graph);
  end_results(id, append({std::move(task)}), std::move(results));
}

void Fuser::end_results(NodeId id, size_t item, std::vector<BufferId> results) {
  sources_.step[id] = static_cast<int>(item);
  if (ir::must_stay(graph_, graph_[id])) last_host_call_ = items_.size();
  if (!results.empty()) sources_.buffer[id] = results[0];
  results_[id] = std::move(results);
}

/// As one kernel, where each point depends on itself alone.
bool Fuser::place_point_loop(NodeId id) {
  const Node& node = graph_[id];
  const auto& attrs = ir::attrs<ir::LoopAttrs>(node);
  if (!lowering_.machine().has_point_loops) return false;
  const auto turns = known_turns(graph_, node);
  if (!turns || !may_be_point_loop(*attrs.body, turns->count)) return false;
  PointLoop loop{.turns = *turns, .carries = {}};
  std::vector<BufferId> inputs;
  for (NodeId operand : node.inputs) inputs.push_back(materialise(operand));
  for (int i = 0; i < attrs.carries; ++i) {
    const ir::Type& type = graph_.type(node.inputs[i]);
    const BufferId place = plan_.add_buffer(type.bytes());
    loop.carries.push_back({.first = inputs[i],
                            .place = place,
                            .dtype = type.dtype,
                            .elements = type.elements()});
    inputs[i] = place;
  }
  std::vector<BufferId> outputs;
  const PlanSteps body = lower(*attrs.body, inputs, outputs);
  std::vector<BufferId> places;
  for (size_t i = 0; i < outputs.size(); ++i) {
    loop.carries[i].next = outputs[i];
    places.push_back(loop.carries[i].place);
  }
  auto kernel = point_loop(body, loop);
  if (!kernel) return false;
  const size_t item = append({*std::move(kernel), {}}, graph_[id].source);
  for (const Node& node : ir::attrs<ir::LoopAttrs>(graph_[id]).body->nodes)
    items_[item].sources.push_back(node.source);
  end_results(id, item, std::move(places));
  return true;
}

void Fuser::place_loop(NodeId id) {
  if (place_point_loop(id)) return;
  const Node& node = graph_[id];
  const auto& attrs = ir::attrs<ir::LoopAttrs>(node);
  std::vector<BufferId> inputs, carries, outputs;
  for (NodeId operand : node.inputs) inputs.push_back(materialise(operand));
  for (int i = 0; i < attrs.carries; ++i) {
    const int64_t bytes = graph_.type(node.inputs[i]).bytes();
    carries.push_back(plan_.add_buffer(bytes));
    if (bytes > 0) append({CopyStep{inputs[i], carries[i], bytes}});
    inputs[i] = carries[i];
  }
  LoopTask task;
  PlanSteps condition = lower(*attrs.condition, inputs, outputs);
  task.flag = outputs[0];
  PlanSteps body = lower_to(*attrs.body, inputs, carries);
  if (lowering_.machine().counts_turns)
    if (const auto turns = known_turns(graph_, node)) task.turns = turns->count;
  if (auto doubled = two_places(attrs, inputs, body, task.turns)) {
    if (task.turns > 0 && task.turns % 2 != 0)
      for (PlanStep& step : body) append(std::move(step));
    if (task.turns > 0) task.turns /= 2;
    body = *std::move(doubled);
  }
  task.condition = std::make_unique<PlanSteps>(std::move(condition));
  task.body = std::make_unique<PlanSteps>(std::move(body));
  end_results(id, append({std::move(task)}), std::move(carries));
}

/// Where the body ends by copying large carries: two turns of it, the first
/// into other places, the second back; between them the condition is asked,
/// unless the number of turns is known.
std::optional<PlanSteps> Fuser::two_places(const ir::LoopAttrs& attrs,
                                           std::vector<BufferId> inputs,
                                           const PlanSteps& body,
                                           int64_t turns) {
  const std::vector<BufferId> carries(inputs.begin(),
                                      inputs.begin() + attrs.carries);
  std::vector<BufferId> others = carries;
  for (const PlanStep& step : body) {
    const auto* copy = std::get_if<CopyStep>(&step.what);
    if (!copy || copy->bytes < large_carry_bytes) continue;
    for (size_t i = 0; i < carries.size(); ++i)
      if (copy->to == carries[i]) others[i] = plan_.add_buffer(copy->bytes);
  }
  if (others == carries || body.size() > most_doubled_steps ||
      !is_straight(body))
    return std::nullopt;
  PlanSteps steps = lower_to(*attrs.body, inputs, others);
  std::copy(others.begin(), others.end(), inputs.begin());
  if (turns >= 0) {
    for (PlanStep& step : lower_to(*attrs.body, inputs, carries))
      steps.push_back(std::move(step));
    return steps;
  }
  std::vector<BufferId> outputs;
  PlanSteps condition = lower(*attrs.condition, inputs, outputs);
  IfTask again{.flag = outputs[0]};
  again.then_steps =
      std::make_unique<PlanSteps>(lower_to(*attrs.body, inputs, carries));
  again.else_steps = std::make_unique<PlanSteps>();
  copy_all(plan_, others, carries, *again.else_steps);
  std::move(condition.begin(), condition.end(), std::back_inserter(steps));
  steps.push_back({std::move(again)});
  return steps;
}

}  // namespace unisono::jit
