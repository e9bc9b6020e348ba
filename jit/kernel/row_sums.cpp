#include "jit/kernel/row_sums.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

/// The axis along which vectors will lie; -1 if all are reduced.
int last_kept(const Nest& nest) {
  int axis = static_cast<int>(nest.extents.size()) - 1;
  while (axis >= 0 && nest.reduced[axis]) --axis;
  return axis;
}

int64_t rows_of(const Nest& nest) { return nest.points() / nest.kept_points(); }

/// Bytes of a row in all arrays that the nest touches along it.
int64_t row_bytes(const Nest& nest, const Kernel& kernel) {
  std::vector<bool> seen(kernel.arguments.size());
  int64_t bytes = 0;
  const auto touch = [&](int argument) {
    if (seen[argument]) return;
    seen[argument] = true;
    bytes += rows_of(nest) * byte_size(kernel.arguments[argument].dtype);
  };
  for (const Expr& expr : nest.exprs)
    if (expr.argument >= 0) touch(expr.argument);
  for (const Store& store : nest.stores) touch(store.argument);
  return bytes;
}

/// Whether all elements that `at` touches of a row lie in the row's own part of
/// an array, in which rows are `stride` apart; `row` is the row's axis.
bool is_within_row(const Nest& nest, const Affine& at, size_t row,
                   int64_t stride) {
  int64_t span = at.constant;
  if (at.constant < 0) return false;
  for (size_t a = row; a < nest.extents.size(); ++a) {
    if (at.factors[a] < 0) return false;
    if (a != row) span += at.factors[a] * (nest.extents[a] - 1);
  }
  return span < stride;
}

/// Whether what `sums`, which can_add_rows, loads of what `rows` stores is of
/// the row being added, and otherwise neither touches what the other writes.
bool reads_own_rows(const Nest& rows, const Nest& sums) {
  for (const Store& store : rows.stores) {
    for (const Store& sum : sums.stores)
      if (sum.argument == store.argument) return false;
    for (const Expr& expr : sums.exprs) {
      if (expr.argument != store.argument) continue;
      const int64_t stride = store.at.factors[0];
      // Its axes are runs, columns, rows of the run.
      Affine column = expr.at;
      column.factors[0] = 0;
      column.factors[2] = 0;
      if (stride <= 0 || expr.at.factors[2] != stride ||
          expr.at.factors[0] != stride * orders().reduce_run ||
          !is_within_row(rows, store.at, 0, stride) ||
          !is_within_row(sums, column, 0, stride))
        return false;
    }
  }
  for (const Store& sum : sums.stores)
    for (const Expr& expr : rows.exprs)
      if (expr.argument == sum.argument) return false;
  return true;
}

}  // namespace

bool may_add_rows(CombineOrder order, int64_t points) {
  return order == CombineOrder::runs && points >= tuning().least_rows_points;
}

bool can_add_rows(const Nest& nest) {
  const int axis = last_kept(nest);
  if (axis < 0 || nest.reductions.empty() || nest.scan || nest.scatter ||
      nest.turns || goes_again(nest))
    return false;
  for (const Reduction& reduction : nest.reductions)
    if (reduction.kind != Reduction::Kind::combine ||
        reduction.order != CombineOrder::runs || reduction.dtype == DType::Bool)
      return false;
  const auto is_regular = [&](const Affine& at) {
    return at.factors[axis] == 0 || at.factors[axis] == 1;
  };
  for (const Expr& expr : nest.exprs) {
    if (expr.checked) return false;
    if (expr.kind == Expr::Kind::gather ||
        (expr.kind == Expr::Kind::load && !is_regular(expr.at)))
      return false;
  }
  return std::ranges::all_of(
      nest.stores, [&](const Store& store) { return is_regular(store.at); });
}

int64_t rows_at_once(const Nest& nest) {
  const int64_t rows = rows_of(nest);
  if (rows > orders().reduce_run ||
      nest.points() < tuning().least_rows_points || !can_add_rows(nest))
    return 0;
  const auto exprs = static_cast<uint64_t>(nest.exprs.size());
  const auto fit = std::bit_floor(
      std::clamp<uint64_t>(tuning().most_rows_exprs / exprs, 1,
                           static_cast<uint64_t>(tuning().most_rows_at_once)));
  return std::min(rows, static_cast<int64_t>(fit));
}

std::optional<Kernel> split_rows(
    Kernel& kernel, const Machine& machine,
    const std::function<int32_t(DType, int64_t elements)>& add_buffer) {
  if (kernel.nests.size() != 1) return std::nullopt;
  Nest merged = kernel.nests[0];
  merge_axes(merged);
  if (!can_add_rows(merged)) return std::nullopt;
  Machine always = machine;
  always.runs = {std::numeric_limits<int64_t>::max(), 2 * orders().reduce_run,
                 tuning().least_rows_split};
  return split_stages(kernel, always, add_buffer);
}

std::optional<RowsAndSums> rows_and_sums(const Kernel& kernel,
                                         const Machine& machine) {
  if (kernel.nests.size() != 2) return std::nullopt;
  RowsAndSums out{kernel.nests[0], kernel.nests[1], {}, {}};
  Nest &rows = out.rows, &sums = out.sums;
  merge_axes(rows);
  merge_axes(sums);
  const auto kept = std::ranges::count(rows.reduced, false);
  const std::vector<bool> run_of_rows = {false, false, true};
  if (rows.reductions.empty() || form_of(rows) != Form::lanes || kept != 1 ||
      sums.reduced != run_of_rows || sums.extents[2] != orders().reduce_run ||
      sums.extents[0] < tuning().least_rows_runs ||
      rows.extents[0] != sums.extents[0] * orders().reduce_run ||
      !can_add_rows(sums) || !reads_own_rows(rows, sums))
    return std::nullopt;
  out.rows_plan = schedule(rows, kernel, machine);
  Schedule& plan = out.sums_plan = schedule(sums, kernel, machine);
  if (plan.rows_at_once == 0) return std::nullopt;
  int64_t bytes = 0;
  for (const Reduction& reduction : sums.reductions)
    bytes += sums.extents[1] * byte_size(reduction.dtype);
  if (bytes > tuning().most_rows_sums) return std::nullopt;
  // A unit has all columns.
  plan.block = (sums.extents[1] + plan.lanes - 1) / plan.lanes * plan.lanes;
  plan.blocks = 1;
  plan.units = sums.extents[0];
  plan.grain = std::max<int64_t>(
      1, std::min(plan.grain, out.rows_plan.grain / orders().reduce_run));
  const int64_t row = row_bytes(rows, kernel);
  while (plan.rows_at_once > 1 &&
         plan.rows_at_once * row > tuning().most_rows_cached)
    plan.rows_at_once /= 2;
  return out;
}

}  // namespace unisono::jit
