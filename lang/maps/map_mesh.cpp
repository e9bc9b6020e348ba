#include "lang/maps/map_mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/ir/kinds.h"
#include "lang/maps/map_state.h"
#include "runtime/cluster/cluster_device.h"

namespace unisono::lang {
namespace {

using ir::AxisId;

/// The axes that collectives are over, each once, in the order in which the
/// graph meets them.
void collect_axes(const ir::Graph& graph, std::vector<AxisId>& axes) {
  for (const ir::Node& node : graph.nodes) {
    if (const auto* a = std::get_if<ir::CollectiveAttrs>(&node.attrs)) {
      for (const AxisId id : a->axes)
        if (std::ranges::find(axes, id) == axes.end()) axes.push_back(id);
    } else if (const auto* branch = std::get_if<ir::IfAttrs>(&node.attrs)) {
      collect_axes(*branch->then_graph, axes);
      collect_axes(*branch->else_graph, axes);
    } else if (const auto* loop = std::get_if<ir::LoopAttrs>(&node.attrs)) {
      if (loop->condition) collect_axes(*loop->condition, axes);
      collect_axes(*loop->body, axes);
    }
  }
}

/// The devices of a mesh, in row-major order over those of its axes that are
/// used; the others are at 0.
std::vector<int> devices_along(const Mesh& mesh,
                               const std::vector<bool>& used) {
  std::vector<int> devices = {0};
  for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
    const int64_t count = used[axis] ? mesh.sizes[axis] : 1;
    std::vector<int> finer;
    for (const int at : devices)
      for (int64_t p = 0; p < count; ++p)
        finer.push_back(static_cast<int>(at * mesh.sizes[axis] + p));
    devices = std::move(finer);
  }
  for (int& device : devices) device = mesh.devices[device];
  return devices;
}

}  // namespace

bool has_nested_maps(Walk& walk, const ir::Graph& graph) {
  if (walk.nested_maps == 0) return false;
  std::vector<AxisId> axes;
  collect_axes(graph, axes);
  return !axes.empty();
}

std::vector<Device*> complete_mesh(Walk& walk, jit::MemberGraph& map,
                                   const AxisInfo* outermost, Span where) {
  std::shared_ptr<const Mesh> mesh = outermost ? outermost->mesh : nullptr;
  std::vector<std::pair<AxisId, int>> along;  // axes of the mesh
  if (outermost) along.emplace_back(outermost->id, outermost->mesh_axis);
  std::vector<AxisId> ids;
  collect_axes(map.graph, ids);
  for (const AxisId id : ids) {
    const MapCache::Nested* nested = map_cache(walk).find_nested(id);
    if (!nested) continue;
    if (!mesh) mesh = nested->axis->mesh;
    if (!(*mesh == *nested->axis->mesh)) {
      walk.fail(diagnostic(Code::other_devices, where, "pmap")
                    .set_help("call one after the other"));
    }
    along.emplace_back(id, nested->axis->mesh_axis);
    jit::MapAxis axis;
    axis.id = id;
    axis.devices = static_cast<int>(nested->axis->devices->size());
    axis.per_device = nested->members / axis.devices;
    axis.inputs.resize(map.graph.inputs.size());
    axis.outputs.resize(map.graph.outputs.size());
    map.axes.push_back(std::move(axis));
  }
  const Runtime& runtime = *walk.machine().runtime;
  const auto& all = runtime.devices();
  if (!mesh) return {&home_device(runtime.devices())};
  std::vector<bool> used(mesh->sizes.size(), false);
  for (const auto& [id, axis] : along) used[axis] = true;
  for (size_t axis = 0; axis < used.size(); ++axis) {
    if (!used[axis]) continue;
    jit::MeshAxis line{mesh->sizes[axis], {}};
    for (const auto& [id, of] : along)
      if (of == static_cast<int>(axis)) line.ids.push_back(id);
    map.mesh.push_back(std::move(line));
  }
  jit::keep_parts(map, outermost ? 1 : 0);
  std::vector<Device*> devices;
  for (const int index : devices_along(*mesh, used))
    devices.push_back(all[index]);
  return devices;
}

}  // namespace unisono::lang
