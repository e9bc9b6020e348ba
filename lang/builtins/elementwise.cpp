// One result element from one element of each operand: the rows of ops.def,
// `where`, `clip`, `cast`.
#include "lang/builtins/elementwise.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "jit/ir/kinds.h"
#include "lang/context/call_of.h"
#include "lang/context/literals.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

/// What a row admits, for messages.
std::string_view class_text(ir::Op op) {
  const bool floats = ir::admits(op, DType::F32);
  const bool integers = ir::admits(op, DType::I32);
  const bool bools = ir::admits(op, DType::Bool);
  if (floats && integers) return "numbers";
  if (floats) return "floats";
  if (integers) return bools ? "integers and `bool`" : "integers";
  return bools ? "`bool`" : "`u64`";
}

void check_class(BuiltinCall& call, ir::Op op, const ArrayValue& x,
                 Span where) {
  if (ir::admits(op, x->type.dtype)) return;
  Diagnostic d = diagnostic(Code::element_class, where, call.builtin.name,
                            class_text(op), shown_type(*x).to_string());
  if (is_bool(x->type.dtype)) d.set_help("count with `i32(x)`");
  if (is_floating(x->type.dtype)) d.set_help("cast with `i32(x)`");
  if (ir::row(op).types == ir::TypeClass::U64) d.set_help("cast with `u64(x)`");
  call.walk.fail(std::move(d));
}

/// `op` of a host int, which stays one; nothing for operations on floats.
std::optional<Value> unary_of_int(Argument x, ir::Op op) {
  const ir::Dim& value = x.value().get_if<IntValue>()->value;
  Walk& walk = x.call().walk;
  const Span where = x.call().where;
  if (const auto symbol = unary_operator_of(op))
    return unary(walk, *symbol, x, where);
  const bool known = value.is_constant() && !value.overflowed();
  // A symbol stands for a size, which is not negative.
  if (op == ir::Op::abs)
    return checked_int(
        walk, known && value.value() < 0 ? ir::Dim(0) - value : value, where);
  if (op == ir::Op::sign && known)
    return IntValue{(value.value() > 0) - (value.value() < 0)};
  return std::nullopt;
}

ArrayValue map(BuiltinCall& call, ir::Op op, std::vector<ArrayValue> operands,
               std::span<const CallArgument> written) {
  broadcast_all(call.walk, operands, written, call.where,
                fmt::format("`{}`", call.builtin.name));
  return call.walk.add(op, operands, ir::NoAttrs{}, call.where);
}

/// Fails where an operand is `none`.
void require_given(std::initializer_list<Argument> operands) {
  for (const Argument& operand : operands)
    if (!operand.given()) wrong_argument(operand, "an array");
}

}  // namespace

Value elementwise_unary(Argument x, ir::Op op) {
  BuiltinCall& call = x.call();
  if (x.value().is<IntValue>())
    if (auto result = unary_of_int(x, op)) return *result;
  const std::string what = fmt::format("`{}`", call.builtin.name);
  const std::array<CallArgument, 1> written = {x};
  const ArrayValue operand =
      floats_only(op) ? promote_numbers_to_float(call.walk, written, what)[0]
                      : operand_argument(x);
  check_class(call, op, operand, x.where());
  return call.walk.add(op, {operand}, ir::NoAttrs{}, call.where);
}

Value elementwise_binary(Argument x, Argument y, ir::Op op) {
  BuiltinCall& call = x.call();
  if (const auto symbol = binary_operator_of(op))
    return binary(call.walk, *symbol, x, y, call.where, call.where);
  const auto* a = x.value().get_if<IntValue>();
  const auto* b = y.value().get_if<IntValue>();
  const bool extreme = op == ir::Op::maximum || op == ir::Op::minimum;
  if (a && b && extreme)
    return IntValue{
        call.walk.extreme_size(op == ir::Op::maximum, a->value, b->value)};
  require_given({x, y});
  const std::array<CallArgument, 2> written = {x, y};
  const std::string what = fmt::format("`{}`", call.builtin.name);
  std::vector<ArrayValue> operands =
      floats_only(op) ? promote_numbers_to_float(call.walk, written, what)
                      : promote_numbers(call.walk, written, what);
  check_class(call, op, operands[0], call.where);
  return map(call, op, std::move(operands), written);
}

Value builtin_where(CallOf<"where">& call) {
  const std::array<CallArgument, 3> written = {call["condition"], call["x"],
                                               call["y"]};
  const ArrayValue condition = array_argument(call["condition"]);
  if (!is_bool(condition->type.dtype))
    call.walk.fail(diagnostic(Code::element_class, call["condition"].where(),
                              "where", "a `bool` condition",
                              condition->type.to_string())
                       .set_help("compare: `c != 0`"));
  const std::vector<ArrayValue> values =
      promote_numbers(call.walk, std::span(written).last(2), "`where`");
  const bool weak = values[0]->weak && condition->type.rank() == 0;
  ArrayValue out =
      map(call, ir::Op::select, {condition, values[0], values[1]}, written);
  out->weak = weak;
  return out;
}

Value builtin_clip(CallOf<"clip">& call) {
  require_given({call["x"]});
  std::vector<CallArgument> written = {call["x"]};
  std::vector<ir::Op> cuts;
  const auto cut = [&](Argument limit, ir::Op op) {
    if (!limit.given()) return;
    written.push_back(limit);
    cuts.push_back(op);
  };
  cut(call["low"], ir::Op::maximum);
  cut(call["high"], ir::Op::minimum);
  const std::vector<ArrayValue> values =
      promote_numbers(call.walk, written, "`clip`");
  ArrayValue x = values[0];
  for (size_t i = 0; i < cuts.size(); ++i)
    x = map(call, cuts[i], {x, values[i + 1]},
            std::array<CallArgument, 2>{written[0], written[i + 1]});
  return x;
}

namespace {

/// An integer rounded to a multiple of 10**places, ties to even. What the type
/// cannot hold wraps.
ArrayValue round_integers(BuiltinCall& call, const ArrayValue& x,
                          int64_t places) {
  Walk& walk = call.walk;
  const DType dtype = x->type.dtype;
  const int bits = 8 * static_cast<int>(byte_size(dtype));
  const double most = std::ldexp(1.0, is_unsigned(dtype) ? bits : bits - 1);
  const auto number = [&](int64_t value) {
    return broadcast_to(walk,
                        walk.constant_int(value, dtype, false, call.where),
                        x->type.shape, call.where);
  };
  // Half of it is more than any x.
  if (std::pow(10.0, static_cast<double>(places)) >= most) return number(0);
  int64_t unit = 1;
  for (int64_t i = 0; i < places; ++i) unit *= 10;
  const auto add = [&](ir::Op op, const ArrayValue& a, const ArrayValue& b) {
    return walk.add(op, {a, b}, ir::NoAttrs{}, call.where);
  };
  const ArrayValue by = number(unit);
  const ArrayValue below = add(ir::Op::floor_div, x, by);
  const ArrayValue rest = add(ir::Op::sub, x, add(ir::Op::mul, below, by));
  const ArrayValue half = number(unit / 2);
  const ArrayValue odd =
      add(ir::Op::eq, add(ir::Op::bit_and, below, number(1)), number(1));
  const ArrayValue up =
      add(ir::Op::bit_or, add(ir::Op::gt, rest, half),
          add(ir::Op::bit_and, add(ir::Op::eq, rest, half), odd));
  const ArrayValue above = add(ir::Op::add, below, number(1));
  return add(
      ir::Op::mul,
      walk.add(ir::Op::select, {up, above, below}, ir::NoAttrs{}, call.where),
      by);
}

/// rint(x * 10**places) / 10**places, as NumPy; x where that is too large.
ArrayValue round_floats(BuiltinCall& call, const ArrayValue& given_x,
                        int64_t places) {
  Walk& walk = call.walk;
  const Span where = call.where;
  const DType dtype = given_x->type.dtype;
  const bool narrow = dtype == DType::F16 || dtype == DType::BF16;
  const ArrayValue x =
      narrow ? cast_to(walk, given_x, DType::F32, where) : given_x;
  const double power = std::pow(10.0, static_cast<double>(std::abs(places)));
  const auto limits = x->type.dtype == DType::F64
                          ? std::numeric_limits<double>::max()
                          : double{std::numeric_limits<float>::max()};
  if (!(power <= limits))  // all digits, or none
    return places > 0 ? given_x : apply(walk, ir::Op::mul, given_x, 0.0, where);
  const ir::Op scale = places > 0 ? ir::Op::mul : ir::Op::div;
  const ir::Op back = places > 0 ? ir::Op::div : ir::Op::mul;
  const ArrayValue scaled = apply(walk, scale, x, power, where);
  const ArrayValue whole =
      walk.add(ir::Op::round, {scaled}, ir::NoAttrs{}, where);
  const ArrayValue rounded = apply(walk, back, whole, power, where);
  const ArrayValue fits =
      walk.add(ir::Op::is_finite, {rounded}, ir::NoAttrs{}, where);
  const ArrayValue out =
      walk.add(ir::Op::select, {fits, rounded, x}, ir::NoAttrs{}, where);
  return narrow ? cast_to(walk, out, dtype, where) : out;
}

/// The multiple of 10**places nearest to x, ties to even.
std::optional<int64_t> rounded_int(int64_t x, int64_t places) {
  if (places > 18)
    return places == 19 && (x > 5'000'000'000'000'000'000 ||
                            x < -5'000'000'000'000'000'000)
               ? std::nullopt
               : std::optional<int64_t>(0);
  int64_t unit = 1;
  for (int64_t i = 0; i < places; ++i) unit *= 10;
  int64_t below = x / unit, rest = x % unit;
  if (rest < 0) {
    --below;
    rest += unit;
  }
  const bool up = rest > unit - rest || (rest == unit - rest && below % 2 != 0);
  int64_t out = 0;
  if (__builtin_mul_overflow(below + (up ? 1 : 0), unit, &out))
    return std::nullopt;
  return out;
}

double rounded_literal(double x, int64_t places) {
  const double power = std::pow(10.0, static_cast<double>(std::abs(places)));
  if (std::isinf(power)) return places > 0 ? x : x * 0.0;
  const double out = places > 0 ? std::nearbyint(x * power) / power
                                : std::nearbyint(x / power) * power;
  return std::isfinite(out) ? out : x;
}

}  // namespace

Value builtin_round(CallOf<"round">& call) {
  Walk& walk = call.walk;
  const int64_t places =
      call["decimals"].given() ? known_int_argument(call["decimals"]) : 0;
  if (!call["x"].value().is<IntValue>() && places == 0)
    return elementwise_unary(call["x"], ir::Op::round);
  if (const auto* i = call["x"].value().get_if<IntValue>();
      i && (places >= 0 || i->value == ir::Dim(0)))
    return *i;
  CallArgument x = call["x"];
  if (const auto* i = x.value.get_if<IntValue>(); i && i->value.is_constant()) {
    const std::optional<int64_t> rounded =
        rounded_int(i->value.value(), -places);
    if (!rounded)
      walk.fail(diagnostic(Code::int_overflow, call.where, call.where.text()));
    return IntValue{*rounded};
  }
  if (const auto literal = literal_of(x.value))
    return walk.constant(rounded_literal(*literal, places), DType::F64, true,
                         call.where);
  const ArrayValue array = operand_argument(call["x"]);
  if (is_bool(array->type.dtype))
    check_class(call, ir::Op::round, array, call["x"].where());
  const bool integer = is_integer(array->type.dtype);
  if (integer && places >= 0) return array;
  const ArrayValue out = integer ? round_integers(call, array, -places)
                                 : round_floats(call, array, places);
  out->weak = array->weak;
  return out;
}

Value builtin_fma(CallOf<"fma">& call) {
  require_given({call["x"], call["y"], call["z"]});
  const std::array<CallArgument, 3> written = {call["x"], call["y"], call["z"]};
  return map(call, ir::Op::fma,
             promote_numbers_to_float(call.walk, written, "`fma`"), written);
}

Value builtin_cast(CallOf<"cast">& call) {
  const auto* type = call["type"].value().get_if<TypeValue>();
  if (!type) wrong_argument(call["type"], "a type such as `f32`");
  return convert(call.walk, call["x"], type->type, call.where);
}

Value convert(Walk& walk, const CallArgument& x, const ir::Type& type,
              Span where) {
  const std::string name = type.to_string();
  const std::string what = fmt::format("the operand of `{}`", name);
  if (x.value.is<StrValue>())
    walk.fail(
        diagnostic(Code::expected_array, x.where, what, type_name(x.value))
            .set_help("the number that text says is `float(s)`, or "
                      "`int(s)`"));
  ArrayValue array = walk.to_operand(x.value, x.where, what);
  if (type.rank() > 0 && !same_sizes(array->type.shape, type.shape))
    walk.fail(diagnostic(Code::shape_mismatch, x.where, name,
                         fmt::format("shape {}", shape_text(type.shape)),
                         shown_type(*array).to_string())
                  .about()
                  .set_help("a cast changes the element type alone; see "
                            "`reshape` and `broadcast_to`"));
  if (type.rank() > 0) array = taken_for(walk, array, type.shape);
  const Span place = array->weak && array->constant ? x.where : where;
  return cast_to(walk, array, type.dtype, place);
}

}  // namespace unisono::lang
