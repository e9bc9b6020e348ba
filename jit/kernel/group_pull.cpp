// Expressions of a loop nest: nodes evaluated at the points that an index map
// names, through views, down to arrays in memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "jit/ir/affine_view.h"
#include "jit/ir/kinds.h"
#include "jit/ir/reduce_order.h"
#include "jit/kernel/group.h"
#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

uint64_t bits_of(const uint8_t* bytes, DType dtype) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, static_cast<size_t>(byte_size(dtype)));
  return bits;
}

}  // namespace

ExprId Group::fail(NodeId needs) {
  if (!failure_.split) failure_.needs = needs;
  return -1;
}

ExprId Group::push(Expr expr) {
  if (expr.at.factors.size() != extents_.size())
    expr.at = constant_affine(expr.at.constant, extents_.size());
  expr.source = place_;
  exprs_.push_back(std::move(expr));
  return static_cast<ExprId>(exprs_.size()) - 1;
}

ExprId Group::constant(DType dtype, const uint8_t* bytes) {
  Expr expr{.kind = Expr::Kind::constant, .dtype = dtype};
  expr.bits = bits_of(bytes, dtype);
  return push(expr);
}

ExprId Group::convert(ExprId value, DType dtype) {
  if (exprs_[value].dtype == dtype) return value;
  Expr expr{.kind = Expr::Kind::operation, .op = Op::cast, .dtype = dtype};
  expr.operand_dtype = exprs_[value].dtype;
  expr.operands = {value};
  expr.phase = exprs_[value].phase;
  return push(expr);
}

ExprId Group::combine(Op op, ExprId a, ExprId b) {
  Expr expr{.kind = Expr::Kind::operation, .op = op, .dtype = exprs_[a].dtype};
  expr.operand_dtype = expr.dtype;
  expr.operands = {a, b};
  expr.phase = std::max(exprs_[a].phase, exprs_[b].phase);
  return push(expr);
}

bool Group::readable(NodeId stored) const {
  return sources_.buffer[stored] >= 0 && sources_.step[stored] < step_;
}

ExprId Group::load(NodeId stored, Affine at) {
  // Nodes that share a buffer share its loads: keyed by the buffer.
  const int buffer = sources_.buffer[stored];
  int map = intern({at});
  uint64_t key = uint64_t{1} << 63 |
                 static_cast<uint64_t>(static_cast<uint32_t>(buffer)) << 32 |
                 static_cast<uint32_t>(map);
  if (auto found = memo_.find(key); found != memo_.end()) return found->second;
  Expr expr{.kind = Expr::Kind::load,
            .dtype = sources_.graph.type(stored).dtype};
  expr.argument = buffer;
  expr.at = std::move(at);
  buffer_dtypes_[buffer] = expr.dtype;
  ExprId value = push(std::move(expr));
  memo_.emplace(key, value);
  log_.push_back(key);
  return value;
}

/// What an earlier loop of the nest stored.
ExprId Group::reload(NodeId member, const IndexMap& map, int phase) {
  Affine at = linearise(map, sources_.sizes[member], extents_.size());
  for (size_t e = 0; e < exprs_.size(); ++e)
    if (exprs_[e].kind == Expr::Kind::load && exprs_[e].phase == phase &&
        exprs_[e].argument == sources_.buffer[member] && exprs_[e].at == at)
      return static_cast<ExprId>(e);
  Expr expr{.kind = Expr::Kind::load,
            .dtype = sources_.graph.type(member).dtype};
  expr.argument = sources_.buffer[member];
  expr.at = std::move(at);
  expr.phase = phase;
  buffer_dtypes_[expr.argument] = expr.dtype;
  return push(std::move(expr));
}

ExprId Group::pull(NodeId node, const IndexMap& map) {
  const int id = intern(map);
  uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 |
                 static_cast<uint32_t>(id);
  if (auto found = memo_.find(key); found != memo_.end()) {
    const int phase = exprs_[found->second].phase;
    const bool here =
        sources_.buffer[node] >= 0 && sources_.step[node] == step_;
    return here && phase < reload_before_ ? reload(node, map, phase + 1)
                                          : found->second;
  }
  ExprId value;
  const NodeId stored = sources_.stored_node(node);
  if (readable(stored)) {
    value = load(stored, linearise(map, sources_.sizes[node], extents_.size()));
  } else if (!sources_.is_expression(node) || sources_.can_fail(node) ||
             depth_ > tuning().most_pulled_depth ||
             exprs_.size() > tuning().most_pulled_exprs ||
             (sources_.step[node] >= 0 && !sources_.is_cheap(node))) {
    return fail(node);
  } else {
    ++depth_;
    value = evaluate(node, map);
    --depth_;
  }
  if (value >= 0) remember(node, id, value);
  return value;
}

ExprId Group::evaluate(NodeId id, const IndexMap& map) {
  const uint32_t reader = std::exchange(place_, sources_.graph[id].source);
  const ExprId value = evaluate_kind(id, map);
  place_ = reader;
  return value;
}

ExprId Group::evaluate_kind(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  switch (ir::kind(node.op)) {
    case Kind::map: return evaluate_map(id, map);
    case Kind::move: return evaluate_move(id, map);
    case Kind::index: return evaluate_gather(id, map);
    case Kind::reduce: return evaluate_small_reduction(id, map);
    case Kind::source: {
      if (node.op == Op::iota) {
        Expr expr{.kind = Expr::Kind::iota, .dtype = node.type.dtype};
        expr.at = map[ir::attrs<ir::IotaAttrs>(node).axis];
        return push(std::move(expr));
      }
      const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
      const int64_t size = byte_size(node.type.dtype);
      if (static_cast<int64_t>(bytes.size()) == size)
        return constant(node.type.dtype, bytes.data());
      return fail(id);
    }
    case Kind::dot: {
      const std::vector<uint8_t> zero(8);
      return constant(node.type.dtype, zero.data());
    }
    case Kind::collective:
      return push({.kind = Expr::Kind::position, .dtype = DType::I32});
    case Kind::argreduce: {  // of one element
      const std::vector<uint8_t> zero(8);
      return constant(node.type.dtype, zero.data());
    }
    case Kind::scan: return pull(node.inputs[0], map);  // of one element
    case Kind::sort:
    case Kind::control:
    case Kind::host: return fail(id);
  }
  __builtin_unreachable();
}

MemberPlace Group::member_place(NodeId id, const std::vector<int64_t>& shape,
                                const IndexMap& map) const {
  if (!sources_.graph[id].by_member) return {};
  int64_t per_member = 1;
  for (size_t i = 1; i < shape.size(); ++i) per_member *= shape[i];
  return {linearise(map, shape, extents_.size()), per_member};
}

void Group::mark_checked(Expr& expr, NodeId id, const IndexMap& map) const {
  expr.source = sources_.graph[id].source;
  expr.member = member_place(id, sources_.sizes[id], map);
}

ExprId Group::evaluate_map(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  Expr expr{
      .kind = Expr::Kind::operation, .op = node.op, .dtype = node.type.dtype};
  NodeId typed = node.inputs[node.op == Op::select ? 1 : 0];
  expr.operand_dtype = sources_.graph.type(typed).dtype;
  expr.checked = sources_.can_fail(id);
  if (expr.checked) mark_checked(expr, id, map);
  for (NodeId operand : node.inputs) {
    ExprId value = pull(operand, map);
    if (value < 0) return -1;
    expr.operands.push_back(value);
    expr.phase = std::max(expr.phase, exprs_[value].phase);
  }
  return push(std::move(expr));
}

/// How an array lies in the memory of what it is a view of. Where that is not
/// stored, nothing, and the smaller of the two has to be.
std::optional<Group::View> Group::view_in_memory(NodeId id) {
  NodeId base = id;
  std::vector<NodeId> moves;  // from the view to the base
  while (!readable(sources_.stored_node(base)) &&
         may_be_view(sources_.graph[base])) {
    moves.push_back(base);
    base = sources_.graph[base].inputs[0];
  }
  Strided lies = dense(sources_.sizes[base]);
  for (size_t i = moves.size(); i-- > 0;) {
    const Node& move = sources_.graph[moves[i]];
    if (auto next = moved(move, lies, sources_.sizes[move.inputs[0]])) {
      lies = *std::move(next);
    } else {
      base = moves[i];
      lies = dense(sources_.sizes[base]);
    }
  }
  const NodeId stored = sources_.stored_node(base);
  if (readable(stored)) return View{stored, std::move(lies)};
  fail(sources_.elements[base] <= sources_.elements[id] ? base : id);
  return std::nullopt;
}

ExprId Group::evaluate_gather(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::IndexAttrs>(node);
  const auto view = view_in_memory(node.inputs[0]);
  if (!view) return -1;
  Expr expr{.kind = Expr::Kind::gather, .dtype = node.type.dtype};
  expr.argument = sources_.buffer[view->stored];
  buffer_dtypes_[expr.argument] = sources_.graph.type(view->stored).dtype;
  expr.checked = sources_.can_fail(id);
  if (expr.checked) mark_checked(expr, id, map);
  const auto& shape = sources_.sizes[node.inputs[0]];
  const size_t index_rank = sources_.sizes[node.inputs[1]].size();
  const IndexMap index_map(map.begin(),
                           map.begin() + static_cast<ptrdiff_t>(index_rank));
  const std::vector<int64_t>& strides = view->lies.strides;
  for (size_t i = 0; i < attrs.axes.size(); ++i) {
    ExprId value = pull(node.inputs[1 + i], index_map);
    if (value < 0) return -1;
    expr.operands.push_back(value);
    expr.phase = std::max(expr.phase, exprs_[value].phase);
    expr.indexed.push_back({shape[attrs.axes[i]], strides[attrs.axes[i]]});
  }
  expr.at = constant_affine(view->lies.start, extents_.size());
  size_t window = index_rank;
  for (size_t i = 0; i < shape.size(); ++i)
    if (std::find(attrs.axes.begin(), attrs.axes.end(), static_cast<int>(i)) ==
        attrs.axes.end())
      expr.at = expr.at + scaled(map[window++], strides[i], 0);
  return push(std::move(expr));
}

ExprId Group::evaluate_small_reduction(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::ReduceAttrs>(node);
  const NodeId operand = node.inputs[0];
  const auto& shape = sources_.sizes[operand];
  const int64_t count = sources_.elements[operand] / sources_.elements[id];
  const DType dtype = node.type.dtype;
  if (count == 0)
    return constant(dtype, ir::identity_element(node.op, dtype).data());
  std::vector<ExprId> values;
  for (int64_t i = 0; i < count; ++i) {
    IndexMap at;
    int64_t rest = i, inner = count;
    size_t kept = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (std::find(attrs.axes.begin(), attrs.axes.end(),
                    static_cast<int>(axis)) == attrs.axes.end()) {
        at.push_back(map[kept++]);
        continue;
      }
      inner /= shape[axis];
      at.push_back(constant_affine(rest / inner, extents_.size()));
      rest %= inner;
    }
    ExprId value = pull(operand, at);
    if (value < 0) return -1;
    values.push_back(count == 1 ? value : convert(value, accumulator(dtype)));
  }
  auto get = [&](int64_t i) { return values[i]; };
  auto join = [&](ExprId a, ExprId b) {
    return combine(ir::combine_op(node.op), a, b);
  };
  auto total = [&] {
    switch (combine_order(attrs, static_cast<int>(shape.size()))) {
      case CombineOrder::lanes: return reduce_contiguous(count, get, join);
      case CombineOrder::members: return reduce_members(count, get, join);
      case CombineOrder::runs:
      case CombineOrder::chain: break;
    }
    return reduce_strided(count, get, join);
  }();
  return convert(total, dtype);
}

// ---- moves: the same elements at other coordinates -------------------------

ExprId Group::evaluate_move(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  const NodeId operand = node.inputs[0];
  const auto& shape = sources_.sizes[operand];
  IndexMap at(shape.size());
  switch (ir::move_of(node.op)) {
    case ir::Move::reshape: return evaluate_reshape(id, map);
    case ir::Move::concat: return evaluate_concat(id, map);
    case ir::Move::pad: return evaluate_pad(id, map);
    case ir::Move::transpose: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(node).axes;
      for (size_t i = 0; i < axes.size(); ++i) at[axes[i]] = map[i];
      break;
    }
    case ir::Move::broadcast: {
      const auto& axes = ir::attrs<ir::BroadcastAttrs>(node).axes;
      for (size_t i = 0; i < axes.size(); ++i)
        at[i] =
            shape[i] == 1 ? constant_affine(0, extents_.size()) : map[axes[i]];
      break;
    }
    case ir::Move::slice: {
      const auto& attrs = ir::attrs<ir::SliceAttrs>(node);
      for (size_t i = 0; i < map.size(); ++i)
        at[i] = scaled(map[i], attrs.step[i].value(), attrs.start[i].value());
      break;
    }
    case ir::Move::flip: {
      at = map;
      for (int axis : ir::attrs<ir::AxesAttrs>(node).axes)
        at[axis] = scaled(map[axis], -1, shape[axis] - 1);
      break;
    }
  }
  return pull(operand, at);
}

ExprId Group::evaluate_reshape(NodeId id, const IndexMap& map) {
  NodeId operand = id;
  while (sources_.graph[operand].op == Op::reshape)
    operand = sources_.graph[operand].inputs[0];
  Affine offset = linearise(map, sources_.sizes[id], extents_.size());
  // Its own member: the same point, whatever the shape is called.
  auto at = coordinates(offset, sources_.sizes[operand]);
  if (at) return pull(operand, *at);
  return fail(operand);
}

ExprId Group::evaluate_concat(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  const int axis = ir::attrs<ir::AxisAttrs>(node).axis;
  const AffineRange reach = range(map[axis], extents_);
  std::vector<NodeId> parts;  // those that are read
  std::vector<int64_t> starts;
  int64_t start = 0;
  for (NodeId operand : node.inputs) {
    const int64_t end = start + sources_.sizes[operand][axis];
    if (reach.low < end && reach.high >= start && start < end) {
      parts.push_back(operand);
      starts.push_back(start);
    }
    start = end;
  }
  // A choice around this one may leave nothing of it.
  if (parts.empty()) return fail(id);
  if (parts.size() > 1) {
    if (const auto read = evaluate_stack(id, map)) return *read;
    if (!may_choose(id, map)) return -1;
  }
  std::vector<ExprId> values;
  for (size_t i = 0; i < parts.size(); ++i) {
    IndexMap at = map;
    at[axis].constant -= starts[i];
    values.push_back(pull(parts[i], at));
    if (values.back() < 0) return -1;
  }
  starts.erase(starts.begin());
  return choose(id, map[axis], std::move(starts), std::move(values));
}

/// A stack of slices, such as the windows of a pool, is read where they are, if
/// its last axis is that of memory there, too; nothing where it is no such
/// stack.
std::optional<ExprId> Group::evaluate_stack(NodeId id, const IndexMap& map) {
  const auto view = ir::affine_view(sources_.graph, id);
  if (!view) return std::nullopt;
  const auto& shape = sources_.sizes[id];
  size_t last = shape.size();
  while (shape[last - 1] == 1) --last;  // it has several elements
  const auto& steps = view->places.back().steps;
  const bool side_by_side =
      steps[last - 1] == 1 &&
      std::ranges::count(steps, 0) + 1 == static_cast<ptrdiff_t>(steps.size());
  if (!through_stacks_ && !side_by_side) return std::nullopt;
  if (!readable(sources_.stored_node(view->base))) return fail(view->base);
  IndexMap at;
  for (const auto& place : view->places) {
    at.push_back(constant_affine(place.start, extents_.size()));
    for (size_t i = 0; i < map.size(); ++i)
      at.back() = at.back() + scaled(map[i], place.steps[i], 0);
  }
  return pull(view->base, at);
}

ExprId Group::evaluate_pad(NodeId id, const IndexMap& map) {
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::PadAttrs>(node);
  const auto& shape = sources_.sizes[node.inputs[0]];
  IndexMap at = map;
  std::vector<size_t> crossed;  // axes along which some of it is padding
  for (size_t i = 0; i < map.size(); ++i) {
    at[i].constant -= attrs.low[i].value();
    const AffineRange reach = range(at[i], extents_);
    if (reach.high < 0 || reach.low >= shape[i])
      return pull(node.inputs[1], {});
    if (reach.low < 0 || reach.high >= shape[i]) crossed.push_back(i);
  }
  if (crossed.empty()) return pull(node.inputs[0], at);
  if (sources_.elements[node.inputs[0]] == 0) return pull(node.inputs[1], {});
  if (!may_choose(id, map)) return -1;
  const ExprId padding = pull(node.inputs[1], {});
  ExprId value = padding < 0 ? -1 : pull(node.inputs[0], at);
  for (size_t i = 0; i < crossed.size() && value >= 0; ++i)
    value = choose(id, at[crossed[i]], {0, shape[crossed[i]]},
                   {padding, value, padding});
  return value;
}

/// Whether a concat or pad may be read as a choice between its parts. They are
/// read where they lie; or computed here, if nobody else reads them, and that
/// happens once. Else they are stored: one part by itself, several together.
bool Group::may_choose(NodeId id, const IndexMap& map) {
  auto store = [&](NodeId node) {
    fail(node);
    return false;
  };
  if (!chooses_) return store(id);
  std::vector<NodeId> pending = sources_.graph[id].inputs, computed;
  bool elsewhere = false;
  for (size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > tuning().most_pulled_parts) return store(id);
    const NodeId part = sources_.stored_node(pending[i]);
    if (readable(part)) continue;
    const Node& node = sources_.graph[part];
    if (ir::kind(node.op) == Kind::move) {
      pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
    } else if (ir::kind(node.op) != Kind::source) {
      computed.push_back(part);
      elsewhere = elsewhere || sources_.step[part] >= 0 ||
                  !sources_.is_expression(part) || sources_.can_fail(part);
    }
  }
  if (computed.empty()) return true;
  if (!elsewhere && (sources_.uses[id] == 1 || id == adding_)) {
    const int at = intern(map);
    if (computed_at_.emplace(id, at).first->second == at) return true;
  }
  const bool one = std::ranges::all_of(
      computed, [&](NodeId part) { return part == computed[0]; });
  return store(one ? computed[0] : id);
}

/// The operand of the range that `at` is in; the ranges end at the bounds.
ExprId Group::choose(NodeId id, const Affine& at, std::vector<int64_t> bounds,
                     std::vector<ExprId> operands) {
  if (operands.size() == 1) return operands[0];
  size_t crossed = 0;
  for (size_t a = 0; a < extents_.size(); ++a) crossed += at.factors[a] != 0;
  if (crossed != 1) return fail(id);
  Expr expr{.kind = Expr::Kind::choice, .dtype = exprs_[operands[0]].dtype};
  expr.at = at;
  expr.bounds = std::move(bounds);
  expr.operands = std::move(operands);
  choices_.push_back({push(std::move(expr)), id});
  return choices_.back().expr;
}

}  // namespace unisono::jit
