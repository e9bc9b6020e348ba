// Collectives over the mapped axis become operations along the members' axis,
// with a collective between devices where the members are spread over several
// or the collective is over other axes, too. The members tree is the same
// however they are spread: k = 2^a * m members on each device are m aligned
// blocks of 2^a. What has no better form brings all members together
// (vmap_members.cpp).
#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/transform/gathered.h"
#include "jit/transform/reduce_factors.h"
#include "jit/vmap/vmap_rules.h"

namespace unisono::jit::vmapping {

using ir::CollectiveAttrs;
using ir::Dim;
using ir::Node;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

Op reduction(ir::ReduceOp op) {
  switch (op) {
    case ir::ReduceOp::sum: return Op::sum;
    case ir::ReduceOp::max: return Op::max;
    case ir::ReduceOp::min: return Op::min;
  }
  __builtin_unreachable();
}

/// The shape with `front` in place of the first axes.
Shape refronted(const Shape& shape, size_t drop, std::vector<Dim> front) {
  front.insert(front.end(), shape.begin() + static_cast<std::ptrdiff_t>(drop),
               shape.end());
  return front;
}

const ir::ReduceAttrs along_first{{0}, ir::ReduceOrder::members};
const ir::ReduceAttrs along_second{{1}, ir::ReduceOrder::members};

bool equal_sizes(const std::vector<std::vector<int>>& groups) {
  return std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
    return group.size() == groups[0].size();
  });
}

}  // namespace

/// Each collective over the mapped axis.
struct CollectiveRules {
  Mapper& m;

  Value all_reduce(const CollectiveAttrs& a, Value x) const;
  Value all_gather(const CollectiveAttrs& a, Value x) const;
  Value reduce_scatter(const CollectiveAttrs& a, Value x) const;
  Value all_to_all(const CollectiveAttrs& a, Value x) const;
  Value permute(const Node& node, Value x) const;
  Value own_part(const CollectiveAttrs& a, Value x) const;
};

Value Mapper::place_collective(const Node& node, const Values& x) {
  const auto& a = ir::attrs<CollectiveAttrs>(node);
  if (std::find(a.axes.begin(), a.axes.end(), spec_.axis) == a.axes.end())
    return place_other_axis(node, x);
  const CollectiveRules rules{*this};
  switch (ir::collective_of(node.op)) {
    case ir::Collective::all_reduce: return rules.all_reduce(a, x[0]);
    case ir::Collective::all_gather: return rules.all_gather(a, x[0]);
    case ir::Collective::reduce_scatter: return rules.reduce_scatter(a, x[0]);
    case ir::Collective::all_to_all: return rules.all_to_all(a, x[0]);
    case ir::Collective::permute: return rules.permute(node, x[0]);
    case ir::Collective::own_part: return rules.own_part(a, x[0]);
    case ir::Collective::axis_index: return {positions(a), true};
  }
  __builtin_unreachable();
}

/// Collectives over other axes are for each member alone.
Value Mapper::place_other_axis(const Node& node, const Values& x) {
  const bool mapped = !x.empty() && x[0].mapped;
  if (!mapped) return {add(node.op, ids(x), node.attrs), false};
  auto a = ir::attrs<CollectiveAttrs>(node);
  ++a.dim;
  const bool leading =
      node.op == Op::reduce_scatter || node.op == Op::all_to_all;
  if (!leading) return {add(node.op, ids(x), a), true};
  // These work along the leading axis, where the members stand.
  const NodeId turned = to_front(x[0].id, 1);
  const NodeId out = add(node.op, {turned}, node.attrs);
  return {node.op == Op::all_to_all ? to_front(out, 1) : out, true};
}

NodeId Mapper::reduce_blocks(const CollectiveAttrs& a, NodeId all) {
  const Op op = reduction(a.reduce);
  const CollectiveAttrs devices = between(a);
  if (devices.axes.empty()) return add(op, {all}, along_first);
  const int64_t block = spec_.size & -spec_.size;
  const int64_t blocks = spec_.size / block;
  if (blocks == 1)
    return add(Op::all_reduce, {add(op, {all}, along_first)}, devices);
  if (const auto reduced =
          reduce_factors(out_, all, op, blocks, devices, source_))
    return *reduced;
  const Shape shape = out_.type(all).shape;
  NodeId own = add(Op::reshape, {all},
                   ir::ShapeAttrs{refronted(shape, 1, {blocks, block})});
  own = add(op, {own}, along_second);
  const NodeId partials = add(Op::all_gather, {own}, devices);
  const Dim count = ir::member_count(devices) * Dim(blocks);
  return add(op,
             {add(Op::reshape, {partials},
                  ir::ShapeAttrs{refronted(shape, 1, {count})})},
             along_first);
}

Value CollectiveRules::all_reduce(const CollectiveAttrs& a, Value x) const {
  const Op op = reduction(a.reduce);
  if (a.groups.empty()) {
    if (a.axes.back() != m.spec_.axis)
      return {m.add(op, {m.everyone(a, x)}, along_first), false};
    NodeId all = m.lift(x);
    const DType dtype = m.out_.type(all).dtype;
    // Sums of 16-bit floats are rounded once, after the last device's part.
    const bool widens = !m.between(a).axes.empty() &&
                        a.reduce == ir::ReduceOp::sum && is_floating(dtype) &&
                        byte_size(dtype) == 2;
    if (widens) all = m.add(Op::cast, {all}, ir::CastAttrs{DType::F32});
    NodeId result = m.reduce_blocks(a, all);
    if (widens) result = m.add(Op::cast, {result}, ir::CastAttrs{dtype});
    return {result, false};
  }
  const NodeId all = m.everyone(a, x);
  if (equal_sizes(a.groups)) {
    const NodeId sums = m.add(op, {m.by_group(a, all)}, along_second);
    return {m.pick(sums, {0}, {m.own_group(a)}), true};
  }
  std::vector<NodeId> sums;
  for (const auto& group : a.groups) {
    const NodeId rows =
        m.pick(all, {0}, {m.numbers({group.begin(), group.end()})});
    const NodeId sum = m.add(op, {rows}, along_first);
    sums.push_back(
        m.add(Op::reshape, {sum},
              ir::ShapeAttrs{refronted(m.out_.type(sum).shape, 0, {Dim(1)})}));
  }
  const NodeId stacked = m.add(Op::concat, std::move(sums), ir::AxisAttrs{0});
  return {m.pick(stacked, {0}, {m.own_group(a)}), true};
}

Value CollectiveRules::all_gather(const CollectiveAttrs& a, Value x) const {
  const NodeId all = m.everyone(a, x);
  const Value stacked =
      a.groups.empty()
          ? Value{all, false}
          : Value{m.pick(m.by_group(a, all), {0}, {m.own_group(a)}), true};
  return {place_gathered(m.out_, stacked.id, stacked.mapped, a.dim, a.tiled,
                         m.source_),
          stacked.mapped};
}

Value CollectiveRules::reduce_scatter(const CollectiveAttrs& a, Value x) const {
  const Op op = reduction(a.reduce);
  const bool alone = a.axes.size() == 1 && a.groups.empty();
  const bool aligned = (m.spec_.size & (m.spec_.size - 1)) == 0;
  if (alone && m.spec_.devices > 1 && aligned) {
    NodeId own = m.lift(x);
    const DType dtype = m.out_.type(own).dtype;
    const bool widens = a.reduce == ir::ReduceOp::sum && is_floating(dtype) &&
                        byte_size(dtype) == 2;
    if (widens) own = m.add(Op::cast, {own}, ir::CastAttrs{DType::F32});
    own = m.add(op, {own}, along_first);
    const Shape parts =
        refronted(m.out_.type(own).shape, 1, {m.spec_.devices, m.spec_.size});
    own = m.add(Op::reshape, {own}, ir::ShapeAttrs{parts});
    own = m.add(Op::reduce_scatter, {own}, m.between(a));
    if (widens) own = m.add(Op::cast, {own}, ir::CastAttrs{dtype});
    return {own, true};
  }
  const NodeId all = m.everyone(a, x);
  if (!a.groups.empty()) {
    const NodeId sums = m.add(op, {m.by_group(a, all)}, along_second);
    return {m.pick(sums, {0, 1}, {m.own_group(a), m.own_rank(a)}), true};
  }
  const NodeId sum = m.add(op, {all}, along_first);
  if (alone && m.spec_.devices == 1) return {sum, true};
  return {m.pick(sum, {0}, {m.positions(a)}), true};
}

Value CollectiveRules::all_to_all(const CollectiveAttrs& a, Value x) const {
  if (!a.groups.empty()) {
    const NodeId all = m.by_group(a, m.everyone(a, x));
    return {m.pick(all, {0, 2}, {m.own_group(a), m.own_rank(a)}), true};
  }
  if (a.axes.size() > 1)
    return {m.pick(m.everyone(a, x), {1}, {m.positions(a)}), true};
  if (m.spec_.devices == 1) return {m.to_front(m.lift(x), 1), true};
  // For each device: what each of its members gets of each of ours.
  const Dim devices = m.spec_.devices, each = m.spec_.size;
  NodeId own = m.lift(x);
  const Shape shape = m.out_.type(own).shape;
  own = m.add(Op::reshape, {own},
              ir::ShapeAttrs{refronted(shape, 2, {each, devices, each})});
  own = m.to_front(own, 1);
  own = m.add(Op::all_to_all, {own}, m.between(a));
  own = m.to_front(own, 2);
  return {m.add(Op::reshape, {own},
                ir::ShapeAttrs{refronted(shape, 2, {each, devices * each})}),
          true};
}

Value CollectiveRules::permute(const Node& node, Value x) const {
  const auto& a = ir::attrs<CollectiveAttrs>(node);
  const int64_t members = ir::member_count(a).value();
  const bool alone = a.axes.size() == 1;
  if (ir::same_for_all(node)) {
    const int source = a.pairs[0].first;
    if (!alone || m.spec_.devices == 1)
      return {m.row(m.everyone(a, x), source), false};
    CollectiveAttrs devices = m.between(a);
    for (int d = 0; d < m.spec_.devices; ++d)
      devices.pairs.emplace_back(static_cast<int>(source / m.spec_.size), d);
    return {
        m.add(Op::permute, {m.row(m.lift(x), source % m.spec_.size)}, devices),
        false};
  }
  if (alone && m.spec_.devices > 1 && m.spec_.size == 1) {
    CollectiveAttrs devices = m.between(a);
    devices.pairs = a.pairs;
    return {m.add(Op::permute, {m.lift(x)}, devices), true};
  }
  // By destination: where the value comes from, and whether one comes.
  std::vector<int32_t> from(static_cast<size_t>(members), 0);
  std::vector<uint8_t> comes(static_cast<size_t>(members), 0);
  for (const auto [source, destination] : a.pairs) {
    from[destination] = source;
    comes[destination] = 1;
  }
  const NodeId moved =
      m.pick(m.everyone(a, x), {0}, {m.looked_up(a, std::move(from))});
  if (static_cast<int64_t>(a.pairs.size()) == members) return {moved, true};
  NodeId arrives =
      m.out_.add_constant({DType::Bool, {members}}, comes, m.source_);
  if (!alone || m.spec_.devices > 1)
    arrives = m.pick(arrives, {0}, {m.positions(a)});
  const Value zero = {m.splat(m.member_type({moved, true}), 0), false};
  return {m.choose(arrives, {moved, true}, zero), true};
}

Value CollectiveRules::own_part(const CollectiveAttrs& a, Value x) const {
  const int dim = a.dim + (x.mapped ? 1 : 0);
  NodeId array = x.id;
  const Dim members = ir::member_count(a);
  Shape shape = m.out_.type(array).shape;
  if (a.tiled) {
    const Dim part =
        members == Dim(0) ? Dim(1) : floor_div(shape[dim], members);
    shape[dim] = members;
    shape.insert(shape.begin() + dim + 1, part);
    array = m.add(Op::reshape, {array}, ir::ShapeAttrs{shape});
  }
  const bool alone = a.axes.size() == 1;
  if (x.mapped)
    return {m.pick(array, {0, dim},
                   {m.member_numbers(DType::I32, {}), m.positions(a)}),
            true};
  if (!alone)
    return {m.to_front(m.pick(array, {dim}, {m.positions(a)}), 0), true};
  if (m.spec_.devices > 1) {
    shape[dim] = m.spec_.devices;
    shape.insert(shape.begin() + dim + 1, m.spec_.size);
    array = m.add(Op::reshape, {array}, ir::ShapeAttrs{shape});
    CollectiveAttrs devices = m.between(a);
    devices.dim = dim;
    array = m.add(Op::own_part, {array}, devices);
  }
  return {m.to_front(array, dim), true};
}

}  // namespace unisono::jit::vmapping
