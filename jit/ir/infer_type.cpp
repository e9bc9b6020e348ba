// The type rule of each kind. Sizes may be symbols: they fit when they are
// proved equal; a bound is only checked where both sides are known.
#include <fmt/format.h>

#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"

namespace unisono::ir {
namespace {

using Operands = std::span<const Type>;

/// A rule's complaint; `infer_type` puts the operation's name before it.
template <class... Args>
Error wrong(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Error::Kind::compile_failed,
               fmt::format(format, std::forward<Args>(args)...)};
}

bool known_less(const Dim& a, const Dim& b) {
  return a.is_constant() && b.is_constant() && a.value() < b.value();
}

bool axis_in_range(int axis, int rank) { return axis >= 0 && axis < rank; }

/// Each in range of the rank, none twice.
bool distinct_axes(const std::vector<int>& axes, int rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int axis : axes) {
    if (!axis_in_range(axis, rank) || seen[axis]) return false;
    seen[axis] = true;
  }
  return true;
}

bool ascending_axes(const std::vector<int>& axes, int rank) {
  return distinct_axes(axes, rank) && std::is_sorted(axes.begin(), axes.end());
}

bool contains(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The shape without some axes.
Shape without(const Shape& shape, const std::vector<int>& axes) {
  Shape out;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i)
    if (!contains(axes, i)) out.push_back(shape[i]);
  return out;
}

constexpr bool gives_bool(Op op) {
  constexpr Op rows[] = {
#define COMPARE(name, ...) Op::name,
#define PREDICATE COMPARE
#include "jit/ir/ops.def"
  };
  return std::ranges::find(rows, op) != std::end(rows);
}

Result<Type> map_rule(Op op, Operands x, const Attrs& attrs) {
  const auto same_shape = [&]() -> Status {
    for (const Type& t : x.subspan(1))
      if (t.shape != x[0].shape)
        return wrong("operands are {} and {}: the shapes differ",
                     x[0].to_string(), t.to_string());
    return Unit{};
  };
  TRY(same_shape());
  if (op == Op::cast) return Type{std::get<CastAttrs>(attrs).dtype, x[0].shape};
  const Operands values = op == Op::select ? x.subspan(1) : x;
  if (op == Op::select && !is_bool(x[0].dtype))
    return wrong("the condition is {}, not bool", name(x[0].dtype));
  for (const Type& t : values)
    if (t.dtype != values[0].dtype)
      return wrong("element types {} and {} differ", name(values[0].dtype),
                   name(t.dtype));
  Type out = values[0];
  if (gives_bool(op)) out.dtype = DType::Bool;
  return out;
}

constexpr int64_t largest_i32 = INT32_MAX;

Result<Type> reduce_rule(Op op, Operands x, const ReduceAttrs& a) {
  if (!ascending_axes(a.axes, x[0].rank()))
    return wrong("axes [{}] do not fit {}", fmt::join(a.axes, ", "),
                 x[0].to_string());
  const bool positions = kind(op) == Kind::argreduce;
  if (positions) {
    if (a.axes.size() != 1) return wrong("exactly one axis is needed");
    const Dim& size = x[0].shape[a.axes[0]];
    if (size == Dim(0)) return wrong("{} has no elements", x[0].to_string());
    if (known_less(largest_i32, size))
      return wrong("axis {} of {} is too long for i32 positions", a.axes[0],
                   x[0].to_string());
  }
  return Type{positions ? DType::I32 : x[0].dtype, without(x[0].shape, a.axes)};
}

Result<Type> scan_rule(Operands x, const ScanAttrs& a) {
  if (!axis_in_range(a.axis, x[0].rank()))
    return wrong("{} has no axis {}", x[0].to_string(), a.axis);
  return x[0];
}

Result<Type> reshape_rule(const Type& x, const Shape& shape) {
  const Type out{x.dtype, shape};
  const bool known = x.is_concrete() && out.is_concrete();
  if (known ? x.elements() != out.elements()
            : !(element_count(x.shape) == element_count(shape)))
    return wrong("{} and {} have different numbers of elements", x.to_string(),
                 out.to_string());
  return out;
}

Result<Type> transpose_rule(const Type& x, const std::vector<int>& axes) {
  if (static_cast<int>(axes.size()) != x.rank() ||
      !distinct_axes(axes, x.rank()))
    return wrong("axes [{}] are no permutation of those of {}",
                 fmt::join(axes, ", "), x.to_string());
  Type out{x.dtype, {}};
  for (int axis : axes) out.shape.push_back(x.shape[axis]);
  return out;
}

Result<Type> broadcast_rule(const Type& x, const BroadcastAttrs& a) {
  const Type out{x.dtype, a.shape};
  if (static_cast<int>(a.axes.size()) != x.rank() ||
      !ascending_axes(a.axes, out.rank()))
    return wrong("axes [{}] do not place {} in {}", fmt::join(a.axes, ", "),
                 x.to_string(), out.to_string());
  for (int i = 0; i < x.rank(); ++i)
    if (!(x.shape[i] == Dim(1)) && !(x.shape[i] == out.shape[a.axes[i]]))
      return wrong("axis {} of {} does not stretch to axis {} of {}", i,
                   x.to_string(), a.axes[i], out.to_string());
  return out;
}

Result<Type> slice_rule(const Type& x, const SliceAttrs& a) {
  const size_t rank = x.shape.size();
  if (a.start.size() != rank || a.step.size() != rank || a.size.size() != rank)
    return wrong("start, step and size are not one per axis of {}",
                 x.to_string());
  for (size_t i = 0; i < rank; ++i) {
    if (known_less(a.step[i], 1)) return wrong("step {} is not positive", i);
    if (known_less(a.start[i], 0)) return wrong("start {} is negative", i);
    // One past the last element that is read.
    const Dim end = a.size[i] == Dim(0)
                        ? a.start[i]
                        : a.start[i] + (a.size[i] - 1) * a.step[i] + 1;
    if (end.overflowed() || known_less(x.shape[i], end))
      return wrong("axis {} is read up to {} in {}", i, end.to_string(),
                   x.to_string());
  }
  return Type{x.dtype, a.size};
}

Result<Type> pad_rule(Operands x, const PadAttrs& a) {
  if (x[1].rank() != 0 || x[1].dtype != x[0].dtype)
    return wrong("the value is {}, not {}", x[1].to_string(), name(x[0].dtype));
  const size_t rank = x[0].shape.size();
  if (a.low.size() != rank || a.high.size() != rank)
    return wrong("low and high are not one per axis of {}", x[0].to_string());
  Type out = x[0];
  for (size_t i = 0; i < rank; ++i) {
    if (known_less(a.low[i], 0) || known_less(a.high[i], 0))
      return wrong("low or high of axis {} is negative", i);
    out.shape[i] = a.low[i] + x[0].shape[i] + a.high[i];
  }
  return out;
}

Result<Type> concat_rule(Operands x, int axis) {
  Type out = x[0];
  if (!axis_in_range(axis, out.rank()))
    return wrong("{} has no axis {}", out.to_string(), axis);
  for (const Type& t : x.subspan(1)) {
    bool fits = t.dtype == out.dtype && t.rank() == out.rank();
    for (int i = 0; fits && i < out.rank(); ++i)
      fits = i == axis || t.shape[i] == out.shape[i];
    if (!fits)
      return wrong("{} and {} do not join along axis {}", x[0].to_string(),
                   t.to_string(), axis);
    out.shape[axis] = out.shape[axis] + t.shape[axis];
  }
  return out;
}

Result<Type> move_rule(Op op, Operands x, const Attrs& attrs) {
  switch (move_of(op)) {
    case Move::reshape:
      return reshape_rule(x[0], std::get<ShapeAttrs>(attrs).shape);
    case Move::transpose:
      return transpose_rule(x[0], std::get<AxesAttrs>(attrs).axes);
    case Move::broadcast:
      return broadcast_rule(x[0], std::get<BroadcastAttrs>(attrs));
    case Move::slice: return slice_rule(x[0], std::get<SliceAttrs>(attrs));
    case Move::pad: return pad_rule(x, std::get<PadAttrs>(attrs));
    case Move::flip:
      if (!ascending_axes(std::get<AxesAttrs>(attrs).axes, x[0].rank()))
        return wrong("the axes do not fit {}", x[0].to_string());
      return x[0];
    case Move::concat: return concat_rule(x, std::get<AxisAttrs>(attrs).axis);
  }
  __builtin_unreachable();
}

Result<Type> source_rule(Op op, const Attrs& attrs) {
  if (op == Op::input) return wrong("its type is given, not inferred");
  if (op == Op::iota) {
    const auto& a = std::get<IotaAttrs>(attrs);
    if (!axis_in_range(a.axis, a.type.rank()))
      return wrong("{} has no axis {}", a.type.to_string(), a.axis);
    if (is_bool(a.type.dtype)) return wrong("bool does not count");
    return a.type;
  }
  const auto& a = std::get<ConstantAttrs>(attrs);
  const auto bytes = static_cast<int64_t>(a.bytes.size());
  const bool fits =
      bytes == byte_size(a.type.dtype) ||
      (a.type.is_concrete() ? bytes == a.type.bytes() : a.bytes.empty());
  if (!fits && !a.bytes.empty())
    return wrong("{} bytes are no elements of {}", bytes, a.type.to_string());
  if (is_bool(a.type.dtype))
    for (uint8_t b : a.bytes)
      if (b > 1) return wrong("a bool is neither 0 nor 1");
  return a.type;
}

Result<Type> index_rule(Op op, Operands x, const IndexAttrs& a) {
  const size_t fixed = op == Op::gather ? 1 : 2;
  if (a.axes.empty() || x.size() != fixed + a.axes.size())
    return wrong("{} operands for {} axes", x.size(), a.axes.size());
  if (!distinct_axes(a.axes, x[0].rank()))
    return wrong("axes [{}] do not fit {}", fmt::join(a.axes, ", "),
                 x[0].to_string());
  const Operands indices = x.subspan(fixed);
  for (const Type& t : indices) {
    if (t.dtype != DType::I32 && t.dtype != DType::I64)
      return wrong("an index array is {}, not i32 or i64", t.to_string());
    if (t.shape != indices[0].shape)
      return wrong("index arrays are {} and {}: the shapes differ",
                   indices[0].to_string(), t.to_string());
  }
  Type part{x[0].dtype, indices[0].shape};
  for (Dim& d : without(x[0].shape, a.axes)) part.shape.push_back(d);
  if (op == Op::gather) return part;
  if (!(x[1] == part))
    return wrong("updates are {}, not {}", x[1].to_string(), part.to_string());
  return x[0];
}

Result<Type> dot_rule(Operands x, const DotAttrs& a) {
  const Type &left = x[0], &right = x[1];
  if (left.dtype != right.dtype)
    return wrong("element types of {} and {} differ", left.to_string(),
                 right.to_string());
  std::vector<int> used_a = a.batch_a, used_b = a.batch_b;
  used_a.insert(used_a.end(), a.contract_a.begin(), a.contract_a.end());
  used_b.insert(used_b.end(), a.contract_b.begin(), a.contract_b.end());
  if (a.batch_a.size() != a.batch_b.size() || used_a.size() != used_b.size() ||
      !distinct_axes(used_a, left.rank()) ||
      !distinct_axes(used_b, right.rank()))
    return wrong("the axes do not fit {} and {}", left.to_string(),
                 right.to_string());
  for (size_t i = 0; i < used_a.size(); ++i)
    if (!(left.shape[used_a[i]] == right.shape[used_b[i]]))
      return wrong("axis {} of {} and axis {} of {} have different sizes",
                   used_a[i], left.to_string(), used_b[i], right.to_string());
  Type out{left.dtype, {}};
  for (int axis : a.batch_a) out.shape.push_back(left.shape[axis]);
  for (const Dim& d : without(left.shape, used_a)) out.shape.push_back(d);
  for (const Dim& d : without(right.shape, used_b)) out.shape.push_back(d);
  return out;
}

Result<Type> sort_rule(Op op, Operands x) {
  if (x[0].rank() == 0) return wrong("{} has no axis", x[0].to_string());
  if (op == Op::sort) return x[0];
  if (known_less(largest_i32, x[0].shape.back()))
    return wrong("the last axis of {} is too long for i32 positions",
                 x[0].to_string());
  return Type{DType::I32, x[0].shape};
}

bool types_are(Operands x, const std::vector<Type>& types) {
  return std::equal(x.begin(), x.end(), types.begin(), types.end());
}

/// The type of a node with these results.
Type first_of(const std::vector<Type>& results) {
  return results.empty() ? Type{DType::Bool, {}} : results[0];
}

const Type condition_type{DType::Bool, {}};

Result<Type> if_rule(Operands x, const IfAttrs& a) {
  if (!a.then_graph || !a.else_graph) return wrong("a branch is missing");
  if (x.empty() || x[0] != condition_type)
    return wrong("the condition is not one bool");
  if (!types_are(x.subspan(1), a.then_graph->input_types()) ||
      !types_are(x.subspan(1), a.else_graph->input_types()))
    return wrong("the captures are not what the branches take");
  const auto results = a.then_graph->output_types();
  if (results != a.else_graph->output_types())
    return wrong("the branches give different types");
  return first_of(results);
}

const Type turn_type{DType::I64, {}};

Result<Type> counted_loop_rule(Operands x, const LoopAttrs& a) {
  if (a.condition) return wrong("a counted loop has no condition");
  std::vector<Type> parameters = {turn_type};
  parameters.insert(parameters.end(), x.begin(), x.end());
  for (int i = 0; i < a.rows; ++i) {
    Type& row = parameters[static_cast<size_t>(1 + a.carries + i)];
    if (row.rank() == 0 || !(row.shape[0] == Dim(a.turns)))
      return wrong("{} has not {} rows", row.to_string(), a.turns);
    row.shape.erase(row.shape.begin());
  }
  if (a.body->input_types() != parameters)
    return wrong("the operands are not what the body takes");
  const auto given = a.body->output_types();
  const auto carries = static_cast<size_t>(a.carries);
  if (given.size() < carries ||
      !types_are(x.first(carries), {given.begin(), given.begin() + a.carries}))
    return wrong("the body's first results are not the carries");
  std::vector<Type> results;
  for (size_t i = 0; i < given.size(); ++i)
    results.push_back(i < carries ? given[i] : stack_type(a, given[i]));
  return first_of(results);
}

Result<Type> loop_rule(Operands x, const LoopAttrs& a) {
  if (!a.body) return wrong("the body is missing");
  if (a.carries < 0 || a.rows < 0 ||
      static_cast<size_t>(a.carries) + static_cast<size_t>(a.rows) > x.size())
    return wrong("{} carries and {} rows among {} operands", a.carries, a.rows,
                 x.size());
  if (a.count >= 0 && (!a.is_counted() || a.count >= a.carries ||
                       x[static_cast<size_t>(a.count)] != turn_type))
    return wrong("the number of turns is one i64 among the carries");
  if (a.is_counted()) return counted_loop_rule(x, a);
  if (!a.condition) return wrong("the condition is missing");
  if (a.rows > 0 || a.backwards)
    return wrong("only a counted loop has rows and a direction");
  if (!types_are(x, a.condition->input_types()) ||
      !types_are(x, a.body->input_types()))
    return wrong("the operands are not what condition and body take");
  if (a.condition->output_types() != std::vector<Type>{condition_type})
    return wrong("the condition does not give one bool");
  const auto results = a.body->output_types();
  if (!types_are(x.first(a.carries), results))
    return wrong("the body's results are not the carries");
  return first_of(results);
}

/// `types`, then the float ones among them once more.
std::vector<Type> with_tangents(std::vector<Type> types) {
  const size_t count = types.size();
  for (size_t i = 0; i < count; ++i)
    if (is_floating(types[i].dtype)) types.push_back(types[i]);
  return types;
}

std::vector<Type> floats_of(const std::vector<Type>& types) {
  const std::vector<Type> all = with_tangents(types);
  return {all.begin() + static_cast<ptrdiff_t>(types.size()), all.end()};
}

Result<Type> call_rule(Operands x, const CallAttrs& a) {
  if (!a.graph || !a.rule) return wrong("a graph is missing");
  if (!types_are(x, a.graph->input_types()))
    return wrong("the operands are not what the graph takes");
  const std::vector<Type> operands(x.begin(), x.end());
  const std::vector<Type> results = a.graph->output_types();
  const bool forward = a.kind == CallAttrs::Rule::jvp;
  std::vector<Type> takes = operands, gives = results;
  for (const Type& type : floats_of(forward ? operands : results))
    takes.push_back(type);
  for (const Type& type : floats_of(forward ? results : operands))
    gives.push_back(type);
  if (a.rule->input_types() != takes || a.rule->output_types() != gives)
    return wrong("the rule does not take and give what it should");
  return first_of(results);
}

Result<Type> control_rule(Op op, Operands x, const Attrs& attrs) {
  if (op == Op::if_else) return if_rule(x, std::get<IfAttrs>(attrs));
  if (op == Op::call) return call_rule(x, std::get<CallAttrs>(attrs));
  if (op == Op::loop) return loop_rule(x, std::get<LoopAttrs>(attrs));
  return wrong("its type is that of its operand's result");
}

Status check_pairs(const CollectiveAttrs& a) {
  const Dim members = member_count(a);
  for (size_t i = 0; i < a.pairs.size(); ++i) {
    const auto [from, to] = a.pairs[i];
    if (from < 0 || to < 0 || !known_less(-1, members - Dim(from) - 1) ||
        !known_less(-1, members - Dim(to) - 1)) {
      if (from < 0 || to < 0 || members.is_constant())
        return wrong("the pair ({}, {}) is not within {} members", from, to,
                     members.to_string());
    }
    for (size_t j = 0; j < i; ++j)
      if (a.pairs[j].second == to)
        return wrong("two pairs share a destination");
  }
  return Unit{};
}

/// Each member is in one group; `equal`: they are of one size.
Status check_groups(const CollectiveAttrs& a, bool equal) {
  if (a.groups.empty()) return Unit{};
  std::vector<bool> seen;
  for (const auto& group : a.groups) {
    if (group.empty()) return wrong("a group without members");
    if (equal && group.size() != a.groups[0].size())
      return wrong("groups of different sizes");
    for (const int member : group) {
      if (member < 0) return wrong("member {}", member);
      const auto index = static_cast<size_t>(member);
      if (index >= seen.size()) seen.resize(index + 1);
      if (seen[index]) return wrong("member {} is in two groups", member);
      seen[index] = true;
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end())
    return wrong("member {} is in no group", missing - seen.begin());
  const Dim members = member_count(a);
  if (members.is_constant() &&
      members.value() != static_cast<int64_t>(seen.size()))
    return wrong("groups of {} members, but there are {}", seen.size(),
                 members.value());
  return Unit{};
}

Status check_axes(const CollectiveAttrs& a) {
  if (a.axes.empty() || a.axes.size() != a.sizes.size())
    return wrong("{} axes, but {} sizes", a.axes.size(), a.sizes.size());
  for (size_t i = 0; i < a.axes.size(); ++i) {
    if (known_less(a.sizes[i], 0))
      return wrong("{} members", a.sizes[i].to_string());
    for (size_t j = 0; j < i; ++j)
      if (a.axes[i] == a.axes[j]) return wrong("axis {} twice", a.axes[i]);
  }
  return Unit{};
}

Result<Type> gather_rule(Type out, const CollectiveAttrs& a) {
  const int last = a.tiled ? out.rank() - 1 : out.rank();
  if (a.dim < 0 || a.dim > last) return wrong("there is no axis {}", a.dim);
  if (a.tiled)
    out.shape[a.dim] = team_size(a) * out.shape[a.dim];
  else
    out.shape.insert(out.shape.begin() + a.dim, team_size(a));
  return out;
}

Result<Type> own_part_rule(Type out, const CollectiveAttrs& a) {
  if (a.dim < 0 || a.dim >= out.rank())
    return wrong("there is no axis {}", a.dim);
  const Dim size = out.shape[a.dim], members = member_count(a);
  std::optional<Dim> part;
  if (size == members)
    part = 1;
  else if (a.tiled && !(members == Dim(0)))
    part = exact_div(size, members);
  if (!part)
    return wrong("size {} is not shared among {} members", size.to_string(),
                 members.to_string());
  if (a.tiled)
    out.shape[a.dim] = *part;
  else
    out.shape.erase(out.shape.begin() + a.dim);
  return out;
}

Result<Type> collective_rule(Op op, Operands x, const CollectiveAttrs& a) {
  TRY(check_axes(a));
  TRY(check_groups(a, op != Op::all_reduce));
  const bool reduces = op == Op::all_reduce || op == Op::reduce_scatter;
  if (reduces && a.reduce == ReduceOp::sum && is_bool(x[0].dtype))
    return wrong("bool has no sum");
  switch (collective_of(op)) {
    case Collective::axis_index: return Type{DType::I32, {}};
    case Collective::own_part: return own_part_rule(x[0], a);
    case Collective::all_gather: return gather_rule(x[0], a);
    case Collective::permute: TRY(check_pairs(a)); return x[0];
    case Collective::reduce_scatter:
    case Collective::all_to_all: {
      if (x[0].rank() == 0 || !(x[0].shape[0] == team_size(a)))
        return wrong("the leading axis is not that of {} members",
                     team_size(a).to_string());
      Type out = x[0];
      if (op == Op::reduce_scatter) out.shape.erase(out.shape.begin());
      return out;
    }
    case Collective::all_reduce: return x[0];
  }
  __builtin_unreachable();
}

/// Who the members of a host_call are.
Status check_members(Operands x, const HostCallAttrs& a) {
  if (a.members < 0 || (a.members == 0 && (a.masked || !a.mapped.empty())))
    return wrong("a call for {} members", a.members);
  const auto is_of_members = [&](const Type& type) {
    return type.rank() > 0 && type.shape[0] == Dim(a.members);
  };
  for (const int i : a.mapped)
    if (i < 0 || i >= static_cast<int>(x.size()) || !is_of_members(x[i]))
      return wrong("operand {} is not that of {} members", i, a.members);
  if (a.masked && (x.empty() || !is_of_members(x.back()) ||
                   x.back().rank() != 1 || !is_bool(x.back().dtype)))
    return wrong("the mask is no bool[{}]", a.members);
  return Unit{};
}

Status check_routine(Operands x, const HostCallAttrs& a) {
  const auto routine = routine_from_name(a.function);
  if (!routine) return wrong("no routine `{}`", a.function);
  if (a.members != 0 || !a.everywhere || !a.pure)
    return wrong("a routine has a batch, no members, and is pure");
  // Where sizes are symbols, one of them may be the smaller of two.
  for (const Type& type : x)
    if (!type.is_concrete()) return Unit{};
  if (TRY(routine_results(*routine, x, 0)) != a.results)
    return wrong("the results of `{}` have other types", a.function);
  return Unit{};
}

Result<Type> host_rule(Operands x, const HostCallAttrs& a) {
  TRY(check_members(x, a));
  if (is_routine(a)) TRY(check_routine(x, a));
  const size_t operands = x.size() - a.masked;
  if (!a.function.empty() || !a.results.empty()) {
    if (!a.format.empty() || !a.specs.empty())
      return wrong("a function has no format");
    return a.results.empty() ? Type{DType::Bool, {}} : result_type(a, 0);
  }
  if (a.format.size() != operands + 1 || a.specs.size() != operands)
    return wrong("{} pieces of text and {} formats for {} operands",
                 a.format.size(), a.specs.size(), operands);
  return Type{DType::Bool, {}};
}

Result<Type> apply_rule(Op op, Operands x, const Attrs& attrs) {
  switch (kind(op)) {
    case Kind::map: return map_rule(op, x, attrs);
    case Kind::reduce:
    case Kind::argreduce:
      return reduce_rule(op, x, std::get<ReduceAttrs>(attrs));
    case Kind::scan: return scan_rule(x, std::get<ScanAttrs>(attrs));
    case Kind::move: return move_rule(op, x, attrs);
    case Kind::source: return source_rule(op, attrs);
    case Kind::index: return index_rule(op, x, std::get<IndexAttrs>(attrs));
    case Kind::dot: return dot_rule(x, std::get<DotAttrs>(attrs));
    case Kind::sort: return sort_rule(op, x);
    case Kind::control: return control_rule(op, x, attrs);
    case Kind::collective:
      return collective_rule(op, x, std::get<CollectiveAttrs>(attrs));
    case Kind::host: return host_rule(x, std::get<HostCallAttrs>(attrs));
  }
  __builtin_unreachable();
}

/// Sizes of a result are sizes: not negative, and their product is an int64.
Status check_result(const Type& type) {
  for (const Dim& d : type.shape)
    if (d.overflowed() || known_less(d, 0))
      return wrong("a size of the result is {}",
                   d.overflowed() ? "too large" : "negative");
  if (type.is_concrete() && type.bytes() == INT64_MAX)
    return wrong("{} has too many elements", type.to_string());
  return Unit{};
}

Result<Type> checked_rule(Op op, Operands operands, const Attrs& attrs) {
  const int count = row(op).operands;
  const bool one_at_least = op == Op::concat;
  if (count != any_operands ? operands.size() != static_cast<size_t>(count)
                            : one_at_least && operands.empty())
    return wrong("{} operands", operands.size());
  if (attrs.index() != row(op).attributes) return wrong("wrong attributes");
  if (!operands.empty() && kind(op) != Kind::control) {
    const Type& first = operands[op == Op::select ? operands.size() - 1 : 0];
    if (!admits(op, first.dtype)) return wrong("not for {}", name(first.dtype));
  }
  auto type = TRY(apply_rule(op, operands, attrs));
  TRY(check_result(type));
  return type;
}

}  // namespace

Result<Type> infer_type(Op op, std::span<const Type> operands,
                        const Attrs& attrs) {
  auto type = checked_rule(op, operands, attrs);
  if (type) return type;
  Error error = type.error();
  error.message = fmt::format("`{}`: {}", name(op), error.message);
  return error;
}

}  // namespace unisono::ir
