#include "jit/partition/placement.h"

#include <algorithm>
#include <map>
#include <set>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/partition/split_axes.h"
#include "jit/scalar/element.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;

constexpr int whole = SplitAxes::whole, apart = SplitAxes::apart;

bool is_spread(const unisono::Array& array) {
  return array.sharding().is_split() && array.sharding().devices.size() > 1;
}

/// One axis of the mesh of devices: the graph of one block along it, and the
/// axis that each input and output is split along, or `whole`.
struct Cut {
  ir::Graph graph;
  std::vector<int> inputs, outputs;
  bool joins = false;  // the blocks of a value combine
};

/// Builds one block's graph. A node that depends on no split array is computed
/// whole, or, where a block of it is wanted, as one.
class BlockGraph {
 public:
  BlockGraph(const ir::Graph& graph, const std::vector<int>& inputs,
             const MeshAxis& line)
      : graph_(graph),
        line_(line),
        devices_(line.size),
        axes_(graph, inputs, line.size) {}

  std::optional<Cut> build() {
    for (NodeId output : graph_.outputs) {
      if (axes_.of(output) == apart) return std::nullopt;
      out_.outputs.push_back(axes_.of(output));
    }
    if (!choose_inputs()) return std::nullopt;
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      out_.graph.add_input(
          block_type(graph_.type(graph_.inputs[i]), out_.inputs[i]));
    for (NodeId output : graph_.outputs) {
      const std::optional<NodeId> id = place(output, axes_.of(output));
      if (!id) return std::nullopt;
      out_.graph.outputs.push_back(*id);
    }
    return std::move(out_);
  }

 private:
  ir::Type block_type(ir::Type type, int axis) const {
    if (axis != whole) type.shape[axis] = type.shape[axis].value() / devices_;
    return type;
  }

  /// Walks as `place` does, to see how inputs are read.
  bool choose_inputs() {
    wanted_.assign(graph_.inputs.size(), apart);
    for (NodeId output : graph_.outputs)
      if (!visit(output, axes_.of(output))) return false;
    for (size_t i = 0; i < wanted_.size(); ++i)  // who is not read stays
      out_.inputs.push_back(
          wanted_[i] == apart ? axes_.of(static_cast<NodeId>(i)) : wanted_[i]);
    return true;
  }
  bool visit(NodeId id, int want) {
    if (!seen_.emplace(id, want).second) return true;
    const Node& node = graph_[id];
    if (node.op == Op::input) {
      int& wanted = wanted_[static_cast<size_t>(id)];
      if (wanted != apart && wanted != want) return false;
      if (want == whole && node.type.bytes() > tuning().most_repeated_bytes)
        return false;
      wanted = want;
      return axes_.of(id) == whole || axes_.of(id) == want;
    }
    const auto operands = wants(node, want);
    if (!operands) return may_cut(node) && visit(id, whole);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!visit(node.inputs[i], (*operands)[i])) return false;
    return true;
  }

  /// Which block of each operand a block of the node needs.
  std::optional<std::vector<int>> wants(const Node& node, int want) const {
    std::vector<int> out;
    bool any = false;
    for (NodeId operand : node.inputs) {
      out.push_back(axes_.of(operand));
      any = any || out.back() != whole;
    }
    if (ir::kind(node.op) == ir::Kind::map) {
      std::ranges::fill(out, want);
      return out;
    }
    if (node.op == Op::concat && any) {
      std::ranges::fill(out, want);
      return out;
    }
    if (any || want == whole) return out;
    if (node.op == Op::constant) {
      const auto& a = ir::attrs<ir::ConstantAttrs>(node);
      const bool one =
          static_cast<int64_t>(a.bytes.size()) == byte_size(node.type.dtype);
      return one ? std::optional(out) : std::nullopt;
    }
    if (node.op == Op::iota && ir::attrs<ir::IotaAttrs>(node).axis != want)
      return out;
    if (node.op == Op::broadcast) {
      const auto& axes = ir::attrs<ir::BroadcastAttrs>(node).axes;
      const int at = position_of(axes, want);
      const ir::Shape& shape = graph_.type(node.inputs[0]).shape;
      if (at >= 0 && shape[at] == node.type.shape[want]) out[0] = at;
      return out;
    }
    return std::nullopt;
  }

  std::optional<NodeId> place(NodeId id, int want) {
    if (auto known = placed_.find({id, want}); known != placed_.end())
      return known->second;
    const Node& node = graph_[id];
    if (node.op == Op::input) return id;
    const auto operands = wants(node, want);
    if (!operands) return cut(id, want);
    Node block = node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto operand = place(node.inputs[i], (*operands)[i]);
      if (!operand) return std::nullopt;
      block.inputs[i] = *operand;
    }
    const int64_t partial = axes_.partial_elements(node);
    if (partial > 0)
      return placed_[{id, want}] = join(block, graph_.type(node.inputs[0]),
                                        axes_.of(node.inputs[0]), partial);
    block.type = block_type(node.type, want);
    if (want != whole) set_sizes(block, want);
    return placed_[{id, want}] = out_.graph.append(std::move(block));
  }

  /// A reduction over the split axis: each device reduces `partial` elements of
  /// its block at a time, and all of them combine everybody's results.
  NodeId join(const Node& node, const ir::Type& type, int axis,
              int64_t partial) {
    ir::Graph& out = out_.graph;
    out_.joins = true;
    const auto& a = ir::attrs<ir::ReduceAttrs>(node);
    const ir::Shape block = block_type(type, axis).shape;
    std::vector<int> kept;
    ir::Shape kept_sizes;
    int64_t elements = 1;
    for (int i = 0; i < type.rank(); ++i) {
      if (position_of(a.axes, i) >= 0) {
        elements *= block[i].value();
      } else {
        kept.push_back(i);
        kept_sizes.push_back(block[i]);
      }
    }
    // (parts, elements of a part, kept axes), or with the parts behind, as the
    // order of a reduction depends on whether the last axis is reduced.
    const bool last = a.axes.back() == type.rank() - 1;
    std::vector<int> axes = last ? kept : a.axes;
    const std::vector<int>& behind = last ? a.axes : kept;
    axes.insert(axes.end(), behind.begin(), behind.end());
    ir::Shape sizes = {elements / partial, partial};
    sizes.insert(last ? sizes.begin() : sizes.end(), kept_sizes.begin(),
                 kept_sizes.end());
    NodeId id = node.inputs[0];
    id = out.add(Op::transpose, {id}, ir::AxesAttrs{axes}, node.source);
    id = out.add(Op::reshape, {id}, ir::ShapeAttrs{sizes}, node.source);
    const int reduced = last ? static_cast<int>(kept.size()) + 1 : 1;
    id = out.add(node.op, {id}, ir::ReduceAttrs{{reduced}}, node.source);
    if (last) {  // the parts stand in front now
      std::vector<int> to_front = {static_cast<int>(kept.size())};
      for (size_t i = 0; i < kept.size(); ++i)
        to_front.push_back(static_cast<int>(i));
      id = out.add(Op::transpose, {id}, ir::AxesAttrs{to_front}, node.source);
    }
    ir::CollectiveAttrs together;
    together.axes = line_.ids;
    together.sizes = {devices_};
    together.tiled = true;
    id = out.add(Op::all_gather, {id}, together, node.source);
    return out.add(node.op, {id},
                   ir::ReduceAttrs{{0}, ir::ReduceOrder::members}, node.source);
  }

  static bool may_cut(const Node& node) {
    return node.type.bytes() <= tuning().most_repeated_bytes;
  }

  /// The block of a value that each device computes whole.
  std::optional<NodeId> cut(NodeId id, int axis) {
    const auto all = place(id, whole);
    if (!all) return std::nullopt;
    ir::Graph& out = out_.graph;
    const ir::Type& type = graph_.type(id);
    const ir::Dim size = type.shape[axis].value() / devices_;
    ir::CollectiveAttrs between;
    between.axes = line_.ids;
    between.sizes = {devices_};
    const ir::Type scalar{DType::I32, {}};
    const NodeId start = out.add(
        Op::mul,
        {out.add(Op::axis_index, {}, between),
         out.add_constant(scalar, element_bytes(DType::I32, size.value()))});
    const NodeId positions = out.add(
        Op::add,
        {out.add(Op::iota, {}, ir::IotaAttrs{{DType::I32, {size}}, 0}),
         out.add(Op::broadcast, {start}, ir::BroadcastAttrs{{size}, {}})});
    NodeId block =
        out.add(Op::gather, {*all, positions}, ir::IndexAttrs{{axis}, false});
    if (axis > 0) {  // the axis that was indexed stands first now
      std::vector<int> axes;
      for (int i = 0; i < type.rank(); ++i)
        axes.push_back(i == axis ? 0 : i < axis ? i + 1 : i);
      block = out.add(Op::transpose, {block}, ir::AxesAttrs{axes});
    }
    placed_[{id, axis}] = block;
    return block;
  }

  /// Attributes that hold sizes: those of the block.
  static void set_sizes(Node& block, int axis) {
    if (auto* a = std::get_if<ir::ShapeAttrs>(&block.attrs))
      a->shape = block.type.shape;
    if (auto* a = std::get_if<ir::BroadcastAttrs>(&block.attrs))
      a->shape = block.type.shape;
    if (auto* a = std::get_if<ir::ConstantAttrs>(&block.attrs))
      a->type = block.type;
    if (auto* a = std::get_if<ir::IotaAttrs>(&block.attrs))
      a->type = block.type;
    if (auto* a = std::get_if<ir::SliceAttrs>(&block.attrs))
      a->size[axis] = block.type.shape[axis];
  }

  const ir::Graph& graph_;
  const MeshAxis& line_;
  const int64_t devices_;
  const SplitAxes axes_;
  Cut out_;
  std::vector<int> wanted_;
  std::map<std::pair<NodeId, int>, NodeId> placed_;
  std::set<std::pair<NodeId, int>> seen_;
};

/// The sizes of the one mesh on which all inputs that are split over several
/// devices lie; nothing if it is not one.
std::optional<std::vector<int64_t>> common_mesh(
    const std::vector<unisono::Array>& inputs) {
  const Sharding* first = nullptr;
  for (const unisono::Array& input : inputs) {
    if (!is_spread(input)) continue;
    const Sharding& next = input.sharding();
    if (first && first->devices != next.devices) return std::nullopt;
    if (!first || first->mesh.empty()) first = &next;
  }
  if (!first) return std::nullopt;
  if (first->mesh.empty())
    return std::vector{static_cast<int64_t>(first->devices.size())};
  std::vector<int64_t> sizes;
  for (const MeshCut& cut : first->mesh) sizes.push_back(cut.size);
  return sizes;
}

/// The axis of the array that the `g`-th axis of the mesh cuts; nothing if the
/// array lies on another mesh.
std::optional<int> axis_on(const unisono::Array& array,
                           const std::vector<int64_t>& mesh, size_t g) {
  if (!is_spread(array)) return whole;
  const Sharding& sharding = array.sharding();
  if (sharding.mesh.empty()) return sharding.axis;  // all of them cut it
  if (sharding.mesh.size() != mesh.size() || sharding.mesh[g].size != mesh[g])
    return std::nullopt;
  return sharding.mesh[g].axis;
}

Sharding place_of(const std::vector<MeshCut>& cuts,
                  const std::vector<Device*>& devices) {
  Sharding out = Sharding::on_mesh(cuts, devices);
  return out.is_split() ? out : Sharding{-1, {devices[0]}};
}

/// For the graph's outputs and what they need.
std::optional<BlockPlan> plan_outputs(
    const ir::Graph& graph, const std::vector<unisono::Array>& inputs) {
  const auto mesh = common_mesh(inputs);
  if (!mesh) return std::nullopt;
  BlockPlan plan;
  plan.graph = graph;
  for (const unisono::Array& input : inputs)
    if (is_spread(input)) plan.devices = input.sharding().devices;
  std::vector<std::vector<MeshCut>> input_cuts(graph.inputs.size()),
      output_cuts(graph.outputs.size());
  bool any = false;
  for (size_t g = 0; g < mesh->size(); ++g) {
    plan.mesh.push_back({(*mesh)[g], {static_cast<ir::AxisId>(g + 1)}});
    std::vector<int> axes;
    for (const unisono::Array& input : inputs) {
      const auto axis = axis_on(input, *mesh, g);
      if (!axis) return std::nullopt;
      axes.push_back(*axis);
    }
    auto cut = BlockGraph(plan.graph, axes, plan.mesh.back()).build();
    if (!cut) return std::nullopt;
    plan.graph = std::move(cut->graph);
    for (size_t i = 0; i < input_cuts.size(); ++i)
      input_cuts[i].push_back({(*mesh)[g], cut->inputs[i]});
    any = any || cut->joins;
    for (size_t i = 0; i < output_cuts.size(); ++i) {
      output_cuts[i].push_back({(*mesh)[g], cut->outputs[i]});
      any = any || cut->outputs[i] != whole;
    }
  }
  if (!any) return std::nullopt;
  for (const auto& cuts : input_cuts)
    plan.inputs.push_back(Sharding::on_mesh(cuts, plan.devices));
  for (const auto& cuts : output_cuts)
    plan.outputs.push_back(place_of(cuts, plan.devices));
  return plan;
}

/// What the given nodes need, themselves included, up to those in `known`.
std::vector<bool> needed_by(const ir::Graph& graph, std::vector<NodeId> open,
                            const std::vector<NodeId>& known) {
  std::vector<bool> needed(graph.nodes.size()), given(graph.nodes.size());
  for (NodeId id : known) given[id] = true;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (needed[id]) continue;
    needed[id] = true;
    if (given[id]) continue;
    for (NodeId operand : graph[id].inputs) open.push_back(operand);
  }
  return needed;
}

/// The part that computes `outputs` and what else is in `wanted`, where the
/// nodes in `known` are given.
GraphPart part_of(const ir::Graph& graph, std::vector<int> outputs,
                  std::vector<NodeId> wanted,
                  const std::vector<NodeId>& known) {
  GraphPart part;
  part.outputs = std::move(outputs);
  for (int i : part.outputs) wanted.push_back(graph.outputs[i]);
  const std::vector<bool> needed = needed_by(graph, wanted, known);
  ir::Renaming at(graph);
  auto take = [&](NodeId id, size_t number) {
    if (!needed[id] || at.contains(id)) return;
    at.set(id, part.graph.add_input(graph[id].type));
    part.inputs.push_back(static_cast<int>(number));
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) take(graph.inputs[i], i);
  for (size_t i = 0; i < known.size(); ++i)
    take(known[i], graph.inputs.size() + i);
  for (const NodeId id : ir::node_ids(graph))
    if (needed[id] && !at.contains(id))
      at.set(id, part.graph.append(at.renamed(id)));
  for (int i : part.outputs) part.graph.outputs.push_back(at[graph.outputs[i]]);
  return part;
}

/// Checks and host calls that no output needs.
std::vector<NodeId> unread(const ir::Graph& graph) {
  const std::vector<bool> needed = needed_by(graph, graph.outputs, {});
  std::vector<NodeId> out;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!needed[i] && ir::must_stay(graph, graph.nodes[i]))
      out.push_back(static_cast<NodeId>(i));
  return out;
}

}  // namespace

std::optional<BlockPlan> plan_blocks(
    const ir::Graph& graph, const std::vector<unisono::Array>& inputs) {
  if (!unread(graph).empty()) return std::nullopt;
  return plan_outputs(graph, inputs);
}

std::optional<Division> divide(const ir::Graph& graph,
                               const std::vector<unisono::Array>& inputs) {
  std::vector<int> placed, rest;
  std::vector<NodeId> known;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    ir::Graph alone = graph;
    alone.outputs = {graph.outputs[i]};
    const bool is_placed = plan_outputs(alone, inputs).has_value();
    (is_placed ? placed : rest).push_back(static_cast<int>(i));
    if (is_placed) known.push_back(graph.outputs[i]);
  }
  if (placed.empty()) return std::nullopt;
  Division out{.placed = part_of(graph, placed, {}, {}),
               .rest = part_of(graph, rest, unread(graph), known),
               .plan = {}};
  std::vector<unisono::Array> placed_inputs;
  for (int i : out.placed.inputs) placed_inputs.push_back(inputs[i]);
  auto plan = plan_outputs(out.placed.graph, placed_inputs);
  if (!plan) return std::nullopt;
  out.plan = std::move(*plan);
  return out;
}

namespace {
/// Whether a gather of rows takes at most half of an array, by no more copies
/// than the array is worth.
bool takes_few(const ir::Graph& graph, const Node& gather) {
  const ir::Type& from = graph.type(gather.inputs[0]);
  const int64_t copies = graph.type(gather.inputs[1]).elements();
  return gather.type.elements() <= from.elements() / 2 &&
         copies <= std::max<int64_t>(from.bytes() / tuning().copy_grain, 1);
}
}  // namespace

std::vector<ReadPart> parts_read(const ir::Graph& graph,
                                 const std::vector<PartsOf>& inputs) {
  auto input_of = [&](NodeId id) -> int {
    return graph[id].op == Op::input ? id : -1;
  };
  std::vector<bool> wanted;
  for (const PartsOf& input : inputs) wanted.push_back(input.any);
  auto is_known = [&](NodeId positions) {
    const std::vector<bool> needed = needed_by(graph, {positions}, {});
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i] && (ir::must_stay(graph, graph.nodes[i]) ||
                        (i < inputs.size() && inputs[i].any)))
        return false;
    return true;
  };
  auto is_part = [&](const Node& node) {
    if (node.op != Op::slice && node.op != Op::gather) return false;
    const int input = input_of(node.inputs[0]);
    if (input < 0 || !wanted[input]) return false;
    const PartsOf& parts = inputs[input];
    if (node.op == Op::gather)
      return parts.rows != PartsOf::Rows::none && node.inputs.size() == 2 &&
             ir::attrs<ir::IndexAttrs>(node).axes == std::vector<int>{0} &&
             (parts.rows == PartsOf::Rows::all || takes_few(graph, node)) &&
             is_known(node.inputs[1]);
    return std::ranges::all_of(
        ir::attrs<ir::SliceAttrs>(node).step, [&](const ir::Dim& s) {
          return parts.strided ? s.value() > 0 : s == ir::Dim(1);
        });
  };
  for (const Node& node : graph.nodes) {
    if (is_part(node)) continue;
    for (NodeId operand : node.inputs)
      if (input_of(operand) >= 0) wanted[operand] = false;
  }
  for (NodeId output : graph.outputs)
    if (input_of(output) >= 0) wanted[output] = false;
  std::vector<ReadPart> parts;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_part(graph.nodes[i]))
      parts.push_back({static_cast<NodeId>(i), graph.nodes[i].inputs[0]});
  return parts;
}

GraphPart part_for(const ir::Graph& graph, NodeId value) {
  ir::Graph alone = graph;
  alone.outputs = {value};
  return part_of(alone, {0}, {}, {});
}

}  // namespace unisono::jit
