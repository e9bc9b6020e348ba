// Nodes are visited in program order. Those that compute join the newest group
// (group.h) that can take them; views, constants and other expressions stay
// where they are until somebody pulls them. What a group cannot pull through
// (a value of another group, a view that is no index arithmetic) is stored.
// A step reads only what earlier steps stored, so the plan has no cycles.
#include "jit/fuse.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "jit/group.h"
#include "jit/ir/kinds.h"
#include "jit/schedule.h"
#include "jit/sort_kernels.h"
#include "runtime/check.h"

namespace unisono::jit {

using ir::Graph;
using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

/// Groups that a node tries to join before it starts one.
constexpr size_t most_candidates = 3;
/// Expressions of a group that two become.
constexpr size_t most_absorbed = 160;
/// Nests of one kernel.
constexpr size_t most_nests = 16;

/// A step under construction.
struct Item {
  std::vector<Group> groups;  // one, or the boxes of a concat or pad
  std::vector<PlanStep> steps;
};

/// The nest as a packed matrix product, where that is what it is and pays.
std::optional<DotTask> packed_dot(Nest nest,
                                  const std::vector<Argument>& arguments) {
  merge_axes(nest);
  if (nest.reductions.size() != 1 || nest.stores.size() != 1)
    return std::nullopt;
  const Reduction& reduction = nest.reductions[0];
  const Expr& a = nest.exprs[reduction.operand];
  const Expr& b = nest.exprs[reduction.second];
  if (reduction.kind != Reduction::Kind::dot || a.kind != Expr::Kind::load ||
      b.kind != Expr::Kind::load)
    return std::nullopt;
  // Axes are batch, rows, columns, contracted; each at most once.
  DotTask task;
  DotShape& shape = task.shape;
  shape.dtype = reduction.dtype;
  shape.a_offset = a.at.constant;
  shape.b_offset = b.at.constant;
  shape.a_column = shape.b_row = 0;
  int last = -1;
  for (size_t axis = 0; axis < nest.extents.size(); ++axis) {
    const int64_t in_a = a.at.factors[axis], in_b = b.at.factors[axis];
    const int role = nest.reduced[axis] ? 3 : in_a && in_b ? 0 : in_a ? 1 : 2;
    if (role <= last) return std::nullopt;
    last = role;
    const int64_t extent = nest.extents[axis];
    if (role == 0)
      shape.batch = extent, shape.a_batch = in_a, shape.b_batch = in_b;
    if (role == 1) shape.m = extent, shape.a_row = in_a;
    if (role == 2) shape.n = extent, shape.b_column = in_b;
    if (role == 3) shape.k = extent, shape.a_column = in_a, shape.b_row = in_b;
  }
  if (!packs_well(shape)) return std::nullopt;
  task.a = arguments[a.argument].buffer;
  task.b = arguments[b.argument].buffer;
  task.to = arguments[nest.stores[0].argument].buffer;
  return task;
}

class Fuser {
 public:
  Fuser(Plan& plan, const Graph& graph, std::vector<BufferId> inputs,
        bool checked, int vector_bytes)
      : plan_(plan),
        graph_(graph),
        sources_(graph, checked),
        vector_bytes_(vector_bytes) {
    for (size_t i = 0; i < inputs.size(); ++i)
      sources_.buffer[graph.inputs[i]] = inputs[i];
    find_users();
  }

  /// Appends the steps; gives the outputs' buffers.
  std::vector<BufferId> run(PlanSteps& steps);

 private:
  void find_users();
  bool is_virtual(NodeId node) const;
  void visit(NodeId node);
  void place(NodeId node);
  void place_boxes(NodeId node);
  void place_dot(NodeId node);
  void place_sort(NodeId node);
  void place_collective(NodeId node);
  void place_host_call(NodeId node);
  void place_if(NodeId node);
  void place_loop(NodeId node);
  void place_scatter(NodeId node);
  BufferId materialise(NodeId node);
  std::vector<size_t> candidates(NodeId node);
  void join_operands(NodeId node);
  void absorb(int from, int to);
  void note_readers(NodeId node, size_t item);
  template <class F>
  void for_each_leaf(NodeId node, F&& f) const;
  size_t append(PlanStep step);
  BufferId own_buffer(NodeId node);
  BufferId constant_buffer(std::vector<uint8_t> bytes);
  void finish(Item& item, PlanSteps& steps);
  PlanSteps lower(const Graph& graph, const std::vector<BufferId>& inputs,
                  std::vector<BufferId>& outputs);

  Plan& plan_;
  const Graph& graph_;
  Sources sources_;
  int vector_bytes_;
  std::vector<bool> live_;
  std::vector<int> uses_;
  std::vector<NodeId> user_;  // the last one
  std::vector<Item> items_;
  std::vector<std::vector<BufferId>> results_;  // of control nodes
  std::unordered_map<BufferId, size_t> last_reader_;
  size_t last_host_call_ = 0;  // one past its item
};

void Fuser::find_users() {
  const size_t n = graph_.nodes.size();
  live_.assign(n, false);
  uses_.assign(n, 0);
  user_.assign(n, -1);
  results_.resize(n);
  for (NodeId output : graph_.outputs) {
    live_[output] = true;
    ++uses_[output];
  }
  for (size_t i = n; i-- > 0;) {
    const Node& node = graph_.nodes[i];
    live_[i] = live_[i] || ir::must_stay(graph_, node);
    if (!live_[i]) continue;
    for (NodeId operand : node.inputs) {
      live_[operand] = true;
      ++uses_[operand];
      if (user_[operand] < 0) user_[operand] = static_cast<NodeId>(i);
    }
  }
}

/// Used once, at other points than its own: computed where it is used.
bool Fuser::is_virtual(NodeId id) const {
  if (uses_[id] != 1 || user_[id] < 0 || sources_.can_fail(id) ||
      !sources_.is_expression(id))
    return false;
  const Node& user = graph_[user_[id]];
  const bool moved = ir::kind(user.op) == Kind::move && user.op != Op::reshape;
  const bool reduced =
      ir::kind(user.op) == Kind::reduce && sources_.is_expression(user_[id]);
  return moved || reduced;
}

void Fuser::visit(NodeId id) {
  const Node& node = graph_[id];
  if (node.op == Op::constant) {
    const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
    if (static_cast<int64_t>(bytes.size()) == byte_size(node.type.dtype))
      return;
    sources_.buffer[id] = constant_buffer(bytes);
    return;
  }
  switch (ir::kind(node.op)) {
    case Kind::move:
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
      return node.op == Op::gather ? place(id) : place_scatter(id);
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

/// Calls `f` for nodes near `id` that are computed by a step or stored.
template <class F>
void Fuser::for_each_leaf(NodeId id, F&& f) const {
  std::vector<NodeId> pending(graph_[id].inputs);
  for (size_t i = 0; i < pending.size() && i < 16; ++i) {
    const NodeId node = pending[i];
    if (sources_.step[node] >= 0 || sources_.buffer[node] >= 0) {
      f(node);
    } else {
      const auto& inputs = graph_[node].inputs;
      pending.insert(pending.end(), inputs.begin(), inputs.end());
    }
  }
}

std::vector<size_t> Fuser::candidates(NodeId id) {
  std::vector<size_t> found;
  for_each_leaf(id, [&](NodeId leaf) {
    if (sources_.step[leaf] >= 0) found.push_back(sources_.step[leaf]);
    if (sources_.buffer[leaf] >= 0)
      if (auto at = last_reader_.find(sources_.buffer[leaf]);
          at != last_reader_.end())
        found.push_back(at->second);
  });
  std::sort(found.rbegin(), found.rend());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase_if(found, [&](size_t item) {
    return items_[item].groups.size() != 1 ||
           (sources_.can_fail(id) && item < last_host_call_);
  });
  if (found.size() > most_candidates) found.resize(most_candidates);
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
  if (items_[from].groups.size() != 1 || items_[to].groups.size() != 1) return;
  const Group& early = items_[from].groups[0];
  Group& late = items_[to].groups[0];
  if (early.has_stores() || !early.is_plain_map() ||
      early.points() != late.points() ||
      early.size() + late.size() > most_absorbed)
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
        if (items_[item].groups[0].add(id).outcome != Group::Outcome::added)
          continue;
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
    place_boxes(id);
    return sources_.buffer[id];
  }
  if (sources_.step[id] < 0) place(id);
  if (sources_.buffer[id] >= 0) return sources_.buffer[id];
  const BufferId buffer = plan_.add_buffer(graph_.type(id).bytes());
  items_[sources_.step[id]].groups[0].store(id, buffer);
  sources_.buffer[id] = buffer;
  return buffer;
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
  const BufferId buffer = plan_.add_buffer(node.type.bytes());
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
    materialise(answer.needed);
    item.groups.clear();  // this step comes later now: start again
    i = static_cast<size_t>(-1);
  }
  sources_.step[id] = static_cast<int>(items_.size());
  sources_.buffer[id] = buffer;
  items_.push_back(std::move(item));
}

// ---- everything else -------------------------------------------------------

size_t Fuser::append(PlanStep step) {
  items_.emplace_back().steps.push_back(std::move(step));
  return items_.size() - 1;
}

BufferId Fuser::constant_buffer(std::vector<uint8_t> bytes) {
  const BufferId buffer = plan_.add_buffer(static_cast<int64_t>(bytes.size()));
  plan_.buffers[buffer].home = PlanBuffer::Home::constant;
  plan_.buffers[buffer].index = static_cast<int>(plan_.constants.size());
  plan_.constants.push_back(std::move(bytes));
  return buffer;
}

BufferId Fuser::own_buffer(NodeId id) {
  return sources_.buffer[id] = plan_.add_buffer(graph_.type(id).bytes());
}

void Fuser::place_sort(NodeId id) {
  const BufferId from = materialise(graph_[id].inputs[0]);
  const BufferId to = own_buffer(id);
  if (sources_.elements[id] == 0) return;
  const int64_t length = sources_.sizes[id].back();
  SortPlan sort = plan_sort(graph_.type(graph_[id].inputs[0]).dtype,
                            sources_.elements[id] / length, length,
                            graph_[id].op == Op::argsort);
  const BufferId parameters = constant_buffer(std::move(sort.parameters));
  const BufferId scratch = plan_.add_buffer(sort.scratch_bytes);
  for (SortPlan::Launch& launch : sort.launches)
    sources_.step[id] =
        static_cast<int>(append({NativeTask{launch.function,
                                            std::move(launch.name),
                                            {parameters, from, to, scratch},
                                            launch.units,
                                            launch.grain}}));
}

/// Large products are packed; others are a nest like any other, which may take
/// in what follows.
void Fuser::place_dot(NodeId id) {
  place(id);
  if (sources_.step[id] < 0) return;  // nothing to multiply
  Item& item = items_[sources_.step[id]];
  std::vector<Argument> arguments;
  const BufferId to = plan_.add_buffer(graph_.type(id).bytes());
  Group group = item.groups[0];
  group.store(id, to);
  auto task = packed_dot(group.finish(arguments), arguments);
  if (!task) return;
  const PackedBytes bytes = packed_bytes(task->shape, vector_bytes_);
  task->packed_a = plan_.add_buffer(bytes.a);
  task->packed_b = plan_.add_buffer(bytes.b);
  item.groups.clear();
  item.steps.push_back({*task});
  sources_.buffer[id] = to;
}

void Fuser::place_collective(NodeId id) {
  const Node& node = graph_[id];
  const BufferId from = materialise(node.inputs[0]);
  CollectiveTask task{.op = node.op, .from = from, .to = own_buffer(id)};
  if (sources_.elements[id] == 0) return;
  task.dtype = node.type.dtype;
  task.elements = sources_.elements[node.inputs[0]];
  task.attrs = ir::attrs<ir::CollectiveAttrs>(node);
  task.source = node.source;
  sources_.step[id] = static_cast<int>(append({task}));
}

void Fuser::place_host_call(NodeId id) {
  HostTask task;
  PlanHostCall call{.node = graph_[id]};
  for (NodeId operand : graph_[id].inputs) {
    task.arguments.push_back(materialise(operand));
    call.types.push_back(graph_.type(operand));
  }
  task.call = static_cast<int>(plan_.host_calls.size());
  plan_.host_calls.push_back(std::move(call));
  sources_.step[id] = static_cast<int>(append({std::move(task)}));
  last_host_call_ = items_.size();
}

void Fuser::place_scatter(NodeId id) {
  const BufferId base = materialise(graph_[id].inputs[0]);
  const BufferId to = plan_.add_buffer(graph_.type(id).bytes());
  if (sources_.elements[id] > 0)
    append({CopyTask{base, to, graph_.type(id).bytes()}});
  if (sources_.elements[graph_[id].inputs[1]] > 0) {
    for (;;) {
      Group group(sources_, static_cast<int>(items_.size()));
      auto answer = group.add(id);
      if (answer.outcome == Group::Outcome::added) {
        group.store(id, to);
        items_.emplace_back().groups.push_back(std::move(group));
        break;
      }
      CHECK(answer.outcome == Group::Outcome::needs);
      materialise(answer.needed);
    }
  }
  sources_.buffer[id] = to;
  sources_.step[id] = static_cast<int>(items_.size()) - 1;
}

/// The steps of a subgraph, with `outputs` set to where its results are.
PlanSteps Fuser::lower(const Graph& graph, const std::vector<BufferId>& inputs,
                       std::vector<BufferId>& outputs) {
  PlanSteps steps;
  outputs =
      Fuser(plan_, graph, inputs, sources_.checked, vector_bytes_).run(steps);
  return steps;
}

/// Copies `from` to `to`, one by one, as if all at once.
void copy_all(Plan& plan, std::vector<BufferId> from,
              const std::vector<BufferId>& to, PlanSteps& steps) {
  auto bytes = [&](BufferId buffer) { return plan.buffers[buffer].bytes; };
  for (size_t i = 0; i < from.size(); ++i) {
    auto early =
        std::find(to.begin(), to.begin() + static_cast<ptrdiff_t>(i), from[i]);
    if (early == to.begin() + static_cast<ptrdiff_t>(i) || bytes(from[i]) == 0)
      continue;
    const BufferId saved = plan.add_buffer(bytes(from[i]));
    steps.push_back({CopyTask{from[i], saved, bytes(saved)}});
    from[i] = saved;
  }
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i] && bytes(to[i]) > 0)
      steps.push_back({CopyTask{from[i], to[i], bytes(to[i])}});
}

void Fuser::place_if(NodeId id) {
  const Node& node = graph_[id];
  const auto& attrs = ir::attrs<ir::IfAttrs>(node);
  const BufferId flag = materialise(node.inputs[0]);
  std::vector<BufferId> captures, results, outputs;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    captures.push_back(materialise(node.inputs[i]));
  for (int i = 0; i < ir::result_count(node); ++i)
    results.push_back(plan_.add_buffer(ir::result_type(node, i).bytes()));
  auto branch = [&](const Graph& graph) {
    auto first = static_cast<BufferId>(plan_.buffers.size());
    PlanSteps steps = lower(graph, captures, outputs);
    // What the branch computes goes straight to the results' places.
    std::unordered_map<BufferId, BufferId> place;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] >= first &&
          plan_.buffers[outputs[i]].home == PlanBuffer::Home::temporary)
        if (place.emplace(outputs[i], results[i]).second)
          outputs[i] = results[i];
    rename_buffers(steps, [&](BufferId buffer) {
      auto at = place.find(buffer);
      return at == place.end() ? buffer : at->second;
    });
    for (BufferId& output : outputs)
      if (auto at = place.find(output); at != place.end()) output = at->second;
    copy_all(plan_, outputs, results, steps);
    return std::make_unique<PlanSteps>(std::move(steps));
  };
  IfTask task{.flag = flag};
  task.then_steps = branch(*attrs.then_graph);
  task.else_steps = branch(*attrs.else_graph);
  sources_.step[id] = static_cast<int>(append({std::move(task)}));
  if (ir::must_stay(graph_, node)) last_host_call_ = items_.size();
  if (!results.empty()) sources_.buffer[id] = results[0];
  results_[id] = std::move(results);
}

void Fuser::place_loop(NodeId id) {
  const Node& node = graph_[id];
  const auto& attrs = ir::attrs<ir::LoopAttrs>(node);
  std::vector<BufferId> inputs, results, outputs;
  for (NodeId operand : node.inputs) inputs.push_back(materialise(operand));
  for (int i = 0; i < attrs.carries; ++i) {
    results.push_back(plan_.add_buffer(graph_.type(node.inputs[i]).bytes()));
    if (plan_.buffers[results[i]].bytes > 0)
      append(
          {CopyTask{inputs[i], results[i], plan_.buffers[results[i]].bytes}});
    inputs[i] = results[i];
  }
  LoopTask task;
  PlanSteps condition = lower(*attrs.condition, inputs, outputs);
  task.flag = outputs[0];
  PlanSteps body = lower(*attrs.body, inputs, outputs);
  copy_all(plan_, outputs, results, body);
  task.condition = std::make_unique<PlanSteps>(std::move(condition));
  task.body = std::make_unique<PlanSteps>(std::move(body));
  sources_.step[id] = static_cast<int>(append({std::move(task)}));
  if (ir::must_stay(graph_, node)) last_host_call_ = items_.size();
  if (!results.empty()) sources_.buffer[id] = results[0];
  results_[id] = std::move(results);
}

// ---- the plan --------------------------------------------------------------

void Fuser::finish(Item& item, PlanSteps& steps) {
  for (PlanStep& step : item.steps) steps.push_back(std::move(step));
  Kernel kernel;
  auto emit = [&] {
    if (!kernel.nests.empty()) steps.push_back({std::move(kernel)});
    kernel = {};
  };
  for (const Group& group : item.groups) {
    if (kernel.nests.size() == most_nests) emit();
    Nest nest = group.finish(kernel.arguments);
    if (nest.exprs.empty()) continue;
    kernel.nests.push_back(std::move(nest));
  }
  if (kernel.nests.empty()) return;
  auto second = split_stages(kernel, [&](DType dtype, int64_t elements) {
    return plan_.add_buffer(elements * byte_size(dtype));
  });
  emit();
  if (second) steps.push_back({std::move(*second)});
}

std::vector<BufferId> Fuser::run(PlanSteps& steps) {
  for (size_t i = 0; i < graph_.nodes.size(); ++i)
    if (live_[i]) visit(static_cast<NodeId>(i));
  std::vector<BufferId> outputs;
  for (NodeId output : graph_.outputs) outputs.push_back(materialise(output));
  for (Item& item : items_) finish(item, steps);
  return outputs;
}

}  // namespace

Plan fuse(const Graph& graph, bool checked, int vector_bytes) {
  Plan plan;
  for (NodeId input : graph.inputs) {
    plan.inputs.push_back(plan.add_buffer(graph.type(input).bytes()));
    plan.buffers.back().home = PlanBuffer::Home::input;
    plan.buffers.back().index = static_cast<int>(plan.inputs.size()) - 1;
  }
  plan.outputs =
      Fuser(plan, graph, plan.inputs, checked, vector_bytes).run(plan.steps);
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
      plan.steps.push_back({CopyTask{output, copy, buffer.bytes}});
    output = copy;
  }
  return plan;
}

}  // namespace unisono::jit
