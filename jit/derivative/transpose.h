#pragma once
// The transpose of a linear graph: cotangents of outputs become cotangents of
// inputs. A Transposer walks the linear nodes backwards; the rule of each
// family of kinds is one function, in transpose_*.cpp.
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "jit/derivative/derivative.h"
#include "jit/ir/graph.h"

namespace unisono::jit {

/// Axes over which something varies: bit i is axis i of the spec.
using AxisMask = uint64_t;
/// Those of each node, from those of the inputs.
std::vector<AxisMask> varying_masks(const Graph& graph,
                                    const std::vector<MappedMembers>& axes,
                                    const std::vector<AxisMask>& inputs);

/// A cotangent that may carry a mask: where that is false it is 0, whatever the
/// value. So what a branch that was not taken would divide by 0 stays 0.
struct Masked {
  NodeId value = -1;
  NodeId mask = -1;
};
/// A part of a cotangent: `update` added at positions, as scatter_add takes
/// them.
struct Added {
  NodeId update = -1;
  std::vector<NodeId> indices;
  std::vector<int> axes;
};
/// A part of a cotangent: of all elements along the other axes, those from
/// `start` on along this one; the rest is 0.
struct Slab {
  NodeId value = -1;
  size_t axis = 0;
  int64_t start = 0;
};
/// A cotangent on its way: dense parts are summed, the others wait. Slabs that
/// lie beside one another become a concat, not a sum of zeros, and what is
/// added at positions is added in place.
struct Sum {
  Masked dense;
  std::vector<Slab> slabs;  // later than `dense`
  std::vector<Added> added;
  bool empty() const {
    return dense.value < 0 && slabs.empty() && added.empty();
  }
};
/// By the axes over which the contributions vary and the value does not: over
/// these they are summed.
using Sums = std::map<AxisMask, Sum>;

class Transposer {
 public:
  /// Of `graph`, whose inputs in `linear` have a cotangent; `varies` by input.
  /// All three outlive this object.
  Transposer(const Graph& graph, const std::vector<bool>& linear,
             const std::vector<MappedMembers>& axes,
             const std::vector<AxisMask>& varies);

  /// The graph that is made. Its inputs are the caller's to add (late_inputs.h)
  /// before `run`.
  Graph out;
  /// Places the nodes that are not linear; `arguments` by input, of which those
  /// for linear ones are not read.
  void place_known(const std::vector<NodeId>& arguments);
  /// A cotangent for output `index`, which varies over these axes: where the
  /// output is one of several that meet, it may vary over more than the output.
  /// Dropped if the output is not linear.
  void seed(size_t index, NodeId cotangent, AxisMask varies);
  /// Walks back. Throws NoDerivative.
  void run();
  /// What came of input `index`.
  Sums& sums(size_t index);
  /// One of them as one array of `type`; zeros if it is empty.
  NodeId total(Sum sum, const ir::Type& type);
  /// `so_far`, of f32 if the sum is of halves, with a sum added to it.
  NodeId onto(NodeId so_far, const Sum& sum);
  /// The cotangent of input `index`, summed over members where it must be.
  NodeId cotangent(size_t index);

 private:
  // transpose.cpp
  void place_back(NodeId id);
  NodeId add(ir::Op op, std::vector<NodeId> inputs,
             ir::Attrs attrs = ir::NoAttrs{});
  NodeId zeros(const ir::Type& type);
  NodeId zero_positions(const ir::Type& type);
  bool is_inverse(NodeId mask, NodeId other) const;
  NodeId dense(const Masked& x);
  bool is_linear(NodeId id) const { return linear_[id]; }
  /// The node of `out` for a known node.
  NodeId known(NodeId id) const { return known_[id]; }
  const ir::Type& type(NodeId id) const { return graph_.type(id); }
  void give(NodeId to, Masked part, AxisMask varies);
  void give(NodeId to, Added part, AxisMask varies);
  void give(NodeId to, Slab part, AxisMask varies);
  void add_slabs(Sum& sum, const ir::Type& whole);
  NodeId joined(std::vector<Slab> slabs, const ir::Type& whole);
  NodeId padded(const Slab& slab, const ir::Type& whole);
  Sum& sum_for(NodeId to, AxisMask varies);
  Masked take(NodeId id);
  [[noreturn]] void not_linear(const ir::Node& node) const;
  NodeId sum_members(NodeId x, AxisMask axes);

  // transpose_kinds.cpp
  void map(const ir::Node& node, Masked c, AxisMask varies);
  void sum(const ir::Node& node, NodeId c, AxisMask varies);
  void move(const ir::Node& node, NodeId c, AxisMask varies);
  void broadcast(const ir::Node& node, NodeId c, AxisMask varies);
  void slice(const ir::Node& node, NodeId c, AxisMask varies);
  void pad(const ir::Node& node, NodeId c, AxisMask varies);
  void concat(const ir::Node& node, NodeId c, AxisMask varies);
  void index(const ir::Node& node, NodeId c, AxisMask varies);
  NodeId winners(const ir::Node& node);
  void dot(const ir::Node& node, NodeId c, AxisMask varies);
  // transpose_windows.cpp
  /// A product's axes, and of each operand those that are free.
  struct DotAxes : ir::DotAttrs {
    std::vector<int> free_a, free_b;
  };
  NodeId cut_or_padded(NodeId x, size_t axis, int64_t from, int64_t to);
  NodeId windows(NodeId x, size_t axis, int64_t taps, int64_t distance);
  /// Gives the cotangent of what a, which is linear, are windows of; false if
  /// it is nothing of the kind.
  bool dot_of_windows(const DotAxes& d, const ir::Node& node, NodeId c,
                      AxisMask varies);

  // transpose_kinds.cpp
  void collective(const ir::Node& node, NodeId c, AxisMask varies);
  void permute(const ir::Node& node, NodeId c, AxisMask varies);

  // transpose_control.cpp
  /// The cotangent of each result of a control node; -1: none.
  struct Result {
    NodeId c = -1;
    AxisMask varies = 0;
    bool given() const { return c >= 0; }
  };
  using Results = std::vector<Result>;
  void project(const ir::Node& node, NodeId c, AxisMask varies);
  void if_else(const ir::Node& node, const Results& c);
  void loop(const ir::Node& node, const Results& c);
  void call(const ir::Node& node, const Results& c, AxisMask varies);

  const Graph& graph_;
  const std::vector<MappedMembers>& axes_;
  std::vector<bool> linear_;
  std::vector<AxisMask> varies_;
  std::vector<NodeId> known_;
  std::vector<Sums> sums_;
  std::unordered_map<NodeId, Results> results_;
  uint32_t source_ = 0;
};

}  // namespace unisono::jit
