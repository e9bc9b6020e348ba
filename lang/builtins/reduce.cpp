// Reductions, scans and what follows from them directly.
#include "lang/builtins/reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/ir/reduce_order.h"
#include "jit/ir/table.h"
#include "lang/context/call_of.h"
#include "lang/context/derivative_facts.h"
#include "lang/context/scope.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"

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

/// Whether there is a result of nothing, the same in every element type.
bool has_identity(ir::Op op) {
  const auto identity = ir::row(op).identity;
  return identity == ir::Identity::zero || identity == ir::Identity::one;
}

/// Fails where an extremum of nothing is asked for.
void check_not_empty(BuiltinCall& call, const ArrayValue& x,
                     const std::vector<int>& axes) {
  for (int axis : axes)
    if (x->type.shape[axis] == ir::Dim(0))
      call.walk.fail(diagnostic(Code::reduction_of_nothing, call.where,
                                call.builtin.name, axis, x->type.to_string())
                         .set_label(x->type.to_string()));
}

/// The operand as the row's type class wants it.
ArrayValue operand(Argument written, ir::Op op) {
  ArrayValue x = array_argument(written);
  Walk& walk = written.call().walk;
  if (ir::kind(op) == ir::Kind::argreduce) return x;
  if (!ir::admits(op, DType::F32))
    return cast_to(walk, x, DType::Bool, written.where());
  if (!ir::admits(op, DType::Bool))
    return cast_to(walk, x, accumulator(x->type.dtype), written.where());
  return x;
}

/// A reduction of a tuple of host ints, which gives an int: prod(shape(x)).
std::optional<Value> reduce_ints(CallOf<"sum">& call, ir::Op op) {
  const TupleValue* tuple = call["x"].value().tuple();
  if (!tuple || call["axis"].given()) return std::nullopt;
  if (!ir::admits(op, DType::I32)) return std::nullopt;
  const auto combine = binary_operator_of(*ir::row(op).combine);
  if (!combine) return std::nullopt;
  if (!std::ranges::all_of(tuple->items, &Value::is<IntValue>))
    return std::nullopt;
  Value total = IntValue{ir::row(op).identity == ir::Identity::one ? 1 : 0};
  for (const Value& item : tuple->items)
    total = binary(call.walk, *combine, {total, call.where}, {item, call.where},
                   call.where, call.where);
  return total;
}

/// The second positional argument of `max(a, b)` is no axis.
void check_axis_is_meant(CallOf<"sum">& call, ir::Op op) {
  if (has_identity(op)) return;  // it is no extremum
  const Argument x = call["x"], axis = call["axis"];
  if (!axis.given()) return;
  const ArrayCell* array = x.value().array();
  const bool scalar =
      array ? array->type.rank() == 0 : x.value().is<IntValue>();
  if (!axis.value().array() && !(scalar && axis.value().is<IntValue>())) return;
  const std::string help = fmt::format("the {} of two values is `{}({}, {})`",
                                       op == ir::Op::max ? "larger" : "smaller",
                                       ir::row(*ir::row(op).combine).name,
                                       x.where().text(), axis.where().text());
  if (scalar)
    call.walk.fail(diagnostic(Code::no_such_axis, axis.where(),
                              axis.where().text(), call.builtin.name,
                              type_name(x.value()), 0)
                       .set_help(help));
  call.walk.fail(diagnostic(Code::wrong_argument, axis.where(),
                            describe_argument(axis), "an axis of `x`",
                            type_name(axis.value()))
                     .set_help(help));
}

ArrayValue flattened(Walk& walk, const ArrayValue& x, Span where) {
  return reshape(walk, x, {ir::element_count(x->type.shape)}, where);
}

}  // namespace

ArrayValue reduce(Walk& walk, ir::Op op, const ArrayValue& x,
                  const std::vector<int>& axes, bool keepdims, Span where) {
  ArrayValue out = x;
  if (!axes.empty()) out = walk.add(op, {x}, ir::ReduceAttrs{axes}, where);
  if (!keepdims) return out;
  ir::Shape kept = x->type.shape;
  for (int axis : axes) kept[axis] = 1;
  return reshape(walk, out, std::move(kept), where);
}

Value reduction(CallOf<"sum">& call, ir::Op op) {
  if (auto total = reduce_ints(call, op)) return *total;
  check_axis_is_meant(call, op);
  const ArrayValue x = operand(call["x"], op);
  const std::vector<int> axes = axes_argument(call["axis"], x->type);
  if (!has_identity(op)) check_not_empty(call, x, axes);
  return reduce(call.walk, op, x, axes,
                bool_argument_or(call["keepdims"], false), call.where);
}

Value running_total(CallOf<"cumsum">& call, ir::Op op) {
  ArrayValue x = operand(call["x"], op);
  int axis = 0;
  if (call["axis"].given())
    axis = axis_argument(call["axis"], x->type);
  else
    x = flattened(call.walk, x, call.where);
  return call.walk.add(
      op, {x}, ir::ScanAttrs{axis, bool_argument_or(call["reverse"], false)},
      call.where);
}

namespace {

/// Short floats are averaged as f32 and rounded once.
DType wide_float(DType dtype) {
  return byte_size(dtype) < 4 ? DType::F32 : dtype;
}

/// total / count, with a count that is a size.
ArrayValue divided(Walk& walk, const ArrayValue& total, const ir::Dim& count,
                   Span where) {
  const ArrayValue n =
      cast_to(walk, walk.constant_size(count, where), total->type.dtype, where);
  return apply(walk, ir::Op::div, total,
               broadcast_to(walk, n, total->type.shape, where), where);
}

/// The operand of an average, as floats wide enough; and what it was.
struct Averaged {
  ArrayValue x;
  std::vector<int> axes;
  ir::Dim count = 1;
  DType result = DType::F32;
};

Averaged averaged_argument(Argument x, Argument axis) {
  Averaged out;
  out.x = array_argument(x);
  if (is_floating(out.x->type.dtype)) out.result = out.x->type.dtype;
  out.axes = axes_argument(axis, out.x->type);
  for (int axis : out.axes) out.count = out.count * out.x->type.shape[axis];
  out.x = cast_to(x.call().walk, out.x, wide_float(out.result), x.where());
  return out;
}

/// Whether so many elements are reduced, the last axes, that one pass over
/// memory is worth it.
bool is_long(const Averaged& a) {
  const int64_t many = orders().moments_chunks * orders().reduce_chunk;
  const size_t kept = a.x->type.shape.size() - a.axes.size();
  const bool trailing =
      !a.axes.empty() && a.axes.front() == static_cast<int>(kept);
  return trailing && a.count.is_constant() && a.count.value() >= many;
}

/// The reduced elements in chunks as reductions have them, where there are so
/// many that one pass over memory is worth it: a part for full chunks, one for
/// what is left. Each is kept axes x chunks x elements of a chunk.
std::vector<ArrayValue> chunks_of(Walk& walk, const Averaged& a, Span where) {
  if (!is_long(a)) return {};
  const size_t kept = a.x->type.shape.size() - a.axes.size();
  ir::Shape shape(a.x->type.shape.begin(), a.x->type.shape.begin() + kept);
  const int axis = static_cast<int>(kept);
  const int64_t full = a.count.value() / orders().reduce_chunk,
                left = a.count.value() % orders().reduce_chunk;
  ir::Shape rows = shape, chunks = shape, rest = shape;
  rows.push_back(a.count);
  chunks.insert(chunks.end(), {full, orders().reduce_chunk});
  rest.insert(rest.end(), {1, left});
  const ArrayValue x = reshape(walk, a.x, rows, where);
  const int64_t most = full * orders().reduce_chunk;
  if (left == 0) return {reshape(walk, x, chunks, where)};
  return {
      reshape(walk, slice_axis(walk, x, axis, 0, most, where), chunks, where),
      reshape(walk, slice_axis(walk, x, axis, most, left, where), rest, where)};
}

/// Sums over the last axis, which stays with size 1.
ArrayValue chunk_sums(Walk& walk, const ArrayValue& chunks, Span where) {
  return reduce(walk, ir::Op::sum, chunks, {chunks->type.rank() - 1}, true,
                where);
}

/// The sum of all chunks, from kept axes x chunks x 1: as `sum` has it.
ArrayValue sum_of_chunks(Walk& walk, const std::vector<ArrayValue>& sums,
                         Span where) {
  const int axis = sums[0]->type.rank() - 2;
  const ArrayValue all =
      sums.size() == 1 ? sums[0] : concat(walk, sums, axis, where);
  return walk.add(ir::Op::sum, {all},
                  ir::ReduceAttrs{{axis, axis + 1}, ir::ReduceOrder::members},
                  where);
}

/// Of a result without the reduced axes, with them if `keepdims`.
ArrayValue with_axes(Walk& walk, const ArrayValue& result, const Averaged& a,
                     bool keepdims, Span where) {
  if (!keepdims) return result;
  ir::Shape shape = a.x->type.shape;
  for (int axis : a.axes) shape[axis] = 1;
  return reshape(walk, result, std::move(shape), where);
}

ArrayValue average(Walk& walk, const Averaged& a, bool keepdims, Span where) {
  std::vector<ArrayValue> sums;
  for (const ArrayValue& part : chunks_of(walk, a, where))
    sums.push_back(chunk_sums(walk, part, where));
  const ArrayValue total =
      sums.empty() ? reduce(walk, ir::Op::sum, a.x, a.axes, false, where)
                   : sum_of_chunks(walk, sums, where);
  return with_axes(walk, divided(walk, total, a.count, where), a, keepdims,
                   where);
}

ArrayValue squared(Walk& walk, const ArrayValue& x, Span where) {
  return apply(walk, ir::Op::mul, x, x, where);
}

/// x minus what is the same along some axes, of which `mean` has one element.
ArrayValue distance(Walk& walk, const ArrayValue& x, const ArrayValue& mean,
                    Span where) {
  return apply(walk, ir::Op::sub, x,
               broadcast_to(walk, mean, x->type.shape, where), where);
}

/// Of each chunk, its mean, as one number and as two, and the squared distances
/// from it, summed: kept axes x chunks x 1.
struct ChunkMoments {
  ArrayValue mean, shift, offset, distances;
};

/// In one pass: sums of d and d * d, where d is the distance from the mean m of
/// the chunk's first 16 elements. What is taken off sum(d * d) to make it that
/// from the chunk's mean is at most 256 times the result, since 16 * (m -
/// mean)^2 is at most the 16 elements' own part of it, and about the 16th of it
/// mostly: 8 bits are lost at worst, next to none as a rule.
ChunkMoments moments(Walk& walk, const ArrayValue& chunks, Span where) {
  const int64_t few = orders().moments_head;
  const int last = chunks->type.rank() - 1;
  const ir::Dim& size = chunks->type.shape.back();
  const int64_t first = std::min(size.value(), few);
  // With an axis of 1 after them, 16 elements are added where they are used.
  const ArrayValue head = insert_axis(
      walk, slice_axis(walk, chunks, last, 0, first, where), last + 1, where);
  const ArrayValue shift =
      divided(walk, reduce(walk, ir::Op::sum, head, {last}, false, where),
              first, where);
  const ArrayValue d = distance(walk, chunks, shift, where);
  const ArrayValue sum = chunk_sums(walk, d, where);
  const ArrayValue squares = chunk_sums(walk, squared(walk, d, where), where);
  const ArrayValue offset = divided(walk, sum, size, where);
  const ArrayValue distances =
      apply(walk, ir::Op::sub, squares,
            apply(walk, ir::Op::mul, sum, offset, where), where);
  return {apply(walk, ir::Op::add, shift, offset, where), shift, offset,
          apply(walk, ir::Op::maximum, distances, 0.0, where)};
}

double size_of(const ArrayValue& chunks) {
  return static_cast<double>(chunks->type.shape.back().value());
}

/// The moments of all chunks, and their mean: kept axes x 1 x 1.
struct LongMoments {
  std::vector<ArrayValue> chunks;
  std::vector<ChunkMoments> parts;
  ArrayValue mean;
};

LongMoments long_moments(Walk& walk, const Averaged& a, Span where) {
  LongMoments all;
  all.chunks = chunks_of(walk, a, where);
  std::vector<ArrayValue> sums;
  for (const ArrayValue& chunk : all.chunks) {
    all.parts.push_back(moments(walk, chunk, where));
    sums.push_back(
        apply(walk, ir::Op::mul, all.parts.back().mean, size_of(chunk), where));
  }
  const ArrayValue mean =
      divided(walk, sum_of_chunks(walk, sums, where), a.count, where);
  ir::Shape once = mean->type.shape;
  once.insert(once.end(), {1, 1});
  all.mean = reshape(walk, mean, once, where);
  return all;
}

/// Squared distances from the mean, summed: those within chunks, and those of
/// the chunks' means (Chan, Golub, LeVeque, "Updating Formulae and a Pairwise
/// Algorithm for Computing Sample Variances", 1979).
ArrayValue distances_of_chunks(Walk& walk, const Averaged& a, Span where) {
  const LongMoments all = long_moments(walk, a, where);
  std::vector<ArrayValue> totals;
  for (size_t i = 0; i < all.chunks.size(); ++i) {
    const ArrayValue between = squared(
        walk, distance(walk, all.parts[i].mean, all.mean, where), where);
    totals.push_back(
        apply(walk, ir::Op::add, all.parts[i].distances,
              apply(walk, ir::Op::mul, between, size_of(all.chunks[i]), where),
              where));
  }
  return sum_of_chunks(walk, totals, where);
}

/// Of long rows, x minus their mean. What rounding took off the mean is taken
/// off, too, so that the distances add up to zero, next to which they would
/// not where the mean is large.
ArrayValue long_distance(Walk& walk, const Averaged& a, Span where) {
  const LongMoments all = long_moments(walk, a, where);
  std::vector<ArrayValue> rests;
  for (size_t i = 0; i < all.chunks.size(); ++i) {
    const ChunkMoments& part = all.parts[i];
    const ArrayValue rest =
        apply(walk, ir::Op::add, distance(walk, part.shift, all.mean, where),
              part.offset, where);
    rests.push_back(
        apply(walk, ir::Op::mul, rest, size_of(all.chunks[i]), where));
  }
  const ArrayValue rest =
      divided(walk, sum_of_chunks(walk, rests, where), a.count, where);
  ir::Shape once = a.x->type.shape;
  for (const int axis : a.axes) once[axis] = 1;
  const auto from_rows = [&](const ArrayValue& x, const ArrayValue& mean) {
    return distance(walk, x, reshape(walk, mean, once, where), where);
  };
  return from_rows(from_rows(a.x, all.mean), rest);
}

/// The mean squared distance from the mean, `count - ddof` in the divisor,
/// without the reduced axes.
ArrayValue mean_square(Walk& walk, const Averaged& a, const ir::Dim& ddof,
                       Span where) {
  ArrayValue total;
  if (is_long(a)) {
    total = distances_of_chunks(walk, a, where);
  } else {
    const ArrayValue mean = average(walk, a, true, where);
    total = reduce(walk, ir::Op::sum,
                   squared(walk, distance(walk, a.x, mean, where), where),
                   a.axes, false, where);
  }
  return divided(walk, total, a.count - ddof, where);
}

/// The tangent of `mean_square` of long rows along `t`: 2 (x - mean) t, summed,
/// over count - ddof.
ArrayValue mean_square_tangent(Walk& walk, const Averaged& a,
                               const ir::Dim& ddof, const ArrayValue& t,
                               Span where) {
  const ArrayValue d = long_distance(walk, a, where);
  const ArrayValue factor = divided(walk, apply(walk, ir::Op::add, d, d, where),
                                    a.count - ddof, where);
  return reduce(walk, ir::Op::sum, apply(walk, ir::Op::mul, factor, t, where),
                a.axes, false, where);
}

/// The same with a rule for its derivative. What chunks are made of would be
/// derived part by part, in several passes over memory.
ArrayValue mean_square_with_rule(Walk& walk, const Averaged& a,
                                 const ir::Dim& ddof, Span where) {
  const auto graph_of = [&](bool rule) {
    std::vector<ArrayValue> outputs;
    const auto scope = walk.with_scope([&] {
      const auto parameter = [&] {
        return walk.scope()->add_parameter(a.x->type, a.x->varies,
                                           a.x->varies_from);
      };
      Averaged own = a;
      own.x = parameter();
      const ArrayValue t = rule ? parameter() : nullptr;
      outputs.push_back(mean_square(walk, own, ddof, where));
      if (rule)
        outputs.push_back(mean_square_tangent(walk, own, ddof, t, where));
      for (const ArrayValue& output : outputs) walk.scope()->import(output);
    });
    return std::make_shared<const ir::Graph>(scope->finish(outputs));
  };
  ir::CallAttrs attrs;
  attrs.kind = ir::CallAttrs::Rule::jvp;
  attrs.graph = graph_of(false);
  attrs.rule = graph_of(true);
  const ArrayValue node =
      walk.add(ir::Op::call, {a.x}, std::move(attrs), where);
  ArrayValue result =
      walk.add(ir::Op::project, {node}, ir::ProjectAttrs{0}, where);
  copy_facts(*a.x, *result);
  return result;
}

ArrayValue variance(CallOf<"variance">& call, const Averaged& a) {
  Walk& walk = call.walk;
  const ir::Dim ddof = int_argument_or(call["ddof"], 0);
  const Span where = call.where;
  const bool derived = walk.mode() == Mode::trace &&
                       !walk.context().derivatives.empty() &&
                       !a.x->depends.empty() && is_long(a);
  return with_axes(walk,
                   derived ? mean_square_with_rule(walk, a, ddof, where)
                           : mean_square(walk, a, ddof, where),
                   a, bool_argument_or(call["keepdims"], false), where);
}

}  // namespace

Value builtin_mean(CallOf<"mean">& call) {
  const Averaged a = averaged_argument(call["x"], call["axis"]);
  return cast_to(call.walk,
                 average(call.walk, a,
                         bool_argument_or(call["keepdims"], false), call.where),
                 a.result, call.where);
}

Value builtin_variance(CallOf<"variance">& call) {
  const Averaged a = averaged_argument(call["x"], call["axis"]);
  return cast_to(call.walk, variance(call, a), a.result, call.where);
}

Value builtin_std(CallOf<"std">& call) {
  const Averaged a = averaged_argument(call["x"], call["axis"]);
  Walk& walk = call.walk;
  const Span where = call.where;
  const ArrayValue square = variance(call, a);
  ArrayValue root = walk.add(ir::Op::sqrt, {square}, ir::NoAttrs{}, where);
  if (!square->depends.empty()) {
    // The derivative of sqrt at 0 is infinite; that of equal numbers is 0.
    const ArrayValue zero =
        broadcast_to(walk, walk.constant(0.0, square->type.dtype, false, where),
                     square->type.shape, where);
    const ArrayValue equal = walk.add(ir::Op::eq, {square, zero}, {}, where);
    root = walk.add(ir::Op::select, {equal, zero, root}, {}, where);
  }
  return cast_to(walk, root, a.result, where);
}

namespace {

Value argument_of_extremum(CallOf<"argmax">& call, ir::Op op) {
  Walk& walk = call.walk;
  ArrayValue x = operand(call["x"], op);
  const bool keepdims = bool_argument_or(call["keepdims"], false);
  const bool along_axis = call["axis"].given();
  const int rank = x->type.rank();
  int axis = 0;
  if (along_axis)
    axis = axis_argument(call["axis"], x->type);
  else
    x = flattened(walk, x, call.where);
  check_not_empty(call, x, {axis});
  const ir::Dim& size = x->type.shape[axis];
  if (size.is_constant() && size.value() > INT32_MAX)
    walk.fail(diagnostic(Code::axis_too_long, call.where, call.builtin.name,
                         x->type.to_string()));
  const ArrayValue out =
      reduce(walk, op, x, {axis}, keepdims && along_axis, call.where);
  if (!keepdims || along_axis) return out;
  return reshape(walk, out, ir::Shape(rank, ir::Dim(1)), call.where);
}

}  // namespace

Value builtin_argmax(CallOf<"argmax">& call) {
  return argument_of_extremum(call, ir::Op::argmax);
}

Value builtin_argmin(CallOf<"argmin">& call) {
  return argument_of_extremum(call, ir::Op::argmin);
}

}  // namespace unisono::lang
