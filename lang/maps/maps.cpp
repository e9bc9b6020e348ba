// `jit`, `vmap`, `pmap`: making a function that is another one transformed.
// What it was given is checked here; calls are in map_call.cpp and map_run.cpp.
#include "lang/maps/maps.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/walk.h"
#include "lang/maps/donation.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/map_state.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"

namespace unisono::lang {
namespace {

std::shared_ptr<const FunctionValue> function_argument(BuiltinCall& call) {
  const auto* function =
      call[0].value.get_if<std::shared_ptr<const FunctionValue>>();
  if (function) return *function;
  call.walk.fail(diagnostic(Code::not_a_function, call[0].where,
                            call.builtin.name, type_name(call[0].value))
                     .set_help("give it a function: `f`, or "
                               "`fn(x) => 2 * x`"));
}

/// Argument `i` as axes; 0 if it is left out.
void read_axes(BuiltinCall& call, size_t i, std::string_view what, Value& axes,
               Span& span) {
  axes = IntValue{0};
  if (!call.has(i)) return;
  axes = call[i].value;
  span = call[i].where;
  check_axes_form(call.walk, axes, what, span);
}

bool has_split(const Value& axes) {
  bool found = false;
  for_each_leaf(axes,
                [&](const Value& leaf) { found |= leaf.is<SplitValue>(); });
  return found;
}

[[noreturn]] void bad_over(BuiltinCall& call, size_t i, std::string expected,
                           std::string seen, std::string help) {
  call.walk.fail(diagnostic(Code::bad_over, call[i].where, call.builtin.name,
                            std::move(expected), std::move(seen))
                     .set_help(std::move(help)));
}

/// `over` of a pmap: a declared axis, or a new one over some devices.
std::shared_ptr<const AxisInfo> device_axis(BuiltinCall& call, size_t i,
                                            const std::string& name) {
  const CallArgument* over = given(call, i);
  const std::string expected = "an axis over devices, or a tuple of devices";
  if (over) {
    if (const auto* axis = over->value.get_if<AxisValue>()) {
      if (axis->axis->devices) return axis->axis;
      bad_over(call, i, expected, label(*axis->axis) + ", which has no devices",
               fmt::format("declare it with devices: `axis {} = devices()`",
                           axis->axis->name));
    }
  }
  auto axis = anonymous_axis(call.walk, name, over ? over->where : call.where);
  if (over) {
    axis->devices = device_list(call.walk, *over);
    if (!axis->devices || axis->devices->empty()) {
      bad_over(call, i, expected, type_name(over->value),
               "name some: `over=devices(2)`, or leave it out for all");
    }
  } else {
    axis->devices.emplace();
    const auto& all = call.walk.machine().runtime->devices();
    for (size_t d = 0; d < all.size(); ++d)
      axis->devices->push_back(static_cast<int>(d));
  }
  axis->mesh = std::make_shared<Mesh>(
      Mesh{{static_cast<int64_t>(axis->devices->size())}, *axis->devices});
  return axis;
}

/// `over` of a vmap: any declared axis, or a new one.
std::shared_ptr<const AxisInfo> logical_axis(BuiltinCall& call, size_t i,
                                             const std::string& name) {
  const CallArgument* over = given(call, i);
  if (!over) return anonymous_axis(call.walk, name, call.where);
  if (const auto* axis = over->value.get_if<AxisValue>()) return axis->axis;
  bad_over(call, i, "a declared axis", type_name(over->value),
           "declare one, `axis batch`, or leave it out");
}

Value make_map(BuiltinCall& call, Transformed::Kind kind) {
  Transformed map;
  map.kind = kind;
  map.inner = function_argument(call);
  map.where = call.where;
  const std::string name =
      fmt::format("{}({})", call.builtin.name, map.inner->name);
  if (kind != Transformed::Kind::jit) {
    read_axes(call, 1, "in_axes", map.in_axes, map.in_axes_span);
    read_axes(call, 2, "out_axes", map.out_axes, map.out_axes_span);
    if (const CallArgument* over = given(call, 3)) {
      map.over = over->value;
      map.over_span = over->where;
    }
  } else {
    map.in_axes = map.out_axes = NoneValue{};
  }
  if (kind == Transformed::Kind::vmap &&
      (has_split(map.in_axes) || has_split(map.out_axes))) {
    call.walk.fail(
        diagnostic(
            Code::bad_map_argument,
            has_split(map.in_axes) ? map.in_axes_span : map.out_axes_span,
            call.builtin.name,
            "`split(k)` shares an axis among devices, and a vmap has "
            "none")
            .set_help("use an integer, or `pmap`"));
  }
  if (kind == Transformed::Kind::pmap && given(call, 4))
    map.donated = read_donate(call, 4, *map.inner);
  map.state = map_cache(call.walk).state(map, [&] {
    auto state = std::make_shared<MapState>();
    if (kind == Transformed::Kind::pmap)
      state->axis = device_axis(call, 3, name);
    else if (kind == Transformed::Kind::vmap)
      state->axis = logical_axis(call, 3, name);
    return state;
  });
  return std::shared_ptr<const FunctionValue>(
      std::make_shared<FunctionValue>(FunctionValue{name, std::move(map)}));
}

/// The size along axis 0 of all arrays in the tree.
ir::Dim leading_size(BuiltinCall& call, size_t i) {
  std::optional<ir::Dim> size;
  for_each_leaf(call[i].value, [&](const Value& leaf) {
    const ArrayCell* array = leaf.array();
    if (!array || array->type.rank() == 0)
      wrong_argument(call, i, leaf, "an array of rank 1 or more");
    const ir::Dim& own = array->type.shape[0];
    if (!size) size = own;
    if (*size == own) return;
    const std::string what = describe_argument(call, i);
    call.walk.fail(diagnostic(Code::mapped_sizes_differ, call[i].where, what,
                              size->to_string(), 0, what, own.to_string(), 0)
                       .set_help("all arrays that `map` runs over have "
                                 "one size along axis 0"));
  });
  if (!size) wrong_argument(call, i, "an array, or a tree with arrays");
  return *size;
}

}  // namespace

Value builtin_jit(BuiltinCall& call) {
  return make_map(call, Transformed::Kind::jit);
}

Value builtin_vmap(BuiltinCall& call) {
  return make_map(call, Transformed::Kind::vmap);
}

Value builtin_pmap(BuiltinCall& call) {
  return make_map(call, Transformed::Kind::pmap);
}

Value builtin_map(BuiltinCall& call) {
  const Value f = function_argument(call);
  const ir::Dim count = leading_size(call, 1);
  return map_members(
      call.walk, count, {call[1].value},
      [&](const std::vector<Value>& member) {
        return call.walk.call(f, {{member[0], call[1].where}}, {}, call.where);
      },
      call.where);
}

Value split_text(BuiltinCall& call);  // lang/builtins/text.cpp

Value builtin_split(BuiltinCall& call) {
  if (call.has(0) && call[0].value.is<StrValue>()) return split_text(call);
  if (given(call, 1)) {
    if (!call.has(0))
      call.walk.fail(
          diagnostic(Code::missing_argument, call.where, "split", "x"));
    return split_array(call);
  }
  // `split(0)`, `split(axis=0)`: the axis of an entry.
  const size_t entry = call.has(0) ? 0 : 2;
  if (!call.has(entry))
    call.walk.fail(
        diagnostic(Code::missing_argument, call.where, "split", "axis"));
  if (call[entry].value.array())
    call.walk.fail(
        diagnostic(Code::missing_argument, call.where, "split", "parts")
            .set_help("`split(x, 3)` cuts axis 0 into 3 equal parts"));
  const int64_t axis = known_int_argument(call, entry);
  // Beyond any rank there is; it is reported where the rank is known.
  const int64_t far = 1'000'000;
  return SplitValue{static_cast<int>(std::clamp(axis, -far, far))};
}

}  // namespace unisono::lang
