#include "jit/kernel/grid_schedule.h"

#include <algorithm>
#include <cstdlib>

#include "jit/ir/reduce_order.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

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
  if (nest.turns) return 1;
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
  const bool small =
      nest.points() < tuning().gpu_least_wide_map;  // threads are idle
  return (loads || stores) && !small ? width : 1;
}

/// An element that may fail is named by its place in the whole nest.
bool is_large_map(const Nest& nest) {
  return form_of(nest) == Form::map && !nest.turns &&
         nest.points() >= tuning().gpu_least_large_map &&
         tile_axis(nest, grid_tile / 2) < 0 &&
         std::none_of(
             nest.exprs.begin(), nest.exprs.end(),
             [](const Expr& expr) { return expr.checked; });
}

/// The axis along which loads of the same array reach to other rows, and into
/// how many rows a unit is best cut; -1 and 1 if there is none.
std::pair<int, int64_t> rows_of(const Nest& nest, int axis, int64_t width) {
  if (width == 1 || !is_large_map(nest) ||
      nest.exprs.size() > tuning().gpu_most_map_row_exprs)
    return {-1, 1};
  auto reaches = [&](const Expr& x, const Expr& y, int down) {
    if (x.kind != Expr::Kind::load || y.kind != Expr::Kind::load ||
        x.argument != y.argument || x.at.factors != y.at.factors ||
        x.at.factors[axis] != 1)
      return false;
    const int64_t stride = std::abs(x.at.factors[down]);
    const int64_t apart = std::abs(x.at.constant - y.at.constant);
    return stride > 4 * width && apart >= stride - width &&
           apart <= tuning().gpu_most_map_rows / 2 * stride;
  };
  for (int down = axis - 1; down >= 0; --down) {
    int64_t rows = tuning().gpu_most_map_rows;
    while (rows > 1 &&
           (nest.extents[down] < 4 * rows ||
            nest.points() / (width * rows) < tuning().gpu_busy_threads))
      rows /= 2;
    if (rows == 1) continue;
    for (const Expr& x : nest.exprs)
      for (const Expr& y : nest.exprs)
        if (reaches(x, y, down)) return {down, rows};
  }
  return {-1, 1};
}

constexpr int64_t most_units = int64_t{1} << 31;  // numbers have 32 bits

/// How many units of a map a thread does: more than one where each element
/// takes many operations, all lie along one axis, and enough threads are left.
int64_t turns_of(const Nest& nest, const Schedule& plan) {
  const bool full =
      plan.units * plan.block == nest.points() && plan.units == plan.blocks &&
      plan.units % (tuning().gpu_most_map_turns * grid_threads) == 0;
  if (plan.block == 1 || plan.rows > 1 || !is_large_map(nest) || !full ||
      plan.units / tuning().gpu_most_map_turns < tuning().gpu_busy_threads ||
      plan.units >= most_units)
    return 1;
  const auto operations =
      std::count_if(nest.exprs.begin(), nest.exprs.end(), [](const Expr& e) {
        return e.kind == Expr::Kind::operation && is_floating(e.dtype);
      });
  return operations >= tuning().gpu_many_map_operations
             ? tuning().gpu_most_map_turns
             : 1;
}

Workers reduction_workers(const Nest& nest) {
  const int64_t kept = nest.kept_points(), count = nest.points() / kept;
  const Reduction& reduction = nest.reductions[0];
  if (reduction.order == CombineOrder::lanes) {
    const bool unrolled = count <= tuning().gpu_most_unrolled_points &&
                          count * static_cast<int64_t>(nest.exprs.size()) <=
                              tuning().gpu_most_unrolled_exprs;
    return unrolled                         ? Workers::thread
           : count <= orders().reduce_chunk ? Workers::warp
                                            : Workers::block;
  }
  return reduction.order == CombineOrder::members &&
                 count >= tuning().gpu_least_block_leaves &&
                 kept < tuning().gpu_many_trees
             ? Workers::block
             : Workers::thread;
}

/// The size of squares: all that go through shared memory shall fit, and what
/// else is computed shall not take more registers than there are.
int64_t tile_of(const Nest& nest, int down, int along) {
  int64_t bytes = 0;
  for (const Expr& expr : nest.exprs)
    if (goes_through_square(expr, down, along))
      bytes +=
          16 + large_grid_tile * (large_grid_tile + 1) * byte_size(expr.dtype);
  const bool large = nest.points() >= tuning().gpu_least_large_tiles &&
                     nest.extents[down] >= large_grid_tile &&
                     nest.extents[along] >= large_grid_tile &&
                     bytes <= grid_shared_bytes &&
                     nest.exprs.size() <= tuning().gpu_most_large_tile_exprs;
  return large ? large_grid_tile : grid_tile;
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
                   : count <= std::min(tuning().gpu_most_warp_scan,
                                       orders().reduce_chunk) &&
                           nest.scan->part == Scan::Part::whole
                       ? Workers::warp
                       : Workers::block;
    if (nest.scan && nest.scan->part == Scan::Part::linked) {
      plan.blocks = ceil_div(count, orders().reduce_chunk);
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
      if (plan.form == Form::map) {
        const auto [down, many] = rows_of(nest, axis, plan.block);
        if (down >= 0 && nest.extents[down] % many == 0) {
          plan.rows_axis = down;
          plan.rows = many;
          plan.units /= many;
        }
        grid.turns = turns_of(nest, plan);
      }
    }
    if (plan.form == Form::columns && !nest.scan)
      grid.workers = reduction_workers(nest);
  }
  // A run of a column each.
  if (plan.form == Form::columns && nest.scan &&
      nest.scan->part != Scan::Part::whole)
    grid.repeats = ceil_div(nest.points() / rows, orders().reduce_run);
  if (nest.scatter && nest.scatter->part == Scatter::Part::sorted)
    grid.repeats = nest.points() / rows;
  switch (grid.workers) {
    case Workers::thread:
      grid.blocks =
          ceil_div(plan.units * grid.repeats, grid_threads * grid.turns);
      break;
    case Workers::warp: grid.blocks = ceil_div(plan.units, block_warps); break;
    case Workers::block: grid.blocks = plan.units; break;
  }
  return grid;
}

std::vector<Nest> cut_edges(Nest nest, const Kernel& kernel) {
  if (!is_large_map(nest) || nest.extents.size() < 2) return {std::move(nest)};
  const int axis = static_cast<int>(nest.extents.size()) - 1;
  const auto last = static_cast<size_t>(axis);
  const int64_t width = 16 / widest_bytes(nest, kernel, axis);
  const int64_t extent = nest.extents[last];
  if (extent < tuning().gpu_least_edged_units * width) return {std::move(nest)};
  // Where most accesses are aligned.
  auto aligned_from = [&](int64_t start) {
    auto is = [&](Affine at) {
      at.constant += start * at.factors[last];
      return aligned_along(at, axis, width);
    };
    return std::count_if(nest.exprs.begin(), nest.exprs.end(),
                         [&](const Expr& expr) {
                           return expr.kind == Expr::Kind::load && is(expr.at);
                         }) +
           4 * std::count_if(nest.stores.begin(), nest.stores.end(),
                             [&](const Store& store) { return is(store.at); });
  };
  int64_t start = 0;
  for (int64_t i = 1; i < width; ++i)
    if (aligned_from(i) > aligned_from(start)) start = i;
  if (aligned_from(start) == 0) return {std::move(nest)};
  std::vector<Nest> edges;
  auto cut = [&](size_t along, int64_t begin, int64_t size) {
    const int64_t all = nest.extents[along];
    if (begin) edges.push_back(part_of(nest, along, 0, begin));
    if (begin + size < all)
      edges.push_back(part_of(nest, along, begin + size, all - begin - size));
    if (size < all) nest = part_of(nest, along, begin, size);
  };
  cut(last, start, (extent - start) / width * width);
  if (const auto [down, rows] = rows_of(nest, axis, width); down >= 0) {
    const auto along = static_cast<size_t>(down);
    cut(along, 0, nest.extents[along] / rows * rows);
  }
  edges.insert(edges.begin(), std::move(nest));
  return edges;
}

}  // namespace unisono::jit
