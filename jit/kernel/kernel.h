#pragma once
// A kernel: what one launch does, as loop nests over scalar expressions. Made
// by fuse.cpp, arranged by schedule.cpp, turned into code by emit*.cpp.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/kernel/affine.h"
#include "runtime/dtype.h"

namespace unisono::jit {

using ExprId = int32_t;

/// Whose an element is, of a checked node that has a device's members along
/// axis 0: its row-major place in the node's array, and the elements of each
/// member.
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
    carried,    // carry number `carry` of the nest's turns
  };
  Kind kind = Kind::constant;
  ir::Op op = ir::Op::input;
  DType dtype = DType::F32;
  DType operand_dtype = DType::F32;
  int argument = -1;
  int reduction = -1;
  int carry = -1;
  bool best = false;  // reduced, of argmax: the value instead of its index
  /// Loops of the nest run one after another: an expression is available from
  /// this one on. A reduction over loop p is available from loop p + 1 on.
  int phase = 0;
  bool checked = false;
  uint32_t source = 0;  // of the node, if it can raise an error
  MemberPlace member = {};
  uint64_t bits = 0;  // one element as stored
  Affine at = {};
  std::vector<ExprId> operands = {};
  struct IndexedAxis {
    int64_t size = 0, stride = 0;
    bool operator==(const IndexedAxis&) const = default;
  };
  std::vector<IndexedAxis> indexed = {};  // gather: one per operand
};

struct Store {
  int argument = 0;
  Affine at;
  ExprId value = 0;
};

/// The order in which a reduction combines; see docs/internals.md.
enum class CombineOrder : uint8_t {
  lanes,    // elements, the last axis of the operand is reduced
  runs,     // elements, the last axis is kept
  members,  // neighbours first
  chain,    // one after the other: the fma chain of `dot`
};

/// One element per point of the kept axes, from all points along the reduced.
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

/// A running reduction along the reduced axes, stored at every point.
struct Scan {
  /// A GPU does few long lines in three kernels (grid_stages.h): `totals` of
  /// chunks to `argument`, one after the other; what comes before each, from
  /// those, in place (`carries`, a nest of rows and chunks without
  /// expressions); and the `rest`.
  enum class Part : uint8_t { whole, totals, carries, rest };
  ir::Op op = ir::Op::add;
  DType dtype = DType::F32;   // accumulated in
  DType result = DType::F32;  // stored as
  bool reverse = false;
  bool contiguous = true;  // along the array's last axis: the order of groups
  ExprId operand = 0;
  int argument = 0;
  Affine at;
  Part part = Part::whole;
  int carries = -1;  // rest: the argument that has them
};

/// argument[at + sum of index * stride] = value, or += in order; points whose
/// reduced axes differ go one after the other, in row-major order.
struct Scatter {
  /// Where columns are few, a GPU does positions at once (grid_stages.h). Their
  /// targets are numbers of places along the indexed axes. `atomic`: integers
  /// are added, in any order. `targets`: of each position, to `argument`.
  /// `winners`: the last position of each target, plus 1, to `argument`.
  /// `chosen`: stored where `targets` has its winner. `sorted`: positions in
  /// the order of `order`, in which those of one target (`targets` has it for
  /// each) are neighbours; the first of them does all.
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
  Affine position = {};          // winners, chosen: its number
};

/// A loop at each point of a nest: carries have their first values, then so
/// many times those of `next`. What is stored are the last ones. On a GPU alone
/// (point_loop.h).
struct Turns {
  int64_t count = 0;
  struct Carry {
    ExprId first = 0, next = 0;
    DType dtype = DType::F32;
    bool operator==(const Carry&) const = default;
  };
  std::vector<Carry> carries;
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

  int64_t points() const;
  int64_t kept_points() const;
};

/// An array that a kernel reads or writes: dense, row-major.
struct Argument {
  int32_t buffer = 0;  // of the plan
  DType dtype = DType::F32;
  bool written = false;
};

struct Kernel {
  std::vector<Nest> nests;  // independent of one another
  std::vector<Argument> arguments;
};

/// For each expression, whether its value changes along the reduced axes
/// (results of reductions do not).
std::vector<bool> inner_expressions(const Nest& nest);

/// For each expression, whether it depends on a carry of the nest's turns.
std::vector<bool> carried_expressions(const Nest& nest);

/// Whether the store happens at every point of the reduced axes.
bool is_inner_store(const Nest& nest, const std::vector<bool>& inner,
                    const Store& store);

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
  if (nest.scan) {
    f(nest.scan->argument);
    if (nest.scan->carries >= 0) f(nest.scan->carries);
  }
  if (nest.scatter) {
    f(nest.scatter->argument);
    if (nest.scatter->targets >= 0) f(nest.scatter->targets);
    if (nest.scatter->order >= 0) f(nest.scatter->order);
  }
}

/// Arguments that the nests name, renumbered; all others go. Those that are
/// stored to are `written`.
void drop_arguments(Kernel& kernel);

/// For people, and as the key that tells equal kernels: everything but the
/// buffers is in it.
std::string print(const Kernel& kernel);

}  // namespace unisono::jit
