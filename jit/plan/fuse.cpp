// Nodes are visited in program order. Those that compute join the newest group
// (group.h) that can take them; views, constants and other expressions stay
// where they are until somebody pulls them. What a group cannot pull through
// (a value of another group, a view that is no index arithmetic) is stored.
// A step reads only what earlier steps stored, so the plan has no cycles.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "jit/ir/affine_view.h"
#include "jit/ir/kinds.h"
#include "jit/kernel/schedule.h"
#include "jit/plan/fuser.h"
#include "jit/plan/join_copies.h"
#include "runtime/check.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Op;

void Fuser::find_users() {
  const size_t n = graph_.nodes.size();
  live_.assign(n, false);
  sources_.uses.assign(n, 0);
  user_.assign(n, -1);
  updated_.assign(n, false);
  results_.resize(n);
  for (NodeId output : graph_.outputs) {
    live_[output] = true;
    ++sources_.uses[output];
  }
  for (size_t i = n; i-- > 0;) {
    const Node& node = graph_.nodes[i];
    live_[i] = live_[i] || ir::must_stay(graph_, node);
    if (!live_[i]) continue;
    for (NodeId operand : node.inputs) {
      live_[operand] = true;
      ++sources_.uses[operand];
      if (user_[operand] < 0) user_[operand] = static_cast<NodeId>(i);
    }
    if (node.op == Op::scatter || node.op == Op::scatter_add)
      updated_[node.inputs[0]] = true;
  }
}

/// Used once, at other points than its own: computed where it is used.
bool Fuser::is_virtual(NodeId id) const {
  if (sources_.uses[id] != 1 || user_[id] < 0 || sources_.can_fail(id) ||
      !sources_.is_expression(id))
    return false;
  const Node& user = graph_[user_[id]];
  const bool moved = ir::kind(user.op) == Kind::move && user.op != Op::reshape;
  const bool reduced =
      ir::kind(user.op) == Kind::reduce && sources_.is_expression(user_[id]);
  return moved || reduced;
}

/// What reads one element of an array that is then updated, or of a view of it,
/// does so before that, and so does a gather of a part that others would
/// compute once more: then the update can be in place.
bool Fuser::is_before_update(NodeId id) const {
  const bool is_one = sources_.elements[id] == 1;
  if (!is_one && (graph_[id].op != Op::gather || sources_.can_fail(id)))
    return false;
  NodeId array = graph_[id].inputs[0];
  while (!updated_[array] && may_be_view(graph_[array]))
    array = graph_[array].inputs[0];
  return updated_[array] &&
         (is_one || sources_.elements[id] < sources_.elements[array]);
}

void Fuser::visit(NodeId id) {
  poll_stop();
  const Node& node = graph_[id];
  if (node.op == Op::constant) {
    const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
    if (static_cast<int64_t>(bytes.size()) == byte_size(node.type.dtype))
      return;
    sources_.buffer[id] = plan_.add_constant(bytes);
    return;
  }
  switch (ir::kind(node.op)) {
    case Kind::move:
      if (node.op == Op::slice && is_before_update(id)) materialise(id);
      return;
    case Kind::source: return;
    case Kind::map:
    case Kind::reduce:
      if (is_virtual(id)) return;
      [[fallthrough]];
    case Kind::argreduce: return place(id);
    case Kind::dot: return place_dot(id);
    case Kind::scan:
      if (sources_.is_expression(id)) return;
      place(id);
      materialise(id);
      return;
    case Kind::index:
      if (node.op != Op::gather) return place_scatter(id);
      place(id);
      if (is_before_update(id)) materialise(id);
      return;
    case Kind::sort: return place_sort(id);
    case Kind::collective:
      return node.op == Op::axis_index ? void() : place_collective(id);
    case Kind::host: return place_host_call(id);
    case Kind::control:
      if (node.op == Op::if_else) return place_if(id);
      if (node.op == Op::loop) return place_loop(id);
      sources_.buffer[id] =
          results_[node.inputs[0]][ir::attrs<ir::ProjectAttrs>(node).index];
      sources_.step[id] = sources_.step[node.inputs[0]];
      return;
  }
}

// ---- groups ----------------------------------------------------------------

/// Calls `f` with each stored array that the node is computed from, whatever
/// other groups compute of it on the way. Far ones may be left out.
void Fuser::for_each_array(NodeId id, auto&& f) const {
  std::vector<NodeId> pending(graph_[id].inputs);
  for (size_t i = 0; i < pending.size() && i < tuning().most_joined_pending;
       ++i) {
    if (sources_.buffer[pending[i]] >= 0) {
      f(sources_.buffer[pending[i]]);
    } else if (sources_.is_expression(pending[i])) {
      const auto& inputs = graph_[pending[i]].inputs;
      pending.insert(pending.end(), inputs.begin(), inputs.end());
    }
  }
}

std::vector<size_t> Fuser::candidates(NodeId id) {
  std::vector<size_t> found, reducers;
  for_each_leaf(id, [&](NodeId leaf) {
    if (sources_.step[leaf] >= 0) found.push_back(sources_.step[leaf]);
    if (sources_.buffer[leaf] >= 0)
      if (auto at = last_reader_.find(sources_.buffer[leaf]);
          at != last_reader_.end())
        found.push_back(at->second);
  });
  const auto tidy = [&](std::vector<size_t>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    std::erase_if(items, [&](size_t item) {
      return items_[item].groups.size() != 1 ||
             (sources_.can_fail(id) && item < last_host_call_);
    });
  };
  tidy(found);
  // The group that reduced an operand may use what follows once more, at all
  // its points; at one of the few results it costs next to nothing there.
  auto reduces_to_it = [&](size_t item) {
    const Group& group = items_[item].groups[0];
    return sources_.elements[id] == group.kept_points() &&
           group.reduced_points() >= tuning().much_reduced;
  };
  std::sort(found.begin(), found.end(), [&](size_t a, size_t b) {
    return std::pair(reduces_to_it(a), a) > std::pair(reduces_to_it(b), b);
  });
  if (found.size() > tuning().most_joined_groups)
    found.resize(tuning().most_joined_groups);
  // Two sums over the rows of an array are one pass over it.
  if (ir::kind(graph_[id].op) != Kind::reduce) return found;
  for_each_array(id, [&](BufferId buffer) {
    if (const auto at = reducers_.find(buffer); at != reducers_.end())
      reducers.insert(reducers.end(), at->second.begin(), at->second.end());
  });
  tidy(reducers);
  std::erase_if(reducers, [&](size_t item) {
    return std::ranges::find(found, item) != found.end();
  });
  found.insert(found.end(), reducers.rbegin(), reducers.rend());
  return found;
}

/// Where the node's operands come from several groups, makes them one if it
/// can be: nothing of the earlier ones is read yet.
void Fuser::join_operands(NodeId id) {
  std::vector<int> sources;
  for_each_leaf(id, [&](NodeId leaf) {
    const int step = sources_.step[leaf];
    if (step >= 0 && sources_.buffer[leaf] < 0) sources.push_back(step);
  });
  if (sources.empty()) return;
  const int last = *std::max_element(sources.begin(), sources.end());
  for (int earlier : sources)
    if (earlier != last) absorb(earlier, last);
}

void Fuser::absorb(int from, int to) {
  if (items_[from].groups.empty()) return;  // absorbed already
  const Group& early = items_[from].groups[0];
  Group& late = items_[to].groups[0];
  if (early.has_stores() || !early.is_plain_map() ||
      early.points() != late.points() ||
      early.weight() + late.weight() > tuning().most_absorbed_weight)
    return;
  for (NodeId node : early.nodes())
    if (sources_.can_fail(node) && last_host_call_ > static_cast<size_t>(from))
      return;
  for (NodeId node : early.nodes())
    if (late.add(node).outcome != Group::Outcome::added) return;
  for (NodeId node : early.nodes()) sources_.step[node] = to;
  items_[from].groups.clear();
}

void Fuser::note_readers(NodeId id, size_t item) {
  for_each_leaf(id, [&](NodeId leaf) {
    if (sources_.buffer[leaf] >= 0) last_reader_[sources_.buffer[leaf]] = item;
  });
  if (ir::kind(graph_[id].op) != Kind::reduce) return;
  for_each_array(id, [&](BufferId buffer) {
    auto& readers = reducers_[buffer];
    std::erase(readers, item);
    readers.push_back(item);
    if (readers.size() > tuning().most_joined_groups)
      readers.erase(readers.begin());
  });
}

void Fuser::place(NodeId id) {
  if (sources_.elements[id] == 0) {
    sources_.buffer[id] = plan_.add_buffer(0);
    return;
  }
  const Kind kind = ir::kind(graph_[id].op);
  const bool alone = kind == Kind::scan || kind == Kind::dot;
  if (!alone) join_operands(id);
  for (;;) {
    if (!alone) {
      for (size_t item : candidates(id)) {
        auto answer = items_[item].groups[0].add(id);
        while (answer.outcome == Group::Outcome::keep) {
          materialise(answer.needed);
          answer = items_[item].groups[0].add(id);
        }
        if (answer.outcome != Group::Outcome::added) continue;
        sources_.step[id] = static_cast<int>(item);
        return note_readers(id, item);
      }
    }
    Group group(sources_, static_cast<int>(items_.size()));
    Group::Answer answer = group.add(id);
    if (answer.outcome == Group::Outcome::added) {
      sources_.step[id] = static_cast<int>(items_.size());
      note_readers(id, items_.size());
      items_.emplace_back().groups.push_back(std::move(group));
      return;
    }
    CHECK(answer.outcome == Group::Outcome::needs);
    materialise(answer.needed);
  }
}

/// The node in memory: computed if need be. Reshapes share.
BufferId Fuser::materialise(NodeId node) {
  const NodeId id = sources_.stored_node(node);
  if (sources_.buffer[id] >= 0) return sources_.buffer[id];
  const Op op = graph_[id].op;
  if (sources_.elements[id] > 0 && (op == Op::concat || op == Op::pad)) {
    const bool joined = op == Op::concat && place_joined(id);
    if (!joined && !place_chosen(id)) place_boxes(id);
  } else if (sources_.step[id] < 0) {
    place(id);
  }
  if (sources_.buffer[id] >= 0) return sources_.buffer[id];
  const BufferId buffer = plan_.add_buffer(graph_[id]);
  items_[sources_.step[id]].groups[0].store(id, buffer);
  sources_.buffer[id] = buffer;
  return buffer;
}

/// concat of what one group computes at the same points: it stores each point's
/// elements at their places, and what they share is computed once.
bool Fuser::place_joined(NodeId id) {
  std::vector<NodeId> parts;
  for (NodeId operand : graph_[id].inputs) {
    parts.push_back(sources_.stored_node(operand));
    const NodeId part = parts.back();
    if (sources_.buffer[part] >= 0 || sources_.step[part] < 0 ||
        sources_.step[part] != sources_.step[parts[0]])
      return false;
  }
  const int step = sources_.step[parts[0]];
  const auto buffer = static_cast<BufferId>(plan_.buffers.size());
  if (!items_[step].groups[0].store_joined(id, parts, buffer)) return false;
  plan_.add_buffer(graph_[id]);
  sources_.step[id] = step;
  sources_.buffer[id] = buffer;
  return true;
}

/// concat and pad as one nest, which goes along whole rows, where that has few
/// parts and needs nothing stored.
bool Fuser::place_chosen(NodeId id) {
  for (;;) {
    Group group(sources_, static_cast<int>(items_.size()));
    const Group::Answer answer = group.add(id);
    if (answer.outcome == Group::Outcome::needs && dissolve(answer.needed, id))
      continue;
    if (answer.outcome != Group::Outcome::added) return false;
    sources_.step[id] = static_cast<int>(items_.size());
    items_.emplace_back().groups.push_back(std::move(group));
    return true;
  }
}

/// The group of `node` computes what is read on the way to `reader` alone, so
/// that may be computed there. False, and nothing is done, if it is not so.
bool Fuser::dissolve(NodeId node, NodeId reader) {
  const int item = sources_.step[node];
  if (item < 0) return false;
  const Group& group = items_[item].groups[0];
  if (!group.is_plain_map() || group.has_stores()) return false;
  // All that has no place between the reader and what has one, and the group.
  std::set<NodeId> between(group.nodes().begin(), group.nodes().end());
  const std::set<NodeId> members = between;
  std::vector<NodeId> pending = {reader};
  for (size_t i = 0; i < pending.size(); ++i) {
    between.insert(pending[i]);
    for (const NodeId input : graph_[pending[i]].inputs)
      if (sources_.step[input] < 0 && sources_.buffer[input] < 0 &&
          !between.contains(input))
        pending.push_back(input);
  }
  std::map<NodeId, int> reads;
  std::set<NodeId> dependent = members;  // on the group
  for (const NodeId id : between)        // operands first
    for (const NodeId input : graph_[id].inputs) {
      ++reads[input];
      if (dependent.contains(input)) dependent.insert(id);
    }
  for (const NodeId id : dependent)
    if (sources_.can_fail(id) ||
        (id != reader && reads[id] != sources_.uses[id]))
      return false;
  for (const NodeId id : members) sources_.step[id] = -1;
  items_[item].groups.clear();
  return true;
}

/// concat and pad: every operand computes its box of the result.
void Fuser::place_boxes(NodeId id) {
  struct Box {
    NodeId part;
    std::vector<int64_t> size, offset;
  };
  std::vector<Box> boxes;
  const Node& node = graph_[id];
  const auto& whole = sources_.sizes[id];
  if (node.op == Op::concat) {
    const int axis = ir::attrs<ir::AxisAttrs>(node).axis;
    std::vector<int64_t> offset(whole.size());
    for (NodeId operand : node.inputs) {
      boxes.push_back({operand, sources_.sizes[operand], offset});
      offset[axis] += sources_.sizes[operand][axis];
    }
  } else {
    const auto& attrs = ir::attrs<ir::PadAttrs>(node);
    const auto& inner = sources_.sizes[node.inputs[0]];
    std::vector<int64_t> size = whole, offset(whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      const int64_t low = attrs.low[i].value(), high = attrs.high[i].value();
      size[i] = low;
      boxes.push_back({node.inputs[1], size, offset});
      size[i] = high;
      offset[i] = low + inner[i];
      boxes.push_back({node.inputs[1], size, offset});
      size[i] = inner[i];
      offset[i] = low;
    }
    boxes.push_back({node.inputs[0], size, offset});
  }
  std::erase_if(boxes, [](const Box& box) {
    return std::find(box.size.begin(), box.size.end(), 0) != box.size.end();
  });
  const BufferId buffer = plan_.add_buffer(node);
  Item item;
  for (size_t i = 0; i < boxes.size(); ++i) {
    Group group(sources_, static_cast<int>(items_.size()));
    auto answer = group.add_box(boxes[i].part, boxes[i].size, id,
                                boxes[i].offset, buffer);
    if (answer.outcome == Group::Outcome::added) {
      item.groups.push_back(std::move(group));
      continue;
    }
    CHECK(answer.outcome == Group::Outcome::needs);
    if (!dissolve(answer.needed, id)) materialise(answer.needed);
    item.groups.clear();  // this step comes later now: start again
    i = static_cast<size_t>(-1);
  }
  sources_.step[id] = static_cast<int>(items_.size());
  sources_.buffer[id] = buffer;
  items_.push_back(std::move(item));
}

// ---- the plan --------------------------------------------------------------

void Fuser::add_sources(const Group& group, std::vector<uint32_t>& out) const {
  for (NodeId node : group.nodes()) out.push_back(graph_[node].source);
}

void Fuser::finish(Item& item, PlanSteps& steps) {
  poll_stop();
  const size_t first = steps.size();
  for (const Group& group : item.groups) add_sources(group, item.sources);
  std::set<uint32_t> places(item.sources.begin(), item.sources.end());
  places.erase(0);  // of what the compiler has made
  emit(item, steps);
  for (size_t i = first; i < steps.size(); ++i)
    if (steps[i].sources.empty())
      steps[i].sources.assign(places.begin(), places.end());
}

void Fuser::emit(Item& item, PlanSteps& steps) {
  for (PlanStep& step : item.steps) steps.push_back(std::move(step));
  Kernel kernel;
  auto emit = [&] {
    steps.push_back({std::move(kernel), {}});
    kernel = {};
  };
  for (const Group& group : item.groups) {
    if (kernel.nests.size() == tuning().most_kernel_nests) emit();
    Nest nest = group.finish(kernel.arguments);
    if (nest.exprs.empty()) continue;
    kernel.nests.push_back(std::move(nest));
  }
  if (kernel.nests.empty()) return;
  PlanSteps stages = lowering_.stages(kernel, plan_);
  for (PlanStep& step : stages) steps.push_back(std::move(step));
  if (!stages.empty()) return;
  auto add_buffer = [&](DType dtype, int64_t elements) {
    return plan_.add_buffer(elements * byte_size(dtype));
  };
  for (;;) {  // a long members tree is split once more
    auto second = split_stages(kernel, lowering_.machine(), add_buffer);
    emit();
    if (!second) return;
    kernel = std::move(*second);
  }
}

std::vector<BufferId> Fuser::run(PlanSteps& steps) {
  const auto first = static_cast<BufferId>(plan_.buffers.size());
  for (size_t i = 0; i < graph_.nodes.size(); ++i)
    if (live_[i]) visit(static_cast<NodeId>(i));
  std::vector<BufferId> outputs;
  for (NodeId output : graph_.outputs) outputs.push_back(materialise(output));
  for (Item& item : items_) finish(item, steps);
  join_copies(plan_, first, outputs, steps);
  return outputs;
}

Plan fuse(const Graph& graph, bool checked, const Lowering& lowering) {
  Plan plan;
  for (NodeId input : graph.inputs) {
    plan.inputs.push_back(plan.add_buffer(graph.type(input).bytes()));
    plan.buffers.back().home = PlanBuffer::Home::input;
    plan.buffers.back().index = static_cast<int>(plan.inputs.size()) - 1;
  }
  Ranges ranges;
  plan.outputs = Fuser(plan, graph, plan.inputs, checked, lowering, ranges)
                     .run(plan.steps);
  std::vector<bool> taken(plan.buffers.size());
  for (BufferId& output : plan.outputs) {
    const PlanBuffer buffer = plan.buffers[output];
    if (buffer.home == PlanBuffer::Home::input) continue;
    if (buffer.home == PlanBuffer::Home::temporary && !taken[output]) {
      taken[output] = true;
      continue;
    }
    const BufferId copy = plan.add_buffer(buffer.bytes);
    if (buffer.bytes > 0)
      plan.steps.push_back({CopyStep{output, copy, buffer.bytes}});
    output = copy;
  }
  return plan;
}

}  // namespace unisono::jit
