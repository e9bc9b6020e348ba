// `lapack`: factors of matrices, which a routine of the host computes. It has
// no derivative: functions of stdlib/linalg.uni over it have rules. "matrices",
// "square" and "sides" (a matrix, and as many rows on the right side) are no
// routines: they give what a routine takes, or say why not.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"
#include "jit/reference/routines.h"
#include "lang/context/call_of.h"
#include "lang/context/derivative_facts.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/pool.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

using ir::Routine;

/// The most rows and columns: the work of a routine is counted in 32 bits. That
/// of eigenvalues and singular values has as many elements as some matrices.
int64_t most_rows(std::optional<Routine> routine) {
  constexpr int64_t usual = int64_t{1} << 25;
  if (!routine) return usual;
  switch (*routine) {
    case Routine::cholesky:
    case Routine::lu:
    case Routine::solve:
    case Routine::inv:
    case Routine::solve_lower:
    case Routine::solve_upper:
    case Routine::qr:
    case Routine::qr_complete: return usual;
    case Routine::eigh:
    case Routine::eigvalsh:
    case Routine::svd:
    case Routine::svd_complete:
    case Routine::svdvals: return int64_t{1} << 14;
  }
  __builtin_unreachable();
}

/// What is called: the routine, which may be none, and the function that
/// messages name.
struct RoutineCall {
  Walk& walk;
  std::optional<Routine> routine;
  std::string function;
  Span where;
};

[[noreturn]] void no_such_routine(Argument argument) {
  std::string names = "\"matrices\", \"square\", \"sides\"";
#define ROUTINE(name, ...) names += ", \"" #name "\"";
#include "jit/ir/routines.def"
  wrong_argument(argument, "one of " + names);
}

ir::Dim size_from_end(const ArrayValue& x, int axis) {
  return x->type.shape[x->type.rank() - axis];
}

void check_matrix(const RoutineCall& call, const ArrayValue& x) {
  const auto& [walk, routine, function, where] = call;
  if (x->type.rank() < 2)
    walk.fail(diagnostic(Code::rank_mismatch, where, function,
                         "matrices, the last two axes of an array",
                         x->type.to_string()));
  for (const int axis : {1, 2}) {
    const ir::Dim size = size_from_end(x, axis);
    if (size.is_constant() && size.value() > most_rows(routine))
      walk.fail(diagnostic(Code::too_large, where,
                           fmt::format("a matrix {} for `{}`",
                                       x->type.to_string(), function))
                    .set_help(fmt::format("it has at most {} rows and columns",
                                          most_rows(routine))));
  }
}

/// The same array with its last two sizes.
ArrayValue with_sizes(const RoutineCall& call, const ArrayValue& x,
                      const ir::Dim& rows, const ir::Dim& columns) {
  ir::Shape shape = x->type.shape;
  *(shape.end() - 2) = rows;
  shape.back() = columns;
  return taken_for(call.walk, x, std::move(shape));
}

void check_square(const RoutineCall& call, ArrayValue& x) {
  const ir::Dim rows = size_from_end(x, 2), columns = size_from_end(x, 1);
  if (const auto size = same_size(rows, columns)) {
    x = with_sizes(call, x, *size, *size);
    return;
  }
  Diagnostic d = diagnostic(
      Code::shape_mismatch, call.where, call.function,
      fmt::format("square matrices, {}[..., n, n]", name(x->type.dtype)),
      x->type.to_string());
  d.about(rows - columns);
  if (!(rows - columns).is_constant())
    d.set_help("state that sizes are equal with `x as f32[n, n]`");
  call.walk.fail(std::move(d));
}

/// Two operands: as many rows on the right as the matrix has, and one batch.
void match_sides(const RoutineCall& call, std::vector<ArrayValue>& x) {
  const auto& [walk, routine, function, where] = call;
  const ir::Dim left = size_from_end(x[0], 2), right = size_from_end(x[1], 2);
  const auto rows = same_size(left, right);
  if (!rows)
    walk.fail(
        diagnostic(Code::shapes_do_not_join, where, function,
                   x[0]->type.to_string(), x[1]->type.to_string(),
                   fmt::format("the matrix has {} rows, the right side {}",
                               left.to_string(), right.to_string()))
            .about(left - right));
  const bool square = left == size_from_end(x[0], 1);
  x[0] = with_sizes(call, x[0], *rows, square ? *rows : size_from_end(x[0], 1));
  x[1] = with_sizes(call, x[1], *rows, size_from_end(x[1], 1));
  const auto batch = [](const ArrayValue& array) {
    return ir::Shape(array->type.shape.begin(), array->type.shape.end() - 2);
  };
  const auto common = broadcast_shape(walk, batch(x[0]), batch(x[1]));
  if (!common) {
    Diagnostic d =
        diagnostic(Code::shapes_differ, where, fmt::format("`{}`", function),
                   x[0]->type.to_string(), x[1]->type.to_string());
    d.add_fact(fmt::format("batch axes are {} and {}", shape_text(batch(x[0])),
                           shape_text(batch(x[1]))));
    walk.fail(d.about());
  }
  for (ArrayValue& side : x) {
    ir::Shape shape = *common;
    shape.insert(shape.end(), side->type.shape.end() - 2,
                 side->type.shape.end());
    side = broadcast_to(walk, side, shape, where);
  }
}

/// f32 or f64: what a routine takes.
std::vector<ArrayValue> operands_of(const RoutineCall& call,
                                    std::span<const CallArgument> arguments,
                                    size_t count, bool square) {
  const auto& [walk, routine, function, where] = call;
  if (arguments.size() != count)
    walk.fail(diagnostic(Code::shape_mismatch, where, "lapack",
                         fmt::format("{} array{} for `{}`", count,
                                     count == 1 ? "" : "s", function),
                         std::to_string(arguments.size()))
                  .about());
  std::vector<ArrayValue> x =
      promote_to_float(walk, arguments, fmt::format("`{}`", function));
  for (ArrayValue& operand : x) {
    if (byte_size(operand->type.dtype) < 4)
      operand = cast_to(walk, operand, DType::F32, where);
    check_matrix(call, operand);
  }
  if (square) check_square(call, x[0]);
  if (count == 2) match_sides(call, x);
  return x;
}

void check_derivative(const RoutineCall& call,
                      const std::vector<ArrayValue>& x) {
  if (std::ranges::all_of(
          x, [](const ArrayValue& e) { return e->depends.empty(); }))
    return;
  const bool qr = call.routine == Routine::qr_complete;
  const bool svd = call.routine == Routine::svd_complete;
  const std::string_view help =
      qr    ? "that of `mode=\"reduced\"` has one"
      : svd ? "that with `full_matrices=false` has one"
            : "the functions of linalg have rules: `cholesky`, `solve`, ...";
  call.walk.fail(diagnostic(Code::no_derivative, call.where,
                            qr || svd ? call.function : "lapack")
                     .set_help(std::string(help)));
}

/// While checking, results of which only the types are known.
std::vector<ArrayValue> unknown_results(const RoutineCall& call,
                                        const std::vector<ir::Type>& types,
                                        const std::vector<ArrayValue>& x) {
  std::vector<ArrayValue> out;
  for (const ir::Type& type : types) {
    const ArrayValue result = call.walk.unknown_array(type);
    for (const ArrayValue& operand : x) {
      result->varies = join(result->varies, operand->varies);
      if (!result->varies_from) result->varies_from = operand->varies_from;
    }
    result->linearity = linearity_through(x, call.where);
    out.push_back(result);
  }
  return out;
}

std::vector<int64_t> sizes_of(const ir::Type& type) {
  std::vector<int64_t> sizes;
  for (const ir::Dim& size : type.shape) sizes.push_back(size.value());
  return sizes;
}

/// Outside compiled code it is computed here and now.
std::vector<ArrayValue> compute_now(const RoutineCall& call,
                                    const std::vector<ir::Type>& types,
                                    const std::vector<ArrayValue>& x) {
  const auto& [walk, routine, function, where] = call;
  std::vector<jit::HostArray> arguments, results;
  for (const ArrayValue& operand : x)
    arguments.push_back({operand->type, walk.host_bytes(operand, where)});
  for (const ir::Type& type : types)
    resize_in_pieces(results.emplace_back(type).bytes, type.bytes());
  const PoolScope workers(walk.machine().runtime->pool());
  if (Status done = jit::run_routine(*routine, arguments, results); !done)
    walk.fail(done.error(), where);
  std::vector<ArrayValue> out;
  Device& device = home_device(walk.machine().runtime->devices());
  for (const jit::HostArray& result : results) {
    auto array = array_from_host(device, result.type.dtype,
                                 sizes_of(result.type), result.bytes.data());
    if (!array) walk.fail(array.error(), where);
    out.push_back(walk.from_array(std::move(*array)));
  }
  return out;
}

std::vector<ArrayValue> results_of(const RoutineCall& call,
                                   const std::vector<ArrayValue>& x) {
  const auto& [walk, routine, function, where] = call;
  std::vector<ir::Type> operands;
  for (const ArrayValue& operand : x) operands.push_back(operand->type);
  const ir::Dim smaller =
      walk.extreme_size(false, size_from_end(x[0], 2), size_from_end(x[0], 1));
  auto types = ir::routine_results(*routine, operands, smaller);
  if (!types) walk.fail(types.error(), where);
  for (const ir::Type& type : *types) walk.check_size(type, where);
  if (walk.mode() == Mode::check) return unknown_results(call, *types, x);
  if (walk.mode() == Mode::trace) {
    const ArrayValue node = walk.add(ir::Op::host_call, x,
                                     ir::routine_call(*routine, *types), where);
    return project_all(walk, node, types->size(), where);
  }
  if (!walk.machine().compile_only) return compute_now(call, *types, x);
  Device& device = home_device(walk.machine().runtime->devices());
  std::vector<ArrayValue> out;
  for (const ir::Type& type : *types)
    out.push_back(walk.from_array(
        Walk::absent(type.dtype, sizes_of(type), Sharding{-1, {&device}})));
  return out;
}

}  // namespace

Value builtin_lapack(CallOf<"lapack">& call) {
  const std::string name = str_argument(call["routine"]);
  const auto routine = ir::routine_from_name(name);
  const bool checks = name == "matrices" || name == "square" || name == "sides";
  if (!routine && !checks) no_such_routine(call["routine"]);
  std::string function(routine ? ir::row(*routine).function : "lapack");
  if (call["name"].given()) function = str_argument(call["name"]);
  const RoutineCall what{call.walk, routine, std::move(function), call.where};
  const size_t count = routine           ? ir::row(*routine).operands
                       : name == "sides" ? 2
                                         : 1;
  const bool square = routine ? ir::row(*routine).square : name == "square";
  const std::vector<ArrayValue> x = operands_of(what, call.rest, count, square);
  if (routine) check_derivative(what, x);
  const std::vector<ArrayValue> results = routine ? results_of(what, x) : x;
  if (results.size() == 1) return results[0];
  return make_tuple({results.begin(), results.end()});
}

}  // namespace unisono::lang
