// `pmap` inside code that is compiled: nested in another one, in a `jit` or a
// `vmap`. Its body is traced into the same graph, where all arrays around it
// are whole on every device: `own_part` takes a member's part, `all_gather`
// stacks the results. What need not be whole is found afterwards (keep_parts in
// map_graph.h).
#include <fmt/format.h>

#include "lang/maps/map_call.h"
#include "lang/maps/map_state.h"

namespace unisono::lang {
namespace {

std::string devices_fact(const AxisInfo& axis) {
  return fmt::format("{} runs over {} device{}", label(axis),
                     axis.devices->size(),
                     axis.devices->size() == 1 ? "" : "s");
}

[[noreturn]] void no_mesh(Walk& walk, const MapCallee& callee,
                          const MappedAxis& outer, Span where) {
  const AxisInfo &inner = *callee.axis, &around = *outer.axis;
  auto error =
      diagnostic(Code::no_mesh, where, callee.function.name, label(around));
  error.add_note(outer.where, label(around) + " is mapped here");
  error.add_fact(devices_fact(around));
  const size_t rows = around.devices->size(), cols = inner.devices->size();
  error.add_fact(fmt::format("{}: together they are a mesh of {} x {} = {}",
                             devices_fact(inner), rows, cols, rows * cols));
  error.set_help(
      "declare both axes together, `axis rows, cols = mesh(2, 2)`, and map "
      "over the one and the other; or use `vmap` inside");
  walk.fail(std::move(error));
}

ir::CollectiveAttrs along(ir::AxisId id, const ir::Dim& members,
                          const AxisEntry& entry) {
  ir::CollectiveAttrs attrs;
  attrs.axes = {id};
  attrs.sizes = {members};
  attrs.dim = entry.axis;
  attrs.tiled = entry.is_split();
  return attrs;
}

AxisSet without(const AxisSet& axes, ir::AxisId axis) {
  AxisSet rest = axes;
  std::erase(rest, axis);
  return rest;
}

}  // namespace

void join_mesh(Walk& walk, const MapCallee& callee, Span where) {
  const auto& compiled = walk.context().compiled;
  if (!compiled) return;
  const AxisInfo& axis = *callee.axis;
  for (const MappedAxis& outer : walk.context().mapped_axes) {
    if (!outer.over_devices) continue;
    if (*outer.axis->mesh == *axis.mesh &&
        outer.axis->mesh_axis != axis.mesh_axis)
      continue;
    no_mesh(walk, callee, outer, where);
  }
  if (!compiled->mesh) compiled->mesh = axis.mesh;
  if (*compiled->mesh == *axis.mesh) return;
  auto error = diagnostic(Code::other_devices, where, callee.function.name);
  error.add_fact(fmt::format("{}: {}", devices_fact(axis),
                             device_names(walk, *axis.devices)));
  error.add_fact(fmt::format("a map before it is over {}",
                             device_names(walk, compiled->mesh->devices)));
  error.set_help(
      "give all maps of one compiled function the same devices, or axes of one "
      "mesh; or call them one after the other outside it");
  walk.fail(std::move(error));
}

Value nested_map(Walk& walk, const MapCallee& callee,
                 std::vector<CallArgument> positional,
                 std::vector<std::pair<std::string, CallArgument>> named,
                 Span where) {
  const BoundCall call = bind_call(walk, callee, positional, named, where);
  const ir::Dim members = call.layout.members;
  if (members == ir::Dim(0)) {  // no device has anything to do
    return map_over(walk, callee, std::move(positional), std::move(named),
                    where);
  }
  ++walk.nested_maps;
  const ir::AxisId id =
      map_cache(walk).nested_id(walk, callee.axis, members.value());
  BoundResult result;
  {
    InsideMap inside(walk, callee.axis, members, true, where, call.inputs, id);
    std::vector<ArrayValue> parts;
    for (const MapInput& input : call.inputs) {
      if (input.entry.is_none()) {
        parts.push_back(input.value);
        continue;
      }
      ArrayValue part = walk.add(ir::Op::own_part, {input.value},
                                 along(id, members, input.entry), where);
      part->varies = member_varies(input, callee.axis.get());
      part->varies_from = input.where;
      parts.push_back(std::move(part));
    }
    result = call_member(walk, callee, call, parts, where);
  }
  std::vector<ArrayValue> outputs;
  for (const MapOutput& output : result.outputs) {
    if (output.entry.is_none()) {
      outputs.push_back(output.value);
      continue;
    }
    ir::CollectiveAttrs stack = along(id, members, output.entry);
    stack.stays = true;
    ArrayValue whole =
        walk.add(ir::Op::all_gather, {output.value}, std::move(stack), where);
    whole->varies = without(output.value->varies, callee.axis->id);
    whole->varies_from = output.value->varies_from;
    outputs.push_back(std::move(whole));
  }
  return replace_arrays(result.tree, outputs);
}

}  // namespace unisono::lang
