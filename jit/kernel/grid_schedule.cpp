#include "jit/kernel/grid_schedule.h"

#include <algorithm>
#include <cstdlib>

#include "jit/ir/reduce_order.h"

namespace unisono::jit {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Points of a reduction that one thread takes at once, each with code of its
/// own; and what that code may come to.
constexpr int64_t most_unrolled = 16;
constexpr int64_t most_unrolled_exprs = 256;
/// Points of a scan that a warp holds in registers.
constexpr int64_t warp_scan = 512;
/// Leaves of a members tree from which on a block is better than a thread, if
/// there are fewer than `many_units` trees.
constexpr int64_t block_leaves = 64, many_units = 1 << 15;

/// Of the elements that change along the axis.
int widest_bytes(const Nest& nest, const Kernel& kernel, int axis) {
  int64_t widest = 1;
  auto see = [&](int argument) {
    widest = std::max(widest, byte_size(kernel.arguments[argument].dtype));
  };
  for (const Expr& expr : nest.exprs)
    if (expr.argument >= 0 &&
        (expr.at.factors[axis] != 0 || expr.kind == Expr::Kind::gather))
      see(expr.argument);
  for (const Store& store : nest.stores) see(store.argument);
  return static_cast<int>(widest);
}

/// Elements that a thread does so that its accesses are of 16 bytes; 1 where
/// none would be.
int64_t map_width(const Nest& nest, const Kernel& kernel, int axis) {
  if (axis < 0 || nest.turns) return 1;
  const int64_t width = 16 / widest_bytes(nest, kernel, axis);
  const int64_t extent = nest.extents[axis];
  const bool sole = extent == nest.points();
  if (extent < width || (!sole && extent % width)) return 1;
  auto wide = [&](const Affine& at) { return aligned_along(at, axis, width); };
  const bool loads =
      std::any_of(nest.exprs.begin(), nest.exprs.end(), [&](const Expr& expr) {
        return expr.kind == Expr::Kind::load && wide(expr.at);
      });
  const bool stores =
      std::any_of(nest.stores.begin(), nest.stores.end(),
                  [&](const Store& store) { return wide(store.at); });
  const bool small = nest.points() < int64_t{1} << 15;  // threads are idle
  return (loads || stores) && !small ? width : 1;
}

Workers reduction_workers(const Nest& nest) {
  const int64_t kept = nest.kept_points(), count = nest.points() / kept;
  const Reduction& reduction = nest.reductions[0];
  if (reduction.order == CombineOrder::lanes) {
    const bool unrolled =
        count <= most_unrolled &&
        count * static_cast<int64_t>(nest.exprs.size()) <= most_unrolled_exprs;
    return unrolled                ? Workers::thread
           : count <= reduce_chunk ? Workers::warp
                                   : Workers::block;
  }
  return reduction.order == CombineOrder::members && count >= block_leaves &&
                 kept < many_units
             ? Workers::block
             : Workers::thread;
}

/// Points from which on squares are large: each multiprocessor has some.
constexpr int64_t large_tile_points = int64_t{1} << 22;

/// The size of squares: all that go through shared memory shall fit, and what
/// else is computed shall not take more registers than there are.
int64_t tile_of(const Nest& nest, int down, int along) {
  int64_t bytes = 0;
  for (const Expr& expr : nest.exprs)
    if (goes_through_square(expr, down, along))
      bytes +=
          16 + large_grid_tile * (large_grid_tile + 1) * byte_size(expr.dtype);
  const bool large = nest.points() >= large_tile_points &&
                     nest.extents[down] >= large_grid_tile &&
                     nest.extents[along] >= large_grid_tile &&
                     bytes <= grid_shared_bytes && nest.exprs.size() <= 16;
  return large ? large_grid_tile : grid_tile;
}

/// Columns of a scan from which on a thread each is enough, and elements of one
/// that are worth a block.
constexpr int64_t enough_columns = 4096, long_column = 256;

Workers column_workers(const Nest& nest) {
  if (!nest.scan) return reduction_workers(nest);
  const int64_t kept = nest.kept_points(), count = nest.points() / kept;
  return kept < enough_columns && count >= long_column ? Workers::block
                                                       : Workers::thread;
}

}  // namespace

bool goes_through_square(const Expr& expr, int down, int along) {
  return expr.kind == Expr::Kind::load && expr.at.factors[down] == 1 &&
         std::abs(expr.at.factors[along]) > 1;
}

bool aligned_along(const Affine& at, int axis, int64_t width) {
  if (at.factors[axis] != 1 || at.constant % width) return false;
  for (size_t a = 0; a < at.factors.size(); ++a)
    if (static_cast<int>(a) != axis && at.factors[a] % width) return false;
  return true;
}

GridSchedule grid_schedule(const Nest& nest, const Kernel& kernel) {
  GridSchedule grid;
  Schedule& plan = grid.plan;
  plan.form = form_of(nest);
  int kept = 0;
  while (kept < static_cast<int>(nest.extents.size()) && !nest.reduced[kept])
    ++kept;
  int64_t rows = nest.kept_points();
  if (plan.form == Form::lanes || plan.form == Form::scan) {
    plan.units = rows;
    const int64_t count = nest.points() / rows;
    grid.workers = plan.form == Form::lanes ? reduction_workers(nest)
                   : count <= warp_scan && nest.scan->part == Scan::Part::whole
                       ? Workers::warp
                       : Workers::block;
    if (nest.scan && (nest.scan->part == Scan::Part::totals ||
                      nest.scan->part == Scan::Part::rest)) {
      plan.blocks = ceil_div(count, reduce_chunk);
      plan.units = rows * plan.blocks;
    }
  } else {
    plan.vector_axis = kept - 1;
    const int axis = plan.vector_axis;
    plan.tile_axis = plan.form == Form::map && !nest.turns
                         ? tile_axis(nest, grid_tile / 2)
                         : -1;
    if (plan.tile_axis >= 0) {
      plan.form = Form::tiles;
      plan.block = tile_of(nest, plan.tile_axis, axis);
      plan.blocks = ceil_div(nest.extents[axis], plan.block);
      plan.units = rows / nest.extents[axis] / nest.extents[plan.tile_axis] *
                   ceil_div(nest.extents[plan.tile_axis], plan.block) *
                   plan.blocks;
      grid.workers = Workers::block;
    } else if (axis >= 0) {
      const int64_t extent = nest.extents[axis];
      plan.block = plan.form == Form::map ? map_width(nest, kernel, axis) : 1;
      // What does not fill a unit is done by one thread an element.
      plan.blocks = extent / plan.block + extent % plan.block;
      plan.units = rows / extent * plan.blocks;
    }
    if (plan.form == Form::columns) grid.workers = column_workers(nest);
  }
  if (nest.scatter && nest.scatter->part == Scatter::Part::sorted)
    grid.repeats = nest.points() / rows;
  switch (grid.workers) {
    case Workers::thread:
      grid.blocks = ceil_div(plan.units * grid.repeats, grid_threads);
      break;
    case Workers::warp: grid.blocks = ceil_div(plan.units, block_warps); break;
    case Workers::block: grid.blocks = plan.units; break;
  }
  return grid;
}

}  // namespace unisono::jit
