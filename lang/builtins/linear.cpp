// Products of arrays, as the IR's `dot`.
#include <fmt/format.h>

#include <array>
#include <numeric>

#include "lang/context/call_of.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/einsum.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

/// Both operands at one element type that `dot` takes.
std::vector<ArrayValue> dot_operands(Walk& walk, const CallArgument& a,
                                     const CallArgument& b,
                                     std::string_view name) {
  const std::array<CallArgument, 2> written = {a, b};
  std::vector<ArrayValue> out =
      promote_operands(walk, written, fmt::format("`{}`", name));
  if (is_bool(out[0]->type.dtype))
    walk.fail(diagnostic(Code::element_class, a.where, name, "numbers",
                         out[0]->type.to_string())
                  .set_help("count with `i32(x)`"));
  return out;
}

/// `precision` of products: what they may be computed with.
ir::Precision precision_argument(Argument precision) {
  if (!precision.written()) return ir::Precision::usual;
  const std::string name = str_argument(precision);
  if (name == "default") return ir::Precision::usual;
  if (name == "exact") return ir::Precision::exact;
  if (name == "tf32") return ir::Precision::tf32;
  wrong_argument(precision, "\"default\", \"exact\" or \"tf32\"");
}

[[noreturn]] void inner_sizes_differ(Walk& walk, std::string_view name,
                                     const ArrayValue& a, int axis_a,
                                     const ArrayValue& b, int axis_b,
                                     Span where) {
  const ir::Dim& m = a->type.shape[axis_a];
  const ir::Dim& n = b->type.shape[axis_b];
  Diagnostic d = diagnostic(Code::inner_sizes_differ, where, name,
                            a->type.to_string(), b->type.to_string())
                     .add_fact(fmt::format(
                         "axis {} of the left has size {}, axis {} of the "
                         "right has size {}",
                         axis_a, m.to_string(), axis_b, n.to_string()));
  d.about(m - n);
  const int rank_b = b->type.rank();
  const bool transposed =
      a->type.rank() > 1 && rank_b > 1 && m == b->type.shape[rank_b - 1];
  if (!(m - n).is_constant())
    d.set_help("state that sizes are equal with `x as f32[n, m]`");
  else if (transposed)
    d.set_help(
        "did you mean the transpose of the right, `swapaxes(b, -1, "
        "-2)`?");
  walk.fail(std::move(d));
}

/// Lets the axes that are summed over have one size, or fails.
void meet_inner_sizes(Walk& walk, std::string_view name,
                      std::vector<ArrayValue>& x, int axis_a, int axis_b,
                      Span where) {
  const std::array<int, 2> axes = {axis_a, axis_b};
  const auto size =
      same_size(x[0]->type.shape[axis_a], x[1]->type.shape[axis_b]);
  if (!size) inner_sizes_differ(walk, name, x[0], axis_a, x[1], axis_b, where);
  for (size_t side : {0, 1}) {
    ir::Shape shape = x[side]->type.shape;
    shape[axes[side]] = *size;
    x[side] = taken_for(walk, x[side], std::move(shape));
  }
}

/// Sums over axis_a of a and axis_b of b; other axes of a, then of b, remain.
ArrayValue contract(Walk& walk, const ArrayValue& a, std::vector<int> axes_a,
                    const ArrayValue& b, std::vector<int> axes_b,
                    ir::Precision precision, Span where) {
  return walk.add(
      ir::Op::dot, {a, b},
      ir::DotAttrs{{}, {}, std::move(axes_a), std::move(axes_b), precision},
      where);
}

ArrayValue product(Walk& walk, const CallArgument& a, const CallArgument& b,
                   std::vector<ArrayValue> x, Span where,
                   std::string_view name) {
  broadcast_all(walk, x, std::array<CallArgument, 2>{a, b}, where,
                fmt::format("`{}`", name));
  return apply(walk, ir::Op::mul, x[0], x[1], where);
}

/// Both with batch axes: those are broadcast against one another.
ArrayValue batched_matmul(Walk& walk, ArrayValue a, ArrayValue b,
                          ir::Precision precision, Span where) {
  const auto batch = [](const ArrayValue& x) {
    return ir::Shape(x->type.shape.begin(), x->type.shape.end() - 2);
  };
  const auto common = broadcast_shape(walk, batch(a), batch(b));
  if (!common) {
    Diagnostic d = diagnostic(Code::shapes_differ, where, "`@`",
                              a->type.to_string(), b->type.to_string());
    d.add_fact(fmt::format("batch axes are {} and {}", shape_text(batch(a)),
                           shape_text(batch(b))));
    walk.fail(d.about());
  }
  const auto stretched = [&](const ArrayValue& x) {
    ir::Shape shape = *common;
    shape.insert(shape.end(), x->type.shape.end() - 2, x->type.shape.end());
    return broadcast_to(walk, x, shape, where);
  };
  a = stretched(a);
  b = stretched(b);
  const int rank = a->type.rank();
  std::vector<int> axes(rank - 2);
  std::iota(axes.begin(), axes.end(), 0);
  return walk.add(ir::Op::dot, {a, b},
                  ir::DotAttrs{axes, axes, {rank - 1}, {rank - 2}, precision},
                  where);
}

}  // namespace

Value matmul(Walk& walk, const CallArgument& a, const CallArgument& b,
             Span where, ir::Precision precision) {
  std::vector<ArrayValue> x = dot_operands(walk, a, b, "@");
  const int rank_a = x[0]->type.rank(), rank_b = x[1]->type.rank();
  if (rank_a == 0 || rank_b == 0)
    walk.fail(diagnostic(Code::rank_mismatch, where, "@",
                         "arrays of rank 1 or more",
                         fmt::format("{} and {}", x[0]->type.to_string(),
                                     x[1]->type.to_string()))
                  .set_help("scale with `*`"));
  const int inner_a = rank_a - 1;
  const int inner_b = rank_b == 1 ? 0 : rank_b - 2;
  meet_inner_sizes(walk, "@", x, inner_a, inner_b, where);
  if (rank_b <= 2)
    return contract(walk, x[0], {inner_a}, x[1], {inner_b}, precision, where);
  if (rank_a == 1) {
    // The free axes of b are its batch axes and its last one, in order.
    return contract(walk, x[0], {0}, x[1], {inner_b}, precision, where);
  }
  return batched_matmul(walk, x[0], x[1], precision, where);
}

Value builtin_matmul(CallOf<"matmul">& call) {
  return matmul(call.walk, call["a"], call["b"], call.where,
                precision_argument(call["precision"]));
}

Value builtin_dot(CallOf<"dot">& call) {
  Walk& walk = call.walk;
  const ir::Precision precision = precision_argument(call["precision"]);
  std::vector<ArrayValue> x = dot_operands(walk, call["a"], call["b"], "dot");
  const int rank_a = x[0]->type.rank(), rank_b = x[1]->type.rank();
  if (rank_a == 0 || rank_b == 0)
    return product(walk, call["a"], call["b"], x, call.where, "dot");
  const int inner_b = rank_b == 1 ? 0 : rank_b - 2;
  meet_inner_sizes(walk, "dot", x, rank_a - 1, inner_b, call.where);
  return contract(walk, x[0], {rank_a - 1}, x[1], {inner_b}, precision,
                  call.where);
}

Value builtin_outer(CallOf<"outer">& call) {
  Walk& walk = call.walk;
  const std::array<CallArgument, 2> written = {call["a"], call["b"]};
  std::vector<ArrayValue> x = promote_operands(walk, written, "`outer`");
  if (is_bool(x[0]->type.dtype))
    x = dot_operands(walk, call["a"], call["b"], "outer");
  const ir::Dim m = ir::element_count(x[0]->type.shape);
  const ir::Dim n = ir::element_count(x[1]->type.shape);
  x[0] = reshape(walk, x[0], {m, 1}, call.where);
  x[1] = reshape(walk, x[1], {1, n}, call.where);
  return product(walk, call["a"], call["b"], x, call.where, "outer");
}

namespace {

/// The axes that tensordot sums over, of each operand.
std::array<std::vector<int>, 2> tensordot_axes(
    Argument axes, const std::vector<ArrayValue>& x) {
  BuiltinCall& call = axes.call();
  std::array<std::vector<int>, 2> out;
  const TupleValue* tuple = axes.written() ? axes.value().tuple() : nullptr;
  if (!tuple) {
    const int64_t n = axes.written() ? known_int_argument(axes) : 2;
    const int rank_a = x[0]->type.rank();
    if (n < 0 || n > rank_a || n > x[1]->type.rank())
      call.walk.fail(
          diagnostic(Code::rank_mismatch, call.where, "tensordot",
                     fmt::format("operands with at least {} axes", n),
                     fmt::format("{} and {}", x[0]->type.to_string(),
                                 x[1]->type.to_string())));
    for (int i = 0; i < static_cast<int>(n); ++i) {
      out[0].push_back(rank_a - static_cast<int>(n) + i);
      out[1].push_back(i);
    }
    return out;
  }
  if (tuple->items.size() != 2)
    wrong_argument(axes, "an `int` or (axes of a, axes of b)");
  for (size_t side : {0, 1}) {
    const auto add = [&](const Value& value) {
      const auto* axis = value.get_if<IntValue>();
      if (!axis || !axis->value.is_constant())
        wrong_argument(axes, value, "an `int` or a tuple of `int`s");
      out[side].push_back(normalise_axis(call, axis->value.value(),
                                         x[side]->type, x[side]->type.rank(),
                                         axes.where()));
    };
    const Value& of_side = tuple->items[side];
    if (const TupleValue* several = of_side.tuple())
      for (const Value& axis : several->items) add(axis);
    else
      add(of_side);
    for (size_t i = 0; i < out[side].size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (out[side][i] == out[side][j])
          call.walk.fail(diagnostic(Code::axis_twice, axes.where(),
                                    out[side][i], describe_argument(axes)));
  }
  if (out[0].size() != out[1].size())
    wrong_argument(axes, "as many axes of a as of b");
  return out;
}

}  // namespace

Value builtin_tensordot(CallOf<"tensordot">& call) {
  std::vector<ArrayValue> x =
      dot_operands(call.walk, call["a"], call["b"], "tensordot");
  const auto axes = tensordot_axes(call["axes"], x);
  for (size_t i = 0; i < axes[0].size(); ++i)
    meet_inner_sizes(call.walk, "tensordot", x, axes[0][i], axes[1][i],
                     call.where);
  return contract(call.walk, x[0], axes[0], x[1], axes[1],
                  precision_argument(call["precision"]), call.where);
}

Value builtin_einsum(CallOf<"einsum">& call) {
  const std::string subscripts = str_argument(call["subscripts"]);
  return einsum(call.walk, subscripts, call.rest, call["subscripts"].where(),
                call.where);
}

}  // namespace unisono::lang
