// Devices as values, axes that run over them, and where an array lives.
#include <fmt/format.h>

#include <algorithm>

#include "lang/ast.h"
#include "lang/builtin_arguments.h"
#include "lang/evaluator.h"
#include "lang/map_spec.h"
#include "lang/maps.h"
#include "lang/visualize.h"

namespace unisono::lang {
namespace {

const std::vector<Device*>& all_devices(Evaluator& evaluator) {
  return evaluator.machine().runtime->devices();
}

Value first_devices(size_t count) {
  std::vector<Value> items;
  for (size_t i = 0; i < count; ++i) {
    items.push_back(DeviceValue{static_cast<int>(i)});
  }
  return make_tuple(std::move(items));
}

/// The array in argument `i` of a question about places, which have an answer
/// only where arrays are on devices.
ArrayValue placed_argument(BuiltinCall& call, size_t i,
                           std::string_view expected = "an array") {
  if (call.evaluator.in_compiled_code()) {
    call.evaluator.fail(
        diagnostic(Code::bad_map_argument, call.where, call.builtin.name,
                   "inside compiled code an array has no place of its own")
            .set_help("ask at the top level, about the result"));
  }
  const ArrayCell* array = call[i].value.array();
  if (!array || is_static(*array)) wrong_argument(call, i, expected);
  return array_argument(call, i);
}

}  // namespace

std::optional<std::vector<int>> device_list(Evaluator& evaluator,
                                            const CallArgument& argument) {
  std::vector<Value> items;
  if (const TupleValue* tuple = argument.value.tuple()) {
    items = tuple->items;
  } else {
    items.push_back(argument.value);
  }
  std::vector<int> devices;
  for (const Value& item : items) {
    const auto* device = item.get_if<DeviceValue>();
    if (!device) return std::nullopt;
    if (std::ranges::find(devices, device->index) != devices.end()) {
      evaluator.fail(
          diagnostic(Code::device_twice, argument.where, device->index,
                     all_devices(evaluator)[device->index]->name())
              .set_help("name different devices; for two logical devices on "
                        "one, start with `--devices cpu:2`"));
    }
    devices.push_back(device->index);
  }
  return devices;
}

std::vector<AxisValue> declare_axes(Evaluator& evaluator,
                                    std::span<const Name> names,
                                    const CallArgument* value) {
  std::optional<std::vector<int>> devices;
  if (value) {
    if (names.size() == 1) devices = device_list(evaluator, *value);
    if (!devices || devices->empty()) {
      auto error = diagnostic(
          Code::bad_axis_declaration, value->where, names[0].text,
          names.size() == 1 ? "a tuple of devices" : "a mesh of devices",
          type_name(value->value));
      error.set_help(fmt::format(
          "write `axis {0} = devices()`, or `axis {0}` for a logical axis",
          names[0].text));
      evaluator.fail(std::move(error));
    }
  }
  std::vector<AxisValue> axes;
  for (const Name& name : names) {
    auto axis = std::make_shared<AxisInfo>();
    axis->id = evaluator.new_axis_id();
    axis->name = name.text;
    axis->devices = devices;
    axis->declared = name.span;
    axis->any_size = ir::Dim::symbol(evaluator.new_symbol_id(), name.text);
    axes.push_back({std::move(axis)});
  }
  return axes;
}

Value builtin_devices(BuiltinCall& call) {
  Evaluator& evaluator = call.evaluator;
  const std::vector<Device*>& all = all_devices(evaluator);
  if (!given(call, 0)) return first_devices(all.size());
  if (call[0].value.is<IntValue>()) {
    const int64_t count = known_int_argument(call, 0);
    if (count < 0) wrong_argument(call, 0, "a number of devices");
    if (count > static_cast<int64_t>(all.size())) {
      evaluator.fail(
          diagnostic(Code::too_few_devices, call[0].where, count, all.size())
              .set_help(fmt::format("start with `--devices cpu:{}`",
                                    std::clamp<int64_t>(count, 1, 64))));
    }
    return first_devices(static_cast<size_t>(count));
  }
  const ArrayValue array =
      placed_argument(call, 0, "a number of devices, or an array");
  // Where an array will live is known when the program runs; the checker
  // takes it to be on all devices.
  if (evaluator.mode() == Mode::check) return first_devices(all.size());
  std::vector<Value> items;
  for (const Device* device :
       evaluator.force(array, call.where).sharding().devices) {
    items.push_back(DeviceValue{device->index()});
  }
  return make_tuple(std::move(items));
}

Value builtin_device_count(BuiltinCall& call) {
  return IntValue{static_cast<int64_t>(all_devices(call.evaluator).size())};
}

Value builtin_sharding(BuiltinCall& call) {
  const ArrayValue array = placed_argument(call, 0);
  if (call.evaluator.mode() == Mode::check) return StrValue{};
  return StrValue{
      call.evaluator.force(array, call.where).sharding().to_string()};
}

Value builtin_visualize(BuiltinCall& call) {
  Evaluator& evaluator = call.evaluator;
  const ArrayValue value = placed_argument(call, 0);
  if (evaluator.mode() == Mode::check) return NoneValue{};
  evaluator.machine().output(draw_sharding(evaluator.force(value, call.where)));
  return NoneValue{};
}

Value builtin_mesh(BuiltinCall& call) {
  call.evaluator.fail(diagnostic(Code::not_there_yet, call.where, "`mesh` is")
                          .set_help("use one axis: `axis dev = devices()`"));
}

}  // namespace unisono::lang
