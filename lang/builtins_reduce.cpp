// Reductions, scans and what follows from them directly.
#include "lang/builtins_reduce.h"

#include <fmt/format.h>

#include "jit/ir/kinds.h"
#include "lang/array_ops.h"
#include "lang/builtin_arguments.h"
#include "lang/operators.h"

namespace unisono::lang {
namespace {

/// What sums and products of narrow integers are computed in: as NumPy does,
/// but 32 bits wide.
DType accumulator(DType dtype) {
  if (is_bool(dtype)) return DType::I32;
  if (is_integer(dtype) && byte_size(dtype) < 4)
    return is_signed(dtype) ? DType::I32 : DType::U32;
  return dtype;
}

bool has_identity(ir::Op op) { return op != ir::Op::max && op != ir::Op::min; }

/// Fails where an extremum of nothing is asked for.
void check_not_empty(BuiltinCall& call, const ArrayValue& x,
                     const std::vector<int>& axes) {
  for (int axis : axes)
    if (x->type.shape[axis] == ir::Dim(0))
      call.evaluator.fail(diagnostic(Code::reduction_of_nothing, call.where,
                                     call.builtin.name, axis,
                                     x->type.to_string())
                              .set_label(x->type.to_string()));
}

/// The operand as the row's type class wants it.
ArrayValue operand(BuiltinCall& call, ir::Op op) {
  ArrayValue x = array_argument(call, 0);
  Evaluator& evaluator = call.evaluator;
  if (ir::kind(op) == ir::Kind::argreduce) return x;
  if (!ir::admits(op, DType::F32))
    return cast_to(evaluator, x, DType::Bool, call[0].where);
  if (!ir::admits(op, DType::Bool))
    return cast_to(evaluator, x, accumulator(x->type.dtype), call[0].where);
  return x;
}

/// A reduction of a tuple of host ints, which gives an int: prod(shape(x)).
std::optional<Value> reduce_ints(const BuiltinCall& call, ir::Op op) {
  const TupleValue* tuple = call[0].value.tuple();
  if (!tuple || given(call, 1)) return std::nullopt;
  if (op != ir::Op::sum && op != ir::Op::prod) return std::nullopt;
  ir::Dim total = op == ir::Op::sum ? 0 : 1;
  for (const Value& item : tuple->items) {
    const auto* i = item.get_if<IntValue>();
    if (!i) return std::nullopt;
    total = op == ir::Op::sum ? total + i->value : total * i->value;
  }
  return IntValue{total};
}

/// The second positional argument of `max(a, b)` is no axis.
void check_axis_is_meant(BuiltinCall& call, ir::Op op) {
  if (op != ir::Op::max && op != ir::Op::min) return;
  if (!given(call, 1)) return;
  const Value& axis = call[1].value;
  const ArrayCell* array = call[0].value.array();
  const bool scalar =
      array ? array->type.rank() == 0 : call[0].value.is<IntValue>();
  if (!axis.array() && !(scalar && axis.is<IntValue>())) return;
  call.evaluator.fail(
      diagnostic(Code::wrong_argument, call[1].where,
                 describe_argument(call, 1), "an `int` or a tuple of `int`s",
                 type_name(axis))
          .set_help(fmt::format("the {} of two values is `{}imum(a, b)`",
                                op == ir::Op::max ? "larger" : "smaller",
                                call.builtin.name)));
}

ArrayValue flattened(Evaluator& evaluator, const ArrayValue& x, Span where) {
  return reshape(evaluator, x, {ir::element_count(x->type.shape)}, where);
}

}  // namespace

ArrayValue reduce(Evaluator& evaluator, ir::Op op, const ArrayValue& x,
                  const std::vector<int>& axes, bool keepdims, Span where) {
  ArrayValue out = x;
  if (!axes.empty()) out = evaluator.add(op, {x}, ir::ReduceAttrs{axes}, where);
  if (!keepdims) return out;
  ir::Shape kept = x->type.shape;
  for (int axis : axes) kept[axis] = 1;
  return reshape(evaluator, out, std::move(kept), where);
}

Value reduction(BuiltinCall& call, ir::Op op) {
  if (auto total = reduce_ints(call, op)) return *total;
  check_axis_is_meant(call, op);
  const ArrayValue x = operand(call, op);
  const std::vector<int> axes = axes_argument(call, 1, x->type);
  if (!has_identity(op)) check_not_empty(call, x, axes);
  return reduce(call.evaluator, op, x, axes, bool_argument_or(call, 2, false),
                call.where);
}

Value running_total(BuiltinCall& call, ir::Op op) {
  ArrayValue x = operand(call, op);
  int axis = 0;
  if (given(call, 1))
    axis = axis_argument(call, 1, x->type);
  else
    x = flattened(call.evaluator, x, call.where);
  return call.evaluator.add(
      op, {x}, ir::ScanAttrs{axis, bool_argument_or(call, 2, false)},
      call.where);
}

namespace {

/// Short floats are averaged as f32 and rounded once.
DType wide_float(DType dtype) {
  return byte_size(dtype) < 4 ? DType::F32 : dtype;
}

/// total / count, with a count that is a size.
ArrayValue divided(Evaluator& evaluator, const ArrayValue& total,
                   const ir::Dim& count, Span where) {
  const ArrayValue n = cast_to(evaluator, evaluator.constant_size(count, where),
                               total->type.dtype, where);
  return apply(evaluator, ir::Op::div, total,
               broadcast_to(evaluator, n, total->type.shape, where), where);
}

/// The operand of an average, as floats wide enough; and what it was.
struct Averaged {
  ArrayValue x;
  std::vector<int> axes;
  ir::Dim count = 1;
  DType result = DType::F32;
};

Averaged averaged_argument(BuiltinCall& call) {
  Averaged out;
  out.x = array_argument(call, 0);
  if (is_floating(out.x->type.dtype)) out.result = out.x->type.dtype;
  out.axes = axes_argument(call, 1, out.x->type);
  for (int axis : out.axes) out.count = out.count * out.x->type.shape[axis];
  out.x = cast_to(call.evaluator, out.x, wide_float(out.result), call[0].where);
  return out;
}

ArrayValue average(Evaluator& evaluator, const Averaged& a, bool keepdims,
                   Span where) {
  return divided(evaluator,
                 reduce(evaluator, ir::Op::sum, a.x, a.axes, keepdims, where),
                 a.count, where);
}

/// The mean squared distance from the mean, `count - ddof` in the divisor.
ArrayValue variance(BuiltinCall& call, const Averaged& a) {
  Evaluator& evaluator = call.evaluator;
  const ir::Dim ddof = int_argument_or(call, 2, 0);
  const ArrayValue mean =
      broadcast_to(evaluator, average(evaluator, a, true, call.where),
                   a.x->type.shape, call.where);
  const ArrayValue distance =
      apply(evaluator, ir::Op::sub, a.x, mean, call.where);
  const ArrayValue square =
      apply(evaluator, ir::Op::mul, distance, distance, call.where);
  return divided(evaluator,
                 reduce(evaluator, ir::Op::sum, square, a.axes,
                        bool_argument_or(call, 3, false), call.where),
                 a.count - ddof, call.where);
}

}  // namespace

Value builtin_mean(BuiltinCall& call) {
  const Averaged a = averaged_argument(call);
  return cast_to(
      call.evaluator,
      average(call.evaluator, a, bool_argument_or(call, 2, false), call.where),
      a.result, call.where);
}

Value builtin_variance(BuiltinCall& call) {
  const Averaged a = averaged_argument(call);
  return cast_to(call.evaluator, variance(call, a), a.result, call.where);
}

Value builtin_std(BuiltinCall& call) {
  const Averaged a = averaged_argument(call);
  const ArrayValue root = call.evaluator.add(ir::Op::sqrt, {variance(call, a)},
                                             ir::NoAttrs{}, call.where);
  return cast_to(call.evaluator, root, a.result, call.where);
}

namespace {

Value argument_of_extremum(BuiltinCall& call, ir::Op op) {
  Evaluator& evaluator = call.evaluator;
  ArrayValue x = operand(call, op);
  const bool keepdims = bool_argument_or(call, 2, false);
  const int rank = x->type.rank();
  int axis = 0;
  if (given(call, 1))
    axis = axis_argument(call, 1, x->type);
  else
    x = flattened(evaluator, x, call.where);
  check_not_empty(call, x, {axis});
  const ir::Dim& size = x->type.shape[axis];
  if (size.is_constant() && size.value() > INT32_MAX)
    evaluator.fail(diagnostic(Code::axis_too_long, call.where,
                              call.builtin.name, x->type.to_string()));
  const ArrayValue out =
      reduce(evaluator, op, x, {axis}, keepdims && given(call, 1), call.where);
  if (!keepdims || given(call, 1)) return out;
  return reshape(evaluator, out, ir::Shape(rank, ir::Dim(1)), call.where);
}

}  // namespace

Value builtin_argmax(BuiltinCall& call) {
  return argument_of_extremum(call, ir::Op::argmax);
}

Value builtin_argmin(BuiltinCall& call) {
  return argument_of_extremum(call, ir::Op::argmin);
}

}  // namespace unisono::lang
