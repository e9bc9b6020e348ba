#include "lang/map_graph.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "jit/transform/transforms.h"

namespace unisono::lang {
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

/// One device's graph while it is built: blocks come in, the members' graph is
/// put between, blocks go out.
class DeviceGraph {
 public:
  explicit DeviceGraph(const MemberGraph& map) : map_(map) {}

  Graph build() {
    // With one member on each device, its graph is the device's: collectives
    // over members are collectives over devices.
    const bool one_each =
        map_.per_device == 1 && (map_.axis == 0 || map_.devices > 1);
    for (size_t i = 0; i < map_.inputs.size(); ++i) {
      out_.add_input(block_type(member_type(i), map_.inputs[i]));
    }
    std::vector<NodeId> arguments;
    for (size_t i = 0; i < map_.inputs.size(); ++i) {
      const NodeId block = out_.inputs[i];
      arguments.push_back(one_each ? to_member(block, i)
                                   : to_members(block, i));
    }
    const std::vector<NodeId> results =
        one_each ? jit::inline_graph(out_, map_.graph, arguments)
                 : jit::inline_graph(out_, all_members(), arguments);
    for (size_t i = 0; i < results.size(); ++i) {
      out_.outputs.push_back(one_each ? from_member(results[i], i)
                                      : from_members(results[i], i));
    }
    return std::move(out_);
  }

 private:
  const ir::Type& member_type(size_t input) const {
    return map_.graph.type(map_.graph.inputs[input]);
  }

  ir::Type block_type(ir::Type type, const AxisEntry& entry) const {
    if (entry.is_mapped()) {
      type.shape.insert(type.shape.begin() + entry.axis, map_.per_device);
    }
    return type;
  }

  Graph all_members() const {
    jit::VmapSpec spec;
    spec.axis = map_.axis;
    spec.size = map_.per_device;
    spec.devices = map_.devices;
    spec.names_members = true;
    for (const AxisEntry& entry : map_.inputs) {
      spec.mapped.push_back(!entry.is_none());
    }
    return jit::vmap(map_.graph, spec);
  }

  NodeId to_member(NodeId block, size_t i) {
    if (!map_.inputs[i].is_mapped()) return block;
    return reshape(out_, block, member_type(i).shape);
  }

  NodeId from_member(NodeId value, size_t i) {
    const AxisEntry& entry = map_.outputs[i];
    if (!entry.is_mapped()) return value;
    return reshape(out_, value, block_type(out_.type(value), entry).shape);
  }

  /// Members are the leading axis; a split block is one member's.
  NodeId to_members(NodeId block, size_t i) {
    const AxisEntry& entry = map_.inputs[i];
    if (entry.is_mapped()) return move_axis(out_, block, entry.axis, 0);
    if (entry.is_none()) return block;
    ir::Shape shape = out_.type(block).shape;
    shape.insert(shape.begin(), 1);
    return reshape(out_, block, std::move(shape));
  }

  NodeId from_members(NodeId values, size_t i) {
    const AxisEntry& entry = map_.outputs[i];
    if (entry.is_none()) return first(values);
    const NodeId moved = move_axis(out_, values, 0, entry.axis);
    if (entry.is_mapped()) return moved;
    ir::Shape shape = out_.type(moved).shape;  // members' blocks are joined
    shape[entry.axis] = shape[entry.axis] * shape[entry.axis + 1];
    shape.erase(shape.begin() + entry.axis + 1);
    return reshape(out_, moved, std::move(shape));
  }

  NodeId first(NodeId values) {
    ir::SliceAttrs slice;
    slice.size = out_.type(values).shape;
    slice.start.assign(slice.size.size(), 0);
    slice.step.assign(slice.size.size(), 1);
    slice.size[0] = 1;
    const ir::Shape rest(slice.size.begin() + 1, slice.size.end());
    return reshape(out_, out_.add(ir::Op::slice, {values}, std::move(slice)),
                   rest);
  }

  const MemberGraph& map_;
  Graph out_;
};

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
  for (int64_t i = 0; i < runs.outer; ++i) {
    uint8_t* in_whole = whole.data() + (i * runs.size + begin) * runs.bytes;
    uint8_t* in_part = part.data() + i * bytes;
    std::memcpy(into_whole ? in_whole : in_part,
                into_whole ? in_part : in_whole, static_cast<size_t>(bytes));
  }
}

}  // namespace

Graph device_graph(const MemberGraph& map) { return DeviceGraph(map).build(); }

Result<std::vector<jit::HostArray>> evaluate_map(
    const MemberGraph& map, const std::vector<jit::HostArray>& inputs,
    const std::vector<ir::Type>& outputs,
    const jit::ReferenceOptions& options) {
  if (map.axis == 0) return jit::evaluate(map.graph, inputs, options);
  const int64_t members = map.members();
  std::vector<std::vector<jit::HostArray>> arguments(members);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Type& type = map.graph.type(map.graph.inputs[i]);
    jit::HostArray whole = inputs[i];
    for (int64_t m = 0; m < members; ++m) {
      jit::HostArray part{type, {}};
      if (map.inputs[i].is_none()) {
        part.bytes = whole.bytes;
      } else {
        const int axis = map.inputs[i].axis;
        const int64_t count = whole.type.shape[axis].value() / members;
        part.bytes.resize(static_cast<size_t>(type.bytes()));
        copy_part(whole.bytes, whole.type, axis, m * count, count, part.bytes,
                  false);
      }
      arguments[m].push_back(std::move(part));
    }
  }
  auto results = jit::evaluate_members(map.graph, map.axis, arguments, options);
  if (!results) return results.error();
  std::vector<jit::HostArray> joined;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (map.outputs[i].is_none()) {
      joined.push_back(std::move((*results)[0][i]));
      continue;
    }
    const int axis = map.outputs[i].axis;
    jit::HostArray whole{outputs[i], {}};
    whole.bytes.resize(static_cast<size_t>(outputs[i].bytes()));
    for (int64_t m = 0; m < members; ++m) {
      const int64_t count = outputs[i].shape[axis].value() / members;
      copy_part(whole.bytes, whole.type, axis, m * count, count,
                (*results)[m][i].bytes, true);
    }
    joined.push_back(std::move(whole));
  }
  return joined;
}

}  // namespace unisono::lang
