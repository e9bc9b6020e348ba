// Elements at computed positions, and orders.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lang/builtins/sorted_texts.h"
#include "lang/context/call_of.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/index_plan.h"
#include "lang/ops/indexing.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

IndexItem whole_axis(Span where) {
  return {IndexItem::Kind::slice, {}, {}, {}, {}, where};
}

IndexItem value_item(const Value& value, Span where) {
  return {IndexItem::Kind::value, value, {}, {}, {}, where};
}

/// A tuple of indices is one for each leading axis.
std::vector<IndexItem> leading_items(const CallArgument& indices) {
  const TupleValue* tuple = indices.value.tuple();
  if (!tuple) return {value_item(indices.value, indices.where)};
  std::vector<IndexItem> out;
  for (const Value& value : tuple->items)
    out.push_back(value_item(value, indices.where));
  return out;
}

ArrayValue flattened(Walk& walk, const ArrayValue& x, Span where) {
  return reshape(walk, x, {ir::element_count(x->type.shape)}, where);
}

/// `line` along `axis` of `shape`.
ArrayValue along(Walk& walk, const ArrayValue& line, const ir::Shape& shape,
                 int axis, Span where) {
  return walk.add(ir::Op::broadcast, {line}, ir::BroadcastAttrs{shape, {axis}},
                  where);
}

ArrayValue integer_array_argument(Argument argument) {
  const ArrayValue x = array_argument(argument);
  if (!is_integer(x->type.dtype)) wrong_argument(argument, "an integer array");
  return x;
}

}  // namespace

Value builtin_take(CallOf<"take">& call) {
  Walk& walk = call.walk;
  ArrayValue x = array_argument(call["x"]);
  int axis = 0;
  if (call["axis"].given())
    axis = axis_argument(call["axis"], x->type);
  else
    x = flattened(walk, x, call.where);
  std::vector<IndexItem> items(axis, whole_axis(call.where));
  items.push_back(value_item(call["indices"].value(), call["indices"].where()));
  return index(walk, x, items, call.where);
}

Value builtin_take_along_axis(CallOf<"take_along_axis">& call) {
  Walk& walk = call.walk;
  ArrayValue x = array_argument(call["x"]);
  ArrayValue indices = as_index(walk, integer_array_argument(call["indices"]),
                                call["indices"].where());
  const int rank = x->type.rank();
  const int axis = axis_argument_or(call["axis"], -1, x->type, call.where);
  ir::Shape shape = x->type.shape, places = indices->type.shape;
  bool fits = indices->type.rank() == rank;
  for (int i = 0; fits && i < rank; ++i) {
    if (i == axis) continue;
    const auto size = same_size(shape[i], places[i]);
    fits = size.has_value();
    if (fits) shape[i] = places[i] = *size;
  }
  if (!fits)
    call.walk.fail(diagnostic(Code::shapes_do_not_join, call["indices"].where(),
                              "take_along_axis", x->type.to_string(),
                              indices->type.to_string(),
                              fmt::format("they must agree along all axes "
                                          "but {}",
                                          axis))
                       .about());
  x = taken_for(walk, x, std::move(shape));
  indices = taken_for(walk, indices, std::move(places));
  std::vector<ArrayValue> operands;
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  for (int i = 0; i < rank; ++i) {
    if (i == axis) {
      operands.push_back(indices);
      continue;
    }
    const ArrayValue line =
        cast_to(walk, index_range(walk, 0, 1, x->type.shape[i], call.where),
                indices->type.dtype, call.where);
    operands.push_back(along(walk, line, indices->type.shape, i, call.where));
  }
  return gather(walk, x, operands, axes, /*checked=*/true, call.where);
}

Value builtin_scatter_add(CallOf<"scatter_add">& call) {
  const ArrayValue x = array_argument(call["x"]);
  if (is_bool(x->type.dtype))
    call.walk.fail(diagnostic(Code::element_class, call["x"].where(),
                              "scatter_add", "numbers", x->type.to_string())
                       .set_help("count with `i32(x)`"));
  return update_array(call.walk, ir::Op::scatter_add, x,
                      leading_items(call["indices"]), call["values"],
                      call.where);
}

namespace {

/// The order of axes that brings `axis` to the end; its own inverse.
std::vector<int> axis_last(int rank, int axis) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (rank > 0) std::swap(axes[axis], axes[rank - 1]);
  return axes;
}

Value sorted(CallOf<"sort">& call, ir::Op op) {
  Walk& walk = call.walk;
  if (is_texts(call["x"].value()))
    return sorted_texts(call, op == ir::Op::argsort,
                        bool_argument_or(call["descending"], false));
  const ArrayValue x = array_argument(call["x"]);
  const int rank = x->type.rank();
  const int axis = axis_argument_or(call["axis"], -1, x->type, call.where);
  const bool descending = bool_argument_or(call["descending"], false);
  const ir::Dim size = x->type.shape[axis];
  if (op == ir::Op::argsort && size.is_constant() && size.value() > INT32_MAX)
    walk.fail(diagnostic(Code::axis_too_long, call.where, call.builtin.name,
                         x->type.to_string()));
  const std::vector<int> order = axis_last(rank, axis);
  ArrayValue out = transpose(walk, x, order, call.where);
  // Downwards is the reverse of upwards; reversed first, so that what is equal
  // keeps its order: positions, and floats that differ although they are
  // equal, as zeros do.
  const bool positions = op == ir::Op::argsort;
  const bool reversed = descending && (positions || is_floating(x->type.dtype));
  if (reversed) out = flip(walk, out, {rank - 1}, call.where);
  out = walk.add(op, {out}, ir::NoAttrs{}, call.where);
  if (descending) out = flip(walk, out, {rank - 1}, call.where);
  if (descending && positions) {
    const ArrayValue last =
        cast_to(walk, walk.constant_size(size - 1, call.where), out->type.dtype,
                call.where);
    out = apply(walk, ir::Op::sub,
                broadcast_to(walk, last, out->type.shape, call.where), out,
                call.where);
  }
  return transpose(walk, out, order, call.where);
}

}  // namespace

Value builtin_sort(CallOf<"sort">& call) { return sorted(call, ir::Op::sort); }

Value builtin_argsort(CallOf<"argsort">& call) {
  return sorted(call, ir::Op::argsort);
}

namespace {

/// One step of a binary search for all values at once: the intervals
/// [low, high) halved.
void halve(BuiltinCall& call, const ArrayValue& keys, const ArrayValue& values,
           bool right, ArrayValue& low, ArrayValue& high) {
  Walk& walk = call.walk;
  const Span where = call.where;
  const auto op = [&](ir::Op operation, const ArrayValue& a,
                      const ArrayValue& b) {
    return apply(walk, operation, a, b, where);
  };
  const auto select = [&](const ArrayValue& c, const ArrayValue& a,
                          const ArrayValue& b) {
    return walk.add(ir::Op::select, {c, a, b}, ir::NoAttrs{}, where);
  };
  const auto number = [&](int64_t value) {
    return broadcast_to(walk,
                        walk.constant_int(value, low->type.dtype, false, where),
                        low->type.shape, where);
  };
  const ArrayValue open = op(ir::Op::lt, low, high);
  const ArrayValue middle =
      op(ir::Op::add, low,
         op(ir::Op::shift_right, op(ir::Op::sub, high, low), number(1)));
  const ArrayValue key = gather(walk, keys, {middle}, {0}, false, where);
  // NaN is the largest, as `sort` has it.
  ArrayValue beyond =
      right ? op(ir::Op::le, key, values) : op(ir::Op::lt, key, values);
  if (is_floating(keys->type.dtype)) {
    const ArrayValue nan =
        walk.add(ir::Op::is_nan, {values}, ir::NoAttrs{}, where);
    ArrayValue with_nan = nan;
    if (!right) with_nan = op(ir::Op::bit_and, nan, op(ir::Op::eq, key, key));
    beyond = op(ir::Op::bit_or, beyond, with_nan);
  }
  const ArrayValue up = op(ir::Op::bit_and, open, beyond);
  const ArrayValue down =
      op(ir::Op::bit_and, open,
         walk.add(ir::Op::bit_not, {beyond}, ir::NoAttrs{}, where));
  low = select(up, op(ir::Op::add, middle, number(1)), low);
  high = select(down, middle, high);
}

}  // namespace

Value builtin_searchsorted(CallOf<"searchsorted">& call) {
  Walk& walk = call.walk;
  const std::string side =
      call["side"].written() ? str_argument(call["side"]) : "left";
  if (side != "left" && side != "right")
    wrong_argument(call["side"], "`\"left\"` or `\"right\"`");
  const CallArgument both[] = {call["sorted"], call["values"]};
  const std::vector<ArrayValue> x =
      promote_operands(walk, both, "`searchsorted`");
  if (x[0]->type.rank() != 1)
    walk.fail(diagnostic(Code::rank_mismatch, call["sorted"].where(),
                         "searchsorted", "a sorted array of rank 1",
                         x[0]->type.to_string()));
  const ir::Dim n = x[0]->type.shape[0];
  const bool wide = n.is_constant() && n.value() > INT32_MAX;
  const DType dtype = wide ? DType::I64 : DType::I32;
  const auto everywhere = [&](const ir::Dim& d) {
    return broadcast_to(
        walk,
        cast_to(walk, walk.constant_size(d, call.where), dtype, call.where),
        x[1]->type.shape, call.where);
  };
  ArrayValue low = everywhere(0), high = everywhere(n);
  // A symbolic size has the same types as any: one step will do.
  int64_t left = n.is_constant() ? n.value() : 1;
  for (; left > 0; left /= 2)
    halve(call, x[0], x[1], side == "right", low, high);
  return low;
}

namespace {

/// The number that a scalar array holds; in run mode.
int64_t host_integer(Walk& walk, const ArrayValue& scalar, Span where) {
  const ArrayValue wide = cast_to(walk, scalar, DType::I64, where);
  const std::vector<uint8_t> bytes = walk.host_bytes(wide, where);
  int64_t out = 0;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

/// The length that bincount gives without `length`: the largest and one.
ir::Dim count_length(Argument counted, const ArrayValue& x) {
  BuiltinCall& call = counted.call();
  Walk& walk = call.walk;
  if (walk.in_compiled_code())
    walk.fail(diagnostic(Code::size_known_at_run_time, call.where)
                  .set_help("say how many there are: "
                            "`bincount(x, length)`"));
  if (walk.mode() == Mode::check) return walk.open_size();
  if (x->type.elements() == 0) return 0;
  const auto extreme = [&](ir::Op op) {
    return host_integer(walk, reduce(walk, op, x, {0}, false, call.where),
                        call.where);
  };
  const int64_t count = std::max<int64_t>(extreme(ir::Op::max) + 1, 0);
  if (const int64_t least = extreme(ir::Op::min); least < 0)
    walk.fail(diagnostic(Code::index_out_of_bounds, counted.where(),
                         fmt::format("{} holds {}, and counts only 0 and above",
                                     describe_argument(counted), least)));
  return count;
}

/// What each element of x, which has this type, counts: 1, or its weight.
ArrayValue count_of_each(CallOf<"bincount">& call, const ir::Type& type) {
  Walk& walk = call.walk;
  if (!call["weights"].given())
    return broadcast_to(walk,
                        walk.constant_int(1, DType::I32, false, call.where),
                        {ir::element_count(type.shape)}, call.where);
  const Span where = call["weights"].where();
  ArrayValue weights = array_argument(call["weights"]);
  if (is_bool(weights->type.dtype))
    weights = cast_to(walk, weights, DType::I32, where);
  return flattened(walk, broadcast_to(walk, weights, type.shape, where),
                   call.where);
}

}  // namespace

Value builtin_bincount(CallOf<"bincount">& call) {
  Walk& walk = call.walk;
  const Span where = call.where;
  ArrayValue x = integer_array_argument(call["x"]);
  const ArrayValue counts = count_of_each(call, x->type);
  x = flattened(walk, x, where);
  const ir::Dim length = call["length"].given() ? int_argument(call["length"])
                                                : count_length(call["x"], x);
  check_size(walk, length, where);
  x = as_index(walk, x, where);
  // A negative number would count from the end: it is sent out of range.
  const auto like_x = [&](const ir::Dim& d) {
    return broadcast_to(
        walk, cast_to(walk, walk.constant_size(d, where), x->type.dtype, where),
        x->type.shape, where);
  };
  const ArrayValue negative = apply(walk, ir::Op::lt, x, like_x(0), where);
  const ArrayValue bins = walk.add(
      ir::Op::select, {negative, like_x(length), x}, ir::NoAttrs{}, where);
  const ArrayValue zero =
      walk.constant_int(0, counts->type.dtype, false, where);
  return walk.add(ir::Op::scatter_add,
                  {broadcast_to(walk, zero, {length}, where), counts, bins},
                  ir::IndexAttrs{{0}, true}, call["x"].where());
}

Value builtin_nonzero(CallOf<"nonzero">& call) {
  Walk& walk = call.walk;
  const ArrayValue x = array_argument(call["x"]);
  if (x->type.rank() == 0)
    wrong_argument(call["x"], "an array of rank 1 or more");
  const ArrayValue mask = cast_to(walk, x, DType::Bool, call.where);
  std::vector<Value> out;
  for (ArrayValue& axis : positions_of_true(walk, mask, call["x"].where()))
    out.push_back(std::move(axis));
  return make_tuple(std::move(out));
}

}  // namespace unisono::lang
