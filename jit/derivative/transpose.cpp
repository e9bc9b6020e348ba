#include "jit/derivative/transpose.h"

#include <algorithm>

#include "jit/derivative/linearize.h"
#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/scalar/element.h"
#include "jit/transform/varies.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;
using ir::Type;

std::vector<AxisMask> varying_masks(const Graph& graph,
                                    const std::vector<MappedMembers>& axes,
                                    const std::vector<AxisMask>& inputs) {
  CHECK(axes.size() <= 64);
  std::vector<AxisMask> out(graph.nodes.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisMask bit = AxisMask{1} << i;
    Flags flags;
    for (const AxisMask mask : inputs) flags.push_back((mask & bit) != 0);
    const Flags nodes = varying_nodes(graph, axes[i].axis, std::move(flags));
    for (size_t n = 0; n < nodes.size(); ++n)
      if (nodes[n]) out[n] |= bit;
  }
  return out;
}

Transposer::Transposer(const Graph& graph, const std::vector<bool>& linear,
                       const std::vector<MappedMembers>& axes,
                       const std::vector<AxisMask>& varies)
    : graph_(graph),
      axes_(axes),
      linear_(graph.nodes.size(), false),
      varies_(varying_masks(graph, axes, varies)),
      known_(graph.nodes.size(), -1),
      sums_(graph.nodes.size()) {
  for (const NodeId id : ir::node_ids(graph)) {
    const Node& node = graph[id];
    linear_[id] = node.op == Op::input
                      ? linear[static_cast<size_t>(id)]
                      : std::ranges::any_of(node.inputs, [&](NodeId operand) {
                          return linear_[operand];
                        });
  }
}

void Transposer::place_known(const std::vector<NodeId>& arguments) {
  for (const NodeId id : ir::node_ids(graph_)) {
    if (is_linear(id)) continue;
    Node node = graph_[id];
    if (node.op == Op::input) {
      known_[id] = arguments[static_cast<size_t>(id)];
      continue;
    }
    for (NodeId& operand : node.inputs) operand = known_[operand];
    known_[id] = out.append(std::move(node));
  }
}

void Transposer::seed(size_t index, NodeId cotangent, AxisMask varies) {
  const NodeId output = graph_.outputs[index];
  if (is_linear(output)) give(output, Masked{cotangent}, varies);
}

void Transposer::run() {
  for (size_t i = graph_.nodes.size(); i-- > graph_.inputs.size();) {
    poll_stop();
    if (linear_[i]) place_back(static_cast<NodeId>(i));
  }
}

void Transposer::place_back(NodeId id) {
  const Node& node = graph_[id];
  source_ = node.source;
  if (ir::has_results(node)) {
    const auto found = results_.find(id);
    if (found == results_.end()) return;
    const Results results = std::move(found->second);
    if (node.op == Op::loop) return loop(node, results);
    if (node.op == Op::if_else) return if_else(node, results);
    AxisMask varies = varies_[id];
    for (const NodeId operand : node.inputs) varies |= varies_[operand];
    if (node.op == Op::call) return call(node, results, varies);
    not_linear(node);
  }
  if (sums_[id].empty()) return;
  const Masked c = take(id);
  const AxisMask varies = varies_[id];
  if (node.op == Op::project) return project(node, dense(c), varies);
  switch (ir::kind(node.op)) {
    case ir::Kind::map: return map(node, c, varies);
    case ir::Kind::reduce:
    case ir::Kind::scan: return sum(node, dense(c), varies);
    case ir::Kind::move: return move(node, dense(c), varies);
    case ir::Kind::index: return index(node, dense(c), varies);
    case ir::Kind::dot: return dot(node, dense(c), varies);
    case ir::Kind::collective: return collective(node, dense(c), varies);
    case ir::Kind::argreduce:
    case ir::Kind::sort:
    case ir::Kind::source:
    case ir::Kind::control:
    case ir::Kind::host: not_linear(node);
  }
}

void Transposer::not_linear(const Node& node) const {
  throw NoDerivative{NoDerivative::Why::rule_not_linear, node.op, node.source};
}

// ---- building blocks --------------------------------------------------------

NodeId Transposer::add(Op op, std::vector<NodeId> inputs, ir::Attrs attrs) {
  return out.add(op, std::move(inputs), std::move(attrs), source_);
}

NodeId Transposer::zeros(const Type& type) { return add_zeros(out, type); }

NodeId Transposer::zero_positions(const Type& type) {
  return out.add_constant(type, element_bytes(type.dtype, int64_t{0}));
}

NodeId Transposer::dense(const Masked& x) {
  if (x.mask < 0) return x.value;
  const NodeId nothing = zeros(Type(out.type(x.value)));
  return add(Op::select, {x.mask, x.value, nothing});
}

Sum& Transposer::sum_for(NodeId to, AxisMask varies) {
  CHECK(is_linear(to));
  return sums_[to][varies & ~varies_[to]];
}

/// Whether `mask` is true where `other` is false; -1 is no mask.
bool Transposer::is_inverse(NodeId mask, NodeId other) const {
  return mask >= 0 && other >= 0 && out[mask].op == Op::bit_not &&
         out[mask].inputs[0] == other;
}

void Transposer::give(NodeId to, Masked part, AxisMask varies) {
  Sum& sum = sum_for(to, varies);
  add_slabs(sum, type(to));
  if (sum.dense.value < 0) {
    sum.dense = part;
    return;
  }
  // One where a mask holds and one elsewhere: the two branches of a choice.
  if (is_inverse(part.mask, sum.dense.mask)) std::swap(part, sum.dense);
  if (is_inverse(sum.dense.mask, part.mask)) {
    const NodeId both =
        add(Op::select, {part.mask, part.value, sum.dense.value});
    sum_for(to, varies).dense = {both};
    return;
  }
  // Where neither is anything, neither may what it is multiplied by be.
  NodeId mask = -1;
  if (sum.dense.mask >= 0 && part.mask >= 0)
    mask = sum.dense.mask == part.mask
               ? part.mask
               : add(Op::bit_or, {sum.dense.mask, part.mask});
  const NodeId before = dense(sum.dense), more = dense(part);
  sum_for(to, varies).dense = {add(Op::add, {before, more}), mask};
}

void Transposer::give(NodeId to, Added part, AxisMask varies) {
  sum_for(to, varies).added.push_back(std::move(part));
}

void Transposer::give(NodeId to, Slab part, AxisMask varies) {
  sum_for(to, varies).slabs.push_back(part);
}

Sums& Transposer::sums(size_t index) {
  const NodeId id = graph_.inputs[index];
  for (auto& [axes, sum] : sums_[id]) add_slabs(sum, type(id));
  return sums_[id];
}

/// Puts the slabs of a sum, whose value has this type, into its dense part.
void Transposer::add_slabs(Sum& sum, const Type& whole) {
  const std::vector<Slab> slabs = std::move(sum.slabs);
  sum.slabs.clear();
  if (slabs.empty()) return;
  const auto put = [&](NodeId more) {
    sum.dense = {sum.dense.value < 0 ? more
                                     : add(Op::add, {dense(sum.dense), more})};
  };
  if (const NodeId one = joined(slabs, whole); one >= 0) return put(one);
  for (const Slab& slab : slabs) put(padded(slab, whole));
}

/// Slabs along one axis, none of which meets another, with zeros between them;
/// -1 if they are not of that kind.
NodeId Transposer::joined(std::vector<Slab> slabs, const Type& whole) {
  if (slabs.size() < 2) return -1;
  const size_t axis = slabs[0].axis;
  std::ranges::sort(slabs, {}, &Slab::start);
  std::vector<NodeId> parts;
  int64_t end = 0;
  const auto fill_to = [&](int64_t start) {
    if (start == end) return;
    Type gap = whole;
    gap.shape[axis] = start - end;
    parts.push_back(zeros(gap));
  };
  for (const Slab& slab : slabs) {
    if (slab.axis != axis || slab.start < end) return -1;
    fill_to(slab.start);
    parts.push_back(slab.value);
    end = slab.start + out.type(slab.value).shape[axis].value();
  }
  fill_to(whole.shape[axis].value());
  return add(Op::concat, parts, ir::AxisAttrs{static_cast<int>(axis)});
}

NodeId Transposer::padded(const Slab& slab, const Type& whole) {
  const size_t rank = whole.shape.size();
  ir::PadAttrs around{ir::Shape(rank, 0), ir::Shape(rank, 0)};
  around.low[slab.axis] = slab.start;
  around.high[slab.axis] = whole.shape[slab.axis].value() - slab.start -
                           out.type(slab.value).shape[slab.axis].value();
  return add(Op::pad, {slab.value, zeros({whole.dtype, {}})}, around);
}

NodeId Transposer::total(Sum sum, const Type& type) {
  add_slabs(sum, type);
  const NodeId start = sum.dense.value < 0 ? zeros(type) : dense(sum.dense);
  if (sum.added.empty()) return start;
  // Many small parts are added to halves in f32, and rounded once.
  const bool half = byte_size(type.dtype) < 4;
  sum.dense = {};
  const NodeId whole = onto(
      half ? add(Op::cast, {start}, ir::CastAttrs{DType::F32}) : start, sum);
  return half ? add(Op::cast, {whole}, ir::CastAttrs{type.dtype}) : whole;
}

NodeId Transposer::onto(NodeId so_far, const Sum& sum) {
  const DType dtype = out.type(so_far).dtype;
  const auto widened = [&](NodeId x) {
    return out.type(x).dtype == dtype
               ? x
               : add(Op::cast, {x}, ir::CastAttrs{dtype});
  };
  if (sum.dense.value >= 0)
    so_far = add(Op::add, {so_far, widened(dense(sum.dense))});
  for (const Added& part : sum.added) {
    std::vector<NodeId> operands = {so_far, widened(part.update)};
    operands.insert(operands.end(), part.indices.begin(), part.indices.end());
    so_far = add(Op::scatter_add, operands, ir::IndexAttrs{part.axes, false});
  }
  return so_far;
}

/// First what varies, summed over members, then the rest.
Masked Transposer::take(NodeId id) {
  Sums sums = std::move(sums_[id]);
  sums_[id].clear();
  for (auto& [axes, sum] : sums) add_slabs(sum, type(id));
  NodeId so_far = -1;
  for (auto& [axes, sum] : sums) {
    if (axes == 0 || sum.empty()) continue;
    const NodeId whole = sum_members(total(sum, type(id)), axes);
    so_far = so_far < 0 ? whole : add(Op::add, {so_far, whole});
  }
  const auto rest = sums.find(0);
  if (rest == sums.end() || rest->second.empty()) return {so_far};
  if (so_far < 0 && rest->second.added.empty()) return rest->second.dense;
  if (so_far >= 0) {
    Masked& own = rest->second.dense;
    own = {own.value < 0 ? so_far : add(Op::add, {so_far, dense(own)})};
  }
  return {total(rest->second, type(id))};
}

NodeId Transposer::cotangent(size_t index) {
  const NodeId id = graph_.inputs[index];
  bool any = false;
  for (const auto& [axes, sum] : sums_[id]) any = any || !sum.empty();
  return any ? dense(take(id)) : zeros(type(id));
}

NodeId Transposer::sum_members(NodeId x, AxisMask axes) {
  ir::CollectiveAttrs attrs;
  attrs.axes.clear();
  attrs.sizes.clear();
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!(axes >> i & 1)) continue;
    attrs.axes.push_back(axes_[i].axis);
    attrs.sizes.push_back(axes_[i].size);
  }
  return add(Op::all_reduce, {x}, std::move(attrs));
}

void Transposer::project(const Node& node, NodeId c, AxisMask varies) {
  Results& results = results_[node.inputs[0]];
  const auto count =
      static_cast<size_t>(ir::result_count(graph_[node.inputs[0]]));
  results.resize(count);
  Result& own =
      results[static_cast<size_t>(ir::attrs<ir::ProjectAttrs>(node).index)];
  own = {own.given() ? add(Op::add, {own.c, c}) : c, varies};
}

}  // namespace unisono::jit
