// Steps that are no kernels of groups: packed products, sorts, collectives,
// scatters, calls of the host.
#include <algorithm>
#include <iterator>
#include <optional>

#include "jit/ir/affine_view.h"
#include "jit/ir/kinds.h"
#include "jit/kernel/schedule.h"
#include "jit/plan/fuser.h"
#include "runtime/check.h"
#include "runtime/execute/collective.h"

namespace unisono::jit {

using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

/// What a factor of a product is loaded from: f16 and bf16 are loaded, then
/// cast to f32. Others are no factors (Group::add_dot).
const Expr& loaded(const Nest& nest, ExprId factor) {
  const Expr& expr = nest.exprs[factor];
  return expr.kind == Expr::Kind::operation ? nest.exprs[expr.operands[0]]
                                            : expr;
}

/// The nest of one product, which is stored, as a matrix product, where its
/// axes lie so.
std::optional<DotTask> matrix_product(Nest nest,
                                      const std::vector<Argument>& arguments) {
  merge_axes(nest);
  if (nest.reductions.empty()) return std::nullopt;  // sums of nothing
  const Reduction& reduction = nest.reductions[0];
  const Expr& a = loaded(nest, reduction.operand);
  const Expr& b = loaded(nest, reduction.second);
  // Axes are batch, rows, columns, contracted; rows and contracted ones, whose
  // places in b are even, may be several.
  DotTask task;
  DotShape& shape = task.shape;
  shape.dtype = a.dtype;
  shape.a_offset = a.at.constant;
  shape.b_offset = b.at.constant;
  shape.a_column = shape.b_row = 0;
  std::vector<DotShape::Axis> rows, columns;  // of a
  int last = -1;
  for (size_t axis = 0; axis < nest.extents.size(); ++axis) {
    const int64_t in_a = a.at.factors[axis], in_b = b.at.factors[axis];
    const int role = nest.reduced[axis] ? 3 : in_a && in_b ? 0 : in_a ? 1 : 2;
    const bool again = role == last;
    if (role < last || (again && role % 2 == 0)) return std::nullopt;
    last = role;
    const int64_t extent = nest.extents[axis];
    if (role == 0)
      shape.batch = extent, shape.a_batch = in_a, shape.b_batch = in_b;
    if (role == 1) shape.m *= extent, rows.push_back({extent, in_a});
    if (role == 2) shape.n = extent, shape.b_column = in_b;
    if (role == 3) {
      if (again && shape.b_row != in_b * extent) return std::nullopt;
      shape.k *= extent, columns.push_back({extent, in_a});
      shape.b_row = in_b;
    }
  }
  if (rows.size() > 1 || columns.size() > 1) {
    if (rows.empty()) rows.push_back({});
    shape.a_rows = std::move(rows);
    shape.a_columns = std::move(columns);
  } else {
    if (!rows.empty()) shape.a_row = rows[0].stride;
    if (!columns.empty()) shape.a_column = columns[0].stride;
  }
  task.a = arguments[a.argument].buffer;
  task.b = arguments[b.argument].buffer;
  task.to = arguments[nest.stores[0].argument].buffer;
  return task;
}

}  // namespace

size_t Fuser::append(PlanStep step, uint32_t source) {
  items_.emplace_back().steps.push_back(std::move(step));
  items_.back().sources = {source};
  return items_.size() - 1;
}

BufferId Fuser::own_buffer(NodeId id) {
  return sources_.buffer[id] = plan_.add_buffer(graph_[id]);
}

void Fuser::place_sort(NodeId id) {
  const NodeId operand = graph_[id].inputs[0];
  const BufferId from = materialise(operand);
  const BufferId to = own_buffer(id);
  if (sources_.elements[id] == 0) return;
  const int64_t length = sources_.sizes[id].back();
  const SortTask task{.dtype = graph_.type(operand).dtype,
                      .rows = sources_.elements[id] / length,
                      .length = length,
                      .argsort = graph_[id].op == Op::argsort,
                      .from = from,
                      .to = to};
  for (LaunchStep& launch : lowering_.sort(task, plan_))
    sources_.step[id] =
        static_cast<int>(append({std::move(launch)}, graph_[id].source));
}

/// A step of its own where the devices have one for it; others are a nest like
/// any other, which may take in what follows.
void Fuser::place_dot(NodeId id) {
  if (place_dot_of_view(id)) return;
  place(id);
  if (sources_.step[id] < 0) return;  // nothing to multiply
  Item& item = items_[sources_.step[id]];
  std::vector<Argument> arguments;
  const BufferId to = plan_.add_buffer(graph_[id]);
  Group group = item.groups[0];
  group.store(id, to);
  const auto dot = matrix_product(group.finish(arguments), arguments);
  if (!dot) return;
  PlanSteps product = lowering_.product(
      *dot, ir::attrs<ir::DotAttrs>(graph_[id]).precision, plan_);
  if (product.empty()) return;
  add_sources(item.groups[0], item.sources);
  item.groups.clear();
  std::move(product.begin(), product.end(), std::back_inserter(item.steps));
  sources_.buffer[id] = to;
}

/// A product of windows and the like, which are then never stored, where the
/// devices have a step for it.
bool Fuser::place_dot_of_view(NodeId id) {
  const NodeId a = graph_[id].inputs[0], b = graph_[id].inputs[1];
  const auto view = ir::affine_view(graph_, a);
  if (!view || !view->stacks || sources_.elements[a] == 0 ||
      sources_.elements[id] == 0 || sources_.buffer[a] >= 0)
    return false;
  materialise(view->base);
  for (bool evenly = false;;) {
    Group group(sources_, static_cast<int>(items_.size()));
    group.read_through_stacks();
    const Group::Answer answer = group.add(id);
    if (answer.outcome == Group::Outcome::needs && answer.needed != a) {
      materialise(answer.needed);
      continue;
    }
    if (answer.outcome != Group::Outcome::added) return false;
    const BufferId to = plan_.add_buffer(graph_[id]);
    std::vector<Argument> arguments;
    group.store(id, to);
    const auto dot = matrix_product(group.finish(arguments), arguments);
    if (dot) {
      PlanSteps product = lowering_.product(
          *dot, ir::attrs<ir::DotAttrs>(graph_[id]).precision, plan_);
      if (product.empty()) return false;
      sources_.step[id] = static_cast<int>(items_.size());
      sources_.buffer[id] = to;
      Item& item = items_.emplace_back();
      item.steps = std::move(product);
      add_sources(group, item.sources);
      return true;
    }
    // The other factor, which is small, may lie unevenly.
    if (evenly || sources_.buffer[b] >= 0) return false;
    materialise(b);
    evenly = true;
  }
}

namespace {

CollectiveStep::Kind kind_of(ir::Collective op) {
  switch (op) {
#define COLLECTIVE(name, ...) \
  case ir::Collective::name: return CollectiveStep::Kind::name;
#define POSITION(name, ...) \
  case ir::Collective::name: break;
#include "jit/ir/ops.def"
  }
  check_failed("a collective at which devices meet", __FILE__, __LINE__);
}

ReduceOp reduction(ir::ReduceOp op) {
  switch (op) {
    case ir::ReduceOp::sum: return ReduceOp::sum;
    case ir::ReduceOp::max: return ReduceOp::max;
    case ir::ReduceOp::min: return ReduceOp::min;
  }
  __builtin_unreachable();
}

}  // namespace

void Fuser::place_collective(NodeId id) {
  const Node& node = graph_[id];
  const BufferId from = materialise(node.inputs[0]), to = own_buffer(id);
  if (sources_.elements[id] == 0) return;
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  CollectiveStep step{.kind = kind_of(ir::collective_of(node.op)),
                      .from = from,
                      .to = to,
                      .dtype = node.type.dtype,
                      .elements = sources_.elements[node.inputs[0]],
                      .op = reduction(a.reduce),
                      .source = node.source,
                      .groups = a.groups,
                      .pairs = a.pairs};
  // What each gives each: where all get what one has, that; else a part.
  const int64_t given = bytes_of(step, ir::team_size(a).value()).from;
  step.elements /= given / step.bytes();
  sources_.step[id] = static_cast<int>(append({std::move(step)}));
}

void Fuser::place_host_call(NodeId id) {
  HostCallStep task;
  PlanHostCall call{.node = graph_[id]};
  for (NodeId operand : graph_[id].inputs) {
    task.arguments.push_back(materialise(operand));
    call.types.push_back(graph_.type(operand));
  }
  std::vector<BufferId> results;
  for (int i = 0; i < ir::result_count(graph_[id]); ++i)
    results.push_back(plan_.add_buffer(ir::result_type(graph_[id], i).bytes()));
  task.results = results;
  task.call = static_cast<int>(plan_.host_calls.size());
  plan_.host_calls.push_back(std::move(call));
  end_results(id, append({std::move(task)}), std::move(results));
}

void Fuser::place_scatter(NodeId id) {
  const BufferId base = materialise(graph_[id].inputs[0]);
  const BufferId to = plan_.add_buffer(graph_[id]);
  if (sources_.elements[id] > 0)
    append({CopyStep{base, to, graph_.type(id).bytes()}}, graph_[id].source);
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

}  // namespace unisono::jit
