#include "jit/partition/map_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "jit/ir/kinds.h"
#include "jit/transform/transforms.h"
#include "jit/vmap/vmap.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::NodeId;

NodeId reshape(Graph& graph, NodeId x, ir::Shape shape) {
  return graph.add(ir::Op::reshape, {x}, ir::ShapeAttrs{std::move(shape)});
}

NodeId move_axis(Graph& graph, NodeId x, int from, int to) {
  if (from == to) return x;
  std::vector<int> axes(graph.type(x).rank());
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  return graph.add(ir::Op::transpose, {x}, ir::AxesAttrs{std::move(axes)});
}

/// One device's graph while it is built, for one axis: blocks come in, the
/// members' graph is put between, blocks go out.
class DeviceGraph {
 public:
  DeviceGraph(const Graph& member, const MapAxis& axis, bool names_members)
      : member_(member), axis_(axis), names_members_(names_members) {}

  Graph build() {
    // With one member on each device, its graph is the device's: collectives
    // over members are collectives over devices.
    const bool one_each = axis_.per_device == 1 && axis_.devices > 1;
    for (size_t i = 0; i < axis_.inputs.size(); ++i)
      out_.add_input(block_type(member_type(i), axis_.inputs[i]));
    std::vector<NodeId> arguments;
    for (size_t i = 0; i < axis_.inputs.size(); ++i) {
      const NodeId block = out_.inputs[i];
      arguments.push_back(one_each ? to_member(block, i)
                                   : to_members(block, i));
    }
    const std::vector<NodeId> results =
        one_each ? inline_graph(out_, member_, arguments)
                 : inline_graph(out_, all_members(), arguments);
    for (size_t i = 0; i < results.size(); ++i) {
      out_.outputs.push_back(one_each ? from_member(results[i], i)
                                      : from_members(results[i], i));
    }
    return std::move(out_);
  }

 private:
  const ir::Type& member_type(size_t input) const {
    return member_.type(member_.inputs[input]);
  }

  ir::Type block_type(ir::Type type, const AxisEntry& entry) const {
    if (entry.is_mapped())
      type.shape.insert(type.shape.begin() + entry.axis, axis_.per_device);
    return type;
  }

  Graph all_members() const {
    VmapSpec spec;
    spec.axis = axis_.id;
    spec.size = axis_.per_device;
    spec.devices = axis_.devices;
    spec.names_members = names_members_;
    for (const AxisEntry& entry : axis_.inputs)
      spec.mapped.push_back(!entry.is_none());
    for (const AxisEntry& entry : axis_.outputs)
      spec.stacked.push_back(!entry.is_none());
    return vmap(member_, spec);
  }

  NodeId to_member(NodeId block, size_t i) {
    if (!axis_.inputs[i].is_mapped()) return block;
    return reshape(out_, block, member_type(i).shape);
  }

  NodeId from_member(NodeId value, size_t i) {
    const AxisEntry& entry = axis_.outputs[i];
    if (!entry.is_mapped()) return value;
    return reshape(out_, value, block_type(out_.type(value), entry).shape);
  }

  /// Members are the leading axis; a split block is one member's.
  NodeId to_members(NodeId block, size_t i) {
    const AxisEntry& entry = axis_.inputs[i];
    if (entry.is_none()) return block;
    if (entry.is_mapped()) return move_axis(out_, block, entry.axis, 0);
    ir::Shape shape = out_.type(block).shape;
    shape.insert(shape.begin(), 1);
    return reshape(out_, block, std::move(shape));
  }

  NodeId from_members(NodeId values, size_t i) {
    const AxisEntry& entry = axis_.outputs[i];
    if (entry.is_none()) return values;
    const NodeId moved = move_axis(out_, values, 0, entry.axis);
    if (entry.is_mapped()) return moved;
    ir::Shape shape = out_.type(moved).shape;  // members' blocks are joined
    shape[entry.axis] = shape[entry.axis] * shape[entry.axis + 1];
    shape.erase(shape.begin() + entry.axis + 1);
    return reshape(out_, moved, std::move(shape));
  }

  const Graph& member_;
  const MapAxis& axis_;
  const bool names_members_;
  Graph out_;
};

/// The part of `type` that one member of an axis has, and the whole of which
/// that is a part.
ir::Type part_type(ir::Type type, const MapAxis& axis, const AxisEntry& entry) {
  if (entry.is_mapped()) type.shape.erase(type.shape.begin() + entry.axis);
  if (entry.is_split())
    type.shape[entry.axis] = type.shape[entry.axis].value() / axis.members();
  return type;
}
ir::Type whole_type(ir::Type type, const MapAxis& axis,
                    const AxisEntry& entry) {
  if (entry.is_mapped())
    type.shape.insert(type.shape.begin() + entry.axis, axis.members());
  if (entry.is_split())
    type.shape[entry.axis] = type.shape[entry.axis] * axis.members();
  return type;
}

/// An array as rows: `outer` runs of `size` parts of `bytes` bytes each along
/// one axis.
struct Runs {
  int64_t outer = 1, size = 1, bytes = 1;

  Runs(const ir::Type& type, int axis) : bytes(byte_size(type.dtype)) {
    for (int i = 0; i < type.rank(); ++i) {
      const int64_t extent = type.shape[i].value();
      (i < axis ? outer : i == axis ? size : bytes) *= extent;
    }
  }
};

/// Copies between a whole array and the part of `count` elements from `begin`
/// on along `axis`.
void copy_part(std::vector<uint8_t>& whole, const ir::Type& type, int axis,
               int64_t begin, int64_t count, std::vector<uint8_t>& part,
               bool into_whole) {
  const Runs runs(type, axis);
  const int64_t bytes = count * runs.bytes;
  if (bytes == 0) return;
  StopPoll poll(1 << 20);
  for (int64_t i = 0; i < runs.outer; ++i) {
    poll.did(bytes);
    uint8_t* in_whole = whole.data() + (i * runs.size + begin) * runs.bytes;
    uint8_t* in_part = part.data() + i * bytes;
    std::memcpy(into_whole ? in_whole : in_part,
                into_whole ? in_part : in_whole, static_cast<size_t>(bytes));
  }
}

/// The parts of an array for all members of an axis, in order.
std::vector<HostArray> take_apart(HostArray whole, const MapAxis& axis,
                                  const AxisEntry& entry) {
  std::vector<HostArray> parts;
  for (int64_t m = 0; m < axis.members(); ++m) {
    if (entry.is_none()) {
      parts.push_back(whole);
      continue;
    }
    HostArray part{part_type(whole.type, axis, entry), {}};
    resize_in_pieces(part.bytes, part.type.bytes());
    const int64_t count = whole.type.shape[entry.axis].value() / axis.members();
    copy_part(whole.bytes, whole.type, entry.axis, m * count, count, part.bytes,
              false);
    parts.push_back(std::move(part));
  }
  return parts;
}

/// The whole of which `parts` are those of an axis's members.
HostArray put_together(std::vector<HostArray> parts, const MapAxis& axis,
                       const AxisEntry& entry) {
  if (entry.is_none()) return std::move(parts[0]);
  HostArray whole{whole_type(parts[0].type, axis, entry), {}};
  resize_in_pieces(whole.bytes, whole.type.bytes());
  const int64_t count = whole.type.shape[entry.axis].value() / axis.members();
  for (int64_t m = 0; m < axis.members(); ++m) {
    copy_part(whole.bytes, whole.type, entry.axis, m * count, count,
              parts[m].bytes, true);
  }
  return whole;
}

// ---- keep_parts

class PartKeeper {
 public:
  PartKeeper(MemberGraph& map, size_t first)
      : map_(map), graph_(map.graph), first_(first) {}

  void run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      size_t from = first_;
      while (auto axis = cut_input(i, from)) from = *axis + 1;
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      size_t from = first_;
      while (auto axis = keep_output(i, from)) from = *axis + 1;
    }
  }

 private:
  /// The axis, at `from` or further in, that a node is over alone.
  std::optional<size_t> axis_of(const ir::Node& node, size_t from) const {
    const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
    if (a.axes.size() != 1 || !a.groups.empty()) return std::nullopt;
    for (size_t i = from; i < map_.axes.size(); ++i)
      if (map_.axes[i].id == a.axes[0]) return i;
    return std::nullopt;
  }

  static AxisEntry entry_of(const ir::Node& node) {
    const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
    return {a.tiled ? AxisEntry::Kind::split : AxisEntry::Kind::mapped, a.dim};
  }

  /// If all that reads an input is one kind of own_part, the input becomes it.
  std::optional<size_t> cut_input(size_t input, size_t from) {
    const NodeId id = graph_.inputs[input];
    const ir::Node* reader = nullptr;
    for (const ir::Node& node : graph_.nodes) {
      if (std::ranges::find(node.inputs, id) == node.inputs.end()) continue;
      if (node.op != ir::Op::own_part) return std::nullopt;
      if (reader && !(node.attrs == reader->attrs)) return std::nullopt;
      reader = &node;
    }
    if (!reader ||
        std::ranges::find(graph_.outputs, id) != graph_.outputs.end())
      return std::nullopt;
    const std::optional<size_t> axis = axis_of(*reader, from);
    if (!axis) return std::nullopt;
    map_.axes[*axis].inputs[input] = entry_of(*reader);
    graph_.nodes[id].type = reader->type;
    std::vector<NodeId> replaced;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ir::Node& node = graph_.nodes[i];
      if (node.op == ir::Op::own_part && node.inputs[0] == id)
        replaced.push_back(static_cast<NodeId>(i));
    }
    replace(replaced, id);
    return axis;
  }

  void replace(const std::vector<NodeId>& nodes, NodeId by) {
    const auto rename = [&](NodeId& id) {
      if (std::ranges::find(nodes, id) != nodes.end()) id = by;
    };
    for (ir::Node& node : graph_.nodes)
      std::ranges::for_each(node.inputs, rename);
    std::ranges::for_each(graph_.outputs, rename);
    // What is left of them reads nothing that has another type now.
    for (const NodeId id : nodes) {
      graph_.nodes[id].op = ir::Op::constant;
      graph_.nodes[id].inputs.clear();
      graph_.nodes[id].type = {DType::Bool, {}};
      graph_.nodes[id].attrs = ir::ConstantAttrs{{DType::Bool, {}}, {0}};
    }
  }

  std::optional<size_t> keep_output(size_t output, size_t from) {
    const ir::Node& node = graph_[graph_.outputs[output]];
    if (node.op != ir::Op::all_gather ||
        !ir::attrs<ir::CollectiveAttrs>(node).stays)
      return std::nullopt;
    const std::optional<size_t> axis = axis_of(node, from);
    if (!axis) return std::nullopt;
    map_.axes[*axis].outputs[output] = entry_of(node);
    graph_.outputs[output] = node.inputs[0];
    return axis;
  }

  MemberGraph& map_;
  Graph& graph_;
  const size_t first_;
};

}  // namespace

size_t mesh_axis(const MemberGraph& map, const MapAxis& axis) {
  size_t i = 0;
  while (i < map.mesh.size() &&
         std::ranges::find(map.mesh[i].ids, axis.id) == map.mesh[i].ids.end()) {
    ++i;
  }
  return i;
}

int64_t MemberGraph::members() const {
  int64_t count = 1;
  for (const MapAxis& axis : axes) count *= axis.members();
  return count;
}

int MemberGraph::devices() const {
  int64_t count = 1;
  for (const MeshAxis& axis : mesh) count *= axis.size;
  return static_cast<int>(count);
}

void keep_parts(MemberGraph& map, size_t first) {
  PartKeeper(map, first).run();
}

Graph device_graph(const MemberGraph& map) {
  Graph graph = map.graph;
  for (size_t i = map.axes.size(); i-- > 0;) {
    // Members of several maps have no number that errors could give.
    graph = DeviceGraph(graph, map.axes[i], map.axes.size() == 1).build();
  }
  return graph;
}

Result<std::vector<HostArray>> evaluate_map(
    const MemberGraph& map, const std::vector<HostArray>& inputs,
    const ReferenceOptions& options) {
  if (map.axes.empty()) return evaluate(map.graph, inputs, options);
  std::vector<std::vector<HostArray>> arguments(map.members());
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<HostArray> parts = {inputs[i]};
    for (const MapAxis& axis : map.axes) {
      std::vector<HostArray> finer;
      for (HostArray& part : parts)
        for (auto& p : take_apart(std::move(part), axis, axis.inputs[i]))
          finer.push_back(std::move(p));
      parts = std::move(finer);
    }
    for (size_t m = 0; m < parts.size(); ++m)
      arguments[m].push_back(std::move(parts[m]));
  }
  std::vector<MemberAxis> axes;
  for (const MapAxis& axis : map.axes)
    axes.push_back({axis.id, axis.members()});
  ReferenceOptions own = options;
  own.caller_of = [&](const ir::HostCallAttrs& call, int64_t member) {
    return calling_member(map, call, member);
  };
  auto results = TRY(evaluate_members(map.graph, axes, arguments, own));
  std::vector<HostArray> joined;
  for (size_t i = 0; i < map.graph.outputs.size(); ++i) {
    std::vector<HostArray> parts;
    for (auto& result : results) parts.push_back(std::move(result[i]));
    for (size_t a = map.axes.size(); a-- > 0;) {
      const MapAxis& axis = map.axes[a];
      const auto size = static_cast<size_t>(axis.members());
      std::vector<HostArray> coarser;
      for (size_t m = 0; m < parts.size(); m += size) {
        coarser.push_back(
            put_together({std::make_move_iterator(parts.begin() + m),
                          std::make_move_iterator(parts.begin() + m + size)},
                         axis, axis.outputs[i]));
      }
      parts = std::move(coarser);
    }
    joined.push_back(std::move(parts[0]));
  }
  return joined;
}

int device_of(const MemberGraph& map, int64_t member) {
  std::vector<int64_t> place(map.mesh.size(), 0);
  for (size_t a = map.axes.size(); a-- > 0;) {
    const MapAxis& axis = map.axes[a];
    const size_t along = mesh_axis(map, axis);
    if (along < place.size())
      place[along] =
          std::max(place[along], member % axis.members() / axis.per_device);
    member /= axis.members();
  }
  int64_t device = 0;
  for (size_t i = 0; i < place.size(); ++i)
    device = device * map.mesh[i].size + place[i];
  return static_cast<int>(device);
}

namespace {
bool is_inside(const ir::HostCallAttrs& call, ir::AxisId id) {
  return call.everywhere || std::ranges::find(call.axes, id) != call.axes.end();
}
}  // namespace

int64_t calling_member(const MemberGraph& map, const ir::HostCallAttrs& call,
                       int64_t member) {
  int64_t caller = 0, stride = 1, rest = member;
  for (size_t a = map.axes.size(); a-- > 0;) {
    const int64_t size = map.axes[a].members();
    if (is_inside(call, map.axes[a].id)) caller += rest % size * stride;
    rest /= size;
    stride *= size;
  }
  return caller;
}

int calling_device(const std::vector<MeshAxis>& mesh,
                   const ir::HostCallAttrs& call, int position) {
  if (mesh.empty()) return position;
  int64_t caller = 0, stride = 1, rest = position;
  for (size_t i = mesh.size(); i-- > 0;) {
    const bool inside = std::ranges::any_of(
        mesh[i].ids, [&](ir::AxisId id) { return is_inside(call, id); });
    if (inside || call.everywhere) caller += rest % mesh[i].size * stride;
    rest /= mesh[i].size;
    stride *= mesh[i].size;
  }
  return static_cast<int>(caller);
}

std::vector<int> input_cuts(const MemberGraph& map, size_t input) {
  std::vector<int> cuts(map.mesh.size(), -1);
  // Where the axes of what is left stand in the whole array.
  std::vector<int> axes(whole_input(map, input).shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  for (const MapAxis& axis : map.axes) {
    const AxisEntry& entry = axis.inputs[input];
    if (entry.is_none()) continue;
    const size_t along = mesh_axis(map, axis);
    if (along < cuts.size()) cuts[along] = axes[entry.axis];
    if (entry.is_mapped()) axes.erase(axes.begin() + entry.axis);
  }
  return cuts;
}

std::vector<int> output_cuts(const MemberGraph& map, size_t output) {
  std::vector<int> cuts(map.mesh.size(), -1);
  for (size_t a = map.axes.size(); a-- > 0;) {
    const AxisEntry& entry = map.axes[a].outputs[output];
    if (entry.is_none()) continue;
    if (entry.is_mapped())
      for (int& cut : cuts) cut += cut >= entry.axis ? 1 : 0;
    const size_t along = mesh_axis(map, map.axes[a]);
    if (along < cuts.size()) cuts[along] = entry.axis;
  }
  return cuts;
}

ir::Type whole_input(const MemberGraph& map, size_t input) {
  ir::Type type = map.graph.type(map.graph.inputs[input]);
  for (size_t a = map.axes.size(); a-- > 0;)
    type = whole_type(std::move(type), map.axes[a], map.axes[a].inputs[input]);
  return type;
}

ir::Type whole_output(const MemberGraph& map, size_t output) {
  ir::Type type = map.graph.type(map.graph.outputs[output]);
  for (size_t a = map.axes.size(); a-- > 0;) {
    type =
        whole_type(std::move(type), map.axes[a], map.axes[a].outputs[output]);
  }
  return type;
}

std::string AxisEntry::to_string() const {
  switch (kind) {
    case Kind::none: return "none";
    case Kind::mapped: return std::to_string(axis);
    case Kind::split: return fmt::format("split({})", axis);
  }
  return {};
}

}  // namespace unisono::jit
