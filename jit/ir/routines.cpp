#include "jit/ir/routines.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/check.h"

namespace unisono::ir {
namespace {

constexpr RoutineRow rows[] = {
#define ROUTINE(name, function, operands, square, help) \
  {#name, #function, operands, square},
#include "jit/ir/routines.def"
};

/// The number of a call that is no function of the host's own.
constexpr int64_t linked_in = -1;

Error wrong(std::string what) {
  return {.kind = Error::Kind::compile_failed, .message = std::move(what)};
}

Dim smaller_of(const Dim& m, const Dim& n, const Dim& unknown) {
  if (m == n) return m;
  if (!m.is_constant() || !n.is_constant()) return unknown;
  return std::min(m.value(), n.value());
}

}  // namespace

const RoutineRow& row(Routine routine) {
  return rows[static_cast<size_t>(routine)];
}

std::optional<Routine> routine_from_name(std::string_view name) {
  const auto* found = std::ranges::find(rows, name, &RoutineRow::name);
  if (found == std::end(rows)) return std::nullopt;
  return static_cast<Routine>(found - std::begin(rows));
}

HostCallAttrs routine_call(Routine routine, std::vector<Type> results) {
  HostCallAttrs call;
  call.function = row(routine).name;
  call.number = linked_in;
  call.results = std::move(results);
  call.pure = true;
  return call;
}

bool is_routine(const HostCallAttrs& call) {
  return call.number == linked_in && !call.function.empty();
}

bool is_routine(const Node& node) {
  const auto* call = std::get_if<HostCallAttrs>(&node.attrs);
  return call && is_routine(*call);
}

Result<std::vector<Type>> routine_results(Routine routine,
                                          std::span<const Type> operands,
                                          const Dim& smaller) {
  const RoutineRow& known = row(routine);
  if (operands.size() != known.operands)
    return wrong(fmt::format("{} operands", operands.size()));
  const Type& a = operands[0];
  const int rank = a.rank();
  for (const Type& operand : operands) {
    if (operand.dtype != a.dtype ||
        (a.dtype != DType::F32 && a.dtype != DType::F64))
      return wrong("operands are f32, or all f64");
    if (operand.rank() < 2) return wrong("an operand is no matrix");
    if (!std::equal(operand.shape.begin(), operand.shape.end() - 2,
                    a.shape.begin(), a.shape.end() - 2))
      return wrong("the axes before the matrices differ");
  }
  const Dim m = a.shape[rank - 2], n = a.shape[rank - 1];
  if (known.square && !(m == n)) return wrong("the matrix is not square");
  if (operands.size() == 2 && !(operands[1].shape[rank - 2] == n))
    return wrong("the right side has another number of rows");

  const auto of = [&](std::vector<Dim> sizes, DType dtype) {
    Type type{dtype, {a.shape.begin(), a.shape.end() - 2}};
    type.shape.insert(type.shape.end(), sizes.begin(), sizes.end());
    return type;
  };
  const auto like_a = [&](std::vector<Dim> sizes) {
    return of(sizes, a.dtype);
  };
  const Dim k = smaller_of(m, n, smaller);
  using Types = std::vector<Type>;
  switch (routine) {
    case Routine::cholesky:
    case Routine::inv: return Types{a};
    case Routine::lu: return Types{a, of({n}, DType::I32)};
    case Routine::solve:
    case Routine::solve_lower:
    case Routine::solve_upper: return Types{operands[1]};
    case Routine::qr: return Types{like_a({m, k}), like_a({k, n})};
    case Routine::qr_complete: return Types{like_a({m, m}), a};
    case Routine::eigh: return Types{like_a({n}), a};
    case Routine::eigvalsh: return Types{like_a({n})};
    case Routine::svd:
      return Types{like_a({m, k}), like_a({k}), like_a({k, n})};
    case Routine::svd_complete:
      return Types{like_a({m, m}), like_a({k}), like_a({n, n})};
    case Routine::svdvals: return Types{like_a({k})};
  }
  __builtin_unreachable();
}

}  // namespace unisono::ir
