#include "lang/ops/builtin_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/arguments.h"
#include "lang/ops/text.h"
#include "lang/source/foreign_names.h"

namespace unisono::lang {
namespace {

std::string_view shown_name(const Argument& argument) {
  if (argument.name() != "start") return argument.name();
  // Of range(n) the one argument is where it stops.
  const BuiltinCall& call = argument.call();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const auto& other = call.arguments[i];
    const bool given = other && !other->value.is<NoneValue>();
    if (call.builtin.parameters[i].name == "stop" && !given) return "stop";
  }
  return argument.name();
}

[[noreturn]] void not_known(Argument argument, bool open) {
  Diagnostic d = diagnostic(Code::argument_not_known, argument.where(),
                            describe_argument(argument));
  d.open = open;
  argument.call().walk.fail(std::move(d));
}

}  // namespace

std::optional<ir::Dim> as_int(Argument argument, const Value& value) {
  return int_of(argument.call().walk, value, argument.where());
}

std::string describe_argument(Argument argument) {
  return fmt::format("`{}` of `{}`", shown_name(argument),
                     argument.call().builtin.name);
}

void wrong_argument(Argument argument, const Value& value,
                    std::string_view expected) {
  const TupleValue* all = argument.value().tuple();
  const bool item = all && value.tuple() != all;
  Diagnostic d =
      diagnostic(Code::wrong_argument, argument.where(),
                 (item ? "an item of " : "") + describe_argument(argument),
                 expected, type_name(value));
  const bool number = expected.find("int") != std::string_view::npos &&
                      value.array() && value.array()->type.rank() == 0 &&
                      is_integer(value.array()->type.dtype);
  if (number)
    d.set_help(
        "an `int` is known when the program is compiled, a scalar only when it "
        "runs; one that is there before goes to the function as `int(n)`");
  // `eye(3, f64)`, as in `zeros(3, f64)`.
  const auto* type = value.get_if<TypeValue>();
  const bool has_dtype = std::ranges::any_of(
      argument.call().builtin.parameters,
      [](const Parameter& parameter) { return parameter.name == "dtype"; });
  const bool wants_type = expected.find("type") != std::string_view::npos;
  if (type && type->type.shape.empty() && has_dtype && !wants_type)
    d.set_help(fmt::format("name the element type: `dtype={}`",
                           name(type->type.dtype)));
  argument.call().walk.fail(std::move(d));
}

void wrong_argument(Argument argument, std::string_view expected) {
  wrong_argument(argument, argument.value(), expected);
}

ArrayValue array_argument(Argument argument) {
  return argument.call().walk.to_array(argument.value(), argument.where(),
                                       describe_argument(argument));
}

ArrayValue operand_argument(Argument argument) {
  return argument.call().walk.to_operand(argument.value(), argument.where(),
                                         describe_argument(argument));
}

ir::Dim int_argument(Argument argument) {
  if (auto value = as_int(argument, argument.value())) return *value;
  wrong_argument(argument, "an `int`");
}

ir::Dim int_argument_or(Argument argument, ir::Dim otherwise) {
  return argument.given() ? int_argument(argument) : otherwise;
}

int64_t known_int_argument(Argument argument) {
  const ir::Dim value = int_argument(argument);
  if (!value.is_constant()) not_known(argument, value.is_open());
  return value.value();
}

bool bool_argument_or(Argument argument, bool otherwise) {
  if (!argument.given()) return otherwise;
  const auto* value = argument.value().get_if<BoolValue>();
  if (!value) wrong_argument(argument, "`true` or `false`");
  if (!value->value) not_known(argument, value->open);
  return *value->value;
}

std::string str_argument(Argument argument) {
  const auto* value = argument.value().get_if<StrValue>();
  if (!value) wrong_argument(argument, "a `str`");
  if (!value->value) not_known(argument, false);
  return *value->value;
}

DType dtype_argument(Argument argument) {
  const auto* type = argument.value().get_if<TypeValue>();
  if (const auto* text = argument.value().get_if<StrValue>();
      text && text->value && !foreign_name_help(*text->value).empty())
    argument.call().walk.fail(
        diagnostic(Code::wrong_argument, argument.where(),
                   describe_argument(argument), "an element type", "str")
            .set_help(std::string(foreign_name_help(*text->value))));
  const std::string seen = type ? "" : type_name(argument.value());
  if (seen == "function int" || seen == "function float")
    argument.call().walk.fail(
        diagnostic(Code::wrong_argument, argument.where(),
                   describe_argument(argument), "an element type", seen)
            .set_help(seen == "function int" ? "write `i32`, or `i64`"
                                             : "write `f32`, or `f64`"));
  if (!type || type->type.rank() != 0)
    wrong_argument(argument, "an element type such as `f32`");
  return type->type.dtype;
}

std::optional<DType> dtype_argument_or_none(Argument argument) {
  if (!argument.given()) return std::nullopt;
  return dtype_argument(argument);
}

ir::Shape shape_argument(Argument argument, bool allow_minus_one) {
  ir::Shape out;
  const auto add = [&](const Value& value) {
    auto size = as_int(argument, value);
    if (!size) wrong_argument(argument, value, "an `int` or a tuple of `int`s");
    const bool open = allow_minus_one && *size == ir::Dim(-1);
    if (!open) check_size(argument.call().walk, *size, argument.where());
    out.push_back(*size);
  };
  if (const TupleValue* tuple = argument.value().tuple())
    for (const Value& item : tuple->items) add(item);
  else
    add(argument.value());
  return out;
}

std::vector<int64_t> known_ints_argument(Argument argument) {
  std::vector<int64_t> out;
  const auto add = [&](const Value& value) {
    auto number = as_int(argument, value);
    if (!number)
      wrong_argument(argument, value, "an `int` or a tuple of `int`s");
    if (!number->is_constant()) not_known(argument, number->is_open());
    out.push_back(number->value());
  };
  if (const TupleValue* tuple = argument.value().tuple())
    for (const Value& item : tuple->items) add(item);
  else
    add(argument.value());
  return out;
}

int normalise_axis(BuiltinCall& call, int64_t axis, const ir::Type& type,
                   int rank, Span where) {
  if (axis < -rank || axis >= rank) {
    Diagnostic d = diagnostic(Code::no_such_axis, where, axis,
                              call.builtin.name, type.to_string(), type.rank());
    if (rank == 0)
      d.set_help("a scalar has no axes");
    else if (rank == 1)
      d.set_help("the only axis here is 0, or -1 from the end");
    else
      d.set_help(
          fmt::format("axes here are 0 ... {}, or -{} ... -1", rank - 1, rank));
    call.walk.fail(std::move(d));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int axis_argument(Argument argument, const ir::Type& type, int extra) {
  return normalise_axis(argument.call(), known_int_argument(argument), type,
                        type.rank() + extra, argument.where());
}

int axis_argument_or(Argument argument, int64_t otherwise, const ir::Type& type,
                     Span where) {
  if (argument.given()) return axis_argument(argument, type);
  return normalise_axis(argument.call(), otherwise, type, type.rank(), where);
}

std::vector<int> axes_argument(Argument argument, const ir::Type& type) {
  std::vector<int> out;
  if (!argument.given()) {
    for (int axis = 0; axis < type.rank(); ++axis) out.push_back(axis);
    return out;
  }
  for (int64_t axis : known_ints_argument(argument)) {
    const int k = normalise_axis(argument.call(), axis, type, type.rank(),
                                 argument.where());
    if (std::find(out.begin(), out.end(), k) != out.end())
      argument.call().walk.fail(diagnostic(Code::axis_twice, argument.where(),
                                           k, describe_argument(argument)));
    out.push_back(k);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string shape_text(const ir::Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + shape[i].to_string();
  return out + (shape.size() == 1 ? ",)" : ")");
}

void check_size(Walk& walk, const ir::Dim& size, Span where) {
  if (size.overflowed())
    walk.fail(diagnostic(Code::too_large, where, "this size"));
  if (size.is_constant() && size.value() < 0)
    walk.fail(diagnostic(Code::bad_size, where, size.to_string())
                  .set_help("sizes are not negative"));
}

}  // namespace unisono::lang
