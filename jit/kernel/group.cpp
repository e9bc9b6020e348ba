#include "jit/kernel/group.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/kernel/choice.h"
#include "jit/kernel/row_sums.h"
#include "jit/kernel/schedule.h"
#include "runtime/check.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

std::vector<int64_t> without_ones(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  for (int64_t size : shape)
    if (size != 1) out.push_back(size);
  return out;
}

}  // namespace

// ---- the space and its points ----------------------------------------------

int64_t Group::points() const {
  int64_t total = 1;
  for (int64_t extent : extents_) total *= extent;
  return total;
}

int64_t Group::kept_points() const {
  int64_t total = 1;
  for (size_t a = 0; a < extents_.size(); ++a)
    if (!reduced_[a]) total *= extents_[a];
  return total;
}

/// The first member's shape is the space.
bool Group::enter_space(const std::vector<int64_t>& shape) {
  if (!entered_) {
    extents_ = without_ones(shape);
    reduced_.assign(extents_.size(), false);
    entered_ = true;
  }
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  return points() == elements;
}

/// The axes of the space that `map`, the identity in some shape, crosses along
/// `axes` of the shape. Each is crossed along one axis of the shape.
std::vector<bool> Group::crossed_along(const IndexMap& map,
                                       const std::vector<int>& axes) const {
  std::vector<bool> crossed(extents_.size());
  for (size_t a = 0; a < extents_.size(); ++a)
    for (const int axis : axes)
      if (map[static_cast<size_t>(axis)].factors[a]) crossed[a] = true;
  return crossed;
}

std::optional<IndexMap> Group::coordinates(const Affine& offset,
                                           const std::vector<int64_t>& shape) {
  auto result = delinearise(offset, extents_, shape);
  if (auto* map = std::get_if<IndexMap>(&result)) return std::move(*map);
  if (auto* wish = std::get_if<AxisSplit>(&result)) failure_.split = *wish;
  return std::nullopt;
}

std::optional<IndexMap> Group::identity(const std::vector<int64_t>& shape,
                                        bool kept_only) {
  Affine offset = constant_affine(0, extents_.size());
  int64_t stride = 1;
  for (size_t a = extents_.size(); a-- > 0;) {
    if (kept_only && reduced_[a]) continue;
    offset.factors[a] = stride;
    stride *= extents_[a];
  }
  return coordinates(offset, shape);
}

/// The same where the space is that shape, or cut within its axes.
IndexMap Group::own_point(const std::vector<int64_t>& shape, bool kept_only) {
  auto map = identity(shape, kept_only);
  CHECK(map);
  return *std::move(map);
}

int Group::intern(const IndexMap& map) {
  std::vector<int64_t> key;
  for (const Affine& coordinate : map) {
    key.push_back(coordinate.constant);
    key.insert(key.end(), coordinate.factors.begin(), coordinate.factors.end());
  }
  auto [at, fresh] =
      map_ids_.try_emplace(std::move(key), static_cast<int>(maps_.size()));
  if (fresh) maps_.push_back(map);
  return at->second;
}

void Group::remember(NodeId node, int map, ExprId value) {
  uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 |
                 static_cast<uint32_t>(map);
  if (memo_.emplace(key, value).second) log_.push_back(key);
}

void Group::roll_back(const Checkpoint& checkpoint) {
  exprs_.resize(checkpoint.exprs);
  reductions_.resize(checkpoint.reductions);
  reduced_ = checkpoint.reduced;
  reduced_.resize(extents_.size(), false);  // entered since
  while (log_.size() > checkpoint.log) {
    memo_.erase(log_.back());
    log_.pop_back();
  }
  std::erase_if(choices_, [&](const Choice& choice) {
    return static_cast<size_t>(choice.expr) >= exprs_.size();
  });
  computed_at_.clear();
  scan_.reset();
  scatter_.reset();
  depth_ = 0;
}

void Group::apply(const AxisSplit& wish) {
  auto change = [&](Affine& affine) { affine = split(affine, wish); };
  for (Expr& expr : exprs_) {
    change(expr.at);
    if (expr.member.per_member) change(expr.member.element);
  }
  for (PendingStore& store : stores_) change(store.at);
  map_ids_.clear();
  std::vector<IndexMap> maps = std::move(maps_);
  maps_.clear();
  for (IndexMap& map : maps) {
    for (Affine& coordinate : map) change(coordinate);
    intern(map);
  }
  auto at = static_cast<ptrdiff_t>(wish.axis);
  extents_[wish.axis] /= wish.inner;
  extents_.insert(extents_.begin() + at + 1, wish.inner);
  reduced_.insert(reduced_.begin() + at,
                  static_cast<bool>(reduced_[wish.axis]));
}

size_t weight(const Expr& expr) {
  const bool dear = expr.kind == Expr::Kind::operation && is_dear(expr.op);
  return dear ? 1 + tuning().dear_weight : 1;
}

size_t Group::weight() const {
  size_t total = 0;
  for (const Expr& expr : exprs_) total += jit::weight(expr);
  return total;
}

// ---- members ---------------------------------------------------------------

/// Runs `f`, again after every split of an axis that it asks for; undoes what
/// it did if it fails.
template <class F>
Group::Answer Group::attempt(NodeId node, F&& f) {
  const bool fresh = empty();
  adding_ = node;
  for (;;) {
    poll_stop();
    Checkpoint checkpoint{exprs_.size(), log_.size(), reductions_.size(),
                          reduced_};
    failure_ = {};
    chooses_ = false;
    if (f()) {
      if (fresh || weight() <= tuning().most_group_weight) {
        nodes_.push_back(node);
        return {Outcome::added};
      }
      failure_ = {};
      members_.erase(node);
    }
    roll_back(checkpoint);
    if (failure_.split && choices_.empty())
      apply(*failure_.split);
    else if (failure_.split)
      return {Outcome::declined};  // a choice is made along one axis
    else if (failure_.keep >= 0)
      return {Outcome::keep, failure_.keep};
    else if (failure_.needs >= 0 && failure_.needs != node)
      return {Outcome::needs, failure_.needs};
    else
      return {Outcome::declined};
  }
}

Group::Answer Group::add(NodeId node) {
  if (scan_ || scatter_ || buffer_dtypes_.size() > tuning().most_group_arrays)
    return {};
  return attempt(node, [&] {
    if (sources_.is_expression(node)) return add_map(node);
    switch (ir::kind(sources_.graph[node].op)) {
      case Kind::reduce:
      case Kind::argreduce: return add_reduction(node);
      case Kind::dot: return add_dot(node);
      case Kind::scan: return add_scan(node);
      case Kind::index: return add_scatter(node);
      case Kind::map:
      case Kind::move:
      case Kind::source:
      case Kind::sort:
      case Kind::control:
      case Kind::collective:
      case Kind::host: return false;
    }
    __builtin_unreachable();
  });
}

bool Group::add_map(NodeId node) {
  const auto& shape = sources_.sizes[node];
  bool kept_only = false;
  const bool dot =
      !reductions_.empty() && reductions_[0].kind == Reduction::Kind::dot;
  if (!enter_space(shape) || dot) {
    kept_only = kept_points() == sources_.elements[node];
    if (!kept_only) return false;
  }
  auto map = identity(shape, kept_only);
  if (!map) return false;
  chooses_ = reductions_.empty();
  ExprId value = evaluate(node, *map);
  if (value < 0 || !cuts_fit()) return false;
  if (!kept_only && !phases_fit(value) && !fits_with_reloads(node, *map, value))
    return false;
  int id = intern(*map);
  remember(node, id, value);
  members_[node] = {value, id};
  return true;
}

std::vector<bool> Group::inner_exprs() const {
  std::vector<bool> inner(exprs_.size());
  for (size_t e = 0; e < exprs_.size(); ++e) {
    if (exprs_[e].kind == Expr::Kind::reduced) continue;
    for (size_t a = 0; a < extents_.size(); ++a)
      if (reduced_[a] && exprs_[e].at.factors[a]) inner[e] = true;
    for (ExprId operand : exprs_[e].operands)
      if (inner[operand]) inner[e] = true;
  }
  return inner;
}

/// Whether cutting the nest where choices change leaves few parts, one of which
/// is most of it; else one of their nodes is to be stored.
bool Group::cuts_fit() {
  if (choices_.empty()) return true;
  std::vector<std::set<int64_t>> cuts(extents_.size());
  for (const Choice& choice : choices_) {
    const AxisCuts own = cuts_of(exprs_[choice.expr], extents_);
    cuts[own.axis].insert(own.at.begin(), own.at.end());
  }
  size_t parts = 1;
  bool fit = std::none_of(exprs_.begin(), exprs_.end(),
                          [](const Expr& expr) { return expr.checked; });
  for (size_t a = 0; a < cuts.size(); ++a) {
    parts *= cuts[a].size() + 1;
    int64_t begin = 0, longest = 0;
    cuts[a].insert(extents_[a]);
    for (const int64_t end : cuts[a]) {
      longest = std::max(longest, end - begin);
      begin = end;
    }
    fit = fit && 2 * longest >= extents_[a] &&
          (cuts[a].size() == 1 || a + 1 < cuts.size() ||
           longest >= tuning().least_cut_line);
  }
  if (fit && parts <= tuning().most_cut_parts &&
      parts * weight() <= tuning().most_cut_weight)
    return true;
  failure_ = {};
  fail(choices_.back().node);
  return false;
}

/// Whether a loop over the reduced axes may take `value`, with what it needs
/// from the loops before computed again. A nest that is cut has no later loop,
/// whether the value changes along these axes or is the same at all points.
bool Group::phases_fit(ExprId value) {
  const int phase = exprs_[value].phase;
  if (phase == 0) return true;
  if (is_two_stage()) return false;
  const std::vector<bool> inner = inner_exprs();
  if (!inner[value]) return !may_add_rows(reductions_[0].order, points());
  std::vector<bool> used(exprs_.size());
  int again = 0;
  used[value] = true;
  for (size_t e = exprs_.size(); e-- > 0;) {
    if (!used[e] || !inner[e]) continue;
    if (exprs_[e].checked && exprs_[e].phase < phase) return false;
    if (exprs_[e].kind == Expr::Kind::operation && exprs_[e].phase < phase)
      again += flops(exprs_[e].op);
    for (ExprId operand : exprs_[e].operands) used[operand] = true;
  }
  return again <= sources_.machine.recomputed_flops;
}

/// The members that `value` takes from earlier loops and that are too dear to
/// compute again; empty if some such value is no member.
std::vector<NodeId> Group::members_to_reload(ExprId value) {
  const int phase = exprs_[value].phase;
  const int recomputed_flops = sources_.machine.recomputed_flops;
  const std::vector<bool> inner = inner_exprs();
  // What computing an expression again from memory is.
  std::vector<int> again(exprs_.size(), 0);
  for (size_t e = 0; e < exprs_.size(); ++e) {
    if (!inner[e]) continue;
    if (exprs_[e].kind == Expr::Kind::operation) again[e] = flops(exprs_[e].op);
    if (exprs_[e].checked) again[e] = recomputed_flops + 1;
    for (ExprId operand : exprs_[e].operands)
      again[e] = std::min(again[e] + again[operand], recomputed_flops + 1);
  }
  std::vector<bool> used(exprs_.size());
  std::vector<NodeId> out;
  used[value] = true;
  for (size_t e = exprs_.size(); e-- > 0;) {
    if (!used[e] || !inner[e]) continue;
    if (exprs_[e].kind == Expr::Kind::load) continue;
    if (exprs_[e].phase == phase ||
        again[e] <= sources_.machine.few_flops_again) {
      for (ExprId operand : exprs_[e].operands) used[operand] = true;
      continue;
    }
    auto member = std::find_if(nodes_.begin(), nodes_.end(), [&](NodeId node) {
      return members_.at(node).value == static_cast<ExprId>(e);
    });
    if (member == nodes_.end()) return {};
    out.push_back(*member);
  }
  return out;
}

/// The same with the members of earlier loops that are dear stored and loaded
/// again; asks for the first that is not stored.
bool Group::fits_with_reloads(NodeId node, const IndexMap& map, ExprId& value) {
  if (is_two_stage()) return false;
  const int phase = exprs_[value].phase;
  const std::vector<NodeId> members = members_to_reload(value);
  if (members.empty()) return false;
  for (NodeId member : members) {
    if (sources_.buffer[member] >= 0) continue;
    failure_.keep = member;
    return false;
  }
  reload_before_ = phase;
  value = evaluate(node, map);  // all that it pulls is known already
  reload_before_ = 0;
  return phases_fit(value);
}

/// There is a reduction.
bool Group::is_two_stage() const {
  return needs_two_stages(kept_points(), reduced_points(), reductions_[0].order,
                          sources_.machine);
}

bool Group::add_reduction(NodeId id) {
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::ReduceAttrs>(node);
  const NodeId operand = node.inputs[0];
  const auto& shape = sources_.sizes[operand];
  if (!enter_space(shape) || !choices_.empty()) return false;
  auto map = identity(shape, false);
  if (!map) return false;
  std::vector<bool> reduced = crossed_along(*map, attrs.axes);
  Reduction reduction;
  reduction.order = combine_order(attrs, static_cast<int>(shape.size()));
  if (!reductions_.empty() &&
      (reduced != reduced_ || reductions_[0].order != reduction.order ||
       reductions_.size() == tuning().most_group_reductions))
    return false;
  reduced_ = std::move(reduced);
  ExprId value = pull(operand, *map);
  if (value < 0) return false;
  reduction.dtype = node.type.dtype;
  if (ir::kind(node.op) == Kind::argreduce) {
    reduction.kind = node.op == Op::argmax ? Reduction::Kind::argmax
                                           : Reduction::Kind::argmin;
    reduction.dtype = sources_.graph.type(operand).dtype;
    Expr index{.kind = Expr::Kind::iota, .dtype = DType::I32};
    index.at = (*map)[attrs.axes[0]];
    reduction.second = push(index);
  } else {
    reduction.op = ir::combine_op(node.op);
    reduction.dtype = accumulator(node.type.dtype);
    value = convert(value, reduction.dtype);
  }
  reduction.operand = value;
  reduction.phase = exprs_[value].phase;
  return add_result(id, reduction);
}

/// The reduction's result is a member at the points of the kept axes.
bool Group::add_result(NodeId id, const Reduction& reduction) {
  if (reduction.phase > 0 && !phases_fit(reduction.operand)) return false;
  const IndexMap map = own_point(sources_.sizes[id], true);
  Expr result{.kind = Expr::Kind::reduced, .dtype = reduction.dtype};
  if (reduction.second >= 0 && reduction.kind != Reduction::Kind::dot)
    result.dtype = DType::I32;
  result.reduction = static_cast<int>(reductions_.size());
  result.phase = reduction.phase + 1;
  result.at = constant_affine(0, extents_.size());
  reductions_.push_back(reduction);
  ExprId value = convert(push(result), sources_.graph.type(id).dtype);
  int map_id = intern(map);
  remember(id, map_id, value);
  members_[id] = {value, map_id};
  return true;
}

bool Group::add_dot(NodeId id) {
  if (!empty()) return false;
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::DotAttrs>(node);
  const NodeId a = node.inputs[0], b = node.inputs[1];
  auto contains = [](const std::vector<int>& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int>(axis)) !=
           axes.end();
  };
  // Axes of the space: batch, free ones of a, free ones of b, contracted.
  std::vector<int64_t> space;
  std::vector<int> of_a(sources_.sizes[a].size()),
      of_b(sources_.sizes[b].size()), contracted;
  auto axis = [&](int64_t extent) {
    space.push_back(extent);
    return static_cast<int>(space.size()) - 1;
  };
  for (size_t i = 0; i < attrs.batch_a.size(); ++i)
    of_a[attrs.batch_a[i]] = of_b[attrs.batch_b[i]] =
        axis(sources_.sizes[a][attrs.batch_a[i]]);
  for (size_t i = 0; i < of_a.size(); ++i)
    if (!contains(attrs.batch_a, i) && !contains(attrs.contract_a, i))
      of_a[i] = axis(sources_.sizes[a][i]);
  for (size_t i = 0; i < of_b.size(); ++i)
    if (!contains(attrs.batch_b, i) && !contains(attrs.contract_b, i))
      of_b[i] = axis(sources_.sizes[b][i]);
  for (size_t i = 0; i < attrs.contract_a.size(); ++i) {
    contracted.push_back(axis(sources_.sizes[a][attrs.contract_a[i]]));
    of_a[attrs.contract_a[i]] = of_b[attrs.contract_b[i]] = contracted.back();
  }
  enter_space(space);
  const IndexMap point = own_point(space, false);
  reduced_ = crossed_along(point, contracted);

  auto factor = [&](NodeId operand, const std::vector<int>& axes) -> ExprId {
    IndexMap map;
    for (int of : axes) map.push_back(point[of]);
    ExprId value = pull(operand, map);
    if (value >= 0 && exprs_[value].kind != Expr::Kind::load)
      return fail(operand);
    return value;
  };
  Reduction reduction{.kind = Reduction::Kind::dot};
  reduction.dtype = accumulator(node.type.dtype);
  reduction.order = CombineOrder::chain;
  reduction.operand = factor(a, of_a);
  if (reduction.operand < 0) return false;
  reduction.second = factor(b, of_b);
  if (reduction.second < 0) return false;
  reduction.operand = convert(reduction.operand, reduction.dtype);
  reduction.second = convert(reduction.second, reduction.dtype);
  return add_result(id, reduction);
}

bool Group::add_scan(NodeId id) {
  if (!empty()) return false;
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::ScanAttrs>(node);
  enter_space(sources_.sizes[id]);
  const IndexMap map = own_point(sources_.sizes[id], false);
  reduced_ = crossed_along(map, {attrs.axis});
  ExprId value = pull(node.inputs[0], map);
  if (value < 0) return false;
  Scan scan;
  scan.op = ir::combine_op(node.op);
  scan.dtype = accumulator(node.type.dtype);
  scan.result = node.type.dtype;
  scan.reverse = attrs.reverse;
  scan.contiguous = attrs.axis + 1 == node.type.rank();
  scan.operand = convert(value, scan.dtype);
  scan_ = scan;
  members_[id] = {scan.operand, intern(map)};
  return true;
}

bool Group::add_scatter(NodeId id) {
  if (!empty()) return false;
  const Node& node = sources_.graph[id];
  const auto& attrs = ir::attrs<ir::IndexAttrs>(node);
  const NodeId updates = node.inputs[1];
  const size_t index_rank = sources_.sizes[node.inputs[2]].size();
  enter_space(sources_.sizes[updates]);
  const IndexMap map = own_point(sources_.sizes[updates], false);
  std::vector<int> positions(index_rank);
  std::iota(positions.begin(), positions.end(), 0);
  reduced_ = crossed_along(map, positions);
  Scatter scatter;
  scatter.value = pull(updates, map);
  if (scatter.value < 0) return false;
  IndexMap index_map(map.begin(),
                     map.begin() + static_cast<ptrdiff_t>(index_rank));
  for (size_t i = 2; i < node.inputs.size(); ++i) {
    scatter.indices.push_back(pull(node.inputs[i], index_map));
    if (scatter.indices.back() < 0) return false;
  }
  std::vector<int64_t> strides = dense_strides(sources_.sizes[id]);
  scatter.at = constant_affine(0, extents_.size());
  size_t window = index_rank;
  for (size_t i = 0; i < strides.size(); ++i)
    if (std::find(attrs.axes.begin(), attrs.axes.end(), static_cast<int>(i)) ==
        attrs.axes.end())
      scatter.at = scatter.at + scaled(map[window++], strides[i], 0);
  for (int axis : attrs.axes)
    scatter.indexed.push_back({sources_.sizes[id][axis], strides[axis]});
  scatter.add = node.op == Op::scatter_add;
  scatter.dtype = node.type.dtype;
  scatter.checked = sources_.checked && ir::must_stay(sources_.graph, node);
  scatter.source = node.source;
  scatter.member = member_place(id, sources_.sizes[updates], map);
  scatter_ = scatter;
  members_[id] = {scatter.value, intern(map)};
  return true;
}

Group::Answer Group::add_box(NodeId part, const std::vector<int64_t>& size,
                             NodeId whole, const std::vector<int64_t>& offset,
                             int buffer) {
  CHECK(empty());
  return attempt(whole, [&] {
    enter_space(size);
    IndexMap map = own_point(size, false);
    bool scalar = sources_.sizes[part].empty();
    chooses_ = true;
    ExprId value = pull(part, scalar ? IndexMap{} : map);
    if (value < 0 || !cuts_fit()) return false;
    for (size_t i = 0; i < size.size(); ++i) map[i].constant += offset[i];
    stores_.push_back({buffer, sources_.graph.type(whole).dtype,
                       linearise(map, sources_.sizes[whole], extents_.size()),
                       value});
    return true;
  });
}

void Group::store(NodeId node, int buffer) {
  const Member& member = members_.at(node);
  const DType dtype = sources_.graph.type(node).dtype;
  if (scatter_) {
    scatter_->argument = buffer;
    buffer_dtypes_[buffer] = dtype;
    return;
  }
  Affine at =
      linearise(maps_[member.map], sources_.sizes[node], extents_.size());
  if (scan_) {
    scan_->argument = buffer;
    scan_->at = at;
    buffer_dtypes_[buffer] = dtype;
    return;
  }
  stores_.push_back({buffer, dtype, at, member.value});
}

bool Group::store_joined(NodeId whole, const std::vector<NodeId>& parts,
                         int buffer) {
  if (!is_plain_map()) return false;
  const Node& node = sources_.graph[whole];
  const auto axis = static_cast<size_t>(ir::attrs<ir::AxisAttrs>(node).axis);
  std::vector<PendingStore> stores;
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Member& member = members_.at(parts[i]);
    const Affine offset =
        linearise(maps_[member.map], sources_.sizes[parts[i]], extents_.size());
    // The coordinates in the operand, of which the member is a reshape.
    const auto& sizes = sources_.sizes[node.inputs[i]];
    auto result = delinearise(offset, extents_, sizes);
    auto* at = std::get_if<IndexMap>(&result);
    if (!at) return false;
    (*at)[axis].constant += start;
    start += sizes[axis];
    stores.push_back({buffer, node.type.dtype,
                      linearise(*at, sources_.sizes[whole], extents_.size()),
                      member.value});
  }
  stores_.insert(stores_.end(), stores.begin(), stores.end());
  return true;
}

// ---- the finished nest -----------------------------------------------------

Nest Group::finish(std::vector<Argument>& arguments) const {
  Nest nest{.extents = extents_,
            .reduced = reduced_,
            .exprs = exprs_,
            .reductions = reductions_,
            .scan = scan_,
            .scatter = scatter_};
  std::unordered_map<int, DType> dtypes = buffer_dtypes_;
  for (const PendingStore& store : stores_) {
    nest.stores.push_back({store.buffer, store.at, store.value});
    dtypes[store.buffer] = store.dtype;
  }
  prune(nest, std::vector<bool>(exprs_.size(), true));
  // Nothing may have asked for the reductions: then all points are alike.
  if (nest.reductions.empty() && !nest.scan && !nest.scatter)
    nest.reduced.assign(nest.reduced.size(), false);
  std::unordered_map<int, int> numbers;
  for (size_t i = 0; i < arguments.size(); ++i)
    numbers[arguments[i].buffer] = static_cast<int>(i);
  for_each_argument(nest, [&](int& argument) {
    auto [at, fresh] =
        numbers.try_emplace(argument, static_cast<int>(arguments.size()));
    if (fresh) arguments.push_back({argument, dtypes.at(argument)});
    argument = at->second;
  });
  for (const Store& store : nest.stores)
    arguments[store.argument].written = true;
  if (scan_) arguments[nest.scan->argument].written = true;
  if (scatter_) arguments[nest.scatter->argument].written = true;
  return nest;
}

}  // namespace unisono::jit
