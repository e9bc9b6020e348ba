// Collectives over the mapped axis become operations along the members' axis,
// with a collective between devices where the members are spread over several.
// The members tree is the same however they are spread: k = 2^a * m members on
// each device are m aligned blocks of 2^a.
#include <cstring>

#include "jit/ir/kinds.h"
#include "jit/transform/vmap.h"

namespace unisono::jit::vmapping {

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

}  // namespace

Value Mapper::place_collective(const Node& node, const Values& x) {
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  if (a.axis != spec_.axis) return place_other_axis(node, x);
  switch (node.op) {
    case Op::all_reduce: return all_reduce(a, x[0]);
    case Op::all_gather: return all_gather(x[0]);
    case Op::permute: return permute(a, x[0]);
    default: return {positions(), true};
  }
}

/// Collectives over another axis are for each member alone.
Value Mapper::place_other_axis(const Node& node, const Values& x) {
  const NodeId id = add(node.op, ids(x), node.attrs);
  const bool mapped = !x.empty() && x[0].mapped;
  if (mapped && node.op == Op::all_gather) return {to_front(id, 1), true};
  return {id, mapped};
}

ir::CollectiveAttrs Mapper::between_devices() const {
  ir::CollectiveAttrs out;
  out.axis = spec_.axis;
  out.size = spec_.devices;
  return out;
}

Value Mapper::all_reduce(const ir::CollectiveAttrs& a, Value x) {
  const Op op = reduction(a.reduce);
  NodeId all = lift(x);
  const DType dtype = out_.type(all).dtype;
  if (spec_.devices == 1 || spec_.size == 0)
    return {add(op, {all}, along_first), false};
  // Sums of 16-bit floats are rounded once, after the last device's part.
  const bool widens = a.reduce == ir::ReduceOp::sum && is_floating(dtype) &&
                      byte_size(dtype) == 2;
  if (widens) all = add(Op::cast, {all}, ir::CastAttrs{DType::F32});
  ir::CollectiveAttrs between = between_devices();
  between.reduce = a.reduce;
  const int64_t block = spec_.size & -spec_.size;
  const int64_t blocks = spec_.size / block;
  NodeId result;
  if (blocks == 1) {
    const NodeId own = add(op, {all}, along_first);
    result = add(Op::all_reduce, {own}, between);
  } else {
    const Shape shape = out_.type(all).shape;
    NodeId own = add(Op::reshape, {all},
                     ir::ShapeAttrs{refronted(shape, 1, {blocks, block})});
    own = add(op, {own}, ir::ReduceAttrs{{1}, ir::ReduceOrder::members});
    NodeId partials = add(Op::all_gather, {own}, between_devices());
    partials =
        add(Op::reshape, {partials},
            ir::ShapeAttrs{refronted(shape, 1, {spec_.devices * blocks})});
    result = add(op, {partials}, along_first);
  }
  if (widens) result = add(Op::cast, {result}, ir::CastAttrs{dtype});
  return {result, false};
}

Value Mapper::all_gather(Value x) {
  const NodeId own = lift(x);
  if (spec_.devices == 1 || spec_.size == 0) return {own, false};
  const NodeId all = add(Op::all_gather, {own}, between_devices());
  const Dim members(spec_.devices * spec_.size);
  return {add(Op::reshape, {all},
              ir::ShapeAttrs{refronted(out_.type(all).shape, 2, {members})}),
          false};
}

NodeId Mapper::positions() {
  const NodeId own = member_numbers(DType::I32, {});
  if (spec_.devices == 1) return own;
  const Type scalar{DType::I32, {}};
  const NodeId device = add(Op::axis_index, {}, between_devices());
  const NodeId first = add(Op::mul, {device, splat(scalar, spec_.size)});
  return add(Op::add, {lift({first, false}), own});
}

Value Mapper::permute(const ir::CollectiveAttrs& a, Value x) {
  const int64_t members = spec_.devices * spec_.size;
  if (spec_.devices > 1 && spec_.size == 1) {
    ir::CollectiveAttrs between = between_devices();
    between.pairs = a.pairs;
    return {add(Op::permute, {lift(x)}, between), true};
  }
  // By destination: where the value comes from, and whether one comes.
  std::vector<int32_t> from(static_cast<size_t>(members), 0);
  std::vector<uint8_t> comes(static_cast<size_t>(members), 0);
  for (const auto [source, destination] : a.pairs) {
    from[destination] = source;
    comes[destination] = 1;
  }
  std::vector<uint8_t> bytes(from.size() * sizeof(int32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), from.data(), bytes.size());
  NodeId sources = out_.add_constant({DType::I32, {members}}, bytes, source_);
  NodeId arrives = out_.add_constant({DType::Bool, {members}}, comes, source_);
  const ir::IndexAttrs rows{{0}, false};
  if (spec_.devices > 1) {
    const NodeId own = positions();
    sources = add(Op::gather, {sources, own}, rows);
    arrives = add(Op::gather, {arrives, own}, rows);
  }
  const NodeId moved = add(Op::gather, {all_gather(x).id, sources}, rows);
  if (static_cast<int64_t>(a.pairs.size()) == members) return {moved, true};
  const Value zero = {splat(member_type({moved, true}), 0), false};
  return {choose(arrives, {moved, true}, zero), true};
}

}  // namespace unisono::jit::vmapping
