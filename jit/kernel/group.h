#pragma once
// A loop nest under construction: nodes of the graph join it one after another,
// each pulling its operands as expressions through whatever views lie between.
// Nothing is decided here about order or vectors (schedule.h).
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/kernel.h"
#include "jit/kernel/schedule.h"
#include "jit/kernel/strided.h"

namespace unisono::jit {

/// What is known about the nodes of the graph while kernels are formed.
struct Sources {
  Sources(const ir::Graph& graph, bool checked, const Machine& machine);
  const ir::Graph& graph;
  bool checked;
  const Machine& machine;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<int64_t> elements;
  /// By node: flops to compute one element from arrays in memory, and the
  /// number of arrays that are read for it. The flops are many where the node
  /// must be stored, or an operand of it.
  std::vector<int> cost, streams;
  /// How often nodes that are needed read a node.
  std::vector<int> uses;
  /// The step of the plan that computes a node (-1: none does yet), and the
  /// buffer that then holds it (-1: none does).
  std::vector<int> step, buffer;

  /// Whether the node can be evaluated at any point from its operands.
  bool is_expression(ir::NodeId node) const;
  /// Whether its elements can raise errors; each is then computed exactly once.
  bool can_fail(ir::NodeId node) const;
  /// Whether it has so few flops that computing it again beats storing it.
  bool is_cheap(ir::NodeId node) const;
  /// The node whose buffer holds this one: follows reshapes, which share their
  /// operand's.
  ir::NodeId stored_node(ir::NodeId node) const;
};

/// Flops of one element of a map operation, roughly.
int flops(ir::Op op);

/// Whether one element takes some twenty flops or more.
bool is_dear(ir::Op op);

/// The time that LLVM takes for an expression, counted in cheap ones.
size_t weight(const Expr& expr);

/// The element type that reductions of `dtype` accumulate in.
inline DType accumulator(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

/// The order of a reduction of an array of this rank.
CombineOrder combine_order(const ir::ReduceAttrs& attrs, int rank);

/// The nodes that one nest computes. `sources` outlives the group.
class Group {
 public:
  /// The group is part of step number `step`, which can read the arrays that
  /// earlier steps compute.
  Group(const Sources& sources, int step) : sources_(sources), step_(step) {}
  /// From now on every stack that is a view (jit/ir/affine_view.h) is read
  /// through, and not stored: for products, which need no elements side by
  /// side.
  void read_through_stacks() { through_stacks_ = true; }

  enum class Outcome : uint8_t {
    added,
    declined,  // another group may take it
    needs,     // node `needed` must be stored first
    keep,      // it fits once member `needed` of this group is stored
  };
  struct Answer {
    Outcome outcome = Outcome::declined;
    ir::NodeId needed = -1;
  };
  /// Adds `node`, or leaves what the nest computes as it is. The node is an
  /// expression, a reduction, scan, dot or scatter; the last three only as the
  /// first of a group.
  Answer add(ir::NodeId node);
  /// Makes an empty group compute a box of `whole`, which lies in `buffer`:
  /// `size` elements along each axis, from the start of `part`, go to `whole`
  /// from `offset` on.
  Answer add_box(ir::NodeId part, const std::vector<int64_t>& size,
                 ir::NodeId whole, const std::vector<int64_t>& offset,
                 int buffer);
  /// The member's elements go to `buffer`.
  void store(ir::NodeId member, int buffer);
  /// The members' elements go to `buffer`, which holds `whole`, a concatenation
  /// of them, or of reshapes of them: `parts`, in order. False, and nothing is
  /// done, unless they vary freely, and so do the reshapes at the same points.
  bool store_joined(ir::NodeId whole, const std::vector<ir::NodeId>& parts,
                    int buffer);

  bool empty() const { return exprs_.empty(); }
  /// The nodes added, in order. No other group reads them before they are
  /// stored.
  const std::vector<ir::NodeId>& nodes() const { return nodes_; }
  bool is_plain_map() const {
    return reductions_.empty() && !scan_ && !scatter_;
  }
  bool has_stores() const { return !stores_.empty(); }
  /// How much code the nest is, in cheap expressions.
  size_t weight() const;
  int64_t points() const;
  int64_t kept_points() const;
  int64_t reduced_points() const { return points() / kept_points(); }
  /// The nest, without dead expressions. Its arguments are numbered as in
  /// `arguments`, to which new ones are appended.
  Nest finish(std::vector<Argument>& arguments) const;

 private:
  struct Member {
    ExprId value;
    int map;
  };
  struct Checkpoint {
    size_t exprs, log, reductions;
    std::vector<bool> reduced;
  };
  struct Failure {
    ir::NodeId needs = -1, keep = -1;
    std::optional<AxisSplit> split;
  };
  struct PendingStore {
    int buffer;
    DType dtype;
    Affine at;
    ExprId value;
  };

  template <class F>
  Answer attempt(ir::NodeId node, F&& f);
  bool add_map(ir::NodeId node);
  bool add_reduction(ir::NodeId node);
  bool add_result(ir::NodeId node, const Reduction& reduction);
  bool add_dot(ir::NodeId node);
  bool add_scan(ir::NodeId node);
  bool add_scatter(ir::NodeId node);
  bool phases_fit(ExprId value);
  std::vector<bool> inner_exprs() const;
  bool fits_with_reloads(ir::NodeId node, const IndexMap& map, ExprId& value);
  std::vector<ir::NodeId> members_to_reload(ExprId value);
  bool enter_space(const std::vector<int64_t>& shape);
  std::vector<bool> crossed_along(const IndexMap& map,
                                  const std::vector<int>& axes) const;

  ExprId pull(ir::NodeId node, const IndexMap& map);
  ExprId evaluate(ir::NodeId node, const IndexMap& map);
  ExprId evaluate_kind(ir::NodeId node, const IndexMap& map);
  MemberPlace member_place(ir::NodeId node, const std::vector<int64_t>& shape,
                           const IndexMap& map) const;
  void mark_checked(Expr& expr, ir::NodeId node, const IndexMap& map) const;
  ExprId evaluate_map(ir::NodeId node, const IndexMap& map);
  struct View {
    ir::NodeId stored;  // in its buffer
    Strided lies;
  };
  std::optional<View> view_in_memory(ir::NodeId node);
  ExprId evaluate_gather(ir::NodeId node, const IndexMap& map);
  ExprId evaluate_small_reduction(ir::NodeId node, const IndexMap& map);
  ExprId evaluate_move(ir::NodeId node, const IndexMap& map);
  ExprId evaluate_reshape(ir::NodeId node, const IndexMap& map);
  ExprId evaluate_concat(ir::NodeId node, const IndexMap& map);
  std::optional<ExprId> evaluate_stack(ir::NodeId node, const IndexMap& map);
  ExprId evaluate_pad(ir::NodeId node, const IndexMap& map);
  bool may_choose(ir::NodeId node, const IndexMap& map);
  ExprId choose(ir::NodeId node, const Affine& at, std::vector<int64_t> bounds,
                std::vector<ExprId> operands);
  bool cuts_fit();
  bool readable(ir::NodeId stored) const;
  ExprId load(ir::NodeId stored, Affine at);
  ExprId reload(ir::NodeId member, const IndexMap& map, int phase);
  ExprId constant(DType dtype, const uint8_t* bytes);
  ExprId combine(ir::Op op, ExprId a, ExprId b);
  ExprId convert(ExprId value, DType dtype);
  ExprId push(Expr expr);
  ExprId fail(ir::NodeId needs);

  /// Coordinates in `shape` of the nest's own point, over all axes or over the
  /// kept ones; nothing where they are not affine.
  std::optional<IndexMap> identity(const std::vector<int64_t>& shape,
                                   bool kept_only);
  std::optional<IndexMap> coordinates(const Affine& offset,
                                      const std::vector<int64_t>& shape);
  IndexMap own_point(const std::vector<int64_t>& shape, bool kept_only);
  int intern(const IndexMap& map);
  void remember(ir::NodeId node, int map, ExprId value);
  void roll_back(const Checkpoint& checkpoint);
  void apply(const AxisSplit& wish);
  bool is_two_stage() const;

  const Sources& sources_;
  int step_;
  bool through_stacks_ = false;
  bool entered_ = false;  // the space is known
  std::vector<int64_t> extents_;
  std::vector<bool> reduced_;
  std::vector<Expr> exprs_;  // `argument` is a buffer here
  std::vector<Reduction> reductions_;
  std::vector<PendingStore> stores_;
  std::unordered_map<ir::NodeId, Member> members_;
  std::vector<ir::NodeId> nodes_;
  std::vector<IndexMap> maps_;
  std::map<std::vector<int64_t>, int> map_ids_;
  std::unordered_map<uint64_t, ExprId> memo_;
  std::vector<uint64_t> log_;  // keys of memo_, in order
  std::unordered_map<int, DType> buffer_dtypes_;
  std::optional<Scan> scan_;
  std::optional<Scatter> scatter_;
  /// Choices between the parts of a concat or pad, and which that is; in maps
  /// alone, in which nothing can fail.
  struct Choice {
    ExprId expr;
    ir::NodeId node;
  };
  std::vector<Choice> choices_;
  bool chooses_ = false;
  ir::NodeId adding_ = -1;
  /// Where a concat or pad is read whose parts are computed there.
  std::unordered_map<ir::NodeId, int> computed_at_;
  Failure failure_;
  /// Members of phases before this one are read back from where they were
  /// stored.
  int reload_before_ = 0;
  int depth_ = 0;
  uint32_t place_ = 0;  // of what is being pulled
};

}  // namespace unisono::jit
