#pragma once
// One member's graph, and what becomes of it: a graph that every device runs on
// its own blocks, or the reference evaluator over all members.
#include <cstdint>
#include <string>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/reference/reference.h"
#include "jit/transform/transforms.h"
#include "runtime/array.h"
#include "runtime/result.h"

namespace unisono::jit {

/// What in_axes or out_axes says about one leaf.
struct AxisEntry {
  enum class Kind : uint8_t { none, mapped, split };
  Kind kind = Kind::none;
  int axis = 0;

  bool is_none() const { return kind == Kind::none; }
  bool is_mapped() const { return kind == Kind::mapped; }
  bool is_split() const { return kind == Kind::split; }
  bool operator==(const AxisEntry&) const = default;
  /// As it is written: "0", "split(1)", "none".
  std::string to_string() const;
};

/// An axis that is mapped over devices.
struct MapAxis {
  ir::AxisId id = 0;
  int devices = 1;
  int64_t per_device = 1;  // members on each device
  /// Of each input and output of the graph; captures have `none`.
  std::vector<AxisEntry> inputs, outputs;

  int64_t members() const { return per_device * devices; }
};

/// A map traced for one member.
struct MemberGraph {
  ir::Graph graph;
  /// Outermost first; none for a jit without maps in it. Entries of an inner
  /// axis are about what the outer ones leave of an array.
  std::vector<MapAxis> axes;
  /// The devices of the program, in row-major order: `mesh` says which axes
  /// run along which of its own. Empty: one device.
  std::vector<MeshAxis> mesh;

  int64_t members() const;
  int devices() const;
};

/// An input of which only nested maps read, their own parts, is cut before the
/// program runs; an output that nested maps stack stays in parts. So arrays lie
/// on the whole mesh, and own_part and all_gather of them are gone. The nested
/// maps' axes are those from `first` on.
void keep_parts(MemberGraph& map, size_t first);

/// The graph that each device runs. Its inputs and outputs are the blocks of
/// whole arrays, cut along the axes that are mapped or split.
ir::Graph device_graph(const MemberGraph& map);

/// Evaluates the map member by member, from whole arrays to whole results: what
/// the map means.
Result<std::vector<HostArray>> evaluate_map(
    const MemberGraph& map, const std::vector<HostArray>& inputs,
    const ReferenceOptions& options);

/// Which of the mesh's axes a map's axis runs along.
size_t mesh_axis(const MemberGraph& map, const MapAxis& axis);
/// Where the device of a member stands in the mesh.
int device_of(const MemberGraph& map, int64_t member);

/// Whose host call it is: a call outside some of the maps is made once for all
/// their members, by the first.
int64_t calling_member(const MemberGraph& map, const ir::HostCallAttrs& call,
                       int64_t member);
/// The same of devices, by their positions in a mesh.
int calling_device(const std::vector<MeshAxis>& mesh,
                   const ir::HostCallAttrs& call, int position);

/// The axes of a whole array that are cut: for each of the mesh's axes the
/// array's, or -1 where all along it have the same.
std::vector<int> input_cuts(const MemberGraph& map, size_t input);
std::vector<int> output_cuts(const MemberGraph& map, size_t output);
/// The type of a whole input or output.
ir::Type whole_input(const MemberGraph& map, size_t input);
ir::Type whole_output(const MemberGraph& map, size_t output);

}  // namespace unisono::jit
