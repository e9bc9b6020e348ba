#pragma once
// The array IR: operations, their attributes, nodes and graphs. ops.def is the
// table of operations, which table.h and kinds.h ask.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jit/ir/type.h"

namespace unisono::ir {

enum class Op : uint8_t {
#define UNARY(name, ...) name,
#define BINARY(name, ...) name,
#define COMPARE(name, ...) name,
#define PREDICATE(name, ...) name,
#define REDUCE(name, ...) name,
#define SCAN(name, ...) name,
#define OTHER(name, ...) name,
#include "jit/ir/ops.def"
};

/// The family that owns an operation's rules (see ops.def).
enum class Kind : uint8_t {
  map,
  reduce,
  argreduce,
  scan,
  move,
  source,
  index,
  dot,
  sort,
  control,
  collective,
  host,
};

/// The operations of one kind, for switches that name all of them: where one
/// lacks a new row, it does not compile.
enum class Move : uint8_t {
#define MOVE(name, ...) name = static_cast<uint8_t>(Op::name),
#include "jit/ir/ops.def"
};
enum class Collective : uint8_t {
#define COLLECTIVE(name, ...) name = static_cast<uint8_t>(Op::name),
#define POSITION COLLECTIVE
#include "jit/ir/ops.def"
};
/// CHECK that `op` is of the kind.
Move move_of(Op op);
Collective collective_of(Op op);

using NodeId = int32_t;
/// A declared axis (`axis dev = devices()`), or the anonymous one of a map.
using AxisId = int32_t;

class Graph;

// ---- attributes: what an operation knows besides its operands --------------

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};
/// Which order the operands of a reduction are combined in; see reduce_order.h.
enum class ReduceOrder : uint8_t { elements, members };
/// reduce: the axes removed, ascending. argreduce: exactly one.
struct ReduceAttrs {
  std::vector<int> axes;
  ReduceOrder order = ReduceOrder::elements;
  bool operator==(const ReduceAttrs&) const = default;
};
struct ScanAttrs {
  int axis = 0;
  bool reverse = false;
  bool operator==(const ScanAttrs&) const = default;
};
/// reshape: the result's shape.
struct ShapeAttrs {
  Shape shape;
  bool operator==(const ShapeAttrs&) const = default;
};
/// transpose: result axis i is operand axis axes[i]. flip: the axes reversed.
struct AxesAttrs {
  std::vector<int> axes;
  bool operator==(const AxesAttrs&) const = default;
};
/// broadcast: operand axis i becomes result axis axes[i] (ascending), and has
/// size 1 or the result's size there.
struct BroadcastAttrs {
  Shape shape;
  std::vector<int> axes;
  bool operator==(const BroadcastAttrs&) const = default;
};
/// slice: along axis i the elements start[i] + j * step[i], 0 <= j < size[i];
/// step > 0 (a negative step is a slice of a flip).
struct SliceAttrs {
  Shape start, step, size;
  bool operator==(const SliceAttrs&) const = default;
};
/// pad: operands are the array and a scalar of its element type.
struct PadAttrs {
  Shape low, high;  // never negative
  bool operator==(const PadAttrs&) const = default;
};
/// concat: the axis that grows.
struct AxisAttrs {
  int axis = 0;
  bool operator==(const AxisAttrs&) const = default;
};
/// input: its number among the graph's inputs.
struct InputAttrs {
  int index = 0;
  bool operator==(const InputAttrs&) const = default;
};
/// constant: the result's type; `bytes` holds one element (broadcast to the
/// type's shape), or all of them in row-major order. A symbolic value (a size
/// used as a number while checking) has no bytes.
struct ConstantAttrs {
  Type type;
  std::vector<uint8_t> bytes;
  bool operator==(const ConstantAttrs&) const = default;
};
/// iota: element type and shape of the result, counting along `axis`.
struct IotaAttrs {
  Type type;
  int axis = 0;
  bool operator==(const IotaAttrs&) const = default;
};
/// cast: the result's element type.
struct CastAttrs {
  DType dtype = DType::F32;
  bool operator==(const CastAttrs&) const = default;
};
/// gather(x, i0, i1, ...): the index arrays are i32 or i64 of one shape S and
/// count along axes[0], axes[1], ... (distinct) of x; the result has shape
/// S ++ (shape of x without those axes). An index of -size ... -1 counts from
/// the end. Any other outside 0 ... size - 1 is an error when `checked`, else
/// it is clamped; from an axis without elements zeros are then read.
/// scatter(x, updates, i0, ...): updates has the shape of gather's result.
/// Where an index repeats, the last one in row-major order wins (scatter), or
/// all are added in row-major order, each sum rounded to the element type
/// (scatter_add). Unchecked, nothing is written into an axis without elements.
struct IndexAttrs {
  std::vector<int> axes;
  bool checked = true;
  bool operator==(const IndexAttrs&) const = default;
};
/// How far a product may depart from the fma chain where there are matrix units
/// or a library for them: `exact` not at all; `usual` may sum in another order;
/// `tf32` may also round f32 operands to tf32.
enum class Precision : uint8_t { usual, exact, tf32 };
/// dot(a, b): result axes are batch, then the free axes of a, then those of b,
/// each in the operand's order. Sizes of batch and contracted axes agree
/// pairwise. Element types agree; f16 and bf16 accumulate in f32.
struct DotAttrs {
  std::vector<int> batch_a, batch_b, contract_a, contract_b;
  Precision precision = Precision::usual;
  bool operator==(const DotAttrs&) const = default;
};
/// if_else(condition: bool[], captures...): both graphs take the captures and
/// give the same result types.
struct IfAttrs {
  std::shared_ptr<const Graph> then_graph, else_graph;
  bool operator==(const IfAttrs&) const = default;
};
/// loop(carries..., captures...): while condition(carries, captures) gives
/// true, carries = body(carries, captures). Results are the carries. The first
/// `carries` operands are carries.
/// Counted, that is with `turns` >= 0, there is no condition, and the loop is
/// loop(carries..., rows..., captures...): turn t = 0 ... turns - 1 does
/// (carries, parts) = body(number, carries, row[number] of each of rows,
/// captures). `number` is an i64 scalar, t, or turns - 1 - t if `backwards`.
/// The `rows` operands have `turns` as their first size. Results are the
/// carries, then for each part a stack, of which row `number` is the part of
/// that turn.
struct LoopAttrs {
  std::shared_ptr<const Graph> condition, body;
  int carries = 0;
  int64_t turns = -1;
  bool backwards = false;
  int rows = 0;
  /// Not counted: it has at most so many turns, or -1. The graphs see to that;
  /// derivatives in reverse need it.
  int64_t most = -1;
  /// Its derivative keeps nothing of the body, but computes it again
  /// (`checkpoint`); such a loop has one turn, and stays one.
  bool recomputed = false;
  /// Counted, and only inside jit/derivative: the carry, an i64 scalar, that
  /// says how many turns there are; those with higher numbers are left out.
  int count = -1;

  bool is_counted() const { return turns >= 0; }
  /// The body's parameter that is operand `index`, but for a row only its row.
  size_t parameter(size_t index) const {
    return index + (is_counted() ? 1 : 0);
  }
  bool operator==(const LoopAttrs&) const = default;
};
/// call(operands...): what `graph` gives for the operands. Its derivative is
/// not that of the graph, but what `rule` says:
///   jvp  (operands, tangent of each float operand)
///        -> (results, tangent of each float result)
///   vjp  (operands, cotangent of each float result)
///        -> (results, cotangent of each float operand)
/// It exists between the trace of a function and the innermost derivative
/// around it, which replaces it.
struct CallAttrs {
  enum class Rule : uint8_t { jvp, vjp };
  std::shared_ptr<const Graph> graph, rule;
  Rule kind = Rule::jvp;
  bool operator==(const CallAttrs&) const = default;
};
/// project: which result of the control node that is its operand.
struct ProjectAttrs {
  int index = 0;
  bool operator==(const ProjectAttrs&) const = default;
};
enum class ReduceOp : uint8_t { sum, max, min };
/// Collectives. The members are those of `axes` together, the first outermost;
/// `sizes` is how many there are along each (symbols while checking). They are
/// numbered 0, 1, ... in this order.
struct CollectiveAttrs {
  std::vector<AxisId> axes = {0};
  Shape sizes = {1};
  ReduceOp reduce = ReduceOp::sum;
  /// permute: (source, destination), each destination at most once.
  std::vector<std::pair<int, int>> pairs = {};
  /// Lists of members that meet by themselves, in the order written; each
  /// member is in one. None: all meet.
  std::vector<std::vector<int>> groups = {};
  /// all_gather: the values are stacked at a new axis `dim`, or joined along it
  /// if `tiled`. own_part: the operand's axis that is taken apart.
  int dim = 0;
  bool tiled = false;
  /// all_gather: the operand is a map's result, which is stacked. If the stack
  /// is a result of the program, its parts may stay where they are.
  bool stays = false;
  bool operator==(const CollectiveAttrs&) const = default;
};
/// host_call: a print, or a call of a function that the host defined. Each
/// member of all mapped axes makes the call; if not `everywhere`, only each
/// member of `axes`, once for all others, which get the same results.
struct HostCallAttrs {
  /// A print: one piece of text before each operand and one after the last; the
  /// host renders operands with `specs` (one per operand, "" for the default).
  std::vector<std::string> format, specs;
  bool everywhere = true;
  std::vector<AxisId> axes = {};
  /// Else a function: its name, the number by which the host knows it (-1: a
  /// routine, jit/ir/routines.h), and the types of its results, if it has any.
  std::string function = {};
  int64_t number = 0;
  std::vector<Type> results = {};
  /// The function always gives the same for the same, and does nothing else.
  bool pure = false;
  /// Not 0: one call for each of so many members, in order. The operands in
  /// `mapped` and all results have the members as their leading axis. `masked`:
  /// the last operand, bool[members], which the host does not get, says who
  /// takes part; results of the others are zeros.
  int64_t members = 0;
  std::vector<int> mapped = {};
  bool masked = false;
  bool operator==(const HostCallAttrs&) const = default;
};

using Attrs =
    std::variant<NoAttrs, ReduceAttrs, ScanAttrs, ShapeAttrs, AxesAttrs,
                 BroadcastAttrs, SliceAttrs, PadAttrs, AxisAttrs, InputAttrs,
                 ConstantAttrs, IotaAttrs, CastAttrs, IndexAttrs, DotAttrs,
                 IfAttrs, LoopAttrs, CallAttrs, ProjectAttrs, CollectiveAttrs,
                 HostCallAttrs>;

/// One operation. Operands come before it in the graph. Map operands have the
/// same shape: broadcasting is explicit. A control node's `type` is that of its
/// first result; `project` nodes read its results, the first one too. So is a
/// host_call's. A node without results (a print, some control nodes) has the
/// type `bool`.
struct Node {
  Op op;
  std::vector<NodeId> inputs;
  Attrs attrs;
  Type type;
  /// Place in the program for messages; opaque to this floor, 0 is none.
  uint32_t source = 0;
  /// Axis 0 of this node is the members that one device runs, and an error of
  /// its check names the member (VmapSpec::names_members).
  bool by_member = false;
};

/// A straight list of nodes in program order: static single assignment, pure
/// but for `host_call`, whose order is the program's.
class Graph {
 public:
  std::vector<Node> nodes;
  /// Ids of the `input` nodes in order; inputs come first in `nodes`.
  std::vector<NodeId> inputs;
  std::vector<NodeId> outputs;

  const Node& operator[](NodeId id) const { return nodes[id]; }
  Node& operator[](NodeId id) { return nodes[id]; }
  const Type& type(NodeId id) const { return nodes[id].type; }
  std::vector<Type> input_types() const;
  std::vector<Type> output_types() const;

  /// Appends a parameter; before all other nodes.
  NodeId add_input(Type type, uint32_t source = 0);
  /// Appends a constant; `bytes` as in ConstantAttrs.
  NodeId add_constant(Type type, std::vector<uint8_t> bytes,
                      uint32_t source = 0);
  /// Appends an operation and gives its id. Operands and attributes must be
  /// right by the type rule (CHECK).
  NodeId add(Op op, std::vector<NodeId> inputs, Attrs attrs = NoAttrs{},
             uint32_t source = 0);
  /// Appends a node as it is, its type too; gives its id.
  NodeId append(Node node);
};

std::string_view name(Op op);
std::optional<Op> op_from_name(std::string_view name);
Kind kind(Op op);

/// The node's attributes, which must be of this type.
template <class T>
const T& attrs(const Node& node) {
  return std::get<T>(node.attrs);
}

}  // namespace unisono::ir
