// The tangent of one node, from its operands' tangents.
#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/derivative/factors.h"
#include "jit/derivative/linearize.h"
#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "jit/transform/distinct.h"

namespace unisono::jit {

using ir::Node;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

int64_t size_along(const Type& type, int axis) {
  return type.shape[static_cast<size_t>(axis)].value();
}

/// Elements `start` ... `start + size` - 1 along one axis.
NodeId part(Graph& g, NodeId x, int axis, int64_t start, int64_t size) {
  const Shape& shape = g.type(x).shape;
  ir::SliceAttrs a{Shape(shape.size(), 0), Shape(shape.size(), 1), shape};
  a.start[static_cast<size_t>(axis)] = start;
  a.size[static_cast<size_t>(axis)] = size;
  return g.add(Op::slice, {x}, a);
}

/// y with y[k] = x[k - 1] along one axis, and y[0] = `first`.
NodeId moved_up(Graph& g, NodeId x, int axis, double first) {
  const Type type = g.type(x);
  const int64_t n = size_along(type, axis);
  const NodeId fill =
      g.add_constant({type.dtype, {}}, element_bytes(type.dtype, first));
  ir::PadAttrs a{Shape(type.shape.size(), 0), Shape(type.shape.size(), 0)};
  a.low[static_cast<size_t>(axis)] = 1;
  return g.add(Op::pad, {part(g, x, axis, 0, n - 1), fill}, a);
}

NodeId flipped(Graph& g, NodeId x, int axis, bool flip) {
  return flip ? g.add(Op::flip, {x}, ir::AxesAttrs{{axis}}) : x;
}

}  // namespace

NodeId Linearizer::map(const Node& node, const Duals& x, NodeId result) {
  const auto times = [&](size_t i, NodeId value) {
    return x[i].has_tangent() ? t(Op::mul, {x[i].tangent, take(value)}) : -1;
  };
  if (node.op == Op::select)
    return t(Op::select, {take(x[0].value), tangent_or_zeros(x[1]),
                          tangent_or_zeros(x[2])});
  if (node.op == Op::cast) return t(Op::cast, {x[0].tangent}, node.attrs);
  if (node.op == Op::fma)
    return plus(plus(times(0, x[1].value), times(1, x[0].value)), x[2].tangent);
  NodeId sum = -1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x[i].has_tangent()) continue;
    const Factor f = factor(values_, node.op, i, x[0].value, x.back().value,
                            result, source_);
    switch (f.kind) {
      case Factor::Kind::zero: break;
      case Factor::Kind::one: sum = plus(sum, x[i].tangent); break;
      case Factor::Kind::minus_one:
        sum = sum < 0 ? t(Op::neg, {x[i].tangent})
                      : t(Op::sub, {sum, x[i].tangent});
        break;
      case Factor::Kind::node: sum = plus(sum, times(i, f.node)); break;
      case Factor::Kind::unknown:
        throw NoDerivative{NoDerivative::Why::no_factor, node.op, source_};
    }
  }
  return sum;
}

NodeId Linearizer::reduce(const Node& node, const Dual& x, NodeId result) {
  if (node.op == Op::sum) return t(Op::sum, {x.tangent}, node.attrs);
  return node.op == Op::prod ? product(node, x) : extremum(node, x, result);
}

/// The sum of each tangent times the product of all other elements: running
/// products from both sides, so that zeros are exact, in derivatives of any
/// order.
NodeId Linearizer::product(const Node& node, const Dual& x) {
  const auto& axes = ir::attrs<ir::ReduceAttrs>(node).axes;
  const Type all = type(x);
  const int rank = all.rank();
  std::vector<int> order;
  Shape rows;
  for (int i = 0; i < rank; ++i) {
    if (std::ranges::find(axes, i) != axes.end()) continue;
    order.push_back(i);
    rows.push_back(all.shape[static_cast<size_t>(i)]);
  }
  int64_t n = 1;
  for (const int axis : axes) {
    order.push_back(axis);
    n *= size_along(all, axis);
  }
  if (n == 0 || axes.empty()) return t(Op::sum, {x.tangent}, node.attrs);
  const int last = static_cast<int>(rows.size());
  rows.push_back(n);
  const NodeId turned = v(Op::transpose, {x.value}, ir::AxesAttrs{order});
  const Shape turned_shape = values_.type(turned).shape;
  const NodeId line = v(Op::reshape, {turned}, ir::ShapeAttrs{rows});
  const auto before = [&](NodeId from) {
    return moved_up(values_, v(Op::cumprod, {from}, ir::ScanAttrs{last, false}),
                    last, 1.0);
  };
  const NodeId after =
      flipped(values_, before(flipped(values_, line, last, true)), last, true);
  const NodeId others = v(Op::mul, {before(line), after});
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int>(i);
  const NodeId factors =
      v(Op::transpose, {v(Op::reshape, {others}, ir::ShapeAttrs{turned_shape})},
        ir::AxesAttrs{back});
  return t(Op::sum, {t(Op::mul, {x.tangent, take(factors)})}, node.attrs);
}

/// Elements that are the extremum share its derivative equally.
NodeId Linearizer::extremum(const Node& node, const Dual& x, NodeId result) {
  const auto& axes = ir::attrs<ir::ReduceAttrs>(node).axes;
  const Type all = type(x);
  ir::BroadcastAttrs back{all.shape, {}};
  for (int i = 0; i < all.rank(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) back.axes.push_back(i);
  const NodeId is_it =
      v(Op::eq, {x.value, v(Op::broadcast, {result}, std::move(back))});
  const NodeId count =
      v(Op::sum, {v(Op::cast, {is_it}, ir::CastAttrs{all.dtype})}, node.attrs);
  const Type one = values_.type(count);
  const NodeId share =
      v(Op::div,
        {v_number(one, 1.0), v(Op::maximum, {count, v_number(one, 1.0)})});
  const NodeId theirs = t(Op::select, {take(is_it), x.tangent, t_zeros(all)});
  return t(Op::mul, {t(Op::sum, {theirs}, node.attrs), take(share)});
}

NodeId Linearizer::scan(const Node& node, const Dual& x, NodeId result) {
  if (node.op == Op::cumsum) return t(Op::cumsum, {x.tangent}, node.attrs);
  return recurrence(node, x, result);
}

/// The tangent s of a running product or extremum r follows from the one
/// before, s[k] = a[k] s[k - 1] + b[k], in steps of 1, 2, 4, ... elements:
///   cumprod  a = x, b = r[k - 1] times the tangent of x
///   cummax   a = [r[k] is r[k - 1]], b = [x[k] is r[k]] times the tangent; of
///            equal elements so far each has its share
NodeId Linearizer::recurrence(const Node& node, const Dual& x, NodeId result) {
  const auto& attrs = ir::attrs<ir::ScanAttrs>(node);
  const int axis = attrs.axis;
  const Type all = type(x);
  const int64_t n = size_along(all, axis);
  if (n == 0) return x.tangent;
  const NodeId elements = flipped(values_, x.value, axis, attrs.reverse);
  const NodeId r = flipped(values_, result, axis, attrs.reverse);
  const NodeId tangent = flipped(tangents(), x.tangent, axis, attrs.reverse);
  const bool product = node.op == Op::cumprod;
  const NodeId before =
      moved_up(values_, r, axis,
               product ? 1.0 : std::numeric_limits<double>::quiet_NaN());
  NodeId a = elements, b = -1, count = -1;
  if (product) {
    b = t(Op::mul, {tangent, take(before)});
  } else {
    const ir::CastAttrs number{all.dtype};
    a = v(Op::cast, {v(Op::eq, {r, before})}, number);
    const NodeId is_it = v(Op::eq, {elements, r});
    b = t(Op::select, {take(is_it), tangent, t_zeros(all)});
    count = v(Op::cast, {is_it}, number);
  }
  if (n > 1) a = part(values_, a, axis, 1, n - 1);
  for (int64_t step = 1; step < n; step *= 2) {
    const auto next = [&](Graph& g, NodeId s, NodeId factor) {
      const NodeId more =
          g.add(Op::mul, {part(g, s, axis, 0, n - step), factor});
      const NodeId later =
          g.add(Op::add, {part(g, s, axis, step, n - step), more});
      return g.add(Op::concat, {part(g, s, axis, 0, step), later},
                   ir::AxisAttrs{axis});
    };
    if (count >= 0) count = next(values_, count, a);
    const NodeId factor = take(a);
    b = next(tangents(), b, factor);
    if (2 * step < n)
      a = v(Op::mul, {part(values_, a, axis, step, n - 2 * step),
                      part(values_, a, axis, 0, n - 2 * step)});
  }
  if (count >= 0) {
    const NodeId one = v_number(all, 1.0);
    const NodeId share = v(Op::div, {one, v(Op::maximum, {count, one})});
    b = t(Op::mul, {b, take(share)});
  }
  return flipped(tangents(), b, axis, attrs.reverse);
}

/// Value and tangent are gathered by one argsort: sorting is stable, so the
/// value has the bits of `sort`.
Dual Linearizer::sorted(const Dual& x) {
  const Type all = type(x);
  ir::IndexAttrs attrs{{}, false};
  std::vector<NodeId> value = {x.value}, tangent = {x.tangent};
  for (int i = 0; i < all.rank(); ++i) {
    const NodeId positions =
        i + 1 == all.rank()
            ? v(Op::argsort, {x.value})
            : v(Op::iota, {}, ir::IotaAttrs{{DType::I32, all.shape}, i});
    attrs.axes.push_back(i);
    value.push_back(positions);
    tangent.push_back(take(positions));
  }
  return {v(Op::gather, value, attrs), t(Op::gather, tangent, attrs)};
}

NodeId Linearizer::move(const Node& node, const Duals& x) {
  std::vector<NodeId> operands;
  for (const Dual& operand : x) operands.push_back(tangent_or_zeros(operand));
  return t(node.op, std::move(operands), node.attrs);
}

/// Positions were checked where the value is computed.
/// Apart, whether it is known of the operands of a scatter to several places
/// that all updates are in its result.
bool Linearizer::all_win(const Duals& x, const std::vector<int>& axes) const {
  if (!apart() || type(x[2]).elements() <= 1) return false;
  std::vector<NodeId> indices;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    indices.push_back(x[i + 2].value);
    sizes.push_back(type(x[0]).shape[static_cast<size_t>(axes[i])].value());
  }
  return positions_differ(values_, indices, sizes);
}

NodeId Linearizer::index(const Node& node, const Duals& x) {
  ir::IndexAttrs attrs = ir::attrs<ir::IndexAttrs>(node);
  attrs.checked = false;
  const size_t arrays = x.size() - attrs.axes.size();
  std::vector<NodeId> operands;
  for (size_t i = 0; i < x.size(); ++i)
    operands.push_back(i < arrays ? tangent_or_zeros(x[i]) : take(x[i].value));
  if (node.op == Op::scatter && x[1].has_tangent() && all_win(x, attrs.axes)) {
    // The same as a sum, whose transpose need not ask which update has won.
    if (x[0].has_tangent()) {
      std::vector<NodeId> cleared = operands;
      cleared[1] = t_zeros(Type(type(x[1])));
      operands[0] = t(Op::scatter, std::move(cleared), attrs);
    }
    return t(Op::scatter_add, std::move(operands), std::move(attrs));
  }
  return t(node.op, std::move(operands), std::move(attrs));
}

NodeId Linearizer::dot(const Node& node, const Duals& x) {
  const auto& [a, b] = std::pair(x[0], x[1]);
  NodeId first = -1, second = -1;
  if (a.has_tangent())
    first = t(Op::dot, {a.tangent, take(b.value)}, node.attrs);
  if (b.has_tangent())
    second = t(Op::dot, {take(a.value), b.tangent}, node.attrs);
  return plus(first, second);
}

NodeId Linearizer::collective(const Node& node, const Dual& x, NodeId result) {
  ir::CollectiveAttrs attrs = ir::attrs<ir::CollectiveAttrs>(node);
  const bool reduces =
      node.op == Op::all_reduce || node.op == Op::reduce_scatter;
  if (!reduces || attrs.reduce == ir::ReduceOp::sum)
    return t(node.op, {x.tangent}, attrs);
  // Members that have the extremum share its derivative equally.
  attrs.reduce = ir::ReduceOp::sum;
  const Type all = type(x), one_type = values_.type(result);
  const NodeId extremum =
      node.op == Op::all_reduce ? result : v(Op::all_gather, {result}, attrs);
  const NodeId is_it = v(Op::eq, {x.value, extremum});
  const NodeId count =
      v(node.op, {v(Op::cast, {is_it}, ir::CastAttrs{all.dtype})}, attrs);
  const NodeId one = v_number(one_type, 1.0);
  const NodeId share = v(Op::div, {one, v(Op::maximum, {count, one})});
  const NodeId own = t(Op::select, {take(is_it), x.tangent, t_zeros(all)});
  return t(Op::mul, {t(node.op, {own}, attrs), take(share)});
}

}  // namespace unisono::jit
