// Rows in shared memory. Where several loops go over the same row (softmax,
// layer norm), each element that a later one needs again is kept there, so that
// it is loaded, and an exponential computed, once: all threads do the row with
// wide accesses (fill_rows), then chunks are combined from what they left. What
// does not fit is loaded and computed again.
#include <algorithm>

#include "jit/emit/grid_nest.h"
#include "jit/kernel/group.h"

namespace unisono::jit {

using llvm::Value;

namespace {

/// Bytes of shared memory for rows; the members tree has the rest.
constexpr int64_t most_row_bytes = 44 << 10;
/// Elements of a row that are worth it where a warp does a row.
constexpr int64_t shortest_warp_row = 512;
/// Flops from which on a value is kept rather than computed again.
constexpr int kept_flops = 6;

bool is_memory_access(const Expr& expr) {
  return expr.kind == Expr::Kind::load || expr.kind == Expr::Kind::gather;
}

}  // namespace

/// Elements that may fail are computed once, so there is no going over them
/// here and there.
bool GridEmitter::keeps_rows() const {
  for (size_t e = 0; e < nest_.exprs.size(); ++e)
    if (inner_[e] && nest_.exprs[e].checked) return false;
  switch (schedule_.workers) {
    case Workers::thread: return false;
    case Workers::warp: return reduced_points() >= shortest_warp_row;
    case Workers::block: return true;
  }
  __builtin_unreachable();
}

/// What the loop computes where elements of rows are read: of those that are
/// filled or, `from_fresh`, of all.
std::vector<bool> GridEmitter::needed_of(const Loop& loop, bool with_stores,
                                         bool from_fresh) const {
  std::vector<bool> needed(nest_.exprs.size());
  for (int r : loop.reductions) {
    const Reduction& reduction = nest_.reductions[r];
    needed[reduction.operand] = true;
    if (reduction.second >= 0) needed[reduction.second] = true;
  }
  if (with_stores)
    for (int s : loop.stores) needed[nest_.stores[s].value] = true;
  for (size_t e = needed.size(); e-- > 0;) {
    if (!needed[e] || (rows_[e].place >= 0 && (rows_[e].filled || from_fresh)))
      continue;
    for (ExprId operand : nest_.exprs[e].operands) needed[operand] = true;
  }
  return needed;
}

bool GridEmitter::is_read_later(size_t e, const Loop& loop) const {
  int last = 0;
  for (const Expr& expr : nest_.exprs) last = std::max(last, expr.phase);
  for (int phase = loop.phase + 1; phase <= last; ++phase)
    if (needed_of(loop_of_phase(phase), true, true)[e]) return true;
  return false;
}

/// Makes a place for a row, if there is one: that of a row which nobody reads
/// once this one is there, or a new one.
bool GridEmitter::keep_row(size_t e, const Loop& loop) {
  const int64_t bytes = byte_size(nest_.exprs[e].dtype);
  const int64_t lines =
      schedule_.workers == Workers::warp ? int64_t{block_warps} : 1;
  const int64_t size = (bytes * lines * reduced_points() + 15) / 16 * 16;
  rows_[e] = {row_bytes_, bytes, false};
  const std::vector<bool> reads = needed_of(loop, false, true);
  for (size_t old = 0; old < rows_.size(); ++old) {
    const Row row = rows_[old];
    if (!row.filled || row.bytes != bytes || reads[old] ||
        is_read_later(old, loop))
      continue;
    const auto users = std::ranges::count(rows_, row.place, &Row::place);
    if (users > 1) continue;
    rows_[e].place = row.place;
    return true;
  }
  if (row_bytes_ + size > most_row_bytes) {
    rows_[e] = {};
    return false;
  }
  row_bytes_ += size;
  grid_.shared_bytes = std::max(grid_.shared_bytes, row_bytes_);
  return true;
}

/// Decides which elements the loop leaves for later ones; the last expressions
/// come first, as what they are made of may not be needed then.
std::vector<ExprId> GridEmitter::keep_rows(const Loop& loop) {
  std::vector<ExprId> fresh;
  const std::vector<bool> needed = needed_of(loop, true, false);
  for (size_t e = needed.size(); e-- > 0;) {
    const Expr& expr = nest_.exprs[e];
    const bool worth =
        is_memory_access(expr) ||
        (expr.kind == Expr::Kind::operation && flops(expr.op) >= kept_flops);
    if (!needed[e] || !inner_[e] || rows_[e].place >= 0 || !worth ||
        !is_read_later(e, loop) || !keep_row(e, loop))
      continue;
    fresh.push_back(static_cast<ExprId>(e));
  }
  return fresh;
}

/// The fresh rows are there now; those in whose places they lie are gone.
void GridEmitter::settle_rows(const std::vector<ExprId>& fresh) {
  for (ExprId e : fresh) {
    for (Row& row : rows_)
      if (row.filled && row.place == rows_[e].place) row = {};
    rows_[e].filled = true;
  }
}

/// The address of element `flat` of this worker's row.
Value* GridEmitter::row_element(size_t e, Value* flat) {
  EmitContext c = context(0);
  if (schedule_.workers == Workers::warp)
    flat = b_.CreateAdd(
        b_.CreateMul(wide(grid_.warp), index_constant(reduced_points())), flat);
  Value* row = b_.CreateConstInBoundsGEP1_64(
      b_.getInt8Ty(), grid_.shared, static_cast<uint64_t>(rows_[e].place));
  return b_.CreateGEP(memory_type(c, nest_.exprs[e].dtype), row, flat);
}

/// Elements that a thread takes at once, so that its accesses have 16 bytes.
int64_t GridEmitter::row_width(const Loop& loop,
                               const std::vector<bool>& needed,
                               const std::vector<ExprId>& fresh) const {
  const auto axes = std::ranges::count(nest_.reduced, true);
  if (axes != 1) return 1;
  int64_t widest = 1;
  auto see = [&](DType dtype) {
    widest = std::max<int64_t>(widest, byte_size(dtype));
  };
  for (size_t e = 0; e < needed.size(); ++e)
    if (needed[e] && inner_[e] &&
        (rows_[e].filled || is_memory_access(nest_.exprs[e])))
      see(nest_.exprs[e].dtype);
  for (ExprId e : fresh) see(nest_.exprs[e].dtype);
  for (int s : loop.stores)
    see(frame_.kernel.arguments[nest_.stores[s].argument].dtype);
  const int64_t width = 16 / widest;
  return reduced_points() % width == 0 ? width : 1;
}

/// The threads do the loop's stores and the fresh rows.
void GridEmitter::fill_rows(Point& point, const Values& values,
                            const Loop& loop,
                            const std::vector<ExprId>& fresh) {
  std::vector<bool> needed(nest_.exprs.size());
  for (ExprId e : fresh) needed[e] = true;
  for (int s : loop.stores) needed[nest_.stores[s].value] = true;
  for (size_t e = needed.size(); e-- > 0;)
    if (needed[e] && !rows_[e].filled)
      for (ExprId operand : nest_.exprs[e].operands) needed[operand] = true;
  const int64_t width = row_width(loop, needed, fresh);
  const auto axis = static_cast<int>(std::ranges::find(nest_.reduced, true) -
                                     nest_.reduced.begin());
  struct Group {
    Value* first;
    Point at;
    std::vector<std::vector<Value*>> loaded;
    std::vector<std::vector<Value*>> stored, kept;
  };
  auto open = [&](Value* number) {
    Group group{.first = b_.CreateMul(number, index_constant(width)),
                .at = point,
                .loaded = {},
                .stored = {},
                .kept = {}};
    set_reduced_index(group.at, group.first, 0);
    group.loaded.resize(nest_.exprs.size());
    for (size_t e = 0; e < nest_.exprs.size(); ++e) {
      const Expr& expr = nest_.exprs[e];
      if (!needed[e] || !inner_[e]) continue;
      if (rows_[e].filled)
        group.loaded[e] =
            read_wide(row_element(e, group.first), expr.dtype, width);
      else if (expr.kind == Expr::Kind::load && width > 1 &&
               aligned_along(expr.at, axis, width))
        group.loaded[e] = load_wide(
            expr, offset_at(expr.at, unit_parts_[e], group.at), width);
    }
    return group;
  };
  auto compute_group = [&](Group& group) {
    group.stored.resize(loop.stores.size());
    group.kept.resize(fresh.size());
    for (int64_t i = 0; i < width; ++i) {
      Point at = point;
      set_reduced_index(at, b_.CreateAdd(group.first, index_constant(i)), 0);
      Values inside = values;
      for (size_t e = 0; e < inside.size(); ++e)
        if (!group.loaded[e].empty())
          inside[e] = group.loaded[e][static_cast<size_t>(i)];
      compute(needed, at, inside);
      for (size_t s = 0; s < loop.stores.size(); ++s)
        group.stored[s].push_back(inside[nest_.stores[loop.stores[s]].value]);
      for (size_t k = 0; k < fresh.size(); ++k)
        group.kept[k].push_back(inside[fresh[k]]);
    }
  };
  auto put = [&](Group& group) {
    for (size_t k = 0; k < fresh.size(); ++k)
      write_wide(row_element(static_cast<size_t>(fresh[k]), group.first),
                 nest_.exprs[fresh[k]].dtype, group.kept[k]);
    for (size_t s = 0; s < loop.stores.size(); ++s) {
      const int number = loop.stores[s];
      const Store& output = nest_.stores[number];
      if (width > 1 && aligned_along(output.at, axis, width)) {
        store_wide(output, offset_at(output.at, store_parts_[number], group.at),
                   group.stored[s]);
        continue;
      }
      for (int64_t i = 0; i < width; ++i) {
        Point at = point;
        set_reduced_index(at, b_.CreateAdd(group.first, index_constant(i)), 0);
        store(output.at, store_parts_[number], output.argument,
              frame_.kernel.arguments[output.argument].dtype,
              group.stored[s][static_cast<size_t>(i)], at, false);
      }
    }
  };
  auto take = [&](const std::vector<Value*>& numbers) {
    std::vector<Group> groups;
    for (Value* number : numbers) groups.push_back(open(number));
    for (Group& group : groups) compute_group(group);
    for (Group& group : groups) put(group);
  };
  // As many loads are under way at once as a thread has registers for.
  const int64_t step = workers(), all = reduced_points() / width;
  const auto at_once =
      std::clamp<int64_t>(16 / width, 1, static_cast<int64_t>(unroll()));
  const int64_t rounds = all / (step * at_once);
  this->loop(index_constant(0), index_constant(rounds), 1, [&](Value* round) {
    std::vector<Value*> numbers;
    for (int64_t i = 0; i < at_once; ++i)
      numbers.push_back(
          b_.CreateAdd(b_.CreateMul(round, index_constant(step * at_once)),
                       b_.CreateAdd(worker(), index_constant(i * step))));
    take(numbers);
  });
  const int64_t done = rounds * step * at_once;
  if (done < all)
    this->loop(b_.CreateAdd(worker(), index_constant(done)),
               index_constant(all), step,
               [&](Value* number) { take({number}); });
}

}  // namespace unisono::jit
