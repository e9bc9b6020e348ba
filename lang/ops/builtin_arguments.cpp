#include "lang/ops/builtin_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/arguments.h"
#include "lang/source/foreign_names.h"

namespace unisono::lang {
namespace {

std::string parameter_name(const BuiltinCall& call, size_t i) {
  const auto parameters = parse_signature(call.builtin.signature);
  // Of range(n) the one argument is where it stops.
  const bool stops = parameters[i].name == "start" &&
                     i + 1 < parameters.size() &&
                     parameters[i + 1].name == "stop" && !given(call, i + 1);
  return parameters[i + (stops ? 1 : 0)].name;
}

[[noreturn]] void not_known(BuiltinCall& call, size_t i) {
  call.walk.fail(diagnostic(Code::argument_not_known, call[i].where,
                            describe_argument(call, i)));
}

/// An int, or nothing if `value` is none.
std::optional<ir::Dim> as_int(const Value& value) {
  if (const auto* i = value.get_if<IntValue>()) return i->value;
  return std::nullopt;
}

}  // namespace

const CallArgument* given(const BuiltinCall& call, size_t i) {
  return call.has(i) && !call[i].value.is<NoneValue>() ? &call[i] : nullptr;
}

std::string describe_argument(const BuiltinCall& call, size_t i) {
  return fmt::format("`{}` of `{}`", parameter_name(call, i),
                     call.builtin.name);
}

void wrong_argument(BuiltinCall& call, size_t i, const Value& value,
                    std::string_view expected) {
  const bool item = call.has(i) && call[i].value.tuple() != nullptr &&
                    value.tuple() != call[i].value.tuple();
  Diagnostic d =
      diagnostic(Code::wrong_argument, call.has(i) ? call[i].where : call.where,
                 (item ? "an item of " : "") + describe_argument(call, i),
                 expected, type_name(value));
  const bool number = expected.find("int") != std::string_view::npos &&
                      value.array() && value.array()->type.rank() == 0 &&
                      is_integer(value.array()->type.dtype);
  if (number)
    d.set_help(
        "an `int` is known when the program is compiled; an integer scalar is "
        "known only when it runs");
  call.walk.fail(std::move(d));
}

void wrong_argument(BuiltinCall& call, size_t i, std::string_view expected) {
  wrong_argument(call, i, call[i].value, expected);
}

ArrayValue array_argument(BuiltinCall& call, size_t i) {
  return call.walk.to_array(call[i].value, call[i].where,
                            describe_argument(call, i));
}

ArrayValue operand_argument(BuiltinCall& call, size_t i) {
  return call.walk.to_operand(call[i].value, call[i].where,
                              describe_argument(call, i));
}

ir::Dim int_argument(BuiltinCall& call, size_t i) {
  if (auto value = as_int(call[i].value)) return *value;
  wrong_argument(call, i, "an `int`");
}

ir::Dim int_argument_or(BuiltinCall& call, size_t i, ir::Dim otherwise) {
  return given(call, i) ? int_argument(call, i) : otherwise;
}

int64_t known_int_argument(BuiltinCall& call, size_t i) {
  const ir::Dim value = int_argument(call, i);
  if (!value.is_constant() || value.overflowed()) not_known(call, i);
  return value.value();
}

bool bool_argument_or(BuiltinCall& call, size_t i, bool otherwise) {
  if (!given(call, i)) return otherwise;
  const auto* value = call[i].value.get_if<BoolValue>();
  if (!value) wrong_argument(call, i, "`true` or `false`");
  if (!value->value) not_known(call, i);
  return *value->value;
}

std::string str_argument(BuiltinCall& call, size_t i) {
  const auto* value = call[i].value.get_if<StrValue>();
  if (!value) wrong_argument(call, i, "a `str`");
  if (!value->value) not_known(call, i);
  return *value->value;
}

DType dtype_argument(BuiltinCall& call, size_t i) {
  const auto* type = call[i].value.get_if<TypeValue>();
  if (const auto* text = call[i].value.get_if<StrValue>();
      text && text->value && !foreign_name_help(*text->value).empty())
    call.walk.fail(diagnostic(Code::wrong_argument, call[i].where,
                              describe_argument(call, i), "an element type",
                              "str")
                       .set_help(std::string(foreign_name_help(*text->value))));
  if (!type || type->type.rank() != 0)
    wrong_argument(call, i, "an element type such as `f32`");
  return type->type.dtype;
}

std::optional<DType> dtype_argument_or_none(BuiltinCall& call, size_t i) {
  if (!given(call, i)) return std::nullopt;
  return dtype_argument(call, i);
}

ir::Shape shape_argument(BuiltinCall& call, size_t i, bool allow_minus_one) {
  ir::Shape out;
  const auto add = [&](const Value& value) {
    auto size = as_int(value);
    if (!size) wrong_argument(call, i, value, "an `int` or a tuple of `int`s");
    const bool open = allow_minus_one && *size == ir::Dim(-1);
    if (!open) check_size(call.walk, *size, call[i].where);
    out.push_back(*size);
  };
  if (const TupleValue* tuple = call[i].value.tuple())
    for (const Value& item : tuple->items) add(item);
  else
    add(call[i].value);
  return out;
}

std::vector<int64_t> known_ints_argument(BuiltinCall& call, size_t i) {
  std::vector<int64_t> out;
  const auto add = [&](const Value& value) {
    auto number = as_int(value);
    if (!number)
      wrong_argument(call, i, value, "an `int` or a tuple of `int`s");
    if (!number->is_constant() || number->overflowed()) not_known(call, i);
    out.push_back(number->value());
  };
  if (const TupleValue* tuple = call[i].value.tuple())
    for (const Value& item : tuple->items) add(item);
  else
    add(call[i].value);
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

int axis_argument(BuiltinCall& call, size_t i, const ir::Type& type,
                  int extra) {
  return normalise_axis(call, known_int_argument(call, i), type,
                        type.rank() + extra, call[i].where);
}

std::vector<int> axes_argument(BuiltinCall& call, size_t i,
                               const ir::Type& type) {
  std::vector<int> out;
  if (!given(call, i)) {
    for (int axis = 0; axis < type.rank(); ++axis) out.push_back(axis);
    return out;
  }
  for (int64_t axis : known_ints_argument(call, i)) {
    const int k = normalise_axis(call, axis, type, type.rank(), call[i].where);
    if (std::find(out.begin(), out.end(), k) != out.end())
      call.walk.fail(diagnostic(Code::axis_twice, call[i].where, k,
                                describe_argument(call, i)));
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
