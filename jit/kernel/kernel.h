#pragma once
// A kernel: what one launch does, as loop nests over scalar expressions. Made
// by jit/plan (fuse.h), arranged by schedule.h and grid_schedule.h, turned into
// code by jit/emit.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/affine.h"
#include "runtime/dtype.h"

namespace unisono::jit {

using ExprId = int32_t;

/// Which member an element belongs to, in a checked node whose axis 0 is the
/// members of a device (ir::Node::by_member): the one with number `element`,
/// the row-major place in the node's array, divided by `per_member`.
struct MemberPlace {
  Affine element = {};
  int64_t per_member = 0;  // 0: there are no members here
};

/// One value at each point of a nest; a node of a directed acyclic graph.
struct Expr {
  enum class Kind : uint8_t {
    constant,   // `bits`
    position,   // the device's along the program's axis
    iota,       // the value of `at`
    load,       // argument[at]
    gather,     // argument[at + sum of index * stride], indices checked
    operation,  // `op` of operands, computed in operand_dtype
    reduced,    // result of the nest's reduction number `reduction`
    carried,    // carry number `carry` of the turns `loop`
    turns,      // no value: here the turns `loop`, inside others, are taken
    turned,     // what carry `carry` of the turns `loop`, the operand, ends as
    choice,     // operand k, so many of `bounds` are at most `at`: choice.h
  };
  Kind kind = Kind::constant;
  ir::Op op = ir::Op::input;
  DType dtype = DType::F32;
  DType operand_dtype = DType::F32;
  int argument = -1;
  int reduction = -1;
  int carry = -1;
  int loop = -1;      // the turns in which it stands, or those it is about
  bool best = false;  // reduced, of argmax: the value instead of its index
  /// The nest's loops over its reduced axes run one after another. The value is
  /// available from loop number `phase` on, the result of a reduction in loop p
  /// from loop p + 1 on.
  int phase = 0;
  bool checked = false;
  uint32_t source = 0;  // of the node: for errors, and for lines of the code
  MemberPlace member = {};
  uint64_t bits = 0;  // one element as stored
  Affine at = {};
  std::vector<ExprId> operands = {};
  struct IndexedAxis {
    int64_t size = 0, stride = 0;
    bool inside = false;  // the index is known to be in 0 ... size - 1
    auto operator<=>(const IndexedAxis&) const = default;
  };
  std::vector<IndexedAxis> indexed = {};  // gather: one per operand
  std::vector<int64_t> bounds = {};  // choice: one less than operands; rise
};

/// argument[at] = value.
struct Store {
  int argument = 0;
  Affine at;
  ExprId value = 0;
};

/// The order in which a reduction combines; see jit/ir/reduce_order.h.
enum class CombineOrder : uint8_t {
  lanes,    // elements, the last axis of the operand is reduced
  runs,     // elements, the last axis is kept
  members,  // neighbours first
  chain,    // fma chains of `dot`
};

/// One element for each point of the kept axes, from all points along the
/// reduced axes.
struct Reduction {
  enum class Kind : uint8_t { combine, argmax, argmin, dot };
  Kind kind = Kind::combine;
  ir::Op op = ir::Op::add;   // combine
  DType dtype = DType::F32;  // of operand and result (argmax: of operand)
  CombineOrder order = CombineOrder::lanes;
  ExprId operand = 0;
  ExprId second = -1;  // argmax, argmin: the index; dot: the other factor
  int phase = 0;
};

/// Whether it is an argmax or argmin.
inline bool finds_position(const Reduction& reduction) {
  return reduction.kind == Reduction::Kind::argmax ||
         reduction.kind == Reduction::Kind::argmin;
}

/// A running reduction along the reduced axes, stored at every point.
struct Scan {
  /// A GPU cuts up few long lines (gpu_stages.h). Along the last axis: `linked`
  /// has a block do a chunk; it waits for what earlier ones put into arguments
  /// `carries` (a value for each chunk) and `flags` (a number that counts
  /// blocks, then whether each chunk's value is there), which begin with
  /// zeros. Along another axis: `totals` puts the total of each run into
  /// `argument`; `carries`, a nest of columns and runs without expressions,
  /// replaces each total by the carry of the next run; `rest` scans each run,
  /// beginning with its carry.
  enum class Part : uint8_t { whole, linked, totals, carries, rest };
  ir::Op op = ir::Op::add;
  DType dtype = DType::F32;   // accumulated in
  DType result = DType::F32;  // stored as
  bool reverse = false;
  bool contiguous = true;  // along the array's last axis: the order of groups
  ExprId operand = 0;
  int argument = 0;
  Affine at;
  Part part = Part::whole;
  int carries = -1, flags = -1;  // linked, rest: the arguments
};

/// argument[at + sum of index * stride] = value, or += in order; points whose
/// reduced axes differ go one after the other, in row-major order.
struct Scatter {
  /// Where columns are few, a GPU does many positions (points of the reduced
  /// axes) at once (gpu_stages.h). A position's target is the row-major number
  /// of its place along the indexed axes. `atomic` adds integers in any order.
  /// To set: `winners` puts the last position of each target, plus 1, into
  /// `argument`; `chosen` then stores the positions that argument `targets`
  /// names as winners. Else: `targets` puts the target of each position into
  /// `argument`; `sorted` then takes positions in the order that argument
  /// `order` has, in which those of one target (argument `targets`) are
  /// neighbours, and the first of these does all of them.
  enum class Part : uint8_t {
    in_order,
    atomic,
    targets,
    winners,
    chosen,
    sorted
  };
  bool add = false;
  DType dtype = DType::F32;
  int argument = 0;
  Affine at;
  ExprId value = 0;
  std::vector<ExprId> indices;
  std::vector<Expr::IndexedAxis> indexed;
  bool checked = true;
  uint32_t source = 0;
  MemberPlace member = {};
  Part part = Part::in_order;
  int targets = -1, order = -1;  // arguments
  Affine position = {};          // all at once: the position's number
};

/// A loop at each point of a nest (native_loop.h): carries begin with the
/// values of `first`, and take those of `next` in each turn; all turns of a
/// point run in registers. The nest stores their last values. Turns are named
/// by number: -1 are the nest's own, others are in Nest::inner.
struct Turns {
  /// How many; -1: as long as `condition`, the same at all points, holds of the
  /// carries.
  int64_t count = 0;
  ExprId condition = -1;
  struct Carry {
    ExprId first = 0, next = 0;
    DType dtype = DType::F32;
    bool operator==(const Carry&) const = default;
  };
  std::vector<Carry> carries;
  /// At the end of each turn, in order, argument[at + index * stride] = value;
  /// the index is one that is known to be inside. What the turn reads of the
  /// argument is what was there before it.
  struct Put {
    Store store;
    ExprId index = 0;
    int64_t stride = 0;
    ExprId condition = -1;  // -1: always
    bool held = false;      // of an array that the turns read, too
  };
  std::vector<Put> puts = {};
  /// Of inner ones: the turns in which they are taken, and whether they are;
  /// -1: always.
  int parent = -1;
  ExprId guard = -1;
};

/// Loops over a box. The kept axes are independent of one another; the points
/// of the reduced axes combine.
struct Nest {
  std::vector<int64_t> extents;  // all positive
  std::vector<bool> reduced;     // one per axis
  std::vector<Expr> exprs;       // operands before users
  std::vector<Store> stores = {};
  std::vector<Reduction> reductions = {};
  std::optional<Scan> scan = {};
  std::optional<Scatter> scatter = {};
  std::optional<Turns> turns = {};
  /// Loops in the turns, each taken where its expression of kind `turns`
  /// stands. What a turn reads of an argument that some turns put to is what is
  /// there where the expression stands.
  std::vector<Turns> inner = {};

  /// By number.
  const Turns& turns_of(int loop) const {
    return loop < 0 ? *turns : inner[static_cast<size_t>(loop)];
  }
  Turns& turns_of(int loop) {
    return loop < 0 ? *turns : inner[static_cast<size_t>(loop)];
  }
  int64_t points() const;
  int64_t kept_points() const;
};

/// An array that a kernel reads or writes: dense, row-major.
struct Argument {
  int32_t buffer = 0;  // of the plan
  DType dtype = DType::F32;
  bool written = false;
};

/// What one launch does.
struct Kernel {
  std::vector<Nest> nests;  // independent of one another
  std::vector<Argument> arguments;
  /// Something is stored in the place of what is read there: the memory plan
  /// says so. Its code is another one where stores would bypass the cache, in
  /// which that is.
  bool overwrites = false;
};

/// For each expression, whether its value changes along the reduced axes
/// (results of reductions do not).
std::vector<bool> inner_expressions(const Nest& nest);

/// For each expression, the turns in each of which it is computed: what depends
/// on a carry, reads what turns put, or may fail. Others are `before_turns`.
constexpr int before_turns = -2;
std::vector<int> turns_of_expressions(const Nest& nest);

/// For each expression, whether it is computed in each of the nest's turns.
std::vector<bool> carried_expressions(const Nest& nest);

/// How often turns are taken at a point; loops of which nobody knows count as
/// `unknown`.
double times_taken(const Nest& nest, int loop, double unknown);

/// Calls `f(Turns&)` for the nest's turns, and those inside.
template <class AnyNest, class F>
void for_each_turns(AnyNest& nest, F&& f) {
  if (nest.turns) f(*nest.turns);
  for (auto& inner : nest.inner) f(inner);
}

/// For each expression, whether it changes along an axis.
std::vector<bool> varying_expressions(const Nest& nest, int axis);

/// Whether some expression is a choice.
bool has_choices(const Nest& nest);

/// The part of the nest from `start` on along an axis.
Nest part_of(const Nest& nest, size_t axis, int64_t start, int64_t extent);

/// Whether the store happens at every point of the reduced axes.
bool is_inner_store(const Nest& nest, const std::vector<bool>& inner,
                    const Store& store);

/// Whether the nest goes over its reduced axes once more after a reduction, for
/// another reduction or to store at their points. It cannot be cut there.
bool goes_again(const Nest& nest);

/// Removes expressions and reductions that nothing uses; checked expressions
/// stay if `keep_checked` says so (one per expression).
void prune(Nest& nest, const std::vector<bool>& keep_checked);

/// Calls `f(Affine&)` for every index expression of the nest.
template <class F>
void for_each_affine(Nest& nest, F&& f) {
  for (Expr& expr : nest.exprs) {
    f(expr.at);
    if (expr.member.per_member) f(expr.member.element);
  }
  for (Store& store : nest.stores) f(store.at);
  for_each_turns(nest, [&](Turns& turns) {
    for (Turns::Put& put : turns.puts) f(put.store.at);
  });
  if (nest.scan) f(nest.scan->at);
  if (nest.scatter) {
    f(nest.scatter->at);
    if (!nest.scatter->position.factors.empty()) f(nest.scatter->position);
    if (nest.scatter->member.per_member) f(nest.scatter->member.element);
  }
}
/// Calls `f(int& argument)` for every argument that the nest names.
template <class F>
void for_each_argument(Nest& nest, F&& f) {
  for (Expr& expr : nest.exprs)
    if (expr.argument >= 0) f(expr.argument);
  for (Store& store : nest.stores) f(store.argument);
  for_each_turns(nest, [&](Turns& turns) {
    for (Turns::Put& put : turns.puts) f(put.store.argument);
  });
  if (nest.scan) {
    f(nest.scan->argument);
    if (nest.scan->carries >= 0) f(nest.scan->carries);
    if (nest.scan->flags >= 0) f(nest.scan->flags);
  }
  if (nest.scatter) {
    f(nest.scatter->argument);
    if (nest.scatter->targets >= 0) f(nest.scatter->targets);
    if (nest.scatter->order >= 0) f(nest.scatter->order);
  }
}

/// Removes the arguments that no nest names, renumbers the others, and sets
/// `written` for those that are stored to.
void drop_arguments(Kernel& kernel);

/// A text for people, which is also the key of caches: kernels have the same if
/// they are equal in everything but buffers.
std::string print(const Kernel& kernel);

}  // namespace unisono::jit
