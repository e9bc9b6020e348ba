#include <algorithm>
#include <cstring>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/gathered.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

using ir::CollectiveAttrs;
using ir::Node;
using ir::Op;
using Team = std::vector<int>;

std::vector<int> counted(int64_t count) {
  std::vector<int> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i);
  return out;
}

class Spmd {
 public:
  Spmd(const std::vector<MeshAxis>& mesh, bool plain)
      : mesh_(mesh), plain_(plain) {
    for (const MeshAxis& axis : mesh) devices_ *= axis.size;
  }

  Graph run(const Graph& graph) const {
    Graph out;
    ir::Renaming placed(graph);
    for (const NodeId id : ir::node_ids(graph)) {
      const Node& node = graph[id];
      placed.set(id, node.op == Op::input
                         ? out.add_input(node.type, node.source)
                         : place(out, placed.renamed(id)));
    }
    out.outputs = placed.renamed(graph.outputs);
    return out;
  }

 private:
  std::shared_ptr<const Graph> part(
      const std::shared_ptr<const Graph>& graph) const {
    return std::make_shared<const Graph>(run(*graph));
  }

  NodeId place(Graph& out, Node node) const {
    if (auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
      *a = {part(a->then_graph), part(a->else_graph)};
    else if (auto* a = std::get_if<ir::LoopAttrs>(&node.attrs)) {
      if (a->condition) a->condition = part(a->condition);
      a->body = part(a->body);
    } else if (ir::kind(node.op) == ir::Kind::collective)
      return place_collective(out, node);
    return out.append(std::move(node));
  }

  size_t mesh_axis(ir::AxisId id) const {
    for (size_t i = 0; i < mesh_.size(); ++i) {
      const auto& ids = mesh_[i].ids;
      if (ids.empty() || std::find(ids.begin(), ids.end(), id) != ids.end())
        return i;
    }
    check_failed("a collective over an axis of the mesh", __FILE__, __LINE__);
  }

  /// The devices that meet, in order: one team for each place along the axes
  /// that the collective is not over.
  std::vector<Team> teams(const CollectiveAttrs& a) const {
    std::vector<int64_t> strides(mesh_.size(), 1);
    for (size_t i = mesh_.size(); i-- > 1;)
      strides[i - 1] = strides[i] * mesh_[i].size;
    Team first = {0}, starts = {0};
    std::vector<bool> over(mesh_.size(), false);
    const auto widen = [&](Team& team, size_t axis) {
      Team wider;
      for (const int device : team)
        for (int64_t p = 0; p < mesh_[axis].size; ++p)
          wider.push_back(device + static_cast<int>(p * strides[axis]));
      team = std::move(wider);
    };
    for (size_t i = 0; i < a.axes.size(); ++i) {
      const size_t axis = mesh_axis(a.axes[i]);
      CHECK(a.sizes[i] == ir::Dim(mesh_[axis].size));
      over[axis] = true;
      widen(first, axis);
    }
    for (size_t i = 0; i < mesh_.size(); ++i)
      if (!over[i]) widen(starts, i);
    std::vector<Team> all;
    for (const int start : starts) {
      all.push_back(first);
      for (int& device : all.back()) device += start;
    }
    return all;
  }

  NodeId place_collective(Graph& out, const Node& node) const {
    const auto& a = ir::attrs<CollectiveAttrs>(node);
    const std::vector<Team> all = teams(a);
    if (node.op == Op::axis_index) return own_position(out, node, all);
    if (node.op == Op::own_part) {
      const NodeId position = own_position(out, node, all);
      return own_part(out, node, position);
    }
    CollectiveAttrs flat;
    flat.sizes = {devices_};
    flat.reduce = a.reduce;
    for (const Team& team : all) {
      for (const auto& [source, destination] : a.pairs)
        flat.pairs.emplace_back(team[source], team[destination]);
      if (a.groups.empty()) flat.groups.push_back(team);
      for (const auto& group : a.groups) {
        flat.groups.emplace_back();
        for (const int member : group)
          flat.groups.back().push_back(team[member]);
      }
    }
    const bool everyone =
        flat.groups.size() == 1 && flat.groups[0] == counted(devices_);
    if (everyone || node.op == Op::permute) flat.groups.clear();
    if (plain_ && node.op == Op::reduce_scatter)
      return reduced(out, node, out.add(Op::all_to_all, node.inputs, flat));
    if (plain_ && node.op == Op::all_reduce && !flat.groups.empty())
      return reduced_in_groups(out, node, flat);
    const NodeId id = out.add(node.op, node.inputs, flat, node.source);
    if (node.op != Op::all_gather) return id;
    return place_gathered(out, id, false, a.dim, a.tiled, node.source);
  }

  static NodeId reduced(Graph& out, const Node& node, NodeId values) {
    const ir::ReduceOp op = ir::attrs<CollectiveAttrs>(node).reduce;
    return out.add(op == ir::ReduceOp::sum   ? Op::sum
                   : op == ir::ReduceOp::max ? Op::max
                                             : Op::min,
                   {values}, ir::ReduceAttrs{{0}, ir::ReduceOrder::members},
                   node.source);
  }

  /// Groups of one size gather; of several sizes, all devices do, each group is
  /// combined, and each device takes its own group's.
  NodeId reduced_in_groups(Graph& out, const Node& node,
                           CollectiveAttrs flat) const {
    const std::vector<Team> groups = flat.groups;
    const bool equal = std::all_of(
        groups.begin(), groups.end(),
        [&](const Team& group) { return group.size() == groups[0].size(); });
    if (!equal) flat.groups.clear();
    const NodeId all = out.add(Op::all_gather, node.inputs, flat, node.source);
    if (equal) return reduced(out, node, all);
    std::vector<int32_t> own(static_cast<size_t>(devices_));
    std::vector<NodeId> results;
    for (const Team& group : groups) {
      for (const int device : group)
        own[device] = static_cast<int32_t>(results.size());
      const NodeId rows = table(out, node, {group.begin(), group.end()});
      const NodeId sum =
          reduced(out, node,
                  out.add(Op::gather, {all, rows}, ir::IndexAttrs{{0}, false},
                          node.source));
      ir::Shape shape = out.type(sum).shape;
      shape.insert(shape.begin(), 1);
      results.push_back(
          out.add(Op::reshape, {sum}, ir::ShapeAttrs{shape}, node.source));
    }
    const NodeId stacked =
        out.add(Op::concat, results, ir::AxisAttrs{0}, node.source);
    CollectiveAttrs everyone;
    everyone.sizes = {devices_};
    const NodeId device = out.add(Op::axis_index, {}, everyone, node.source);
    const ir::IndexAttrs first{{0}, false};
    const NodeId index = out.add(Op::gather, {table(out, node, own), device},
                                 first, node.source);
    return out.add(Op::gather, {stacked, index}, first, node.source);
  }

  static NodeId table(Graph& out, const Node& node,
                      const std::vector<int32_t>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return out.add_constant({DType::I32, {static_cast<int64_t>(values.size())}},
                            std::move(bytes), node.source);
  }

  /// The device's place in its team.
  NodeId own_position(Graph& out, const Node& node,
                      const std::vector<Team>& teams) const {
    std::vector<int32_t> place(static_cast<size_t>(devices_));
    for (const Team& team : teams)
      for (size_t p = 0; p < team.size(); ++p)
        place[team[p]] = static_cast<int32_t>(p);
    CollectiveAttrs flat;
    flat.sizes = {devices_};
    const NodeId device = out.add(Op::axis_index, {}, flat, node.source);
    if (place == counted(devices_)) return device;
    return out.add(Op::gather, {table(out, node, place), device},
                   ir::IndexAttrs{{0}, false}, node.source);
  }

  static NodeId own_part(Graph& out, const Node& node, NodeId position) {
    const auto& a = ir::attrs<CollectiveAttrs>(node);
    NodeId array = node.inputs[0];
    if (a.tiled) {
      ir::Shape shape = out.type(array).shape;
      const ir::Dim members = ir::member_count(a);
      shape[a.dim] = floor_div(shape[a.dim], members);
      shape.insert(shape.begin() + a.dim, members);
      array = out.add(Op::reshape, {array}, ir::ShapeAttrs{shape}, node.source);
    }
    return out.add(Op::gather, {array, position},
                   ir::IndexAttrs{{a.dim}, false}, node.source);
  }

  const std::vector<MeshAxis>& mesh_;
  const bool plain_;
  int64_t devices_ = 1;
};

}  // namespace

Graph spmd(const Graph& graph, const std::vector<MeshAxis>& mesh, bool plain) {
  return Spmd(mesh, plain).run(graph);
}

}  // namespace unisono::jit
