#pragma once
// A graph as scalar expressions at one point of a space, for loops that run in
// registers (native_loop.h): small arrays become one expression for each of
// their elements, moves of them become no code at all. Along the axes of the
// space each point has elements of its own, and nothing reaches another
// point's.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/kernel.h"
#include "jit/kernel/strided.h"
#include "jit/loops/known_turns.h"

namespace unisono::jit {

/// An array in memory. Its element at `index` is that at the dense offset, or
/// where `view` says, plus index * stride of each axis of `base`, whose indices
/// are expressions.
struct MemoryPlace {
  int argument = -1;
  std::vector<ExprId> base = {};
  std::vector<Expr::IndexedAxis> base_axes = {};
  std::optional<IntegerRange> range = {};  // of its elements
  std::optional<Strided> view = {};        // none of held arrays
};

/// An element that a turn writes of an array that its loop holds in memory.
struct HeldWrite {
  ExprId place = -1;  // i64: the element's number at a point
  ExprId value = -1;
  ExprId condition = -1;  // -1: always
  bool operator==(const HeldWrite&) const = default;
};

/// The value of a node.
struct PointArray {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  /// Which axes are those of the space, in its order; none: all points have the
  /// same value.
  std::vector<int> space = {};
  /// Row-major over the other axes; or the array is in memory.
  std::vector<ExprId> elements = {};
  std::optional<MemoryPlace> memory = {};
  /// Too many for registers, but all of a point's are elements[0].
  bool uniform = false;
  /// A carry in memory: what the turn has written so far, which memory has at
  /// its end. Until then memory is as it was when the turn began.
  bool held = false;
  std::vector<HeldWrite> writes = {};
  /// Of what its memory has had one after the other: a loop inside a turn
  /// changes it before the turn's end.
  int64_t version = 0;
};

/// Whether a node is a loop that is not written out turn by turn.
bool is_long_loop(const ir::Node& node);
/// Whether there is one in the graph, or in what it has inside.
bool has_long_loop(const ir::Graph& graph);

class Unroller {
 public:
  /// An argument with so many elements, for what is made in a turn.
  using Scratch = std::function<int(DType dtype, int64_t elements)>;
  /// Appends to `nest`, whose extents are the space's. `checked`: whether
  /// failed checks are errors. With `scratch` there may be loops of any length
  /// in the turns.
  Unroller(Nest& nest, bool checked, Scratch scratch = {})
      : nest_(nest), checked_(checked), scratch_(std::move(scratch)) {}

  /// Appends a graph without effects, or those of its nodes that are `needed`;
  /// gives its outputs. Nothing where it is too large, or a point needs another
  /// one's elements.
  std::optional<std::vector<PointArray>> place(
      const ir::Graph& graph, std::vector<PointArray> arguments,
      const std::vector<bool>* needed = nullptr);
  /// What a turn writes of a held array to make it this one; nothing where that
  /// is not the array, or not all of it is in registers.
  std::optional<std::vector<HeldWrite>> writes_to(const PointArray& held,
                                                  PointArray value);
  /// Puts states of other arrays that a turn gives for held ones, and that are
  /// too large for registers, into their places, when all else has been read.
  bool replace_held(std::span<const PointArray> carried,
                    std::span<PointArray> given);
  /// Copies an array, of all points the same, to a held one from element
  /// `first` on. False if it cannot.
  bool put_at(PointArray& to, int64_t first, PointArray from);
  /// The number of a counted loop's turn.
  struct TurnNumber {
    ExprId id = -1;
    int64_t first = 0, step = 1;
  };
  /// What a turn, whose writes to the held array these are, leaves to a read of
  /// the next one stays in a register. There are turns, `written` are the
  /// arguments that they write, and `before` is the array's memory as an
  /// argument that none of them writes.
  void carry_reads(const PointArray& held, std::span<const HeldWrite> writes,
                   const TurnNumber& number, std::span<const int> written,
                   int before);
  /// The array in registers, with the axes of the space in front, or without
  /// them.
  bool settle(PointArray& array);

  /// How an array of this shape lies at a point: with the space in front if it
  /// begins with the space's extents.
  PointArray shaped(const ir::Type& type) const;
  /// How many elements the array has at a point.
  int64_t count(const PointArray& array) const;
  /// The row-major offset of element `i` at a point, for a settled array.
  Affine offset(const PointArray& array, int64_t i) const;

  ExprId constant(DType dtype, uint64_t bits);
  ExprId integer(DType dtype, int64_t value);
  ExprId operation(ir::Op op, DType dtype, DType operand_dtype,
                   std::vector<ExprId> operands);
  ExprId cast(ExprId value, DType dtype);
  /// Appends an expression that differs from all others.
  ExprId fresh(Expr expr);
  /// Says in which range the value of an integer is.
  void set_range(ExprId id, int64_t low, int64_t high) {
    ranges_[id] = {low, high};
  }

 private:
  using Array = PointArray;
  using Found = std::optional<Array>;
  using Arrays = std::vector<Array>;

  std::optional<Arrays> results_of(const ir::Graph& graph, const ir::Node& node,
                                   Arrays x);
  Found value_of(const ir::Graph& graph, const ir::Node& node, Arrays x);
  Found map(const ir::Graph& graph, const ir::Node& node, Arrays x);
  Found map_uniform(const ir::Node& node, const Arrays& x);
  Found move(const ir::Node& node, Arrays x);
  Found view(const Array& x, const ir::Node& node) const;
  static Strided lies(const Array& array);
  Expr first_read(const Array& array, const std::vector<int>& space) const;
  Found reshape(Array x, const ir::Node& node);
  Found broadcast(const Array& x, const ir::Node& node);
  Found concat(const Arrays& x, const ir::Node& node);
  Found pad(const Arrays& x, const ir::Node& node);
  Found source(const ir::Node& node);
  Found uniform_source(const ir::Node& node);
  Found concat_in_memory(const Arrays& x, const ir::Node& node);
  Found reduce(const Array& x, const ir::Node& node);
  Found dot(const Array& a, const Array& b, const ir::Node& node);
  Found gather(const ir::Graph& graph, const ir::Node& node, Arrays x);
  Found gather_memory(const ir::Graph& graph, const ir::Node& node,
                      const Arrays& x);
  Found scatter(const ir::Graph& graph, const ir::Node& node, Arrays x);

  struct HeldPlace;
  std::optional<HeldPlace> held_place(const ir::Graph& graph,
                                      const ir::Node& node, const Array& array,
                                      std::span<const Array> indices, int64_t p,
                                      const std::vector<int>& rest,
                                      int64_t window);
  Affine own_part(const Array& array) const;
  ExprId held_element(const Array& array, ExprId place, ExprId before = -1);
  std::optional<ExprId> report_place(const ir::Node& node,
                                     const HeldPlace& where,
                                     const Array& result, int64_t version);
  Found gather_held(const ir::Graph& graph, const ir::Node& node,
                    const Arrays& x);
  Found scatter_held(const ir::Graph& graph, const ir::Node& node,
                     const Arrays& x);
  bool merge_held(ExprId condition, Array& one, const Array& other);
  struct LinearPlace;
  LinearPlace linear(ExprId id) const;
  bool changes_in_turns(ExprId id, std::span<const int> written) const;
  bool is_in_turns(int loop) const;
  ExprId place_of(const LinearPlace& place);
  ExprId left_at(const LinearPlace& place,
                 std::span<const HeldWrite> writes) const;
  bool is_read_of(const Array& held, ExprId id) const;
  ExprId both(ExprId a, ExprId b);
  ExprId negated(ExprId condition);
  ExprId guarded(ExprId value, int64_t otherwise);
  ExprId guarded_index(ExprId index, int64_t size, bool can_fail);

  std::optional<Arrays> branch(const ir::Graph& graph, const ir::Node& node,
                               Arrays x);
  std::optional<Arrays> turns(const ir::Node& node, Arrays x);
  std::optional<Arrays> written_out(const ir::Node& node, Arrays x);
  struct InnerLoop;
  std::optional<Arrays> inner_turns(const ir::Node& node, Arrays x);
  bool begin_carries(Arrays& x, size_t carries);
  bool place_inner(InnerLoop& inner, Arrays x, ExprId start);
  bool end_turn(InnerLoop& inner, Arrays given);
  bool add_stack(InnerLoop& inner, Array& stack, Array part);
  void note_counters(const ir::Graph& body, ExprId condition, int loop,
                     const std::vector<ExprId>& scalars);
  Found row_at(Array array, ExprId number, int64_t turns);
  ExprId add_carry(ExprId first, DType dtype);
  int add_turns(Turns turns);
  ExprId take_turns(int loop);
  using Versions = std::map<int, int64_t>;  // by argument
  static int64_t version_in(const Versions& versions, const Array& array);
  bool is_current(const Array& array) const;
  void renew(Array& array);
  bool flush(Array& array);
  Found scratch(DType dtype, std::vector<int64_t> shape);
  bool to_memory(Array& array);
  ExprId element_of(const Array& array, ExprId place, int64_t n);
  Turns::Put put_of(const Array& array, const HeldWrite& write) const;
  Found row_of(Array array, int64_t number);

  /// How an indexed operation takes the axes of its array apart: those that are
  /// indexed, those that are not, and for each of the space how it comes.
  struct Indexing {
    std::vector<int> rest;        // axes of the array that are not indexed
    std::vector<int> part_space;  // the space's axes among the part's
    bool by_index = false;        // a point's index names its own elements
  };
  std::optional<Indexing> indexing(const std::vector<int64_t>& shape,
                                   const std::vector<int>& space,
                                   const std::vector<int>& axes,
                                   std::span<const Array> indices) const;
  /// Places along the indexed axes, where `condition` holds (-1: always).
  struct Choice {
    ExprId condition = -1;
    std::vector<int64_t> places;
  };
  std::optional<std::vector<Choice>> choices_of(const ir::Graph& graph,
                                                const ir::Node& node,
                                                const Array& array,
                                                std::span<const Array> indices,
                                                int64_t p);
  size_t element_at(const Array& array, const std::vector<int>& axes,
                    const std::vector<int>& rest,
                    const std::vector<int64_t>& places, int64_t window) const;
  bool is_own_place(ExprId index, size_t s) const;
  bool add_index(Expr& expr, ExprId index, int64_t size, int64_t stride);
  bool set_member(Expr& expr, const ir::Node& node, const Array& result) const;

  /// Result element `i` is element `from(index of i)` of x, by axes but those
  /// of the space.
  template <class From>
  Found rearranged(const Array& x, Array out, const From& from);
  bool load(Array& array);
  bool may_fail(const ir::Graph& graph, const ir::Node& node,
                const Arrays& x) const;
  std::optional<IntegerRange> range_of(ExprId id) const;
  std::optional<IntegerRange> bounded_range(const Expr& expr) const;
  void note_range(ExprId id);
  bool is_inside(ExprId index, int64_t size) const;
  std::optional<int64_t> known(ExprId id) const;
  /// An index as i64 in 0 ... size - 1, counted from the end if negative.
  ExprId wrapped(ExprId index, int64_t size);
  std::optional<uint64_t> folded(const Expr& expr) const;
  std::optional<bool> compared(const Expr& expr) const;
  ExprId append(Expr expr);
  ExprId widened(ExprId value);
  ExprId intern(Expr expr, int64_t version = -1);
  std::vector<int> small_axes(const Array& array) const;
  std::vector<int64_t> small_shape(const Array& array) const;
  bool is_small(const Array& array) const;
  static bool fits(const std::vector<Array>& x);

  Nest& nest_;
  const bool checked_;
  const Scratch scratch_;
  Versions versions_;  // of memory
  int loop_ = -1;      // the turns that are being placed
  std::map<std::string, ExprId> known_;
  std::map<ExprId, IntegerRange> ranges_;
  std::map<std::string, ExprId> checked_reads_;  // report_place
  uint32_t place_ = 0;  // of the node that is taken apart
  ExprId guard_ = -1;   // whether its branch is taken; -1: it is in none
};

}  // namespace unisono::jit
