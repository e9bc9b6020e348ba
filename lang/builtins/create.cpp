// Arrays from nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lang/context/call_of.h"
#include "lang/context/literals.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/text.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {
namespace {

/// The type that `type` (one, or sizes) and `dtype` say.
ir::Type type_argument(Argument argument, Argument dtype_written,
                       DType otherwise) {
  BuiltinCall& call = argument.call();
  const auto dtype = dtype_argument_or_none(dtype_written);
  if (const auto* type = argument.value().get_if<TypeValue>()) {
    if (dtype && *dtype != type->type.dtype)
      call.walk.fail(diagnostic(Code::two_dtypes, dtype_written.where(),
                                name(*dtype), type->type.to_string()));
    return type->type;
  }
  const bool scalar = integer_scalar(argument.value());
  const bool sizes =
      argument.value().is<IntValue>() || argument.value().tuple() || scalar;
  if (argument.value().array() && !scalar)
    call.walk.fail(
        diagnostic(Code::wrong_argument, argument.where(),
                   describe_argument(argument), "a type or a shape",
                   type_name(argument.value()))
            .set_help(fmt::format("a shape is a tuple of `int`s: `{}((2, 3))`",
                                  call.builtin.name)));
  if (const auto* named = argument.value().get_if<TypeAliasValue>()) {
    const TypeStmt& type = *named->definition;
    const bool record = type.type->kind == ExprKind::RecordType;
    call.walk.fail(
        diagnostic(Code::wrong_argument, argument.where(),
                   describe_argument(argument), "the type of an array",
                   fmt::format("the type `{}`", type.name.text))
            .set_help(
                record ? fmt::format("make each field: `(a = {}(f32[3]), ...)`",
                                     call.builtin.name)
                : type.type_params.empty()
                    ? "write the type with its sizes: `f32[2, 3]`"
                    : fmt::format("give its sizes: `{}[...]`",
                                  type.name.text)));
  }
  if (!sizes) wrong_argument(argument, "a type such as `f32[2, 3]`");
  return {dtype.value_or(otherwise), shape_argument(argument)};
}

ArrayValue number(Walk& walk, int64_t value, DType dtype, Span where) {
  if (is_bool(dtype))
    return walk.constant_array({dtype, {}}, {uint8_t(value != 0)}, where);
  return walk.constant_int(value, dtype, /*weak=*/false, where);
}

Value filled(BuiltinCall& call, const ir::Type& type, int64_t value) {
  return broadcast_to(call.walk,
                      number(call.walk, value, type.dtype, call.where),
                      type.shape, call.where);
}

/// `value` at `type`: cast, and broadcast to its shape.
Value filled_with(Argument value, const ir::Type& type) {
  BuiltinCall& call = value.call();
  const ArrayValue cast = to_dtype(call.walk, value, WeakDType{type.dtype},
                                   describe_argument(value));
  return broadcast_to(call.walk, cast, type.shape, call.where);
}

}  // namespace

Value builtin_zeros(CallOf<"zeros">& call) {
  return filled(call, type_argument(call["type"], call["dtype"], DType::F32),
                0);
}

Value builtin_ones(CallOf<"ones">& call) {
  return filled(call, type_argument(call["type"], call["dtype"], DType::F32),
                1);
}

Value builtin_full(CallOf<"full">& call) {
  const auto element = element_type(call["value"].value());
  if (!element) wrong_argument(call["value"], "a number");
  return filled_with(call["value"], type_argument(call["type"], call["dtype"],
                                                  element->dtype));
}

Value builtin_zeros_like(CallOf<"zeros_like">& call) {
  return filled(call, array_argument(call["x"])->type, 0);
}

Value builtin_ones_like(CallOf<"ones_like">& call) {
  return filled(call, array_argument(call["x"])->type, 1);
}

Value builtin_full_like(CallOf<"full_like">& call) {
  return filled_with(call["value"], array_argument(call["x"])->type);
}

namespace {

/// The bounds and the element type of arange, as they were written: a type may
/// stand after the last bound.
struct Bounds {
  ir::Dim start = 0, stop = 0, step = 1;
  DType dtype = DType::I32;
  Argument type;  // the argument that gave it
};

/// The bounds of `arange(0f64, 1, 0.1)` without their types, which stand last;
/// empty if they are no numbers with types.
std::string untyped_bounds(const std::vector<Argument>& bounds,
                           std::string_view dtype) {
  std::string out;
  for (const Argument bound : bounds) {
    if (!bound.given()) continue;
    std::string_view text = bound.where().text();
    if (text.ends_with(dtype)) text.remove_suffix(dtype.size());
    if (text.find_first_not_of("0123456789.-_e") != text.npos) return "";
    out += fmt::format("{}, ", text);
  }
  return out + std::string(dtype);
}

Bounds arange_bounds(CallOf<"arange">& call) {
  Bounds out{.type = call["dtype"]};
  std::optional<DType> dtype = dtype_argument_or_none(call["dtype"]);
  std::vector<Argument> bounds;
  for (const Argument bound : {call["start"], call["stop"], call["step"]}) {
    if (!bound.given()) continue;
    const bool type = bound.value().is<TypeValue>();
    const ArrayCell* array = bound.value().array();
    if (array && is_floating(array->type.dtype)) {
      const std::string untyped = untyped_bounds(
          {call["start"], call["stop"], call["step"]}, name(array->type.dtype));
      call.walk.fail(
          diagnostic(Code::wrong_argument, bound.where(),
                     describe_argument(bound), "an `int`",
                     type_name(bound.value()))
              .set_help(!untyped.empty()
                            ? fmt::format("the type stands last: `arange({})`",
                                          untyped)
                            : "how many there are is known of floats that are "
                              "written as numbers; else count first, `step * "
                              "arange(n)`, or use `linspace(start, stop, n)`"));
    }
    if (!type) {
      bounds.push_back(bound);
      continue;
    }
    if (dtype) wrong_argument(bound, "one element type only");
    dtype = dtype_argument(bound);
    out.type = bound;
  }
  out.dtype = dtype.value_or(DType::I32);
  if (bounds.empty())
    call.walk.fail(
        diagnostic(Code::missing_argument, call.where, "arange", "stop"));
  if (bounds.size() == 1) {
    out.stop = int_argument(bounds[0]);
    return out;
  }
  out.start = int_argument(bounds[0]);
  out.stop = int_argument(bounds[1]);
  if (bounds.size() == 3) out.step = int_argument(bounds[2]);
  return out;
}

/// The number of steps from start that stay before stop.
ir::Dim steps(BuiltinCall& call, const Bounds& b) {
  if (b.step == ir::Dim(0))
    call.walk.fail(diagnostic(Code::zero_step, call.where, "`arange`"));
  const bool down = b.step.is_constant() && b.step.value() < 0;
  const ir::Dim distance = down ? b.start - b.stop : b.stop - b.start;
  const ir::Dim stride = down ? ir::Dim(0) - b.step : b.step;
  if (distance.is_constant() && distance.value() <= 0 && !distance.overflowed())
    return 0;
  return floor_div(distance + stride - 1, stride);
}

}  // namespace

namespace {
/// `arange(0, 1, 0.25)`: start + i * step in f64, as NumPy counts. Nothing
/// where all bounds are ints, or one is no number that was written, as the size
/// would not be known.
std::optional<Value> arange_of_reals(CallOf<"arange">& call) {
  Walk& walk = call.walk;
  std::vector<double> bounds;
  bool real = false;
  Argument type = call["dtype"];
  for (const Argument bound : {call["start"], call["stop"], call["step"]}) {
    if (!bound.given()) continue;
    if (bound.value().is<TypeValue>()) {
      type = bound;
      continue;
    }
    const ArrayCell* array = bound.value().array();
    real = real || (array && is_floating(array->type.dtype));
    const std::optional<double> number = literal_of(bound.value());
    if (!number) return std::nullopt;
    bounds.push_back(*number);
  }
  if (!real) return std::nullopt;
  const double start = bounds.size() > 1 ? bounds[0] : 0,
               stop = bounds.size() > 1 ? bounds[1] : bounds[0],
               step = bounds.size() > 2 ? bounds[2] : 1;
  const DType dtype = type.given() ? dtype_argument(type) : DType::F32;
  if (!is_floating(dtype)) wrong_argument(type, "a type of floats");
  if (step == 0) walk.fail(diagnostic(Code::zero_step, call.where, "`arange`"));
  const double count = std::max(std::ceil((stop - start) / step), 0.0);
  if (std::isnan(count)) wrong_argument(call["start"], "a finite number");
  const ir::Shape shape = {
      ir::Dim(static_cast<int64_t>(std::min(count, 0x1p62)))};
  check_size(walk, shape[0], call.where);
  const auto spread = [&](double number) {
    return broadcast_to(walk,
                        walk.constant(number, DType::F64, false, call.where),
                        shape, call.where);
  };
  ArrayValue out = iota(walk, {DType::F64, shape}, 0, call.where);
  out = apply(walk, ir::Op::mul, out, spread(step), call.where);
  out = apply(walk, ir::Op::add, out, spread(start), call.where);
  return cast_to(walk, out, dtype, call.where);
}
}  // namespace

Value builtin_arange(CallOf<"arange">& call) {
  if (auto reals = arange_of_reals(call)) return *std::move(reals);
  Walk& walk = call.walk;
  const Bounds b = arange_bounds(call);
  const ir::Dim n = steps(call, b);
  check_size(walk, n, call.where);
  if (is_bool(b.dtype)) wrong_argument(b.type, "a type of numbers");
  const ir::Dim last = b.start + b.step * (n - 1);
  if (is_integer(b.dtype) && n.is_constant() && n.value() > 0)
    for (const ir::Dim& end : {b.start, last})
      if (end.is_constant())  // fails if it does not fit
        walk.constant_int(end.value(), b.dtype, false, call.where);
  // Counted in integers and converted once, so that floats are exact.
  const bool exact = is_integer(b.dtype) || byte_size(b.dtype) >= 8;
  const auto beyond_i32 = [](const ir::Dim& d) {
    return d.is_constant() && (d.value() > INT32_MAX || d.value() < INT32_MIN);
  };
  const bool wide = beyond_i32(b.start) || beyond_i32(last) || beyond_i32(n);
  const DType counter = exact ? b.dtype : wide ? DType::I64 : DType::I32;
  const auto scalar = [&](const ir::Dim& d) {
    const CallArgument value{IntValue{d}, call.where};
    return broadcast_to(walk,
                        to_dtype(walk, value, WeakDType{counter}, "arange"),
                        {n}, call.where);
  };
  ArrayValue out = iota(walk, {counter, {n}}, 0, call.where);
  if (!(b.step == ir::Dim(1)))
    out = apply(walk, ir::Op::mul, out, scalar(b.step), call.where);
  if (!(b.start == ir::Dim(0)))
    out = apply(walk, ir::Op::add, out, scalar(b.start), call.where);
  return cast_to(walk, out, b.dtype, call.where);
}

Value builtin_linspace(CallOf<"linspace">& call) {
  Walk& walk = call.walk;
  const CallArgument written[] = {call["start"], call["stop"]};
  const std::vector<ArrayValue> ends =
      promote_to_float(walk, written, "`linspace`");
  const ArrayValue &start = ends[0], &stop = ends[1];
  if (start->type.rank() != 0) wrong_argument(call["start"], "a scalar");
  if (stop->type.rank() != 0) wrong_argument(call["stop"], "a scalar");
  const DType dtype =
      dtype_argument_or_none(call["dtype"]).value_or(start->type.dtype);
  if (!is_floating(dtype)) wrong_argument(call["dtype"], "a type of floats");
  const ir::Dim n = int_argument_or(call["n"], 50);
  check_size(walk, n, call.where);
  const bool endpoint = bool_argument_or(call["endpoint"], true);
  const ir::Shape shape = {n};
  const auto spread = [&](const ArrayValue& scalar) {
    return broadcast_to(walk, cast_to(walk, scalar, DType::F64, call.where),
                        shape, call.where);
  };
  // As they were given: a literal or an integer has more digits than f32.
  const auto end = [&](const Argument& argument) {
    return spread(
        walk.to_operand(argument.value(), argument.where(), "`linspace`"));
  };
  const ArrayValue first = end(call["start"]), final = end(call["stop"]);
  // start + i * step in f64, and the end as it is: NumPy's numbers.
  const ir::Dim intervals = n == ir::Dim(1) ? ir::Dim(1) : endpoint ? n - 1 : n;
  const ArrayValue last = spread(walk.constant_size(intervals, call.where));
  const ArrayValue i = iota(walk, {DType::F64, shape}, 0, call.where);
  const ArrayValue distance =
      apply(walk, ir::Op::sub, final, first, call.where);
  const ArrayValue step = apply(walk, ir::Op::div, distance, last, call.where);
  ArrayValue out =
      apply(walk, ir::Op::add, apply(walk, ir::Op::mul, i, step, call.where),
            first, call.where);
  if (endpoint)
    out = walk.add(ir::Op::select,
                   {apply(walk, ir::Op::eq, i, last, call.where), final, out},
                   ir::NoAttrs{}, call.where);
  return cast_to(walk, out, dtype, call.where);
}

Value builtin_eye(CallOf<"eye">& call) {
  Walk& walk = call.walk;
  // As for `zeros`, a type says all: `eye(f64[3, 3])`.
  const auto* type = call["n"].value().get_if<TypeValue>();
  if (type && (type->type.rank() != 2 || call["m"].written() ||
               call["dtype"].written()))
    wrong_argument(call["n"], "an `int`, or a type alone such as `f32[3, 3]`");
  const ir::Dim n = type ? type->type.shape[0] : int_argument(call["n"]);
  const ir::Dim m = type ? type->type.shape[1] : int_argument_or(call["m"], n);
  const ir::Dim k = int_argument_or(call["k"], 0);
  const DType dtype =
      type ? type->type.dtype
           : dtype_argument_or_none(call["dtype"]).value_or(DType::F32);
  check_size(walk, n, call.where);
  check_size(walk, m, call.where);
  const ir::Shape shape = {n, m};
  const auto spread = [&](const ArrayValue& line, int axis) {
    return walk.add(ir::Op::broadcast, {line},
                    ir::BroadcastAttrs{shape, {axis}}, call.where);
  };
  const ArrayValue rows = index_range(walk, k, 1, n, call.where);
  const ArrayValue columns = index_range(walk, 0, 1, m, call.where);
  const DType wide =
      rows->type.dtype == columns->type.dtype ? rows->type.dtype : DType::I64;
  const ArrayValue diagonal =
      apply(walk, ir::Op::eq, spread(cast_to(walk, rows, wide, call.where), 0),
            spread(cast_to(walk, columns, wide, call.where), 1), call.where);
  return cast_to(walk, diagonal, dtype, call.where);
}

Value builtin_iota(CallOf<"iota">& call) {
  const auto* type = call["type"].value().get_if<TypeValue>();
  if (!type) wrong_argument(call["type"], "a type such as `i32[2, 3]`");
  if (is_bool(type->type.dtype))
    wrong_argument(call["type"], "a type of numbers");
  const int axis =
      axis_argument_or(call["axis"], 0, type->type, call["type"].where());
  return iota(call.walk, type->type, axis, call.where);
}

}  // namespace unisono::lang
