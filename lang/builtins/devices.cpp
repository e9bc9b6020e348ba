// Devices as values, axes that run over them, and where an array lives.
#include <fmt/format.h>

#include <algorithm>

#include "lang/builtins/visualize.h"
#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/context/processes.h"
#include "lang/context/walk.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/maps.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {
namespace {

const std::vector<Device*>& all_devices(Walk& walk) {
  return walk.machine().runtime->devices();
}

Value first_devices(size_t count) {
  std::vector<Value> items;
  for (size_t i = 0; i < count; ++i)
    items.push_back(DeviceValue{static_cast<int>(i)});
  return make_tuple(std::move(items));
}

void forbid_repeated_devices(Walk& walk, const std::vector<int>& devices,
                             Span where) {
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto begin = devices.begin();
    if (std::find(begin, begin + i, devices[i]) == begin + i) continue;
    walk.fail(
        diagnostic(Code::device_twice, where, devices[i],
                   all_devices(walk)[devices[i]]->name())
            .set_help("name different devices; for two logical devices on "
                      "one, start with `--devices cpu:2`"));
  }
}

/// An array that is asked about places, which have an answer only where arrays
/// are on devices.
ArrayValue placed_argument(Argument argument,
                           std::string_view expected = "an array") {
  BuiltinCall& call = argument.call();
  if (call.walk.in_compiled_code()) {
    call.walk.fail(
        diagnostic(Code::bad_map_argument, call.where, call.builtin.name,
                   "inside compiled code an array has no place of its own")
            .set_help("ask at the top level, about the result"));
  }
  const ArrayCell* array = argument.value().array();
  if (!array || (array->weak && array->constant))
    wrong_argument(argument, expected);
  return array_argument(argument);
}

}  // namespace

std::optional<std::vector<int>> device_list(Walk& walk,
                                            const CallArgument& argument) {
  std::vector<Value> items;
  if (const TupleValue* tuple = argument.value.tuple())
    items = tuple->items;
  else
    items.push_back(argument.value);
  std::vector<int> devices;
  for (const Value& item : items) {
    const auto* device = item.get_if<DeviceValue>();
    if (!device) return std::nullopt;
    devices.push_back(device->index);
  }
  forbid_repeated_devices(walk, devices, argument.where);
  return devices;
}

namespace {

/// Tuples of tuples of devices, as deep as there are axes: the rows of a mesh.
bool read_mesh(const Value& value, size_t depth, size_t axes, Mesh& mesh) {
  const TupleValue* tuple = value.tuple();
  if (!tuple) {
    const auto* device = value.get_if<DeviceValue>();
    if (!device || depth != axes) return false;
    mesh.devices.push_back(device->index);
    return true;
  }
  if (depth == axes || tuple->items.empty()) return false;
  const auto size = static_cast<int64_t>(tuple->items.size());
  if (mesh.sizes.size() <= depth) mesh.sizes.push_back(size);
  if (mesh.sizes[depth] != size) return false;  // rows of different lengths
  for (const Value& item : tuple->items)
    if (!read_mesh(item, depth + 1, axes, mesh)) return false;
  return true;
}

/// The devices along one axis, where the others are at 0.
std::vector<int> line_of(const Mesh& mesh, size_t axis) {
  int64_t stride = 1;
  for (size_t i = axis + 1; i < mesh.sizes.size(); ++i) stride *= mesh.sizes[i];
  std::vector<int> line;
  for (int64_t p = 0; p < mesh.sizes[axis]; ++p)
    line.push_back(mesh.devices[p * stride]);
  return line;
}

[[noreturn]] void bad_declaration(Walk& walk, std::span<const Name> names,
                                  const CallArgument& value) {
  std::string all;
  for (const Name& name : names) all += (all.empty() ? "" : ", ") + name.text;
  const bool one = names.size() == 1;
  auto error = diagnostic(
      Code::bad_axis_declaration, value.where, all,
      one ? "a tuple of devices"
          : fmt::format("a mesh of devices with {} axes", names.size()),
      type_name(value.value));
  std::string sizes = "2";
  for (size_t i = 1; i < names.size(); ++i) sizes += ", 2";
  error.set_help(one ? fmt::format("write `axis {0} = devices()`, or `axis "
                                   "{0}` for a logical axis",
                                   all)
                     : fmt::format("write `axis {} = mesh({})`", all, sizes));
  walk.fail(std::move(error));
}

}  // namespace

std::vector<AxisValue> declare_axes(Walk& walk, std::span<const Name> names,
                                    const CallArgument* value) {
  std::shared_ptr<Mesh> mesh;
  if (value) {
    mesh = std::make_shared<Mesh>();
    const bool lone = names.size() == 1 && value->value.is<DeviceValue>();
    const Value devices = lone ? make_tuple({value->value}) : value->value;
    if (!read_mesh(devices, 0, names.size(), *mesh))
      bad_declaration(walk, names, *value);
    forbid_repeated_devices(walk, mesh->devices, value->where);
  }
  std::vector<AxisValue> axes;
  for (const Name& name : names) {
    auto axis = std::make_shared<AxisInfo>();
    axis->id = walk.new_axis_id();
    axis->name = name.text;
    axis->declared = name.span;
    axis->any_size = ir::Dim::symbol(walk.new_symbol_id(), name.text);
    if (mesh) {
      axis->mesh = mesh;
      axis->mesh_axis = static_cast<int>(axes.size());
      axis->devices = line_of(*mesh, axes.size());
    }
    axes.push_back({std::move(axis)});
  }
  return axes;
}

Value builtin_devices(CallOf<"devices">& call) {
  Walk& walk = call.walk;
  const std::vector<Device*>& all = all_devices(walk);
  if (!call["of"].given()) return first_devices(all.size());
  if (call["of"].value().is<IntValue>()) {
    const int64_t count = known_int_argument(call["of"]);
    if (count < 0) wrong_argument(call["of"], "a number of devices");
    if (count > static_cast<int64_t>(all.size())) {
      walk.fail(diagnostic(Code::too_few_devices, call["of"].where(), count,
                           all.size())
                    .set_help(fmt::format("start with `--devices cpu:{}`",
                                          std::clamp<int64_t>(count, 1, 64))));
    }
    return first_devices(static_cast<size_t>(count));
  }
  const ArrayValue array =
      placed_argument(call["of"], "a number of devices, or an array");
  // Where an array will live is known when the program runs; the checker
  // takes it to be on all devices.
  if (walk.mode() == Mode::check) return first_devices(all.size());
  std::vector<Value> items;
  for (const Device* device : walk.force(array, call.where).sharding().devices)
    items.push_back(DeviceValue{device->index()});
  return make_tuple(std::move(items));
}

Value builtin_device_count(CallOf<"device_count">& call) {
  return IntValue{static_cast<int64_t>(all_devices(call.walk).size())};
}

Value builtin_process_count(CallOf<"process_count">& call) {
  return IntValue{process_count(call.walk)};
}

Value builtin_local_devices(CallOf<"local_devices">& call) {
  const Argument process = call["process"];
  const int64_t wanted = known_int_argument(process);
  const int count = process_count(call.walk);
  if (wanted < 0 || wanted >= count)
    call.walk.fail(diagnostic(
        Code::wrong_argument, process.where(), "`process` of `local_devices`",
        count == 1 ? "0, as there is one process"
                   : fmt::format("a process from 0 to {}", count - 1),
        wanted));
  std::vector<Value> items;
  for (const Device* device : all_devices(call.walk))
    if (process_of(*device) == wanted)
      items.push_back(DeviceValue{device->index()});
  return make_tuple(std::move(items));
}

namespace {

/// The same text, with the process and the host behind its devices.
std::string text_with_processes(Walk& walk, const Sharding& sharding) {
  std::string names, told;
  std::string before;
  for (size_t i = 0; i < sharding.devices.size(); ++i) {
    const Device& device = *sharding.devices[i];
    std::string process = process_and_host(walk, device);
    if (i > 0 && process != before) told += fmt::format(" ({})", before);
    for (std::string* text : {&names, &told}) {
      if (i > 0) *text += ", ";
      *text += device.name();
    }
    before = std::move(process);
  }
  std::string text = sharding.to_string();
  text.resize(text.size() - names.size());
  return fmt::format("{}{} ({})", text, told, before);
}

}  // namespace

Value builtin_sharding(CallOf<"sharding">& call) {
  const ArrayValue array = placed_argument(call["x"]);
  const bool processes = bool_argument_or(call["processes"], false);
  if (call.walk.mode() == Mode::check) return StrValue{};
  const Sharding& sharding = call.walk.force(array, call.where).sharding();
  return StrValue{processes ? text_with_processes(call.walk, sharding)
                            : sharding.to_string()};
}

Value builtin_visualize(CallOf<"visualize">& call) {
  Walk& walk = call.walk;
  const ArrayValue value = placed_argument(call["x"]);
  const Argument file = call["file"];
  std::optional<std::string> path;
  if (file.given()) {
    require_files(walk, call.builtin.name, call.where);
    path = path_argument(walk, file, "file", "visualize", {".svg"});
  }
  if (walk.mode() == Mode::check || walk.machine().compile_only)
    return NoneValue{};
  const unisono::Array& array = walk.force(value, call.where);
  if (!file.given()) {
    settle(walk, call.where);
    const Machine& machine = walk.machine();
    if (machine.show_picture)
      machine.show_picture("image/svg+xml", svg_of_sharding(array));
    else
      machine.output(draw_sharding(array, machine.colour));
    return NoneValue{};
  }
  write_file(walk, path.value_or(""), svg_of_sharding(array), file.where());
  return NoneValue{};
}

namespace {

/// The devices of a mesh from `next` on, as rows of rows.
Value mesh_rows(const std::vector<int64_t>& sizes, size_t axis, int& next) {
  if (axis == sizes.size()) return DeviceValue{next++};
  std::vector<Value> rows;
  for (int64_t i = 0; i < sizes[axis]; ++i)
    rows.push_back(mesh_rows(sizes, axis + 1, next));
  return make_tuple(std::move(rows));
}

}  // namespace

Value builtin_mesh(CallOf<"mesh">& call) {
  Walk& walk = call.walk;
  std::vector<int64_t> sizes;
  std::string product;
  int64_t count = 1;
  for (const CallArgument& argument : call.rest) {
    const auto* size = argument.value.get_if<IntValue>();
    const bool known = size && size->value.is_constant();
    if (!known || size->value.value() < 1 || size->value.value() > 1'000'000) {
      walk.fail(diagnostic(Code::bad_map_argument, argument.where,
                           call.builtin.name,
                           "its sizes are numbers of devices, not " +
                               (known ? std::to_string(size->value.value())
                                      : type_name(argument.value)))
                    .set_help("write `axis rows, cols = mesh(2, 2)`"));
    }
    sizes.push_back(size->value.value());
    count = std::min<int64_t>(count * sizes.back(), 1'000'000'000);
    product += fmt::format("{}{}", product.empty() ? "" : " x ", sizes.back());
  }
  if (sizes.empty()) {
    walk.fail(diagnostic(Code::bad_map_argument, call.where, call.builtin.name,
                         "it has no sizes")
                  .set_help("write `axis rows, cols = mesh(2, 2)`"));
  }
  const auto there = static_cast<int64_t>(all_devices(walk).size());
  if (count > there) {
    if (sizes.size() > 1) product += fmt::format(" = {}", count);
    auto error =
        diagnostic(Code::mesh_too_large, call.where, product,
                   fmt::format("{} device{}", there, there == 1 ? "" : "s"));
    error.set_help(count <= 64
                       ? fmt::format("start with `--devices cpu:{}`", count)
                       : "use a smaller mesh");
    walk.fail(std::move(error));
  }
  int next = 0;
  return mesh_rows(sizes, 0, next);
}

}  // namespace unisono::lang
