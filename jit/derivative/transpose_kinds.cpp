// The transposes of linear nodes of one result.
#include <algorithm>
#include <numeric>

#include "jit/derivative/transpose.h"
#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "runtime/check.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

bool contains(const std::vector<int>& list, int x) {
  return std::ranges::find(list, x) != list.end();
}

int64_t at(const Shape& shape, size_t axis) { return shape[axis].value(); }

/// first, first + 1, ...
std::vector<int> numbers(size_t count, size_t first) {
  std::vector<int> out(count);
  std::iota(out.begin(), out.end(), static_cast<int>(first));
  return out;
}

}  // namespace

void Transposer::map(const Node& node, Masked c, AxisMask varies) {
  const auto& x = node.inputs;
  const auto both = [&] { return is_linear(x[0]) && is_linear(x[1]); };
  const auto scaled = [&](size_t by) {
    return Masked{add(Op::mul, {c.value, known(x[by])}), c.mask};
  };
  const auto product = [&] {
    if (both()) not_linear(node);
    for (size_t i = 0; i < 2; ++i)
      if (is_linear(x[i])) give(x[i], scaled(1 - i), varies);
  };
  if (node.op == Op::add || node.op == Op::sub) {
    if (is_linear(x[0])) give(x[0], c, varies);
    if (!is_linear(x[1])) return;
    const bool minus = node.op == Op::sub;
    give(x[1], minus ? Masked{add(Op::neg, {c.value}), c.mask} : c, varies);
  } else if (node.op == Op::neg) {
    give(x[0], Masked{add(Op::neg, {c.value}), c.mask}, varies);
  } else if (node.op == Op::mul) {
    product();
  } else if (node.op == Op::fma) {
    product();
    if (is_linear(x[2])) give(x[2], c, varies);
  } else if (node.op == Op::div) {
    if (is_linear(x[1])) not_linear(node);
    give(x[0], Masked{add(Op::div, {c.value, known(x[1])}), c.mask}, varies);
  } else if (node.op == Op::select) {
    for (const size_t i : {size_t{1}, size_t{2}}) {
      if (!is_linear(x[i])) continue;
      const NodeId condition = known(x[0]);
      const NodeId here = i == 1 ? condition : add(Op::bit_not, {condition});
      const NodeId mask = c.mask < 0 ? here : add(Op::bit_and, {c.mask, here});
      give(x[i], Masked{c.value, mask}, varies);
    }
  } else if (node.op == Op::cast) {
    const ir::CastAttrs back{type(x[0]).dtype};
    give(x[0], Masked{add(Op::cast, {c.value}, back), c.mask}, varies);
  } else {
    not_linear(node);
  }
}

void Transposer::sum(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0];
  if (node.op == Op::cumsum) {
    ir::ScanAttrs attrs = ir::attrs<ir::ScanAttrs>(node);
    attrs.reverse = !attrs.reverse;
    return give(x, Masked{add(Op::cumsum, {c}, attrs)}, varies);
  }
  if (node.op != Op::sum) not_linear(node);
  const auto& axes = ir::attrs<ir::ReduceAttrs>(node).axes;
  ir::BroadcastAttrs back{type(x).shape, {}};
  for (int i = 0; i < type(x).rank(); ++i)
    if (!contains(axes, i)) back.axes.push_back(i);
  give(x, Masked{add(Op::broadcast, {c}, std::move(back))}, varies);
}

void Transposer::move(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0];
  const Shape& shape = type(x).shape;
  switch (ir::move_of(node.op)) {
    case ir::Move::reshape:
      return give(x, Masked{add(Op::reshape, {c}, ir::ShapeAttrs{shape})},
                  varies);
    case ir::Move::transpose: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(node).axes;
      std::vector<int> back(axes.size());
      for (size_t i = 0; i < axes.size(); ++i)
        back[static_cast<size_t>(axes[i])] = static_cast<int>(i);
      return give(x, Masked{add(Op::transpose, {c}, ir::AxesAttrs{back})},
                  varies);
    }
    case ir::Move::flip:
      return give(x, Masked{add(Op::flip, {c}, node.attrs)}, varies);
    case ir::Move::broadcast: return broadcast(node, c, varies);
    case ir::Move::slice: return slice(node, c, varies);
    case ir::Move::pad: return pad(node, c, varies);
    case ir::Move::concat: return concat(node, c, varies);
  }
}

/// The sum over axes that were added or stretched: of halves in f32.
void Transposer::broadcast(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0];
  const auto& a = ir::attrs<ir::BroadcastAttrs>(node);
  const Type own = type(x);
  ir::ReduceAttrs over;
  for (int i = 0; i < static_cast<int>(a.shape.size()); ++i) {
    const auto found = std::ranges::find(a.axes, i);
    const auto axis = static_cast<size_t>(found - a.axes.begin());
    const bool stays = found != a.axes.end() &&
                       own.shape[axis] == a.shape[static_cast<size_t>(i)];
    if (!stays) over.axes.push_back(i);
  }
  if (!over.axes.empty()) {
    const bool half = byte_size(own.dtype) < 4;
    if (half) c = add(Op::cast, {c}, ir::CastAttrs{DType::F32});
    c = add(Op::sum, {c}, over);
    if (half) c = add(Op::cast, {c}, ir::CastAttrs{own.dtype});
  }
  if (out.type(c).shape != own.shape)
    c = add(Op::reshape, {c}, ir::ShapeAttrs{own.shape});
  give(x, Masked{c}, varies);
}

/// Elements go back to their places, zeros between and around them.
void Transposer::slice(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0];
  const auto& a = ir::attrs<ir::SliceAttrs>(node);
  const Type own = type(x);
  const size_t rank = own.shape.size();
  const NodeId zero = zeros({own.dtype, {}});
  for (size_t i = 0; i < rank; ++i) {
    const int64_t step = at(a.step, i), n = at(a.size, i);
    if (step == 1 || n == 0) continue;
    // [n] as [n, 1], padded to [n, step], is n * step elements in a row.
    const Shape before = out.type(c).shape;
    Shape apart = before;
    apart.insert(apart.begin() + static_cast<ptrdiff_t>(i) + 1, 1);
    ir::PadAttrs pads{Shape(rank + 1, 0), Shape(rank + 1, 0)};
    pads.high[i + 1] = step - 1;
    c = add(Op::reshape, {c}, ir::ShapeAttrs{apart});
    c = add(Op::pad, {c, zero}, pads);
    Shape row = before;
    row[i] = n * step;
    c = add(Op::reshape, {c}, ir::ShapeAttrs{row});
    ir::SliceAttrs cut{Shape(rank, 0), Shape(rank, 1), row};
    cut.size[i] = (n - 1) * step + 1;
    c = add(Op::slice, {c}, cut);
  }
  const Shape have = out.type(c).shape;
  std::vector<size_t> cut;
  for (size_t i = 0; i < rank; ++i)
    if (have[i] != own.shape[i]) cut.push_back(i);
  if (cut.size() == 1 && at(have, cut[0]) > 0)
    return give(x, Slab{c, cut[0], at(a.start, cut[0])}, varies);
  ir::PadAttrs around{a.start, Shape(rank, 0)};
  for (size_t i = 0; i < rank; ++i) {
    if (at(have, i) == 0) around.low[i] = 0;
    around.high[i] = at(own.shape, i) - at(around.low, i) - at(have, i);
  }
  if (!cut.empty()) c = add(Op::pad, {c, zero}, around);
  give(x, Masked{c}, varies);
}

void Transposer::pad(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0], value = node.inputs[1];
  const auto& a = ir::attrs<ir::PadAttrs>(node);
  const Type own = type(x);
  if (is_linear(x)) {
    const ir::SliceAttrs inside{a.low, Shape(own.shape.size(), 1), own.shape};
    give(x, Masked{add(Op::slice, {c}, inside)}, varies);
  }
  if (!is_linear(value)) return;
  const auto truth = [&](const Type& type, int64_t is_true) {
    return out.add_constant(type, element_bytes(DType::Bool, is_true));
  };
  const NodeId inside =
      add(Op::pad,
          {truth({DType::Bool, own.shape}, 1), truth({DType::Bool, {}}, 0)}, a);
  const NodeId outside = add(Op::select, {inside, zeros(Type(out.type(c))), c});
  const ir::ReduceAttrs all{numbers(own.shape.size(), 0)};
  give(value, Masked{add(Op::sum, {outside}, all)}, varies);
}

void Transposer::concat(const Node& node, NodeId c, AxisMask varies) {
  const auto axis = static_cast<size_t>(ir::attrs<ir::AxisAttrs>(node).axis);
  int64_t start = 0;
  for (const NodeId x : node.inputs) {
    const Shape shape = type(x).shape;
    ir::SliceAttrs part{Shape(shape.size(), 0), Shape(shape.size(), 1), shape};
    part.start[axis] = start;
    start += at(shape, axis);
    if (is_linear(x)) give(x, Masked{add(Op::slice, {c}, part)}, varies);
  }
}

// ---- index ------------------------------------------------------------------

void Transposer::index(const Node& node, NodeId c, AxisMask varies) {
  ir::IndexAttrs attrs = ir::attrs<ir::IndexAttrs>(node);
  attrs.checked = false;
  const size_t arrays = node.inputs.size() - attrs.axes.size();
  std::vector<NodeId> indices;
  for (size_t i = arrays; i < node.inputs.size(); ++i)
    indices.push_back(known(node.inputs[i]));
  const NodeId x = node.inputs[0];
  if (node.op == Op::gather)
    return give(x, Added{c, indices, attrs.axes}, varies);

  const auto with_indices = [&](std::vector<NodeId> operands) {
    operands.insert(operands.end(), indices.begin(), indices.end());
    return operands;
  };
  // Updates read before their places are cleared: so it happens in place.
  const NodeId update = node.inputs[1];
  if (is_linear(update)) {
    Masked part{add(Op::gather, with_indices({c}), attrs)};
    if (node.op == Op::scatter) part.mask = winners(node);
    give(update, part, varies);
  }
  if (!is_linear(x)) return;
  if (node.op == Op::scatter_add) return give(x, Masked{c}, varies);
  const NodeId nothing = zeros(type(update));
  give(x, Masked{add(Op::scatter, with_indices({c, nothing}), attrs)}, varies);
}

/// Which updates of a scatter are in its result, as a mask of them: of those at
/// one place the last. -1: all are.
NodeId Transposer::winners(const Node& node) {
  const auto& axes = ir::attrs<ir::IndexAttrs>(node).axes;
  const Type indices = type(node.inputs[2]);
  const int64_t count = indices.elements();
  if (count <= 1) return -1;
  Shape places;
  for (const int axis : axes)
    places.push_back(type(node.inputs[0]).shape[static_cast<size_t>(axis)]);
  const DType number = count > INT32_MAX ? DType::I64 : DType::I32;
  const NodeId own =
      add(Op::reshape, {add(Op::iota, {}, ir::IotaAttrs{{number, {count}}, 0})},
          ir::ShapeAttrs{indices.shape});
  const NodeId nobody =
      out.add_constant({number, places}, element_bytes(number, int64_t{-1}));
  const ir::IndexAttrs attrs{numbers(axes.size(), 0), false};
  std::vector<NodeId> at;
  for (size_t i = 2; i < node.inputs.size(); ++i)
    at.push_back(known(node.inputs[i]));
  std::vector<NodeId> operands = {nobody, own};
  operands.insert(operands.end(), at.begin(), at.end());
  const NodeId last = add(Op::scatter, operands, attrs);
  operands = {last};
  operands.insert(operands.end(), at.begin(), at.end());
  const NodeId wins = add(Op::eq, {add(Op::gather, operands, attrs), own});
  return add(Op::broadcast, {wins},
             ir::BroadcastAttrs{type(node.inputs[1]).shape,
                                numbers(indices.shape.size(), 0)});
}

// ---- dot --------------------------------------------------------------------

/// The cotangent's axes are batch, then the free axes of a, then those of b. An
/// operand's cotangent is the product with the other operand over the latter's
/// free axes; its axes come as batch, own free axes, and contracted axes in the
/// order of the other operand (for a; for b the latter two are exchanged).
void Transposer::dot(const Node& node, NodeId c, AxisMask varies) {
  DotAxes d{ir::attrs<ir::DotAttrs>(node), {}, {}};
  const NodeId a = node.inputs[0], b = node.inputs[1];
  if (is_linear(a) && is_linear(b)) not_linear(node);
  const auto free_axes = [](const Type& type, const std::vector<int>& batch,
                            const std::vector<int>& contract) {
    std::vector<int> out;
    for (int i = 0; i < type.rank(); ++i)
      if (!contains(batch, i) && !contains(contract, i)) out.push_back(i);
    return out;
  };
  d.free_a = free_axes(type(a), d.batch_a, d.contract_a);
  d.free_b = free_axes(type(b), d.batch_b, d.contract_b);
  if (dot_of_windows(d, node, c, varies)) return;
  const std::vector<int>&free_a = d.free_a, &free_b = d.free_b;
  const size_t batch = d.batch_a.size();
  const bool of_a = is_linear(a);
  const NodeId x = of_a ? a : b;
  ir::DotAttrs attrs;
  attrs.precision = d.precision;
  NodeId product = -1;
  if (of_a) {
    attrs.batch_a = numbers(batch, 0);
    attrs.batch_b = d.batch_b;
    attrs.contract_a = numbers(free_b.size(), batch + free_a.size());
    attrs.contract_b = free_b;
    product = add(Op::dot, {c, known(b)}, attrs);
  } else {
    attrs.batch_a = d.batch_a;
    attrs.batch_b = numbers(batch, 0);
    attrs.contract_a = free_a;
    attrs.contract_b = numbers(free_a.size(), batch);
    product = add(Op::dot, {known(a), c}, attrs);
  }
  // Where each axis of x is in the product.
  const std::vector<int>& own_batch = of_a ? d.batch_a : d.batch_b;
  const std::vector<int>& own_free = of_a ? free_a : free_b;
  const std::vector<int>& own_contract = of_a ? d.contract_a : d.contract_b;
  const std::vector<int>& other_contract = of_a ? d.contract_b : d.contract_a;
  const size_t free_from = batch + (of_a ? 0 : own_contract.size());
  const size_t contract_from = batch + (of_a ? own_free.size() : 0);
  std::vector<int> places(static_cast<size_t>(type(x).rank()));
  const auto set = [&](int axis, size_t place) {
    places[static_cast<size_t>(axis)] = static_cast<int>(place);
  };
  for (size_t i = 0; i < batch; ++i) set(own_batch[i], i);
  for (size_t i = 0; i < own_free.size(); ++i) set(own_free[i], free_from + i);
  for (size_t i = 0; i < own_contract.size(); ++i) {
    const auto rank = std::ranges::count_if(
        other_contract, [&](int axis) { return axis < other_contract[i]; });
    set(own_contract[i], contract_from + static_cast<size_t>(rank));
  }
  give(x, Masked{add(Op::transpose, {product}, ir::AxesAttrs{places})}, varies);
}

// ---- collectives ------------------------------------------------------------

void Transposer::collective(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0];
  ir::CollectiveAttrs a = ir::attrs<ir::CollectiveAttrs>(node);
  AxisMask members = 0;
  for (size_t i = 0; i < axes_.size(); ++i)
    if (contains(a.axes, axes_[i].axis)) members |= AxisMask{1} << i;
  const Type own = type(x);
  const auto position = [&] {
    ir::CollectiveAttrs where;
    where.axes = a.axes;
    where.sizes = a.sizes;
    return add(Op::axis_index, {}, where);
  };
  switch (ir::collective_of(node.op)) {
    case ir::Collective::all_reduce:
      if (a.reduce != ir::ReduceOp::sum) not_linear(node);
      if (!a.groups.empty()) c = add(Op::all_reduce, {c}, a);
      return give(x, Masked{c}, varies | members);
    case ir::Collective::all_gather: {
      if (a.groups.empty()) {
        ir::CollectiveAttrs part = a;
        part.stays = false;
        c = add(Op::own_part, {c}, part);
        return give(x, Masked{c}, varies | members);
      }
      // The sum over the group, of which each takes its part.
      const auto dim = static_cast<size_t>(a.dim);
      const int64_t team = ir::team_size(a).value();
      if (a.tiled) {
        Shape apart = out.type(c).shape;
        apart[dim] = apart[dim].value() / team;
        apart.insert(apart.begin() + a.dim, team);
        c = add(Op::reshape, {c}, ir::ShapeAttrs{apart});
      }
      std::vector<int> order = numbers(out.type(c).shape.size(), 0);
      std::rotate(order.begin(), order.begin() + a.dim,
                  order.begin() + a.dim + 1);
      c = add(Op::transpose, {c}, ir::AxesAttrs{order});
      ir::CollectiveAttrs scatter = a;
      scatter.dim = 0;
      scatter.tiled = scatter.stays = false;
      scatter.reduce = ir::ReduceOp::sum;
      c = add(Op::reduce_scatter, {c}, scatter);
      return give(x, Masked{c}, varies | members);
    }
    case ir::Collective::own_part: {
      if ((varies_[x] & members) == 0) {
        a.stays = true;
        c = add(Op::all_gather, {c}, a);
        return give(x, Masked{c}, varies & ~members);
      }
      const int64_t block =
          a.tiled ? at(type(node.inputs[0]).shape, static_cast<size_t>(a.dim)) /
                        ir::member_count(a).value()
                  : 1;
      NodeId index = position();
      if (a.tiled) {
        const Type row{DType::I32, {block}};
        const auto number = [&](int64_t value) {
          return out.add_constant({DType::I32, {}},
                                  element_bytes(DType::I32, value));
        };
        index = add(Op::mul, {index, number(block)});
        index = add(Op::broadcast, {index}, ir::BroadcastAttrs{row.shape, {}});
        index = add(Op::add, {index, add(Op::iota, {}, ir::IotaAttrs{row, 0})});
        std::vector<int> order = numbers(own.shape.size(), 0);
        std::rotate(order.begin(), order.begin() + a.dim,
                    order.begin() + a.dim + 1);
        c = add(Op::transpose, {c}, ir::AxesAttrs{order});
      }
      return give(x, Added{c, {index}, {a.dim}}, varies | members);
    }
    case ir::Collective::reduce_scatter:
      if (a.reduce != ir::ReduceOp::sum) not_linear(node);
      a.dim = 0;
      a.tiled = a.stays = false;
      return give(x, Masked{add(Op::all_gather, {c}, a)}, varies | members);
    case ir::Collective::all_to_all:
      return give(x, Masked{add(Op::all_to_all, {c}, a)}, varies | members);
    case ir::Collective::permute: return permute(node, c, varies | members);
    case ir::Collective::axis_index: break;
  }
  not_linear(node);
}

/// Pairs turned round. A source of several destinations gets the sum: each
/// destination's in an exchange of its own.
void Transposer::permute(const Node& node, NodeId c, AxisMask varies) {
  const NodeId x = node.inputs[0];
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  if (ir::same_for_all(node)) {
    // All have the same cotangent; the source alone takes it.
    ir::CollectiveAttrs where;
    where.axes = a.axes;
    where.sizes = a.sizes;
    const NodeId own = add(Op::axis_index, {}, where);
    const NodeId source = out.add_constant(
        {DType::I32, {}}, element_bytes(DType::I32, int64_t{a.pairs[0].first}));
    const Type type = out.type(c);
    const NodeId is_source = add(Op::broadcast, {add(Op::eq, {own, source})},
                                 ir::BroadcastAttrs{type.shape, {}});
    return give(x, Masked{c, is_source}, varies);
  }
  std::vector<std::pair<int, int>> left = a.pairs;
  while (!left.empty()) {
    ir::CollectiveAttrs back = a;
    back.pairs.clear();
    std::vector<std::pair<int, int>> later;
    for (const auto& [source, destination] : left) {
      const bool taken = std::ranges::any_of(
          back.pairs, [&](const auto& pair) { return pair.second == source; });
      if (taken)
        later.emplace_back(source, destination);
      else
        back.pairs.emplace_back(destination, source);
    }
    give(x, Masked{add(Op::permute, {c}, back)}, varies);
    left = std::move(later);
  }
}

}  // namespace unisono::jit
