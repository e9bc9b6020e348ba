// Random orders, and random elements of arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "lang/builtins/random.h"
#include "lang/context/call_of.h"
#include "lang/context/literals.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

/// What elements are taken from: the rows of an array, or 0 ... count - 1.
struct Rows {
  ArrayValue array;  // null for numbers
  ir::Dim count;
};

Rows rows_argument(Argument x) {
  if (const auto* n = x.value().get_if<IntValue>()) {
    check_size(x.call().walk, n->value, x.where());
    return {nullptr, n->value};
  }
  const ArrayCell* array = x.value().array();
  if (!array || array->type.rank() == 0)
    wrong_argument(x, "an array of rank 1 or more, or an `int`");
  const ArrayValue rows = array_argument(x);
  return {rows, rows->type.shape[0]};
}

/// Positions of rows as what is asked for.
Value taken(Walk& walk, const Rows& rows, const ArrayValue& positions,
            Span where) {
  if (!rows.array) return positions;
  return gather(walk, rows.array, {positions}, {0}, /*checked=*/false, where);
}

/// Positions are i32.
void check_count(Argument x, const ir::Dim& count) {
  if (count.is_constant() && count.value() > INT32_MAX)
    x.call().walk.fail(diagnostic(Code::axis_too_long, x.where(),
                                  x.call().builtin.name, type_name(x.value())));
}

/// How often n elements are sorted by 32 random bits: until equal bits, whose
/// elements keep their order, are so rare that they do not matter.
int rounds_of(const ir::Dim& n) {
  if (!n.is_constant()) return 1;  // the type is the same
  const double size = static_cast<double>(std::max<int64_t>(n.value(), 1));
  return static_cast<int>(
      std::ceil(3 * std::log(size) / std::log(double{UINT32_MAX})));
}

/// 0 ... n - 1 in a random order.
ArrayValue shuffled(Walk& walk, ArrayValue key, const ir::Dim& n, Span where) {
  ArrayValue order = iota(walk, {DType::I32, {n}}, 0, where);
  for (int round = 0; round < rounds_of(n); ++round) {
    ArrayValue own;
    std::tie(key, own) = split_in_two(walk, key, where);
    const ArrayValue bits = random_bits(walk, own, {DType::U32, {n}}, where);
    const ArrayValue sorted =
        walk.add(ir::Op::argsort, {bits}, ir::NoAttrs{}, where);
    order =
        round == 0 ? sorted : gather(walk, order, {sorted}, {0}, false, where);
  }
  return order;
}

/// The probabilities of `count` elements; an error if they are none.
ArrayValue probabilities(Argument p, const ir::Dim& count) {
  BuiltinCall& call = p.call();
  Walk& walk = call.walk;
  const CallArgument written[] = {p};
  const ArrayValue x = promote_to_float(walk, written, describe_argument(p))[0];
  const ir::Shape wanted{count};
  if (!same_sizes(x->type.shape, wanted))
    walk.fail(diagnostic(Code::shape_mismatch, p.where(), call.builtin.name,
                         fmt::format("a probability for each of {} elements",
                                     count.to_string()),
                         shown_type(*x).to_string())
                  .about());
  return taken_for(walk, x, wanted);
}

/// Fails where they are none, or fewer than `least` of them are above 0.
void check_probabilities(Argument argument, const ArrayValue& p,
                         const ArrayValue& total, const ir::Dim& least) {
  Walk& walk = argument.call().walk;
  const Span where = argument.where();
  const std::string name = describe_argument(argument);
  // NaN fails, too.
  require(walk, apply(walk, ir::Op::ge, p, 0.0, where),
          name + " must not be negative", where);
  const bool coarse = byte_size(p->type.dtype) < 4;
  const double most = coarse                        ? 0.05
                      : p->type.dtype == DType::F64 ? 0x1p-26
                                                    : 0x1p-11;
  const ArrayValue off = walk.add(
      ir::Op::abs, {apply(walk, ir::Op::sub, total, 1.0, where)}, {}, where);
  require(walk, apply(walk, ir::Op::le, off, most, where),
          name + " must add up to 1: divide by `sum(p)`", where);
  if (least == ir::Dim(1)) return;  // as they add up to 1
  const ArrayValue some = reduce(
      walk, ir::Op::sum,
      cast_to(walk, apply(walk, ir::Op::gt, p, 0.0, where), DType::I32, where),
      {0}, false, where);
  const ArrayValue wanted =
      cast_to(walk, walk.constant_size(least, where), DType::I32, where);
  require(walk, apply(walk, ir::Op::ge, some, wanted, where),
          name + " must be above 0 for as many elements as are drawn", where);
}

/// Positions with probabilities, each draw for itself: the first whose running
/// total is not below a uniform number up to the total.
ArrayValue drawn_with(Walk& walk, const ArrayValue& key, const ArrayValue& p,
                      const ArrayValue& totals, const ArrayValue& total,
                      const ir::Shape& shape, Span where) {
  const ir::Type type = {p->type.dtype, shape};
  const ArrayValue u = random_fractions(walk, key, type, where);
  const ArrayValue one = broadcast_to(
      walk, walk.constant(1, type.dtype, false, where), shape, where);
  const ArrayValue at =
      apply(walk, ir::Op::mul, broadcast_to(walk, total, shape, where),
            apply(walk, ir::Op::sub, one, u, where), where);
  const Value found = call_builtin(
      walk, *find_builtin("searchsorted"),
      {CallArgument{totals, where}, CallArgument{at, where}}, {}, where);
  return *found.get_if<ArrayValue>();
}

/// Different positions with probabilities, the first `n` in the order of
/// log(p) + Gumbel noise, downwards.
ArrayValue drawn_without(Walk& walk, const ArrayValue& key, const ArrayValue& p,
                         const ir::Dim& n, Span where) {
  const ArrayValue noise = random_gumbel(walk, key, p->type, where);
  const ArrayValue score =
      apply(walk, ir::Op::add, noise,
            walk.add(ir::Op::log, {p}, ir::NoAttrs{}, where), where);
  const ArrayValue down = walk.add(ir::Op::neg, {score}, ir::NoAttrs{}, where);
  const ArrayValue order =
      walk.add(ir::Op::argsort, {down}, ir::NoAttrs{}, where);
  return slice_axis(walk, order, 0, 0, n, where);
}

/// An error where fewer elements are there than are drawn.
void check_enough(Argument x, const ir::Dim& count, const ir::Dim& drawn,
                  bool replace) {
  const auto fail = [&](const std::string& expected, std::string help) {
    x.call().walk.fail(
        diagnostic(
            Code::shape_mismatch, x.where(), x.call().builtin.name, expected,
            x.value().is<IntValue>() ? x.where().text() : type_name(x.value()))
            .about()
            .set_help(std::move(help)));
  };
  if (!drawn.is_constant() || !count.is_constant()) return;
  if (drawn.value() > 0 && count.value() == 0)
    fail("something to draw from", "of nothing, nothing can be drawn");
  if (!replace && drawn.value() > count.value())
    fail(fmt::format("{} elements or more to draw {} different ones",
                     drawn.value(), drawn.value()),
         "with `replace=true` one may be drawn several times");
}

}  // namespace

Value builtin_permutation(CallOf<"permutation">& call) {
  Walk& walk = call.walk;
  const ArrayValue key = key_argument(call["key"]);
  const Rows rows = rows_argument(call["x"]);
  check_count(call["x"], rows.count);
  return taken(walk, rows, shuffled(walk, key, rows.count, call.where),
               call.where);
}

Value builtin_choice(CallOf<"choice">& call) {
  Walk& walk = call.walk;
  const Span where = call.where;
  const ArrayValue key = key_argument(call["key"]);
  const Rows rows = rows_argument(call["x"]);
  check_count(call["x"], rows.count);
  const ir::Shape shape =
      call["n"].given() ? shape_argument(call["n"]) : ir::Shape{};
  const ir::Dim drawn = ir::element_count(shape);
  const bool replace = bool_argument_or(call["replace"], true);
  check_enough(call["x"], rows.count, drawn, replace);
  const ir::Type positions = {DType::I32, shape};
  if (!call["p"].given()) {
    if (replace)
      return taken(walk, rows,
                   random_positions(walk, key, positions, rows.count, where),
                   where);
    const ArrayValue order = shuffled(walk, key, rows.count, where);
    return taken(walk, rows,
                 reshape(walk, slice_axis(walk, order, 0, 0, drawn, where),
                         shape, where),
                 where);
  }
  const Argument p = call["p"];
  const ArrayValue weights = probabilities(p, rows.count);
  const ArrayValue totals =
      walk.add(ir::Op::cumsum, {weights}, ir::ScanAttrs{0, false}, where);
  const ArrayValue total = remove_axes(
      walk, slice_axis(walk, totals, 0, rows.count - 1, 1, where), {0}, where);
  check_probabilities(p, weights, total, replace ? ir::Dim(1) : drawn);
  const ArrayValue at =
      replace ? drawn_with(walk, key, weights, totals, total, shape, where)
              : reshape(walk, drawn_without(walk, key, weights, drawn, where),
                        shape, where);
  return taken(walk, rows, at, where);
}

}  // namespace unisono::lang
