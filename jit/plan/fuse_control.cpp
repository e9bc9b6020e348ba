// Branches and loops. The carries of a loop have one place each; what the body
// makes of them is written there at once where nobody reads the old value any
// more, large ones otherwise go back and forth between two places, and small
// ones are copied.
#include <algorithm>
#include <cstring>
#include <optional>

#include "jit/ir/kinds.h"
#include "jit/loops/known_turns.h"
#include "jit/loops/plain_loop.h"
#include "jit/plan/fuser.h"
#include "jit/plan/join_copies.h"
#include "jit/plan/native_loop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

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
  outputs = Fuser(plan_, graph, inputs, sources_.checked, lowering_, ranges_)
                .run(steps);
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

/// The body of a loop, in which the turn's number has a range. (The condition
/// meets one number more.)
PlanSteps Fuser::lower_body(const Node& loop, const Graph& body,
                            const std::vector<BufferId>& inputs,
                            const std::vector<BufferId>& places) {
  const auto& attrs = ir::attrs<ir::LoopAttrs>(loop);
  BufferId number = -1;
  if (attrs.is_counted()) {  // has turns: simplify drops the others
    number = inputs[0];
    ranges_[number] = {0, attrs.turns - 1};
  } else if (const auto turns = known_turns(graph_, loop);
             turns && turns->count > 0) {
    number = inputs[static_cast<size_t>(turns->counter)];
    ranges_[number] = {turns->first, turns->last};
  }
  PlanSteps steps = lower_to(body, inputs, places);
  ranges_.erase(number);
  return steps;
}

/// What is known of an integer of this graph.
std::optional<IntegerRange> Fuser::range_of(NodeId id, int depth) const {
  const Node& node = graph_[id];
  if (!is_integer(node.type.dtype)) return std::nullopt;
  if (const auto known = ranges_.find(sources_.buffer[id]);
      known != ranges_.end())
    return known->second;
  if (const auto value = constant_of(graph_, id))
    return IntegerRange(*value, *value);
  if (ir::kind(node.op) != ir::Kind::map || depth == tuning().most_range_depth)
    return std::nullopt;
  std::vector<IntegerRange> operands;
  for (const NodeId operand : node.inputs) {
    const auto range = range_of(operand, depth + 1);
    if (!range) return std::nullopt;
    operands.push_back(*range);
  }
  return range_of_result(node.op, node.type.dtype, operands);
}

/// Where an operand of a loop or branch lies; its range is noted.
BufferId Fuser::capture(NodeId id) {
  const auto range = range_of(id);
  const BufferId buffer = materialise(id);
  if (range) ranges_.try_emplace(buffer, *range);
  return buffer;
}

void Fuser::place_if(NodeId id) {
  const Node& node = graph_[id];
  const auto& attrs = ir::attrs<ir::IfAttrs>(node);
  const BufferId flag = materialise(node.inputs[0]);
  std::vector<BufferId> captures, results;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    captures.push_back(capture(node.inputs[i]));
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

/// As one kernel, where the body is small.
bool Fuser::place_native_loop(NodeId id) {
  const Machine& machine = lowering_.machine();
  if (!may_be_native(graph_, graph_[id], machine)) return false;
  const Node& node = graph_[id];
  LoopPlaces places;
  for (NodeId operand : node.inputs) {
    places.operands.push_back(capture(operand));
    places.ranges.push_back(range_of(operand));
  }
  places.wanted = wanted_results(id);
  places.scratch = [&](int64_t bytes) { return plan_.add_buffer(bytes); };
  for (int i = 0; i < ir::result_count(node); ++i)
    places.results.push_back(
        plan_.add_buffer(ir::result_type(node, i).bytes()));
  auto loop = native_loop(graph_, node, places, sources_.checked, machine);
  if (!loop) return false;
  for (const size_t carry : loop->held)
    append({CopyStep{places.operands[carry], places.results[carry],
                     graph_.type(node.inputs[carry]).bytes()}},
           node.source);
  const size_t item = append({std::move(loop->kernel), {}}, node.source);
  for (const Node& inside : ir::attrs<ir::LoopAttrs>(node).body->nodes)
    items_[item].sources.push_back(inside.source);
  end_results(id, item, std::move(places.results));
  return true;
}

/// Which results of a control node anybody reads.
std::vector<bool> Fuser::wanted_results(NodeId id) const {
  std::vector<bool> out(static_cast<size_t>(ir::result_count(graph_[id])));
  auto reads_first = [&](NodeId reader) {
    if (reader == id) out[0] = true;
  };
  for (NodeId output : graph_.outputs) reads_first(output);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (!live_[i]) continue;
    if (node.op == ir::Op::project && node.inputs[0] == id)
      out[static_cast<size_t>(ir::attrs<ir::ProjectAttrs>(node).index)] = true;
    else
      for (NodeId operand : node.inputs) reads_first(operand);
  }
  return out;
}

void Fuser::place_loop(NodeId id) {
  if (place_native_loop(id)) return;
  const Node& node = graph_[id];
  ir::LoopAttrs attrs = ir::attrs<ir::LoopAttrs>(node);
  std::vector<BufferId> inputs, carries, outputs;
  for (NodeId operand : node.inputs) inputs.push_back(capture(operand));
  for (int i = 0; i < attrs.carries; ++i) {
    const int64_t bytes = graph_.type(node.inputs[i]).bytes();
    carries.push_back(plan_.add_buffer(bytes));
    if (bytes > 0) append({CopyStep{inputs[i], carries[i], bytes}});
    inputs[i] = carries[i];
  }
  LoopTask task;
  if (attrs.is_counted()) add_turns(node, attrs, inputs, carries);
  PlanSteps condition = lower(*attrs.condition, inputs, outputs);
  task.flag = outputs[0];
  PlanSteps body = lower_body(node, *attrs.body, inputs, carries);
  if (lowering_.machine().counts_turns) task.turns = turns_of(node);
  if (auto doubled = two_places(attrs, node, inputs, body, task.turns)) {
    if (task.turns > 0 && task.turns % 2 != 0)
      for (PlanStep& step : body) append(std::move(step));
    if (task.turns > 0) task.turns /= 2;
    body = *std::move(doubled);
  }
  task.condition = std::make_unique<PlanSteps>(std::move(condition));
  task.body = std::make_unique<PlanSteps>(std::move(body));
  if (ir::attrs<ir::LoopAttrs>(node).is_counted())
    carries.erase(carries.begin());
  end_results(id, append({std::move(task)}), std::move(carries));
}

/// How many turns a loop takes; -1 if that is not known.
int64_t Fuser::turns_of(const Node& node) const {
  const auto& attrs = ir::attrs<ir::LoopAttrs>(node);
  if (attrs.is_counted()) return attrs.turns;
  const auto turns = known_turns(graph_, node);
  return turns ? turns->count : -1;
}

/// Makes of a counted loop one with a condition (plain_loop.h), and gives it
/// places for the turn's number and the stacks.
void Fuser::add_turns(const Node& node, ir::LoopAttrs& attrs,
                      std::vector<BufferId>& inputs,
                      std::vector<BufferId>& carries) {
  std::vector<ir::Type> types;
  for (NodeId operand : node.inputs) types.push_back(graph_.type(operand));
  const int64_t first = attrs.backwards ? attrs.turns - 1 : 0;
  std::vector<uint8_t> bytes(sizeof first);
  std::memcpy(bytes.data(), &first, sizeof first);
  const BufferId number = plan_.add_buffer(sizeof first);
  append({CopyStep{plan_.add_constant(bytes), number, sizeof first}});
  for (int i = attrs.carries; i < ir::result_count(node); ++i)
    carries.push_back(plan_.add_buffer(ir::result_type(node, i).bytes()));
  inputs.insert(inputs.begin() + attrs.carries, carries.begin() + attrs.carries,
                carries.end());
  carries.insert(carries.begin(), number);
  inputs.insert(inputs.begin(), number);
  attrs = plain_loop(attrs, types);
}

/// Where the body ends by copying large carries: two turns of it, the first
/// into other places, the second back; between them the condition is asked,
/// unless the number of turns is known.
std::optional<PlanSteps> Fuser::two_places(const ir::LoopAttrs& attrs,
                                           const Node& loop,
                                           std::vector<BufferId> inputs,
                                           const PlanSteps& body,
                                           int64_t turns) {
  const std::vector<BufferId> carries(inputs.begin(),
                                      inputs.begin() + attrs.carries);
  std::vector<BufferId> others = carries;
  for (const PlanStep& step : body) {
    const auto* copy = std::get_if<CopyStep>(&step.what);
    if (!copy || copy->bytes < tuning().large_carry_bytes) continue;
    for (size_t i = 0; i < carries.size(); ++i)
      if (copy->to == carries[i]) others[i] = plan_.add_buffer(copy->bytes);
  }
  if (others == carries || body.size() > tuning().most_doubled_steps ||
      !is_straight(body))
    return std::nullopt;
  PlanSteps steps = lower_body(loop, *attrs.body, inputs, others);
  std::copy(others.begin(), others.end(), inputs.begin());
  if (turns >= 0) {
    for (PlanStep& step : lower_body(loop, *attrs.body, inputs, carries))
      steps.push_back(std::move(step));
    return steps;
  }
  std::vector<BufferId> outputs;
  PlanSteps condition = lower(*attrs.condition, inputs, outputs);
  IfTask again{.flag = outputs[0]};
  again.then_steps = std::make_unique<PlanSteps>(
      lower_body(loop, *attrs.body, inputs, carries));
  again.else_steps = std::make_unique<PlanSteps>();
  copy_all(plan_, others, carries, *again.else_steps);
  std::move(condition.begin(), condition.end(), std::back_inserter(steps));
  steps.push_back({std::move(again)});
  return steps;
}

}  // namespace unisono::jit
