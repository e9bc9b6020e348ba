// All members that a collective is over, brought together: what serves any
// order of axes, groups and permutations. Each device gathers what the others
// have and picks its members' parts.
#include <cstring>
#include <numeric>

#include "jit/ir/kinds.h"
#include "jit/vmap/vmap_rules.h"

namespace unisono::jit::vmapping {

using ir::CollectiveAttrs;
using ir::Dim;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

/// Where the mapped axis stands among the collective's.
size_t place_of(const CollectiveAttrs& a, ir::AxisId axis) {
  size_t i = 0;
  while (a.axes[i] != axis) ++i;
  return i;
}

std::vector<int32_t> flat(const std::vector<std::vector<int>>& groups) {
  std::vector<int32_t> out;
  for (const auto& group : groups)
    out.insert(out.end(), group.begin(), group.end());
  return out;
}

bool counts_up(const std::vector<int32_t>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != static_cast<int32_t>(i)) return false;
  return true;
}

}  // namespace

CollectiveAttrs Mapper::between(const CollectiveAttrs& a) const {
  CollectiveAttrs out;
  out.axes = a.axes;
  out.sizes = a.sizes;
  out.reduce = a.reduce;
  const auto own = static_cast<std::ptrdiff_t>(place_of(a, spec_.axis));
  out.sizes[own] = spec_.devices;
  if (spec_.devices == 1) {
    out.axes.erase(out.axes.begin() + own);
    out.sizes.erase(out.sizes.begin() + own);
  }
  return out;
}

NodeId Mapper::everyone(const CollectiveAttrs& a, Value x) {
  NodeId all = lift(x);
  const Type each = member_type({all, true});
  const CollectiveAttrs devices = between(a);
  if (!devices.axes.empty()) all = add(Op::all_gather, {all}, devices);
  const Dim members = ir::member_count(a);
  Shape shape = each.shape;
  shape.insert(shape.begin(), members);
  const size_t place = place_of(a, spec_.axis);
  if (place + 1 < a.axes.size()) {
    // The members of each device stand behind all axes; they belong behind
    // their own.
    Shape apart = devices.sizes;
    const auto last = static_cast<int>(apart.size());
    apart.emplace_back(spec_.size);
    apart.insert(apart.end(), each.shape.begin(), each.shape.end());
    all = add(Op::reshape, {all}, ir::ShapeAttrs{apart});
    std::vector<int> order(apart.size());
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + last);
    const size_t behind = spec_.devices == 1 ? place : place + 1;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(behind), last);
    all = add(Op::transpose, {all}, ir::AxesAttrs{order});
  }
  if (out_.type(all).shape == shape) return all;
  return add(Op::reshape, {all}, ir::ShapeAttrs{shape});
}

NodeId Mapper::by_group(const CollectiveAttrs& a, NodeId all) {
  const std::vector<int32_t> order = flat(a.groups);
  if (!counts_up(order)) all = pick(all, {0}, {numbers(order)});
  Shape shape = out_.type(all).shape;
  shape[0] = static_cast<int64_t>(a.groups[0].size());
  shape.insert(shape.begin(), static_cast<int64_t>(a.groups.size()));
  return add(Op::reshape, {all}, ir::ShapeAttrs{shape});
}

NodeId Mapper::positions(const CollectiveAttrs& a) {
  const Type scalar{DType::I32, {}};
  const size_t place = place_of(a, spec_.axis);
  int64_t stride = 1;
  NodeId own = member_numbers(DType::I32, {});
  std::vector<NodeId> rest;  // scalars
  const auto add_index = [&](ir::AxisId axis, const Dim& size, int64_t times) {
    CollectiveAttrs one;
    one.axes = {axis};
    one.sizes = {size};
    const NodeId index = add(Op::axis_index, {}, one);
    rest.push_back(times == 1 ? index
                              : add(Op::mul, {index, splat(scalar, times)}));
  };
  for (size_t i = a.axes.size(); i-- > 0; stride *= a.sizes[i].value()) {
    if (i != place) {
      add_index(a.axes[i], a.sizes[i], stride);
      continue;
    }
    if (stride != 1)
      own = add(Op::mul, {own, lift({splat(scalar, stride), false})});
    if (spec_.devices > 1)
      add_index(spec_.axis, spec_.devices, stride * spec_.size);
  }
  for (const NodeId index : rest)
    own = add(Op::add, {lift({index, false}), own});
  return own;
}

NodeId Mapper::looked_up(const CollectiveAttrs& a, std::vector<int32_t> table) {
  const NodeId constant = numbers(table);
  if (a.axes.size() == 1 && spec_.devices == 1) return constant;
  return pick(constant, {0}, {positions(a)});
}

NodeId Mapper::own_group(const CollectiveAttrs& a) {
  std::vector<int32_t> table(flat(a.groups).size());
  for (size_t g = 0; g < a.groups.size(); ++g)
    for (const int member : a.groups[g])
      table[member] = static_cast<int32_t>(g);
  return looked_up(a, std::move(table));
}

NodeId Mapper::own_rank(const CollectiveAttrs& a) {
  if (a.groups.empty()) return positions(a);
  std::vector<int32_t> table(flat(a.groups).size());
  for (const auto& group : a.groups)
    for (size_t r = 0; r < group.size(); ++r)
      table[group[r]] = static_cast<int32_t>(r);
  return looked_up(a, std::move(table));
}

NodeId Mapper::numbers(const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return out_.add_constant({DType::I32, {static_cast<int64_t>(values.size())}},
                           std::move(bytes), source_);
}

NodeId Mapper::pick(NodeId x, std::vector<int> axes,
                    std::vector<NodeId> indices) {
  indices.insert(indices.begin(), x);
  return add(Op::gather, std::move(indices),
             ir::IndexAttrs{std::move(axes), false});
}

}  // namespace unisono::jit::vmapping
