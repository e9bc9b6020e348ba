// `jit`, `vmap`, `pmap`: making a function that is another one transformed.
// What it was given is checked here; calls are in map_call.cpp and map_run.cpp.
#include "lang/maps/maps.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/call_of.h"
#include "lang/context/walk.h"
#include "lang/maps/donation.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/map_state.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {

std::shared_ptr<const FunctionValue> function_argument(Argument f) {
  const auto* function =
      f.value().get_if<std::shared_ptr<const FunctionValue>>();
  if (function) return *function;
  BuiltinCall& call = f.call();
  call.walk.fail(diagnostic(Code::not_a_function, f.where(), call.builtin.name,
                            type_name(f.value()))
                     .set_help("give it a function: `f`, or "
                               "`fn(x) => 2 * x`"));
}

namespace {

/// `in_axes` or `out_axes`; 0 if it is left out.
void read_axes(Argument argument, Value& axes, Span& span) {
  axes = IntValue{0};
  if (!argument.written()) return;
  axes = argument.value();
  span = argument.where();
  BuiltinCall& call = argument.call();
  // A host's call has no text.
  const bool is_named =
      !span.file || span.file->text()
                        .substr(0, span.begin)
                        .ends_with(fmt::format("{}=", argument.name()));
  const bool is_argument = axes.array() && axes.array()->type.rank() > 0 &&
                           !is_named && !span.text().starts_with('[');
  if (is_argument)
    call.walk.fail(
        diagnostic(Code::bad_axes_entry, span,
                   fmt::format("`{}`", argument.name()), type_name(axes))
            .set_help(fmt::format("the arguments of f come behind: `{}(f)({})`",
                                  call.builtin.name, span.text())));
  check_axes_form(call.walk, axes, argument.name(), span);
}

bool has_split(const Value& axes) {
  bool found = false;
  for_each_leaf(axes,
                [&](const Value& leaf) { found |= leaf.is<SplitValue>(); });
  return found;
}

[[noreturn]] void bad_over(Argument over, const std::string& expected,
                           const std::string& seen, std::string help) {
  BuiltinCall& call = over.call();
  call.walk.fail(diagnostic(Code::bad_over, over.where(), call.builtin.name,
                            expected, seen)
                     .set_help(std::move(help)));
}

/// `over` of a pmap: a declared axis, or a new one over some devices.
std::shared_ptr<const AxisInfo> device_axis(Argument over,
                                            const std::string& name) {
  Walk& walk = over.call().walk;
  const std::string expected = "an axis over devices, or a tuple of devices";
  if (over.given()) {
    if (const auto* axis = over.value().get_if<AxisValue>()) {
      if (axis->axis->devices) return axis->axis;
      bad_over(over, expected, label(*axis->axis) + ", which has no devices",
               fmt::format("declare it with devices: `axis {} = devices()`",
                           axis->axis->name));
    }
  }
  auto axis = anonymous_axis(walk, name,
                             over.given() ? over.where() : over.call().where);
  if (over.given()) {
    axis->devices = device_list(walk, over);
    if (!axis->devices || axis->devices->empty()) {
      bad_over(over, expected, type_name(over.value()),
               "name some: `over=devices(2)`, or leave it out for all");
    }
  } else {
    axis->devices.emplace();
    const auto& all = walk.machine().runtime->devices();
    for (size_t d = 0; d < all.size(); ++d)
      axis->devices->push_back(static_cast<int>(d));
  }
  axis->mesh = std::make_shared<Mesh>(
      Mesh{{static_cast<int64_t>(axis->devices->size())}, *axis->devices});
  return axis;
}

/// `over` of a vmap: any declared axis, or a new one.
std::shared_ptr<const AxisInfo> logical_axis(Argument over,
                                             const std::string& name) {
  BuiltinCall& call = over.call();
  if (!over.given()) return anonymous_axis(call.walk, name, call.where);
  if (const auto* axis = over.value().get_if<AxisValue>()) return axis->axis;
  bad_over(over, "a declared axis", type_name(over.value()),
           "declare one, `axis batch`, or leave it out");
}

Transformed transformed(Transformed::Kind kind, Argument f) {
  Transformed map;
  map.kind = kind;
  map.inner = function_argument(f);
  map.where = f.call().where;
  return map;
}

void read_mapping(Argument in_axes, Argument out_axes, Argument over,
                  Transformed& map) {
  read_axes(in_axes, map.in_axes, map.in_axes_span);
  read_axes(out_axes, map.out_axes, map.out_axes_span);
  if (!over.given()) return;
  map.over = over.value();
  map.over_span = over.where();
}

/// A vmap has no devices, among which an axis could be shared.
void forbid_split(BuiltinCall& call, const Transformed& map) {
  if (!has_split(map.in_axes) && !has_split(map.out_axes)) return;
  call.walk.fail(
      diagnostic(Code::bad_map_argument,
                 has_split(map.in_axes) ? map.in_axes_span : map.out_axes_span,
                 call.builtin.name,
                 "`split(k)` shares an axis among devices, and a vmap has "
                 "none")
          .set_help("use an integer, or `pmap`"));
}

/// `pmap(f)` as a value: with the state that such a map has already, or a new
/// one over the axis that `new_axis` makes for a map of this name.
template <class NewAxis>
Value make_map(BuiltinCall& call, Transformed map, NewAxis new_axis) {
  const std::string name =
      fmt::format("{}({})", call.builtin.name, map.inner->name);
  map.state = map_cache(call.walk).state(map, [&] {
    auto state = std::make_shared<MapState>();
    state->axis = new_axis(name);
    return state;
  });
  return std::shared_ptr<const FunctionValue>(
      std::make_shared<FunctionValue>(FunctionValue{name, std::move(map)}));
}

/// The size along axis 0 of all arrays in the tree.
ir::Dim leading_size(Argument tree) {
  std::optional<ir::Dim> size;
  for_each_leaf(tree.value(), [&](const Value& leaf) {
    const ArrayCell* array = leaf.array();
    if (!array || array->type.rank() == 0)
      wrong_argument(tree, leaf, "an array of rank 1 or more");
    const ir::Dim& own = array->type.shape[0];
    if (!size) size = own;
    if (const auto both = same_size(*size, own)) {
      size = both;
      return;
    }
    const std::string what = describe_argument(tree);
    tree.call().walk.fail(diagnostic(Code::mapped_sizes_differ, tree.where(),
                                     what, size->to_string(), 0, what,
                                     own.to_string(), 0)
                              .about(*size - own)
                              .set_help("all arrays that `map` runs over have "
                                        "one size along axis 0"));
  });
  if (!size) wrong_argument(tree, "an array, or a tree with arrays");
  return *size;
}

}  // namespace

Value builtin_jit(CallOf<"jit">& call) {
  Transformed map = transformed(Transformed::Kind::jit, call["f"]);
  map.in_axes = map.out_axes = NoneValue{};
  return make_map(call, std::move(map),
                  [](const std::string&) { return nullptr; });
}

Value builtin_vmap(CallOf<"vmap">& call) {
  Transformed map = transformed(Transformed::Kind::vmap, call["f"]);
  read_mapping(call["in_axes"], call["out_axes"], call["over"], map);
  forbid_split(call, map);
  return make_map(call, std::move(map), [&](const std::string& name) {
    return logical_axis(call["over"], name);
  });
}

Value builtin_pmap(CallOf<"pmap">& call) {
  Transformed map = transformed(Transformed::Kind::pmap, call["f"]);
  read_mapping(call["in_axes"], call["out_axes"], call["over"], map);
  if (call["donate"].given())
    map.donated = read_donate(call["donate"], *map.inner);
  return make_map(call, std::move(map), [&](const std::string& name) {
    return device_axis(call["over"], name);
  });
}

Value builtin_map(CallOf<"map">& call) {
  const Value f = function_argument(call["f"]);
  const Argument xs = call["xs"];
  return map_members(
      call.walk, leading_size(xs), {xs.value()},
      [&](const std::vector<Value>& member) {
        return call.walk.call(f, {{member[0], xs.where()}}, {}, call.where);
      },
      call.where);
}

}  // namespace unisono::lang
