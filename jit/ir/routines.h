#pragma once
// Routines: functions of the host that are linked in, as calls in graphs.
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jit/ir/graph.h"
#include "runtime/result.h"

namespace unisono::ir {

enum class Routine {
#define ROUTINE(name, ...) name,
#include "jit/ir/routines.def"
};

struct RoutineRow {
  std::string_view name, function;
  size_t operands;
  bool square;
};
const RoutineRow& row(Routine routine);
std::optional<Routine> routine_from_name(std::string_view name);

/// The attributes of a call of it: a host_call whose function has no number of
/// the host.
HostCallAttrs routine_call(Routine routine, std::vector<Type> results);
/// Whether that is what is called.
bool is_routine(const HostCallAttrs& call);
bool is_routine(const Node& node);

/// The types of the results: all of f32 or f64, in which operands agree, pivots
/// of i32. `smaller` is the smaller of a matrix's two sizes where symbols do
/// not tell which that is. An error says in one sentence what does not fit.
Result<std::vector<Type>> routine_results(Routine routine,
                                          std::span<const Type> operands,
                                          const Dim& smaller);

}  // namespace unisono::ir
