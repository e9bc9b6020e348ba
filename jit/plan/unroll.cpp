#include "jit/plan/unroll.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "jit/ir/kinds.h"
#include "jit/ir/reduce_order.h"
#include "jit/kernel/group.h"
#include "jit/scalar/element.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::Kind;
using ir::Node;
using ir::Op;
using Index = std::vector<int64_t>;

namespace {

int64_t product(const Index& sizes) {
  int64_t out = 1;
  for (int64_t size : sizes) out *= size;
  return out;
}

/// Calls f(index) for all indices of a shape, row-major.
template <class F>
void for_each_index(const Index& shape, F&& f) {
  Index at(shape.size(), 0);
  for (int64_t i = product(shape); i-- > 0;) {
    f(std::as_const(at));
    for (size_t a = shape.size(); a-- > 0;) {
      if (++at[a] < shape[a]) break;
      at[a] = 0;
    }
  }
}

bool contains(const std::vector<int>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int>(axis)) !=
         axes.end();
}

}  // namespace

std::vector<int> Unroller::small_axes(const Array& array) const {
  std::vector<int> out;
  for (size_t a = 0; a < array.shape.size(); ++a)
    if (!contains(array.space, a)) out.push_back(static_cast<int>(a));
  return out;
}

Index Unroller::small_shape(const Array& array) const {
  Index out;
  for (int axis : small_axes(array)) out.push_back(array.shape[axis]);
  return out;
}

int64_t Unroller::count(const Array& array) const {
  return product(small_shape(array));
}

bool Unroller::is_small(const Array& array) const {
  const int64_t n = count(array);
  return n > 0 && n <= tuning().most_unrolled_elements;
}

PointArray Unroller::shaped(const ir::Type& type) const {
  Array out{type.dtype, type.sizes()};
  const Index& extents = nest_.extents;
  if (!extents.empty() && out.shape.size() >= extents.size() &&
      std::equal(extents.begin(), extents.end(), out.shape.begin()))
    for (size_t a = 0; a < extents.size(); ++a)
      out.space.push_back(static_cast<int>(a));
  return out;
}

Affine Unroller::offset(const Array& array, int64_t i) const {
  Affine at = constant_affine(i, nest_.extents.size());
  const Index strides = dense_strides(array.shape);
  for (size_t a = 0; a < array.space.size(); ++a)
    at.factors[a] = strides[array.space[a]];
  return at;
}

// ---- expressions -----------------------------------------------------------

ExprId Unroller::fresh(Expr expr) {
  if (expr.loop < 0) expr.loop = loop_;
  return append(std::move(expr));
}

ExprId Unroller::append(Expr expr) {
  if (expr.at.factors.empty() && expr.at.constant == 0)
    expr.at = constant_affine(0, nest_.extents.size());
  expr.source = place_;
  nest_.exprs.push_back(std::move(expr));
  return static_cast<ExprId>(nest_.exprs.size()) - 1;
}

/// `version`: of the memory that is read, if turns change it.
ExprId Unroller::intern(Expr expr, int64_t version) {
  if (expr.checked) return fresh(std::move(expr));
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {}|{}", static_cast<int>(expr.kind),
                  static_cast<int>(expr.op), static_cast<int>(expr.dtype),
                  static_cast<int>(expr.operand_dtype), expr.argument,
                  expr.bits, expr.at.constant, fmt::join(expr.at.factors, ","),
                  fmt::join(expr.operands, ","), expr.indexed.size());
  for (const Expr::IndexedAxis& axis : expr.indexed)
    key += fmt::format(" {} {} {}", axis.size, axis.stride, axis.inside);
  if (version >= 0) key += fmt::format(" v{} {}", version, loop_);
  const auto [at, is_new] = known_.try_emplace(std::move(key), -1);
  if (is_new) at->second = fresh(std::move(expr));
  return at->second;
}

ExprId Unroller::constant(DType dtype, uint64_t bits) {
  return intern({.kind = Expr::Kind::constant, .dtype = dtype, .bits = bits});
}

ExprId Unroller::integer(DType dtype, int64_t value) {
  const int size = static_cast<int>(byte_size(dtype));
  const uint64_t mask =
      size == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
  return constant(dtype, static_cast<uint64_t>(value) & mask);
}

ExprId Unroller::operation(Op op, DType dtype, DType operand_dtype,
                           std::vector<ExprId> operands) {
  Expr expr{.kind = Expr::Kind::operation,
            .op = op,
            .dtype = dtype,
            .operand_dtype = operand_dtype,
            .operands = std::move(operands)};
  if (const auto bits = folded(expr)) return constant(dtype, *bits);
  if (const auto holds = compared(expr)) return constant(dtype, *holds);
  if (op == Op::select)
    if (const Expr& decides = nest_.exprs[expr.operands[0]];
        decides.kind == Expr::Kind::constant)
      return expr.operands[decides.bits != 0 ? 1 : 2];
  const ExprId id = intern(std::move(expr));
  note_range(id);
  return id;
}

/// The value of an operation on constants; nothing where it fails.
std::optional<uint64_t> Unroller::folded(const Expr& expr) const {
  std::vector<uint64_t> bits;
  for (ExprId operand : expr.operands) {
    const Expr& x = nest_.exprs[operand];
    if (x.kind != Expr::Kind::constant) return std::nullopt;
    bits.push_back(x.bits);
  }
  const ElementLoop loop = expr.op == Op::cast
                               ? cast_loop(expr.operand_dtype, expr.dtype)
                               : element_loop(expr.op, expr.operand_dtype);
  std::vector<const void*> in;  // the first bytes: little endian
  for (const uint64_t& x : bits) in.push_back(&x);
  const std::vector<int64_t> strides(bits.size(), 0);
  uint64_t out = 0;
  ElementError error;
  loop(&out, in.data(), strides.data(), 1, &error);
  if (error.fault != Fault::none) return std::nullopt;
  return out;
}

/// Whether one integer is below, or above, another one, if their ranges tell.
std::optional<bool> Unroller::compared(const Expr& expr) const {
  if ((expr.op != Op::lt && expr.op != Op::gt) ||
      !is_integer(expr.operand_dtype))
    return std::nullopt;
  const bool below = expr.op == Op::lt;
  const auto less = range_of(expr.operands[below ? 0 : 1]),
             more = range_of(expr.operands[below ? 1 : 0]);
  if (!less || !more) return std::nullopt;
  if (less->second < more->first) return true;
  return less->first >= more->second ? std::optional(false) : std::nullopt;
}

ExprId Unroller::cast(ExprId value, DType dtype) {
  const DType from = nest_.exprs[value].dtype;
  if (from == dtype) return value;
  if (dtype == DType::I64 && from == DType::I32) return widened(value);
  return operation(Op::cast, dtype, from, {value});
}

/// An i32 as i64. What does not wrap is computed in i64 from the beginning: so
/// places are sums of the numbers of turns, which code steps through.
ExprId Unroller::widened(ExprId value) {
  const Expr expr = nest_.exprs[value];
  const bool is_plain = expr.kind == Expr::Kind::operation && !expr.checked &&
                        nest_.extents.empty() && range_of(value);
  // What has a range has operands with ranges.
  if (is_plain && expr.op == Op::cast && expr.operand_dtype == DType::I64)
    return expr.operands[0];
  if (is_plain && (expr.op == Op::add || expr.op == Op::sub)) {
    const ExprId a = widened(expr.operands[0]), b = widened(expr.operands[1]);
    return operation(expr.op, DType::I64, DType::I64, {a, b});
  }
  return operation(Op::cast, DType::I64, DType::I32, {value});
}

/// The value of an integer constant.
std::optional<int64_t> Unroller::known(ExprId id) const {
  const Expr& expr = nest_.exprs[id];
  if (expr.kind != Expr::Kind::constant || !is_integer(expr.dtype))
    return std::nullopt;
  const int unused = static_cast<int>(64 - 8 * byte_size(expr.dtype));
  if (is_signed(expr.dtype))
    return static_cast<int64_t>(expr.bits << unused) >> unused;
  if (unused == 0 && expr.bits > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  return static_cast<int64_t>(expr.bits);
}

/// Of an integer.
std::optional<IntegerRange> Unroller::range_of(ExprId id) const {
  if (const auto value = known(id)) return std::pair(*value, *value);
  const Expr& expr = nest_.exprs[id];
  if (expr.kind == Expr::Kind::iota) {
    const AffineRange reach = jit::range(expr.at, nest_.extents);
    return std::pair(reach.low, reach.high);
  }
  const auto found = ranges_.find(id);
  if (found == ranges_.end()) return std::nullopt;
  return found->second;
}

/// The range of a result that one operand bounds.
std::optional<IntegerRange> Unroller::bounded_range(const Expr& expr) const {
  if (expr.op == Op::bit_and) {
    std::optional<IntegerRange> out;
    for (ExprId operand : expr.operands)
      if (const auto range = range_of(operand);
          range && range->first >= 0 && (!out || range->second < out->second))
        out = IntegerRange(0, range->second);
    return out;
  }
  if (expr.op == Op::mod) {
    const auto divisor = known(expr.operands[1]);
    if (divisor && *divisor > 0) return IntegerRange(0, *divisor - 1);
  }
  if (expr.op == Op::select) {
    const auto one = range_of(expr.operands[1]),
               other = range_of(expr.operands[2]);
    if (one && other)
      return std::pair(std::min(one->first, other->first),
                       std::max(one->second, other->second));
  }
  return std::nullopt;
}

/// What follows for the range of a result that does not wrap.
void Unroller::note_range(ExprId id) {
  const Expr& expr = nest_.exprs[id];
  if (!is_integer(expr.dtype) || !is_integer(expr.operand_dtype)) return;
  if (const auto range = bounded_range(expr)) {
    ranges_[id] = *range;
    return;
  }
  std::vector<IntegerRange> x;
  for (ExprId operand : expr.operands) {
    const auto range = range_of(operand);
    if (!range) return;
    x.push_back(*range);
  }
  if (const auto range = range_of_result(expr.op, expr.dtype, x))
    ranges_[id] = *range;
}

bool Unroller::is_inside(ExprId index, int64_t size) const {
  const auto range = range_of(index);
  return range && range->first >= 0 && range->second < size;
}

ExprId Unroller::wrapped(ExprId index, int64_t size) {
  const bool inside = is_inside(index, size);
  index = cast(index, DType::I64);
  if (inside) return index;
  auto number = [&](int64_t value) { return integer(DType::I64, value); };
  auto op = [&](Op what, ExprId a, ExprId b) {
    return operation(what, DType::I64, DType::I64, {a, b});
  };
  const ExprId negative =
      operation(Op::lt, DType::Bool, DType::I64, {index, number(0)});
  index = operation(Op::select, DType::I64, DType::I64,
                    {negative, op(Op::add, index, number(size)), index});
  return op(Op::maximum, op(Op::minimum, index, number(size - 1)), number(0));
}

// ---- graphs ----------------------------------------------------------------

std::optional<std::vector<PointArray>> Unroller::place(
    const Graph& graph, std::vector<PointArray> arguments,
    const std::vector<bool>* needed) {
  std::vector<Array> values(graph.nodes.size());
  std::map<ir::NodeId, Arrays> results;  // where project reads
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto id = static_cast<ir::NodeId>(i);
    if (needed && !(*needed)[i]) continue;
    if (nest_.exprs.size() > tuning().most_unrolled_exprs) return std::nullopt;
    if (node.op == Op::input) {
      values[i] = std::move(arguments[i]);
      continue;
    }
    if (node.op == Op::project) {
      values[i] =
          results.at(node.inputs[0])[ir::attrs<ir::ProjectAttrs>(node).index];
      continue;
    }
    Arrays operands;
    for (ir::NodeId operand : node.inputs) operands.push_back(values[operand]);
    if (ir::has_results(node)) {
      auto all = results_of(graph, node, std::move(operands));
      if (!all) return std::nullopt;
      if (!all->empty()) values[i] = (*all)[0];
      results[id] = *std::move(all);
      continue;
    }
    auto value = value_of(graph, node, std::move(operands));
    if (!value) return std::nullopt;
    values[i] = *std::move(value);
  }
  Arrays outputs;
  for (ir::NodeId output : graph.outputs) outputs.push_back(values[output]);
  return outputs;
}

std::optional<Unroller::Arrays> Unroller::results_of(const Graph& graph,
                                                     const Node& node,
                                                     Arrays x) {
  return node.op == Op::if_else ? branch(graph, node, std::move(x))
                                : turns(node, std::move(x));
}

Unroller::Found Unroller::value_of(const Graph& graph, const Node& node,
                                   Arrays x) {
  place_ = node.source;
  switch (ir::kind(node.op)) {
    case Kind::map: return map(graph, node, std::move(x));
    case Kind::move: return move(node, std::move(x));
    case Kind::source: return source(node);
    case Kind::index:
      return node.op == Op::gather ? gather(graph, node, std::move(x))
                                   : scatter(graph, node, std::move(x));
    case Kind::reduce: return load(x[0]) ? reduce(x[0], node) : std::nullopt;
    case Kind::dot:
      return load(x[0]) && load(x[1]) ? dot(x[0], x[1], node) : std::nullopt;
    case Kind::collective:
    case Kind::argreduce:
    case Kind::scan:
    case Kind::sort:
    case Kind::control:
    case Kind::host: return std::nullopt;
  }
  __builtin_unreachable();
}

// ---- arrays ----------------------------------------------------------------

/// Brings an array from memory into registers.
bool Unroller::load(Array& array) {
  if (array.uniform) return false;
  if (!array.memory) return true;
  if (array.held) {
    if (!is_small(array) || !is_current(array)) return false;
    Array out{array.dtype, array.shape, array.space};
    for (int64_t i = 0; i < count(array); ++i)
      out.elements.push_back(held_element(array, integer(DType::I64, i)));
    array = std::move(out);
    return true;
  }
  ir::Type type{array.dtype, {}};
  for (int64_t size : array.shape) type.shape.emplace_back(size);
  Array out = shaped(type);
  if (!is_small(out)) return false;
  const std::vector<int> axes = small_axes(out);
  const auto strides = lies(array).strides;
  const Expr first = first_read(array, out.space);
  for_each_index(small_shape(out), [&](const Index& index) {
    Expr expr = first;
    for (size_t a = 0; a < axes.size(); ++a)
      expr.at.constant += index[a] * strides[axes[a]];
    out.elements.push_back(intern(std::move(expr)));
    if (array.memory->range)
      ranges_[out.elements.back()] = *array.memory->range;
  });
  array = std::move(out);
  return true;
}

bool Unroller::settle(Array& array) {
  if (!load(array)) return false;
  for (size_t a = 0; a < array.space.size(); ++a)
    if (array.space[a] != static_cast<int>(a)) return false;
  return true;
}

/// Whether maps can combine arrays of one shape in registers: all have the axes
/// of the space at the same places.
bool Unroller::fits(const Arrays& x) {
  return std::all_of(x.begin(), x.end(), [&](const Array& array) {
    return array.space == x[0].space;
  });
}

bool Unroller::may_fail(const Graph& graph, const Node& node,
                        const Arrays& x) const {
  if (!checked_ || !ir::must_stay(graph, node)) return false;
  if (ir::row(node.op).check != ir::Check::divisor) return true;
  // A divisor in a range without 0.
  return !std::all_of(x[1].elements.begin(), x[1].elements.end(),
                      [&](ExprId id) {
                        const auto range = range_of(id);
                        return range && (range->first > 0 || range->second < 0);
                      });
}

/// Of arrays that are too large for registers: a choice between two states of
/// one held array, as vmap makes of branches, or an operation on uniform ones.
Unroller::Found Unroller::map_uniform(const Node& node, const Arrays& x) {
  if (!x[0].uniform || !fits(x)) return std::nullopt;
  if (node.op == Op::select && x[1].held) {
    Array out = x[1];
    if (!merge_held(x[0].elements[0], out, x[2])) return std::nullopt;
    return out;
  }
  if (ir::row(node.op).check != ir::Check::none) return std::nullopt;
  std::vector<ExprId> operands;
  for (const Array& array : x) {
    if (!array.uniform) return std::nullopt;
    operands.push_back(array.elements[0]);
  }
  Array out = x[0];
  out.dtype = node.type.dtype;
  out.elements = {operation(node.op, out.dtype,
                            x[node.op == Op::select ? 1 : 0].dtype,
                            std::move(operands))};
  return out;
}

Unroller::Found Unroller::map(const Graph& graph, const Node& node, Arrays x) {
  if (auto out = map_uniform(node, x)) return out;
  for (Array& array : x)
    if (!load(array)) return std::nullopt;
  if (!fits(x)) return std::nullopt;
  Array out{node.type.dtype, x[0].shape, x[0].space};
  const DType operand_dtype = x[node.op == Op::select ? 1 : 0].dtype;
  const bool checked = may_fail(graph, node, x);
  for (size_t i = 0; i < x[0].elements.size(); ++i) {
    std::vector<ExprId> operands;
    for (const Array& array : x) operands.push_back(array.elements[i]);
    if (!checked) {
      out.elements.push_back(operation(node.op, node.type.dtype, operand_dtype,
                                       std::move(operands)));
      continue;
    }
    operands[1] = guarded(operands[1], 1);  // a divisor or an exponent
    Expr expr{.kind = Expr::Kind::operation,
              .op = node.op,
              .dtype = node.type.dtype,
              .operand_dtype = operand_dtype,
              .checked = true,
              .source = node.source,
              .operands = std::move(operands)};
    if (!set_member(expr, node, out)) return std::nullopt;
    out.elements.push_back(fresh(std::move(expr)));
  }
  return out;
}

/// A large constant whose elements are all the same.
Unroller::Found Unroller::uniform_source(const Node& node) {
  Array out = shaped(node.type);
  const auto size = static_cast<size_t>(byte_size(out.dtype));
  const auto* a = std::get_if<ir::ConstantAttrs>(&node.attrs);
  if (!a || a->bytes.size() != size || count(out) == 0) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, a->bytes.data(), size);  // little endian
  out.elements = {constant(out.dtype, bits)};
  out.uniform = true;
  return out;
}

Unroller::Found Unroller::source(const Node& node) {
  Array out = shaped(node.type);
  const DType dtype = out.dtype;
  if (!is_small(out)) return scratch_ ? uniform_source(node) : std::nullopt;
  if (node.op == Op::iota) {
    const auto axis = static_cast<size_t>(ir::attrs<ir::IotaAttrs>(node).axis);
    if (contains(out.space, axis)) {
      Expr expr{.kind = Expr::Kind::iota, .dtype = dtype};
      expr.at = constant_affine(0, nest_.extents.size());
      expr.at.factors[axis] = 1;  // the space's axes are in front
      out.elements.assign(static_cast<size_t>(count(out)),
                          intern(std::move(expr)));
      return out;
    }
    const std::vector<int> axes = small_axes(out);
    const size_t place =
        std::find(axes.begin(), axes.end(), static_cast<int>(axis)) -
        axes.begin();
    for_each_index(small_shape(out), [&](const Index& at) {
      ExprId value = integer(DType::I64, at[place]);
      if (dtype != DType::I64)
        value =
            is_integer(dtype) ? integer(dtype, at[place]) : cast(value, dtype);
      out.elements.push_back(value);
    });
    return out;
  }
  const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
  const auto size = static_cast<size_t>(byte_size(dtype));
  const bool one = bytes.size() == size;
  if (!one) out.space.clear();
  if (!is_small(out)) return std::nullopt;
  for (int64_t i = 0; i < count(out); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + (one ? 0 : static_cast<size_t>(i) * size),
                size);
    out.elements.push_back(constant(dtype, bits));
  }
  return out;
}

// ---- moves -----------------------------------------------------------------

template <class From>
Unroller::Found Unroller::rearranged(const Array& x, Array out,
                                     const From& from) {
  if (!is_small(out)) return std::nullopt;
  const std::vector<int> axes = small_axes(out), own = small_axes(x);
  const Index strides = dense_strides(small_shape(x));
  for_each_index(small_shape(out), [&](const Index& at) {
    Index whole(out.shape.size(), 0);
    for (size_t a = 0; a < axes.size(); ++a) whole[axes[a]] = at[a];
    const Index source = from(whole);
    int64_t flat = 0;
    for (size_t a = 0; a < own.size(); ++a) flat += source[own[a]] * strides[a];
    out.elements.push_back(x.held ? held_element(x, integer(DType::I64, flat))
                                  : x.elements[static_cast<size_t>(flat)]);
  });
  return out;
}

Unroller::Found Unroller::move(const Node& node, Arrays x) {
  if (auto out = view(x[0], node)) return out;
  if (node.op == Op::reshape) return reshape(std::move(x[0]), node);
  const bool is_part = node.op == Op::slice;
  if (node.op == Op::concat && scratch_)
    if (auto out = concat_in_memory(x, node)) return out;
  for (Array& array : x) {
    if (!is_current(array)) return std::nullopt;
    if (!(is_part && array.held) && !load(array)) return std::nullopt;
  }
  Array out{node.type.dtype, node.type.sizes(), x[0].space};
  switch (ir::move_of(node.op)) {
    case ir::Move::reshape: break;
    case ir::Move::broadcast: return broadcast(x[0], node);
    case ir::Move::concat: return concat(x, node);
    case ir::Move::pad: return pad(x, node);
    case ir::Move::transpose: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(node).axes;
      for (int& axis : out.space)
        axis = static_cast<int>(std::find(axes.begin(), axes.end(), axis) -
                                axes.begin());
      return rearranged(x[0], out, [&](const Index& at) {
        Index from(at.size());
        for (size_t a = 0; a < at.size(); ++a) from[axes[a]] = at[a];
        return from;
      });
    }
    case ir::Move::slice: {
      const auto& a = ir::attrs<ir::SliceAttrs>(node);
      for (int axis : out.space)
        if (out.shape[axis] != x[0].shape[axis]) return std::nullopt;
      return rearranged(x[0], out, [&](Index at) {
        for (size_t i = 0; i < at.size(); ++i)
          at[i] = a.start[i].value() + at[i] * a.step[i].value();
        return at;
      });
    }
    case ir::Move::flip: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(node).axes;
      for (int axis : axes)
        if (contains(out.space, static_cast<size_t>(axis))) return std::nullopt;
      return rearranged(x[0], out, [&](Index at) {
        for (int axis : axes) at[axis] = out.shape[axis] - 1 - at[axis];
        return at;
      });
    }
  }
  __builtin_unreachable();
}

Unroller::Found Unroller::reshape(Array x, const Node& node) {
  if (x.memory && !x.held && !load(x)) return std::nullopt;
  Array out = x;
  out.shape = node.type.sizes();
  if (x.space.empty()) return out;
  const Array wanted = shaped(node.type);
  const bool in_front = x.space == wanted.space;
  if (!in_front) return std::nullopt;
  return out;
}

Unroller::Found Unroller::broadcast(const Array& x, const Node& node) {
  const auto& axes = ir::attrs<ir::BroadcastAttrs>(node).axes;
  Array out{x.dtype, node.type.sizes()};
  if (!x.space.empty()) {
    for (int axis : x.space) out.space.push_back(axes[axis]);
  } else {
    out = shaped(node.type);
    // Its own elements along an axis of the space are everybody's.
    for (size_t a = 0; a < axes.size(); ++a)
      if (x.shape[a] > 1 && contains(out.space, static_cast<size_t>(axes[a])))
        return std::nullopt;
  }
  if (x.elements.size() == 1 && count(out) > tuning().most_unrolled_elements) {
    out.elements = x.elements;
    out.uniform = true;
    return out;
  }
  return rearranged(x, out, [&](const Index& at) {
    Index from(x.shape.size());
    for (size_t a = 0; a < from.size(); ++a)
      from[a] = x.shape[a] == 1 ? 0 : at[axes[a]];
    return from;
  });
}

/// Of parts that are too large for registers together.
Unroller::Found Unroller::concat_in_memory(const Arrays& x, const Node& node) {
  Array wanted{node.type.dtype, node.type.sizes()};
  if (is_small(wanted) || ir::attrs<ir::AxisAttrs>(node).axis != 0)
    return std::nullopt;
  auto out = scratch(wanted.dtype, wanted.shape);
  int64_t first = 0;
  for (size_t i = 0; out && i < x.size(); ++i) {
    if (!put_at(*out, first, x[i])) return std::nullopt;
    first += product(x[i].shape);
  }
  return out;
}

Unroller::Found Unroller::concat(const Arrays& x, const Node& node) {
  const auto axis = static_cast<size_t>(ir::attrs<ir::AxisAttrs>(node).axis);
  Array out{node.type.dtype, node.type.sizes(), x[0].space};
  if (contains(out.space, axis) || !is_small(out)) return std::nullopt;
  for (const Array& part : x)
    if (part.space != out.space) return std::nullopt;
  const std::vector<int> axes = small_axes(out);
  const size_t place =
      std::find(axes.begin(), axes.end(), static_cast<int>(axis)) -
      axes.begin();
  for_each_index(small_shape(out), [&](Index at) {
    size_t part = 0;
    while (at[place] >= x[part].shape[axis]) at[place] -= x[part++].shape[axis];
    const Index strides = dense_strides(small_shape(x[part]));
    int64_t flat = 0;
    for (size_t a = 0; a < at.size(); ++a) flat += at[a] * strides[a];
    out.elements.push_back(x[part].elements[static_cast<size_t>(flat)]);
  });
  return out;
}

Unroller::Found Unroller::pad(const Arrays& x, const Node& node) {
  const auto& attrs = ir::attrs<ir::PadAttrs>(node);
  Array out{node.type.dtype, node.type.sizes(), x[0].space};
  for (int axis : out.space)
    if (out.shape[axis] != x[0].shape[axis]) return std::nullopt;
  if (!is_small(out)) return std::nullopt;
  const std::vector<int> axes = small_axes(out);
  const Index inner = small_shape(x[0]), strides = dense_strides(inner);
  for_each_index(small_shape(out), [&](const Index& at) {
    int64_t flat = 0;
    bool inside = true;
    for (size_t a = 0; a < at.size(); ++a) {
      const int64_t i = at[a] - attrs.low[axes[a]].value();
      inside = inside && i >= 0 && i < inner[a];
      flat += i * strides[a];
    }
    out.elements.push_back(inside ? x[0].elements[static_cast<size_t>(flat)]
                                  : x[1].elements[0]);
  });
  return out;
}

// ---- reductions and products ----------------------------------------------

Unroller::Found Unroller::reduce(const Array& x, const Node& node) {
  const auto& attrs = ir::attrs<ir::ReduceAttrs>(node);
  const DType stored = node.type.dtype, dtype = accumulator(stored);
  const Op op = ir::combine_op(node.op);
  Array out{stored, node.type.sizes()};
  for (int axis : x.space) {
    if (contains(attrs.axes, static_cast<size_t>(axis))) return std::nullopt;
    out.space.push_back(static_cast<int>(
        axis - std::count_if(attrs.axes.begin(), attrs.axes.end(),
                             [&](int reduced) { return reduced < axis; })));
  }
  if (!is_small(out)) return std::nullopt;
  std::vector<int> kept;
  Index along;
  for (size_t a = 0; a < x.shape.size(); ++a)
    if (contains(attrs.axes, a))
      along.push_back(x.shape[a]);
    else
      kept.push_back(static_cast<int>(a));
  const int64_t n = product(along);  // not 0: the operand is in registers
  if (n > tuning().most_unrolled_elements) return std::nullopt;
  const Index strides = dense_strides(small_shape(x));
  const std::vector<int> axes = small_axes(x), own = small_axes(out);
  const CombineOrder order =
      combine_order(attrs, static_cast<int>(x.shape.size()));
  for_each_index(small_shape(out), [&](const Index& at) {
    Index whole(x.shape.size(), 0);
    for (size_t a = 0; a < own.size(); ++a) whole[kept[own[a]]] = at[a];
    std::vector<ExprId> line;
    for_each_index(along, [&](const Index& inner) {
      for (size_t a = 0; a < inner.size(); ++a) whole[attrs.axes[a]] = inner[a];
      int64_t flat = 0;
      for (size_t a = 0; a < axes.size(); ++a)
        flat += whole[axes[a]] * strides[a];
      line.push_back(cast(x.elements[static_cast<size_t>(flat)], dtype));
    });
    auto get = [&](int64_t i) { return line[static_cast<size_t>(i)]; };
    auto combine = [&](ExprId a, ExprId b) {
      return operation(op, dtype, dtype, {a, b});
    };
    const ExprId total =
        order == CombineOrder::lanes  ? reduce_contiguous(n, get, combine)
        : order == CombineOrder::runs ? reduce_strided(n, get, combine)
                                      : reduce_members(n, get, combine);
    out.elements.push_back(cast(total, stored));
  });
  return out;
}

Unroller::Found Unroller::dot(const Array& a, const Array& b,
                              const Node& node) {
  const auto& attrs = ir::attrs<ir::DotAttrs>(node);
  const DType stored = node.type.dtype, dtype = accumulator(stored);
  // For each axis of the result, that of a and of b; -1: none.
  std::vector<std::pair<int, int>> from;
  for (size_t i = 0; i < attrs.batch_a.size(); ++i)
    from.emplace_back(attrs.batch_a[i], attrs.batch_b[i]);
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (!contains(attrs.batch_a, i) && !contains(attrs.contract_a, i))
      from.emplace_back(static_cast<int>(i), -1);
  for (size_t i = 0; i < b.shape.size(); ++i)
    if (!contains(attrs.batch_b, i) && !contains(attrs.contract_b, i))
      from.emplace_back(-1, static_cast<int>(i));
  Array out{stored, node.type.sizes()};
  for (size_t s = 0; s < nest_.extents.size(); ++s) {
    const int of_a = a.space.empty() ? -1 : a.space[s];
    const int of_b = b.space.empty() ? -1 : b.space[s];
    if (of_a < 0 && of_b < 0) break;
    const auto found =
        std::find(from.begin(), from.end(), std::pair(of_a, of_b));
    if (found == from.end()) return std::nullopt;
    out.space.push_back(static_cast<int>(found - from.begin()));
  }
  Index along;
  for (int axis : attrs.contract_a) along.push_back(a.shape[axis]);
  if (!is_small(out) || product(along) > tuning().most_unrolled_elements)
    return std::nullopt;
  const std::vector<int> own = small_axes(out);
  auto element = [&](const Array& x, const Index& whole) {
    const std::vector<int> axes = small_axes(x);
    const Index strides = dense_strides(small_shape(x));
    int64_t flat = 0;
    for (size_t i = 0; i < axes.size(); ++i)
      flat += whole[axes[i]] * strides[i];
    return cast(x.elements[static_cast<size_t>(flat)], dtype);
  };
  for_each_index(small_shape(out), [&](const Index& at) {
    Index in_a(a.shape.size(), 0), in_b(b.shape.size(), 0);
    for (size_t i = 0; i < own.size(); ++i) {
      const auto [of_a, of_b] = from[own[i]];
      if (of_a >= 0) in_a[of_a] = at[i];
      if (of_b >= 0) in_b[of_b] = at[i];
    }
    ExprId sum = constant(dtype, 0);
    for_each_index(along, [&](const Index& k) {
      for (size_t i = 0; i < k.size(); ++i) {
        in_a[attrs.contract_a[i]] = k[i];
        in_b[attrs.contract_b[i]] = k[i];
      }
      const ExprId p = element(a, in_a), q = element(b, in_b);
      sum = is_floating(dtype)
                ? operation(Op::fma, dtype, dtype, {p, q, sum})
                : operation(Op::add, dtype, dtype,
                            {operation(Op::mul, dtype, dtype, {p, q}), sum});
    });
    out.elements.push_back(cast(sum, stored));
  });
  return out;
}

}  // namespace unisono::jit
