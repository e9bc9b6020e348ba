#include "jit/kernel/schedule.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "jit/ir/reduce_order.h"
#include "jit/kernel/group.h"
#include "jit/kernel/row_sums.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

/// Removes an axis of the nest; its index is 0.
void drop_axis(Nest& nest, size_t axis) {
  auto at = static_cast<ptrdiff_t>(axis);
  nest.extents.erase(nest.extents.begin() + at);
  nest.reduced.erase(nest.reduced.begin() + at);
  for_each_affine(nest, [&](Affine& affine) {
    affine.factors.erase(affine.factors.begin() + at);
  });
}

/// The kept axes first; both kinds in their order.
void kept_first(Nest& nest) {
  std::vector<size_t> order;
  for (bool reduced : {false, true})
    for (size_t a = 0; a < nest.extents.size(); ++a)
      if (nest.reduced[a] == reduced) order.push_back(a);
  auto permute = [&](const auto& from) {
    auto out = from;
    for (size_t a = 0; a < order.size(); ++a) out[a] = from[order[a]];
    return out;
  };
  nest.extents = permute(nest.extents);
  nest.reduced = permute(nest.reduced);
  for_each_affine(nest, [&](Affine& at) { at.factors = permute(at.factors); });
}

/// The axis and the next are one axis to everything that the nest does.
bool joins_next(Nest& nest, size_t axis) {
  if (nest.reduced[axis] != nest.reduced[axis + 1]) return false;
  bool joins = true;
  for_each_affine(nest, [&](const Affine& at) {
    joins = joins &&
            at.factors[axis] == at.factors[axis + 1] * nest.extents[axis + 1];
  });
  return joins;
}

}  // namespace

void merge_axes(Nest& nest) {
  for (size_t a = nest.extents.size(); a-- > 0;)
    if (nest.extents[a] == 1) drop_axis(nest, a);
  kept_first(nest);
  for (size_t a = nest.extents.size(); a-- > 1;) {
    if (!joins_next(nest, a - 1)) continue;
    nest.extents[a] *= nest.extents[a - 1];
    drop_axis(nest, a - 1);
  }
}

bool may_overwrite(const Kernel& kernel, int read, int written) {
  if (kernel.nests.size() != 1) return false;
  if (byte_size(kernel.arguments[read].dtype) !=
      byte_size(kernel.arguments[written].dtype))
    return false;
  const Nest& nest = kernel.nests[0];
  if (nest.scatter || nest.scan) return false;
  const Store* store = nullptr;
  for (const Store& s : nest.stores) {
    if (s.argument != written) continue;
    if (store) return false;
    store = &s;
  }
  if (!store) return false;
  // A point that is visited again, or late, would read what was written.
  const std::vector<bool> inner = inner_expressions(nest);
  const int phase = nest.exprs[store->value].phase;
  if (!nest.reductions.empty() && !is_inner_store(nest, inner, *store))
    return false;
  for (const Reduction& reduction : nest.reductions)
    if (reduction.phase > phase) return false;
  for (const Store& s : nest.stores)
    if (nest.exprs[s.value].phase > phase) return false;
  for (const Expr& expr : nest.exprs) {
    if (expr.argument != read) continue;
    if (expr.kind != Expr::Kind::load || expr.at != store->at) return false;
  }
  return true;
}

bool may_share(const Kernel& kernel, int early, int late) {
  if (kernel.nests.size() != 1 || byte_size(kernel.arguments[early].dtype) !=
                                      byte_size(kernel.arguments[late].dtype))
    return false;
  const Nest& nest = kernel.nests[0];
  const Store *first = nullptr, *second = nullptr;
  for (const Store& store : nest.stores) {
    if (store.argument == early) first = &store;
    if (store.argument == late) second = &store;
  }
  if (!first || !second || first->at != second->at) return false;
  const int phase = nest.exprs[second->value].phase;
  if (phase <= nest.exprs[first->value].phase) return false;
  for (const Expr& expr : nest.exprs)
    if ((expr.argument == early &&
         (expr.at != first->at || expr.phase > phase)) ||
        expr.argument == late)
      return false;
  // A loop after that which stores `late` may load `early` once more.
  for (const Store& store : nest.stores)
    if (nest.exprs[store.value].phase > phase) return false;
  for (const Reduction& reduction : nest.reductions)
    if (reduction.phase > phase) return false;
  return true;
}

namespace {

struct Work {
  int64_t flops = 0, bytes = 0;  // of one point
  int widest = 1;                // bytes of the widest element of a lane
  bool narrow = false;           // touches elements of 1 or 2 bytes
};

/// For each expression, whether it changes from point to point: others, such as
/// the position of a row that a loop reads, are computed once, not by lanes.
std::vector<bool> expressions_of_points(const Nest& nest) {
  std::vector<bool> out(nest.exprs.size());
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    const Expr& expr = nest.exprs[e];
    out[e] = expr.kind == Expr::Kind::reduced ||
             expr.kind == Expr::Kind::carried ||
             expr.kind == Expr::Kind::turned ||
             std::ranges::any_of(expr.at.factors,
                                 [](int64_t factor) { return factor != 0; }) ||
             std::ranges::any_of(expr.operands,
                                 [&](ExprId operand) { return out[operand]; });
  }
  return out;
}

Work work_of(const Nest& nest, const Kernel& kernel) {
  Work work;
  const std::vector<bool> by_point = expressions_of_points(nest);
  auto access = [&](int argument, bool of_lane) {
    const int size =
        static_cast<int>(byte_size(kernel.arguments[argument].dtype));
    work.bytes += size;
    if (of_lane) work.widest = std::max(work.widest, size);
    work.narrow = work.narrow || size < 4;
  };
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    const Expr& expr = nest.exprs[e];
    if (expr.argument >= 0) access(expr.argument, by_point[e]);
    if (expr.kind == Expr::Kind::operation) work.flops += flops(expr.op);
    if (by_point[e])
      work.widest =
          std::max(work.widest, static_cast<int>(byte_size(expr.dtype)));
  }
  for (const Store& store : nest.stores) access(store.argument, true);
  if (nest.scan) access(nest.scan->argument, true);
  if (nest.scatter) access(nest.scatter->argument, true);
  for (const Reduction& reduction : nest.reductions)
    work.widest =
        std::max(work.widest, static_cast<int>(byte_size(reduction.dtype)));
  work.flops += static_cast<int64_t>(nest.reductions.size());
  return work;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

constexpr int64_t cache_line = 64;  // bytes

bool is_product(const Nest& nest) {
  return !nest.reductions.empty() &&
         nest.reductions[0].kind == Reduction::Kind::dot;
}

/// Elements that are loaded of each lane at once where lanes of a product lie
/// along `axis`: a cache line of them, so that it need not stay in the cache;
/// 0 where the last axis, which is reduced, does not have so many together.
int64_t square_size(const Nest& nest, const Work& work) {
  const size_t last = nest.extents.size() - 1;
  const int64_t line = cache_line / work.widest;
  const bool alone = last == 0 || !nest.reduced[last - 1];
  const bool fits =
      alone ? nest.extents[last] >= line : nest.extents[last] % line == 0;
  return fits ? line : 0;
}

bool is_squared(const Expr& load, int axis) {
  const int64_t across = load.at.factors[axis];
  return across != 0 && across != 1 && load.at.factors.back() == 1;
}

/// What the loads of a vector cost that has `lanes` lanes along `axis`, each.
double load_cost(const Nest& nest, const Work& work, int axis, int64_t lanes) {
  const bool squares = square_size(nest, work) > 0;
  double cost = 1;  // of the fma
  for (const Expr& expr : nest.exprs) {
    if (expr.kind != Expr::Kind::load) continue;
    const bool regular = std::abs(expr.at.factors[axis]) <= 1;
    cost += regular ? 1
            : squares && is_squared(expr, axis)
                ? 2.5
                : 2 * static_cast<double>(lanes);
  }
  return cost / static_cast<double>(lanes);
}

/// How the columns of a product are done; `axis` is the vectors'.
void schedule_product(const Nest& nest, const Work& work, Schedule& plan) {
  const int axis = plan.vector_axis;
  const auto loads = [&](auto&& what) {
    return std::any_of(nest.exprs.begin(), nest.exprs.end(),
                       [&](const Expr& expr) {
                         return expr.kind == Expr::Kind::load && what(expr);
                       });
  };
  const int64_t extent = nest.extents[axis];
  const int64_t rows = nest.points() / nest.kept_points();
  if (plan.lanes == 1) return;
  const auto squared = std::count_if(
      nest.exprs.begin(), nest.exprs.end(), [&](const Expr& expr) {
        return expr.kind == Expr::Kind::load && is_squared(expr, axis);
      });
  if (squared > 0) {
    plan.square = square_size(nest, work);
    while (plan.lanes * squared > tuning().most_product_lines && plan.lanes > 2)
      plan.lanes /= 2;
    plan.block = plan.lanes;
    return;
  }
  const bool along_rows = !loads([&](const Expr& e) {
    return e.at.factors[axis] != 0 && e.at.factors[axis] != 1;
  });
  if (!along_rows || extent <= plan.lanes ||
      nest.points() < tuning().least_wide_points)
    return;
  if (extent <= tuning().most_sum_vectors * plan.lanes &&
      std::has_single_bit(static_cast<uint64_t>(extent))) {
    plan.lanes = static_cast<int>(extent);  // a row, all in registers
    plan.block = extent;
  } else if (!plan.scalar_tails && rows >= tuning().wide_unit_rows &&
             rows <= orders().dot_chain) {
    plan.rows_at_once = tuning().wide_unit_rows;
    // In several units, for several threads, but short pieces of rows are read
    // more slowly than long ones.
    int64_t bytes = tuning().wide_unit_bytes;
    const auto units = [&] {
      return ceil_div(extent, bytes / work.widest) * nest.kept_points() /
             extent;
    };
    while (nest.points() >= tuning().least_shared_points &&
           ((units() < 2 && bytes > tuning().wide_unit_two_bytes) ||
            (units() < 4 && bytes > tuning().wide_unit_four_bytes)))
      bytes /= 2;
    plan.block = ceil_div(std::min(bytes / work.widest, extent), plan.lanes) *
                 plan.lanes;
  }
}

/// How columns are done that add whole rows.
void schedule_rows(const Nest& nest, const Work& work, int64_t native,
                   Schedule& plan) {
  const int64_t extent = nest.extents[plan.vector_axis];
  if (plan.form != Form::columns || plan.scalar_tails ||
      extent <= tuning().most_sum_vectors * native)
    return;
  plan.rows_at_once = rows_at_once(nest);
  if (plan.rows_at_once == 0) return;
  // Of up to two sums in their full width, else together as much memory.
  const auto sums = static_cast<int64_t>(nest.reductions.size());
  const int64_t bytes =
      std::min(tuning().wide_unit_bytes, 2 * tuning().wide_unit_bytes / sums);
  plan.lanes = static_cast<int>(native);
  plan.block = ceil_div(std::min(bytes / work.widest, extent), native) * native;
}

/// Rows and columns of a square of elements that is transposed in registers.
int64_t tile_size(const Work& work, const Machine& machine) {
  return std::min(machine.vector_bytes / work.widest, 16);
}

/// Bytes of the widest element that differs from lane to lane.
int widest_lane(const Nest& nest, int axis) {
  const std::vector<bool> varying = varying_expressions(nest, axis);
  int64_t widest = 1;
  for (size_t e = 0; e < nest.exprs.size(); ++e)
    if (varying[e]) widest = std::max(widest, byte_size(nest.exprs[e].dtype));
  return static_cast<int>(widest);
}

/// Whether a scan stores its groups at multiples of 64 bytes.
bool scan_aligned(const Nest& nest, const Kernel& kernel) {
  const Scan& scan = *nest.scan;
  const int64_t size = byte_size(kernel.arguments[scan.argument].dtype);
  const size_t last = nest.extents.size() - 1;
  if ((scan_lanes * size) % 64 || (scan.at.constant * size) % 64 ||
      scan.at.factors[last] != 1)
    return false;
  return std::all_of(scan.at.factors.begin(), scan.at.factors.begin() + last,
                     [&](int64_t factor) { return factor * size % 64 == 0; });
}

/// Whether all stores to `nest` are vectors at multiples of 64 bytes.
bool stores_aligned(const Nest& nest, const Kernel& kernel,
                    const Schedule& plan) {
  if (nest.scan) return scan_aligned(nest, kernel);
  return std::all_of(
      nest.stores.begin(), nest.stores.end(), [&](const Store& store) {
        const int64_t size = byte_size(kernel.arguments[store.argument].dtype);
        if ((plan.lanes * size) % 64 || (store.at.constant * size) % 64)
          return false;
        for (size_t a = 0; a < nest.extents.size(); ++a) {
          const int64_t factor = store.at.factors[a];
          const bool along = static_cast<int>(a) == plan.vector_axis;
          if (along ? factor != 1 : (factor * size) % 64 != 0) return false;
        }
        return true;
      });
}

}  // namespace

int tile_axis(const Nest& nest, int64_t size) {
  if (!nest.reductions.empty() || nest.scan || nest.scatter || nest.turns)
    return -1;
  const size_t last = nest.extents.size() - 1;
  if (nest.extents.size() < 2 || nest.extents[last] < size) return -1;
  for (const Expr& expr : nest.exprs) {
    const auto& factors = expr.at.factors;
    if (expr.kind != Expr::Kind::load || std::abs(factors[last]) <= 1) continue;
    for (size_t a = 0; a < last; ++a)
      if (factors[a] == 1 && nest.extents[a] >= size)
        return static_cast<int>(a);
  }
  return -1;
}

Form form_of(const Nest& nest) {
  if (nest.scan) return nest.scan->contiguous ? Form::scan : Form::columns;
  if (nest.scatter) return Form::scatter;
  if (nest.reductions.empty()) return Form::map;
  return nest.reductions[0].order == CombineOrder::lanes ? Form::lanes
                                                         : Form::columns;
}

std::vector<Nest> cut_tiles(Nest nest, const Kernel& kernel,
                            const Machine& machine) {
  const int64_t size = tile_size(work_of(nest, kernel), machine);
  const int axis = tile_axis(nest, size);
  if (axis < 0) return {nest};
  std::vector<Nest> out;
  for (size_t a : {static_cast<size_t>(axis), nest.extents.size() - 1}) {
    const int64_t extent = nest.extents[a], rest = extent % size;
    if (rest == 0) continue;
    out.push_back(part_of(nest, a, extent - rest, rest));
    nest = part_of(nest, a, 0, extent - rest);
  }
  out.insert(out.begin(), nest);
  return out;
}

void choose_vector_axis(Nest& nest, const Kernel& kernel,
                        const Machine& machine) {
  if (!is_product(nest)) return;
  const Work work = work_of(nest, kernel);
  const int64_t native = std::max(machine.vector_bytes / work.widest, 1);
  int best = -1;
  double least = 0;
  for (int a = static_cast<int>(nest.extents.size()); a-- > 0;) {
    if (nest.reduced[a]) continue;
    const double cost =
        load_cost(nest, work, a, std::min(native, nest.extents[a]));
    if (best >= 0 && cost >= least) continue;
    best = a;
    least = cost;
  }
  int last = static_cast<int>(nest.extents.size()) - 1;
  while (last >= 0 && nest.reduced[last]) --last;
  for (; best >= 0 && best < last; ++best) {
    std::swap(nest.extents[best], nest.extents[best + 1]);
    for_each_affine(nest, [&](Affine& at) {
      std::swap(at.factors[best], at.factors[best + 1]);
    });
  }
}

namespace {

bool holds_arrays(const Nest& nest) {
  bool found = false;
  for_each_turns(nest, [&](const Turns& turns) {
    for (const Turns::Put& put : turns.puts) found = found || put.held;
  });
  return found;
}

int64_t stored_bytes(const Nest& nest, const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Store& store : nest.stores)
    bytes += nest.points() * byte_size(kernel.arguments[store.argument].dtype);
  if (nest.scan)
    bytes +=
        nest.points() * byte_size(kernel.arguments[nest.scan->argument].dtype);
  return bytes;
}

}  // namespace

int64_t stored_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Nest& nest : kernel.nests) bytes += stored_bytes(nest, kernel);
  return bytes;
}

Schedule schedule(const Nest& nest, const Kernel& kernel,
                  const Machine& machine) {
  Schedule plan;
  plan.form = form_of(nest);
  const Work work = work_of(nest, kernel);
  plan.scalar_tails = work.narrow && !machine.masked_bytes;
  int kept = 0;
  while (kept < static_cast<int>(nest.extents.size()) && !nest.reduced[kept])
    ++kept;
  if (plan.form != Form::lanes && plan.form != Form::scan)
    plan.vector_axis = kept - 1;
  const int64_t native = std::max(machine.vector_bytes / work.widest, 1);
  int64_t rows = nest.kept_points();
  if (plan.form == Form::lanes || plan.form == Form::scan) {
    plan.lanes = static_cast<int>(native);
    plan.units = rows;
  } else if (plan.vector_axis < 0) {
    plan.units = 1;
  } else if (nest.turns && holds_arrays(nest)) {
    // Each point writes where it likes.
    plan.lanes = 1;
    plan.block = 1;
    plan.blocks = nest.extents[plan.vector_axis];
    plan.units = rows;
  } else if (nest.turns) {
    // A turn waits for the one before; twice a vector hides half of that.
    const int64_t extent = nest.extents[plan.vector_axis];
    const int64_t wide =
        2 *
        std::max(machine.vector_bytes / widest_lane(nest, plan.vector_axis), 1);
    plan.lanes = static_cast<int>(std::min<int64_t>(
        wide,
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)))));
    plan.block = plan.lanes;
    plan.blocks = ceil_div(extent, plan.block);
    plan.units = rows / extent * plan.blocks;
  } else if (int64_t size = tile_size(work, machine);
             plan.form == Form::map && tile_axis(nest, size) >= 0 &&
             nest.extents[tile_axis(nest, size)] % size == 0 &&
             nest.extents[plan.vector_axis] % size == 0) {
    plan.form = Form::tiles;
    plan.tile_axis = tile_axis(nest, size);
    plan.lanes = static_cast<int>(size);
    plan.block = tuning().tiled_block;
    const int64_t extent = nest.extents[plan.vector_axis];
    const int64_t across = nest.extents[plan.tile_axis];
    plan.blocks = ceil_div(extent, tuning().tiled_block);
    rows = rows / extent / across * ceil_div(across, tuning().tiled_block);
    plan.units = rows * plan.blocks;
  } else {
    const int64_t extent = nest.extents[plan.vector_axis];
    // Interleaving pays where the loop runs long, and costs compile time: of
    // elements that the caches hold two vectors hide what it costs to loop.
    const int64_t points = nest.points();
    const bool small_map =
        plan.form == Form::map && points < tuning().least_large_map;
    const int64_t interleaved = points < tuning().least_medium_map     ? 1
                                : work.flops <= tuning().few_map_flops ? 4
                                : work.flops <= tuning().medium_map_flops
                                    ? (small_map ? 2 : 4)
                                : points >= tuning().least_large_map ? 2
                                                                     : 1;
    const int64_t wide = native * (is_product(nest) ? 1 : interleaved);
    plan.lanes = static_cast<int>(std::min<int64_t>(
        wide,
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)))));
    const int64_t target = plan.form == Form::map
                               ? tuning().map_unit_bytes / work.widest
                               : plan.lanes;
    plan.block =
        extent < 2 * target && plan.form == Form::map ? extent : target;
    if (is_product(nest))
      schedule_product(nest, work, plan);
    else
      schedule_rows(nest, work, native, plan);
    plan.blocks = ceil_div(extent, plan.block);
    rows /= extent;
    plan.units = rows * plan.blocks;
  }
  // About 20 microseconds of work are worth another worker.
  double turns = nest.turns ? times_taken(nest, -1, tuning().unknown_turns) : 1;
  for (size_t i = 0; i < nest.inner.size(); ++i)
    turns = std::max(
        turns, times_taken(nest, static_cast<int>(i), tuning().unknown_turns));
  const double nanoseconds = turns *
                             (static_cast<double>(work.bytes) / 12 +
                              static_cast<double>(work.flops) * .03) *
                             static_cast<double>(nest.points()) /
                             static_cast<double>(plan.units);
  plan.grain = std::max<int64_t>(
      1, static_cast<int64_t>(tuning().worker_nanoseconds / (nanoseconds + 2)));
  plan.all_masked =
      machine.masked_bytes && nest.points() < tuning().least_large_map;
  plan.streaming = (plan.form == Form::map || plan.form == Form::tiles ||
                    plan.form == Form::scan) &&
                   !nest.turns &&
                   stored_bytes(kernel) >= machine.last_level_cache / 2 &&
                   stores_aligned(nest, kernel, plan);
  return plan;
}

}  // namespace unisono::jit
