// Elements moved, none changed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <utility>

#include "lang/builtins/split.h"
#include "lang/context/call_of.h"
#include "lang/context/library_environment.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"

namespace unisono::lang {
namespace {

/// How to say that the operand has `elements` elements, if one of its sizes can
/// say so in names that the program has; else nothing.
std::string stated_elements(Argument written, const ArrayValue& x,
                            const ir::Dim& elements) {
  for (size_t i = 0; i < x->type.shape.size(); ++i) {
    ir::Type type = x->type;
    if (std::exchange(type.shape[i], 1).is_constant()) continue;
    const ir::Dim others = ir::element_count(type.shape);
    if (others == ir::Dim(0)) continue;
    const auto size = exact_div(elements, others);
    if (!size) continue;
    type.shape[i] = *size;
    const std::string text = type.to_string();
    if (text.find('_') != text.npos) continue;
    const std::string_view operand = written.where().text();
    const bool name = std::ranges::all_of(
        operand, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    return fmt::format(
        "write `reshape({} as {}, ...)`, which is checked when it runs",
        name ? operand : "...", text);
  }
  return "";
}

/// The size that -1 stands for: what is left of `elements`.
ir::Dim open_size(CallOf<"reshape">& call, const ArrayValue& x,
                  const ir::Shape& shape, size_t open) {
  ir::Dim rest = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i == open) continue;
    if (shape[i] == ir::Dim(-1))
      call.walk.fail(diagnostic(Code::two_open_sizes, call["shape"].where(),
                                shape_text(shape)));
    rest = rest * shape[i];
  }
  const ir::Dim elements = ir::element_count(x->type.shape);
  std::optional<ir::Dim> size;
  if (!(rest == ir::Dim(0))) size = equal_parts(elements, rest);
  if (size) return *size;
  const bool known = elements.is_constant() && rest.is_constant();
  const std::string a = elements.to_string(), b = rest.to_string();
  Diagnostic d = diagnostic(
      Code::reshape_size, call.where, x->type.to_string(), shape_text(shape),
      known ? fmt::format("{} elements are not a multiple of {}", a, b)
            : fmt::format("`{}` is not proved to be a multiple of `{}`", a, b));
  d.set_label(x->type.to_string());
  d.about(elements, rest);
  const bool zero = rest == ir::Dim(0);
  std::string help =
      known || zero
          ? ""
          : stated_elements(call["x"], x, rest * floor_div(elements, rest));
  if (!help.empty()) d.set_help(std::move(help));
  call.walk.fail(std::move(d));
}

[[noreturn]] void not_a_tuple(Argument argument) {
  BuiltinCall& call = argument.call();
  Diagnostic d = diagnostic(Code::wrong_argument, argument.where(),
                            describe_argument(argument), "a tuple of arrays",
                            type_name(argument.value()));
  std::string_view text = argument.where().text();
  const bool list = text.starts_with('[') && text.ends_with(']');
  if (list) text = text.substr(1, text.size() - 2);
  if (list && text.find(" for ") != text.npos)
    d.set_help(fmt::format(
        "a comprehension is one array already: leave `{}` out, or `flatten` it",
        call.builtin.name));
  else if (list && text.find('\n') == text.npos)
    d.set_help(fmt::format("write `{}(({}))`", call.builtin.name, text));
  else
    d.set_help("a tuple is `(a, b)`, of one array `(a,)`");
  call.walk.fail(std::move(d));
}

/// All items of a tuple of arrays, promoted to one element type.
std::vector<ArrayValue> arrays_argument(Argument argument) {
  const TupleValue* tuple = argument.value().tuple();
  if (!tuple) {
    if (argument.value().array()) not_a_tuple(argument);
    wrong_argument(argument, "a tuple of arrays");
  }
  if (tuple->items.empty()) wrong_argument(argument, "at least one array");
  std::vector<CallArgument> written;
  for (const Value& item : tuple->items)
    written.push_back({item, argument.where()});
  BuiltinCall& call = argument.call();
  return promote_operands(call.walk, written,
                          fmt::format("`{}`", call.builtin.name));
}

[[noreturn]] void sizes_differ(Argument arrays, const ArrayValue& a,
                               const ArrayValue& b, const std::string& why) {
  BuiltinCall& call = arrays.call();
  call.walk.fail(diagnostic(Code::shapes_do_not_join, arrays.where(),
                            call.builtin.name, a->type.to_string(),
                            b->type.to_string(), why)
                     .about());
}

}  // namespace

Value builtin_reshape(CallOf<"reshape">& call) {
  const ArrayValue x = array_argument(call["x"]);
  ir::Shape shape = shape_argument(call["shape"], /*allow_minus_one=*/true);
  const auto open = std::find(shape.begin(), shape.end(), ir::Dim(-1));
  if (open != shape.end())
    *open = open_size(call, x, shape, open - shape.begin());
  const ir::Dim from = ir::element_count(x->type.shape);
  const ir::Dim to = ir::element_count(shape);
  if (!same_size(from, to)) {
    const bool known = from.is_constant() && to.is_constant();
    Diagnostic d = diagnostic(
        Code::reshape_size, call.where, x->type.to_string(), shape_text(shape),
        known ? fmt::format("{} elements and {} differ", from.to_string(),
                            to.to_string())
              : fmt::format("`{}` is not proved to be `{}`", from.to_string(),
                            to.to_string()));
    d.about(from - to);
    d.set_label(x->type.to_string());
    std::string help = known ? "" : stated_elements(call["x"], x, to);
    if (!known && help.empty())
      help = "coerce the operand first, `x as f32[n, m]`";
    if (!known && call.walk.context().checking_definition)
      help =
          "declare a size that divides, such as `f32[2*n]`, or `f32[r, k*dev]` "
          "for a multiple of the axis `dev`; or " +
          help;
    if (!help.empty()) d.set_help(std::move(help));
    call.walk.fail(std::move(d));
  }
  return reshape(call.walk, x, std::move(shape), call.where);
}

Value builtin_flatten(CallOf<"flatten">& call) {
  const ArrayValue x = array_argument(call["x"]);
  return reshape(call.walk, x, {ir::element_count(x->type.shape)}, call.where);
}

Value builtin_transpose(CallOf<"transpose">& call) {
  const ArrayValue x = array_argument(call["x"]);
  const int rank = x->type.rank();
  std::vector<int> axes(rank);
  std::iota(axes.rbegin(), axes.rend(), 0);
  if (call["axes"].given()) {
    const std::vector<int64_t> written = known_ints_argument(call["axes"]);
    std::vector<bool> seen(rank, false);
    axes.clear();
    for (int64_t axis : written) {
      axes.push_back(
          normalise_axis(call, axis, x->type, rank, call["axes"].where()));
      seen[axes.back()] = true;
    }
    if (static_cast<int>(axes.size()) != rank ||
        std::find(seen.begin(), seen.end(), false) != seen.end())
      call.walk.fail(diagnostic(Code::no_permutation, call["axes"].where(),
                                fmt::format("({})", fmt::join(written, ", ")),
                                rank, x->type.to_string()));
  }
  return transpose(call.walk, x, axes, call.where);
}

Value builtin_swapaxes(CallOf<"swapaxes">& call) {
  const ArrayValue x = array_argument(call["x"]);
  std::vector<int> axes(x->type.rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axis_argument(call["a"], x->type)],
            axes[axis_argument(call["b"], x->type)]);
  return transpose(call.walk, x, axes, call.where);
}

Value builtin_moveaxis(CallOf<"moveaxis">& call) {
  const ArrayValue x = array_argument(call["x"]);
  const int from = axis_argument(call["source"], x->type);
  const int to = axis_argument(call["destination"], x->type);
  std::vector<int> axes(x->type.rank());
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  return transpose(call.walk, x, axes, call.where);
}

Value builtin_broadcast_to(CallOf<"broadcast_to">& call) {
  const ArrayValue x = array_argument(call["x"]);
  const ir::Shape shape = shape_argument(call["shape"]);
  return broadcast_to(call.walk, x, shape, call.where);
}

namespace {

/// Lets arrays have one shape, but for the axis `free` (-1: none) of each, or
/// fails.
void meet_shapes(Argument arrays, std::vector<ArrayValue>& parts, int free) {
  Walk& walk = arrays.call().walk;
  ir::Shape common = parts[0]->type.shape;
  for (const ArrayValue& part : parts) {
    const ir::Type& type = part->type;
    if (type.rank() != parts[0]->type.rank())
      sizes_differ(arrays, parts[0], part, "their ranks differ");
    for (int i = 0; i < type.rank(); ++i) {
      if (i == free) continue;
      const auto size = same_size(common[i], type.shape[i]);
      if (!size)
        sizes_differ(arrays, parts[0], part,
                     free < 0
                         ? "their shapes differ"
                         : fmt::format("their sizes along axis {} differ", i));
      common[i] = *size;
    }
  }
  for (ArrayValue& part : parts) {
    ir::Shape shape = common;
    if (free >= 0) shape[free] = part->type.shape[free];
    part = taken_for(walk, part, std::move(shape));
  }
}

}  // namespace

namespace {

/// While checking, what joins the arrays of a tuple of which only running tells
/// how long it is: along a new axis, or along one that they have.
Value join_of_many(BuiltinCall& call, Argument arrays, Argument along,
                   bool new_axis) {
  Walk& walk = call.walk;
  const ArrayValue item =
      walk.to_array(*arrays.value().get_if<ManyValue>()->item, arrays.where(),
                    "an item of " + describe_argument(arrays));
  ir::Type type = item->type;
  const int axis =
      along.given() ? axis_argument(along, type, new_axis ? 1 : 0) : 0;
  if (new_axis)
    type.shape.insert(type.shape.begin() + axis, walk.open_size());
  else
    type.shape[axis] = walk.open_size();
  return taken_for(walk, item, std::move(type.shape));
}

[[noreturn]] void no_axis_to_join(Argument arrays, const ir::Type& type) {
  arrays.call().walk.fail(diagnostic(Code::rank_mismatch, arrays.where(),
                                     "concat", "arrays of rank 1 or more",
                                     type.to_string())
                              .set_help("`[a, b]` makes an array of scalars"));
}

}  // namespace

Value builtin_concat(CallOf<"concat">& call) {
  if (const auto* many = call["arrays"].value().get_if<ManyValue>()) {
    const ArrayCell* item = many->item->array();
    if (!item || item->type.rank() > 0)
      return join_of_many(call, call["arrays"], call["axis"], false);
    no_axis_to_join(call["arrays"], item->type);
  }
  std::vector<ArrayValue> parts = arrays_argument(call["arrays"]);
  const ir::Type& first = parts[0]->type;
  if (first.rank() == 0) no_axis_to_join(call["arrays"], first);
  int axis = 0;
  if (call["axis"].given()) axis = axis_argument(call["axis"], first);
  meet_shapes(call["arrays"], parts, axis);
  return concat(call.walk, parts, axis, call.where);
}

Value builtin_stack(CallOf<"stack">& call) {
  if (call["arrays"].value().is<ManyValue>())
    return join_of_many(call, call["arrays"], call["axis"], true);
  std::vector<ArrayValue> parts = arrays_argument(call["arrays"]);
  meet_shapes(call["arrays"], parts, -1);
  int axis = 0;
  if (call["axis"].given())
    axis = axis_argument(call["axis"], parts[0]->type, 1);
  for (ArrayValue& part : parts)
    part = insert_axis(call.walk, part, axis, call.where);
  return concat(call.walk, parts, axis, call.where);
}

namespace {

/// Whether an array may be a key of random numbers.
bool is_of_keys(const ir::Type& type) {
  return type == ir::Type{DType::U32, {ir::Dim(2)}};
}

/// The bounds at which an axis is cut: what was asked for as a number of equal
/// parts, or the positions themselves, as NumPy's slices have them.
std::vector<ir::Dim> cuts(Argument parts, const ir::Type& type, int axis) {
  Walk& walk = parts.call().walk;
  const ir::Dim& size = type.shape[axis];
  std::vector<ir::Dim> out = {0};
  if (parts.value().tuple()) {
    for (int64_t at : known_ints_argument(parts)) {
      if (size.is_constant())
        at = std::clamp<int64_t>(at < 0 ? at + size.value() : at, 0,
                                 size.value());
      out.push_back(at < 0           ? size + at
                    : size.is_open() ? walk.extreme_size(false, at, size)
                                     : ir::Dim(at));
    }
    out.push_back(size);
    return out;
  }
  if (parts.value().array() && !integer_scalar(parts.value()))
    wrong_argument(parts, "an `int` or a tuple of positions: `(2, 5)`");
  const int64_t count = known_int_argument(parts);
  const auto part = count > 0 ? equal_parts(size, count) : std::nullopt;
  if (!part)
    walk.fail(diagnostic(Code::no_equal_parts, parts.where(), axis,
                         type.to_string(), size.to_string(), count)
                  .about(size)
                  .set_help(is_of_keys(type)
                                ? fmt::format("keys are made of a key by "
                                              "`split_key(key, {})`",
                                              count)
                                : "positions cut anywhere: `split(x, (2, "
                                  "5))` gives x[:2], x[2:5] and x[5:]"));
  constexpr int64_t most = 10'000;
  if (count > most)
    walk.fail(diagnostic(Code::too_long, parts.where(), "the tuple of parts",
                         most, "items"));
  for (int64_t i = 1; i <= count; ++i) out.push_back(*part * i);
  return out;
}

/// `split(x, parts, axis)` of an array: a tuple of its parts.
Value split_array(CallOf<"split">& call) {
  const ArrayValue x = array_argument(call["x"]);
  const int axis = axis_argument_or(call["axis"], 0, x->type, call.where);
  const std::vector<ir::Dim> bounds = cuts(call["parts"], x->type, axis);
  std::vector<Value> out;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    ir::Dim size = bounds[i + 1] - bounds[i];
    if (size.is_constant() && size.value() < 0) size = 0;
    out.push_back(slice_axis(call.walk, x, axis, bounds[i], size, call.where));
  }
  return make_tuple(std::move(out));
}

}  // namespace

Value builtin_split(CallOf<"split">& call) {
  const Argument x = call["x"];
  if (x.written() && x.value().is<StrValue>()) return split_text(call);
  if (call["parts"].given()) {
    if (!x.written())
      call.walk.fail(
          diagnostic(Code::missing_argument, call.where, "split", "x"));
    return split_array(call);
  }
  // `split(0)`, `split(axis=0)`: the axis of an entry.
  const Argument entry = x.written() ? x : call["axis"];
  if (!entry.written())
    call.walk.fail(
        diagnostic(Code::missing_argument, call.where, "split", "axis"));
  if (const ArrayCell* array = entry.value().array()) {
    call.walk.fail(
        diagnostic(Code::missing_argument, call.where, "split", "parts")
            .set_help(is_of_keys(array->type)
                          ? "keys are made of a key by `split_key(key, 2)`"
                          : "`split(x, 3)` cuts axis 0 into 3 equal parts"));
  }
  const int64_t axis = known_int_argument(entry);
  // Beyond any rank there is; it is reported where the rank is known.
  const int64_t far = 1'000'000;
  return SplitValue{static_cast<int>(std::clamp(axis, -far, far))};
}

namespace {

/// `widths` of pad: n, (before, after), or a pair for each axis.
std::vector<std::pair<ir::Dim, ir::Dim>> pad_widths(Argument widths,
                                                    const ir::Type& type) {
  Walk& walk = widths.call().walk;
  using Pair = std::pair<ir::Dim, ir::Dim>;
  const std::string_view expected =
      "an `int`, a pair of `int`s, or a pair for each axis";
  const auto number = [&](const Value& value) {
    const auto width = as_int(widths, value);
    if (!width) wrong_argument(widths, value, expected);
    check_size(walk, *width, widths.where());
    return *width;
  };
  const auto pair = [&](const Value& value) -> Pair {
    const TupleValue* tuple = value.tuple();
    if (!tuple) return {number(value), number(value)};
    if (tuple->items.size() != 2) wrong_argument(widths, value, expected);
    return {number(tuple->items[0]), number(tuple->items[1])};
  };
  const size_t rank = type.shape.size();
  const TupleValue* tuple = widths.value().tuple();
  const bool per_axis =
      tuple && !tuple->items.empty() &&
      std::any_of(tuple->items.begin(), tuple->items.end(),
                  [](const Value& v) { return v.tuple() != nullptr; });
  if (!per_axis) return std::vector<Pair>(rank, pair(widths.value()));
  std::vector<Pair> out;
  for (const Value& item : tuple->items) out.push_back(pair(item));
  if (out.size() == 1) out.resize(rank, out[0]);
  if (out.size() != rank)
    walk.fail(diagnostic(
        Code::rank_mismatch, widths.where(), "pad",
        fmt::format("a pair for each of {} axes, got {}", rank, out.size()),
        type.to_string()));
  return out;
}

/// The value to pad with, as a scalar of x's element type.
ArrayValue pad_value(Argument value, const ArrayValue& x) {
  BuiltinCall& call = value.call();
  const DType dtype = x->type.dtype;
  if (!value.written())
    return is_bool(dtype)
               ? call.walk.to_array(BoolValue{false}, call.where, "padding")
               : call.walk.constant_int(0, dtype, false, call.where);
  const ArrayValue scalar =
      to_dtype(call.walk, value, WeakDType{dtype}, describe_argument(value));
  if (scalar->type.rank() != 0) wrong_argument(value, "a scalar");
  return scalar;
}

}  // namespace

namespace {

/// Elements of x before and after, as `_padded` of the library takes them.
Value pad_with_elements(CallOf<"pad">& call, const ArrayValue& x,
                        const std::string& mode) {
  if (mode != "edge" && mode != "reflect" && mode != "symmetric" &&
      mode != "wrap")
    wrong_argument(call["mode"],
                   "`\"constant\"`, `\"edge\"`, `\"reflect\"`, "
                   "`\"symmetric\"` or `\"wrap\"`");
  if (call["value"].written())
    wrong_argument(call["mode"], "`\"constant\"` beside `value`");
  std::vector<Value> widths;
  for (const auto& [before, after] : pad_widths(call["widths"], x->type))
    widths.push_back(make_tuple({IntValue{before}, IntValue{after}}));
  return call.walk.call(
      library_function(call.walk, "_padded"),
      {{x, call["x"].where()},
       {make_tuple(std::move(widths)), call["widths"].where()},
       {StrValue{mode}, call["mode"].where()}},
      {}, call.where);
}

}  // namespace

Value builtin_pad(CallOf<"pad">& call) {
  const ArrayValue x = array_argument(call["x"]);
  const std::string mode =
      call["mode"].written() ? str_argument(call["mode"]) : "constant";
  if (mode != "constant") return pad_with_elements(call, x, mode);
  if (call["value"].written() && call["value"].value().is<StrValue>())
    wrong_argument(call["value"], "a scalar (`mode=\"edge\"` has its name)");
  ir::Shape low, high;
  for (const auto& [before, after] : pad_widths(call["widths"], x->type)) {
    low.push_back(before);
    high.push_back(after);
  }
  return pad(call.walk, x, pad_value(call["value"], x), std::move(low),
             std::move(high), call.where);
}

namespace {

/// For pad_to and mask_of: the axis of `x`, 0 if it is not given, and n less
/// its size, an error where that is negative.
struct Padding {
  int axis;
  ir::Dim missing;
};
Padding padding_to(auto& call, const ArrayValue& x, const ir::Dim& n) {
  const int axis =
      axis_argument_or(call["axis"], 0, x->type, call["x"].where());
  const ir::Dim missing = n - x->type.shape[axis];
  if (missing.is_constant() && (missing.value() < 0 || missing.overflowed()))
    call.walk.fail(
        diagnostic(Code::pad_to_less, call["n"].where(), axis,
                   x->type.to_string(), n.to_string())
            .set_label(fmt::format("{} is less than {}", n.to_string(),
                                   x->type.shape[axis].to_string()))
            .set_help("a slice makes it shorter, as in `x[:8]`"));
  return {axis, missing};
}

}  // namespace

Value builtin_pad_to(CallOf<"pad_to">& call) {
  const ArrayValue x = array_argument(call["x"]);
  const Padding padding = padding_to(call, x, int_argument(call["n"]));
  const size_t rank = x->type.shape.size();
  ir::Shape low(rank, ir::Dim(0)), high(rank, ir::Dim(0));
  high[padding.axis] = padding.missing;
  return pad(call.walk, x, pad_value(call["value"], x), std::move(low),
             std::move(high), call.where);
}

Value builtin_mask_of(CallOf<"mask_of">& call) {
  Walk& walk = call.walk;
  const ArrayValue x = array_argument(call["x"]);
  const ir::Dim n = int_argument(call["n"]);
  check_size(walk, n, call["n"].where());
  const int axis = padding_to(call, x, n).axis;
  const ArrayValue rows =
      index_range(walk, ir::Dim(0), ir::Dim(1), n, call.where);
  const ArrayValue count =
      cast_to(walk, walk.constant_size(x->type.shape[axis], call.where),
              rows->type.dtype, call.where);
  return apply(walk, ir::Op::lt, rows,
               broadcast_to(walk, count, {n}, call.where), call.where);
}

Value builtin_flip(CallOf<"flip">& call) {
  const ArrayValue x = array_argument(call["x"]);
  return flip(call.walk, x, axes_argument(call["axis"], x->type), call.where);
}

namespace {

/// Rotated along one axis by a known shift.
ArrayValue roll_axis(Walk& walk, const ArrayValue& x, int axis,
                     const ir::Dim& shift, Span where) {
  const ir::Dim size = x->type.shape[axis];
  if (size == ir::Dim(0)) return x;
  // A symbol's size is taken to be at least a constant shift.
  const ir::Dim low = size.is_constant() ? floor_mod(shift, size)
                      : shift.is_constant() && shift.value() < 0 ? size + shift
                                                                 : shift;
  if (low == ir::Dim(0)) return x;
  return concat(walk,
                {slice_axis(walk, x, axis, size - low, low, where),
                 slice_axis(walk, x, axis, ir::Dim(0), size - low, where)},
                axis, where);
}

/// Rotated along one axis by a shift that is an array's value.
ArrayValue roll_computed(Argument written, ArrayValue shift,
                         const ArrayValue& x, int axis) {
  BuiltinCall& call = written.call();
  Walk& walk = call.walk;
  const ir::Dim size = x->type.shape[axis];
  if (size == ir::Dim(0)) return x;
  const ArrayValue to =
      index_range(walk, ir::Dim(0), ir::Dim(1), size, call.where);
  const DType dtype = to->type.dtype;
  shift = broadcast_to(walk, cast_to(walk, shift, dtype, written.where()),
                       {size}, call.where);
  const ArrayValue n = broadcast_to(
      walk,
      cast_to(walk, walk.constant_size(size, call.where), dtype, call.where),
      {size}, call.where);
  const ArrayValue from =
      apply(walk, ir::Op::mod, apply(walk, ir::Op::sub, to, shift, call.where),
            n, call.where);
  std::vector<int> order(x->type.rank());
  for (int i = 0; i < x->type.rank(); ++i)
    order[i] = i == axis ? 0 : i < axis ? i + 1 : i;
  return transpose(walk, gather(walk, x, {from}, {axis}, false, call.where),
                   order, call.where);
}

}  // namespace

Value builtin_roll(CallOf<"roll">& call) {
  Walk& walk = call.walk;
  const ArrayValue x = array_argument(call["x"]);
  ArrayValue out = x;
  std::vector<int> axes;
  if (call["axis"].given()) {
    for (int64_t axis : known_ints_argument(call["axis"]))
      axes.push_back(normalise_axis(call, axis, x->type, x->type.rank(),
                                    call["axis"].where()));
  } else {
    out = reshape(walk, x, {ir::element_count(x->type.shape)}, call.where);
    axes = {0};
  }
  const Argument shift = call["shift"];
  const TupleValue* tuple = shift.value().tuple();
  if (tuple && tuple->items.size() != axes.size())
    wrong_argument(shift, "one shift for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const Value& by = tuple ? tuple->items[i] : shift.value();
    if (const auto* known = by.get_if<IntValue>())
      out = roll_axis(walk, out, axes[i], known->value, call.where);
    else if (const ArrayValue* computed = integer_scalar(by))
      out = roll_computed(shift, *computed, out, axes[i]);
    else if (tuple)
      wrong_argument(shift, by, "an `int` or an integer scalar");
    else
      wrong_argument(shift, "an `int` or an integer scalar");
  }
  return reshape(walk, out, x->type.shape, call.where);
}

namespace {

/// Each element along `axis` n times in a row (`inner`), or the whole axis n
/// times.
ArrayValue repeat_axis(Walk& walk, const ArrayValue& x, int axis,
                       const ir::Dim& n, bool inner, Span where) {
  if (n == ir::Dim(1)) return x;
  ir::Shape wide = x->type.shape;
  wide.insert(wide.begin() + axis + (inner ? 1 : 0), n);
  std::vector<int> axes;
  for (int i = 0; i < x->type.rank(); ++i)
    axes.push_back(i < axis || (inner && i == axis) ? i : i + 1);
  ir::Shape out = x->type.shape;
  out[axis] = out[axis] * n;
  return reshape(
      walk,
      walk.add(ir::Op::broadcast, {x}, ir::BroadcastAttrs{wide, axes}, where),
      std::move(out), where);
}

/// Each element along `axis` as often as its number in `n` says, or as all
/// together have `length`: by `_repeated` of the library.
Value repeat_each(CallOf<"repeat">& call, const ArrayValue& x, int axis) {
  const Argument n = call["n"];
  const ArrayCell* counts = n.value().array();
  if (counts && (!is_integer(counts->type.dtype) || counts->type.rank() > 1))
    wrong_argument(n, "an `int`, or integers of rank 1");
  if (!counts && !n.value().tuple())
    check_size(call.walk, int_argument(n), n.where());
  if (counts && !call["length"].given() && call.walk.in_compiled_code())
    call.walk.fail(diagnostic(Code::size_known_at_run_time, call.where)
                       .set_help("say how many there are in all: "
                                 "`repeat(x, n, length=8)`, or write the "
                                 "numbers as a tuple: `repeat(x, (2, 6))`"));
  const CallArgument length = call["length"].written()
                                  ? CallArgument(call["length"])
                                  : CallArgument{NoneValue{}, call.where};
  if (call["length"].given())
    check_size(call.walk, int_argument(call["length"]), length.where);
  const bool tuple = n.value().tuple() != nullptr;
  return call.walk.call(
      library_function(call.walk, tuple ? "_repeated_as" : "_repeated"),
      {{x, call["x"].where()},
       n,
       {IntValue{axis}, call["axis"].where()},
       length},
      {}, call.where);
}

}  // namespace

Value builtin_repeat(CallOf<"repeat">& call) {
  ArrayValue x = array_argument(call["x"]);
  int axis = 0;
  if (call["axis"].given())
    axis = axis_argument(call["axis"], x->type);
  else
    x = reshape(call.walk, x, {ir::element_count(x->type.shape)}, call.where);
  const Value& times = call["n"].value();
  const ArrayCell* counts = times.array();
  if (call["length"].given() || times.tuple() ||
      (counts && counts->type.rank() > 0))
    return repeat_each(call, x, axis);
  const ir::Dim n = int_argument(call["n"]);
  check_size(call.walk, n, call["n"].where());
  return repeat_axis(call.walk, x, axis, n, /*inner=*/true, call.where);
}

Value builtin_tile(CallOf<"tile">& call) {
  ArrayValue x = array_argument(call["x"]);
  ir::Shape counts = shape_argument(call["n"]);
  while (static_cast<int>(counts.size()) < x->type.rank())
    counts.insert(counts.begin(), ir::Dim(1));
  while (x->type.rank() < static_cast<int>(counts.size()))
    x = insert_axis(call.walk, x, 0, call.where);
  for (size_t i = 0; i < counts.size(); ++i)
    x = repeat_axis(call.walk, x, static_cast<int>(i), counts[i],
                    /*inner=*/false, call.where);
  return x;
}

Value builtin_expand_dims(CallOf<"expand_dims">& call) {
  const ArrayValue x = array_argument(call["x"]);
  return insert_axis(call.walk, x, axis_argument(call["axis"], x->type, 1),
                     call.where);
}

namespace {

[[noreturn]] void fail_squeeze(BuiltinCall& call, const ir::Type& type,
                               int axis, Span where) {
  const ir::Dim& size = type.shape[axis];
  call.walk.fail(diagnostic(Code::squeeze_size, where, axis, type.to_string(),
                            size.to_string())
                     .about(size));
}

}  // namespace

Value builtin_squeeze(CallOf<"squeeze">& call) {
  const ArrayValue x = array_argument(call["x"]);
  std::vector<int> axes;
  if (call["axis"].given()) {
    axes = axes_argument(call["axis"], x->type);
    for (int axis : axes)
      if (!is_one(x->type.shape[axis]))
        fail_squeeze(call, x->type, axis, call["axis"].where());
  } else {
    for (int i = 0; i < x->type.rank(); ++i) {
      // How many axes are left, only running tells.
      if (x->type.shape[i].is_open())
        fail_squeeze(call, x->type, i, call.where);
      if (x->type.shape[i] == ir::Dim(1)) axes.push_back(i);
    }
  }
  return remove_axes(call.walk, x, axes, call.where);
}

}  // namespace unisono::lang
