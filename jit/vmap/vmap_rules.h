#pragma once
// The parts of vmap. A Mapper builds the graph for all members; the rule of
// each family of kinds is one function, in vmap_*.cpp.
#include <optional>
#include <unordered_map>

#include "jit/ir/graph.h"
#include "jit/transform/varies.h"
#include "jit/vmap/vmap.h"

namespace unisono::jit::vmapping {

using ir::Graph;
using ir::NodeId;

/// A node of the new graph: it has one value for all members, or is `mapped`
/// and has the members along a leading axis.
struct Value {
  NodeId id = 0;
  bool mapped = false;
};
using Values = std::vector<Value>;

/// The mapper makes exactly the nodes mapped that varies.h says.
class Mapper {
 public:
  explicit Mapper(const VmapSpec& spec) : spec_(spec) {}

  Graph run(const Graph& graph);

 private:
  // vmap.cpp: graphs
  /// Appends `graph` for all members; gives its outputs.
  Values place(const Graph& graph, const Values& arguments);
  Value place_node(const Graph& graph, const ir::Node& node,
                   const Values& operands);
  Value input(const ir::Type& member_type, bool mapped);

  // vmap.cpp: building blocks
  NodeId add(ir::Op op, std::vector<NodeId> inputs,
             ir::Attrs attrs = ir::NoAttrs{});
  /// A mapped node whose check is of each member's own elements
  /// (ir::Node::by_member).
  Value checked(NodeId id);
  /// The type of the value as one member has it.
  ir::Type member_type(Value x) const;
  /// The type with the members in front.
  ir::Type with_members(const ir::Type& type) const;
  /// The value with the members in front, repeated if all have the same.
  NodeId lift(Value x);
  NodeId splat(const ir::Type& type, int64_t value);
  /// 0, 1, ... along the members, in front of `shape`.
  NodeId member_numbers(DType dtype, const ir::Shape& shape);
  /// `flags`, one bool per member, along the axes of a mapped value.
  NodeId spread(NodeId flags, const ir::Shape& shape);
  /// a where the member's flag is true, else b; they have one member type.
  NodeId choose(NodeId flags, Value a, Value b);
  /// Moves an axis to the front.
  NodeId to_front(NodeId x, int axis);
  /// Exchanges the two leading axes.
  NodeId turned(NodeId x);
  /// Element `index` along the leading axis.
  NodeId row(NodeId x, int64_t index);

  // vmap.cpp: members that take no part
  /// Whether any member takes part: a scalar.
  NodeId any_member();
  /// x, an operand of a checked operation, where the member takes part, else
  /// `harmless`. `mapped` says whether the operation is for each member.
  Value guarded(Value x, bool mapped, int64_t harmless);

  // vmap_kinds.cpp
  Value place_map(const Graph& graph, const ir::Node& node, Values x);
  Value place_line(const ir::Node& node, Value x);
  Value place_move(const ir::Node& node, const Values& x);
  Value place_pad(const ir::Node& node, Value x, Value value);
  Value place_dot(const ir::Node& node, Value a, Value b);

  // vmap_index.cpp
  Value place_index(const Graph& graph, const ir::Node& node, Values x);
  Value index_each(const ir::Node& node, const Values& x);
  Value index_same(const ir::Node& node, const Values& x);
  Value index_nothing(const ir::Node& node, const Values& x);

  // vmap_collective.cpp
  friend struct CollectiveRules;
  Value place_collective(const ir::Node& node, const Values& x);
  Value place_other_axis(const ir::Node& node, const Values& x);
  /// The sum (or extremum) of this graph's members, and of all devices'.
  NodeId reduce_blocks(const ir::CollectiveAttrs& a, NodeId all);

  // vmap_members.cpp: the members of a collective together
  /// The collective between devices that remains of `a`.
  ir::CollectiveAttrs between(const ir::CollectiveAttrs& a) const;
  /// All members' values, by position, along the leading axis.
  NodeId everyone(const ir::CollectiveAttrs& a, Value x);
  /// `all` by group and by place in the group, along two leading axes; the
  /// groups are of one size.
  NodeId by_group(const ir::CollectiveAttrs& a, NodeId all);
  /// i32 of each member that this graph holds: its position, its group, its
  /// place in the group (its position if there are no groups).
  NodeId positions(const ir::CollectiveAttrs& a);
  NodeId own_group(const ir::CollectiveAttrs& a);
  NodeId own_rank(const ir::CollectiveAttrs& a);
  /// table[position], by member.
  NodeId looked_up(const ir::CollectiveAttrs& a, std::vector<int32_t> table);
  NodeId numbers(const std::vector<int32_t>& values);
  /// Elements at i32 positions along `axes`, which are in range.
  NodeId pick(NodeId x, std::vector<int> axes, std::vector<NodeId> indices);

  // vmap_control.cpp
  Values place_if(const ir::Node& node, const Values& x);
  Values place_loop(const ir::Node& node, const Values& x);
  Values place_call(const ir::Node& node, const Values& x);
  Values place_counted_loop(const ir::Node& node, const Values& x,
                            const LoopVaries& varies);
  Values place_lockstep_loop(const ir::Node& node, const Values& x,
                             const LoopVaries& varies);

  // vmap_host.cpp
  Values place_host_call(const ir::Node& node, const Values& x);
  /// A routine: the members are the first axis of its batch, those that take no
  /// part, too, as nothing can go wrong.
  Values place_routine(const ir::Node& node, const Values& x);
  /// One call for all members; with a mask, if any takes part.
  Values shared_call(const ir::Node& node, const Values& x);
  /// `x` with its members, or its repetition, as the outer part of one axis
  /// with `inner` members: those of the call's operand, or a repetition.
  NodeId both_members(Value x, int64_t inner, bool has_inner);

  /// A mapper of a subgraph with inputs of these types; the last one is the
  /// mask, if there is one here.
  Mapper subgraph(const std::vector<ir::Type>& types, const Flags& mapped,
                  Values* inputs) const;
  std::vector<NodeId> ids(const Values& x) const;

  const VmapSpec& spec_;
  Graph out_;
  /// A bool for each member: whether it takes part in what is placed now. None:
  /// all members do.
  std::optional<NodeId> mask_;
  uint32_t source_ = 0;
};

}  // namespace unisono::jit::vmapping
