// Reductions on a grid, in the orders of reduce_order.h. A chunk of 64 lanes is
// a warp's, of which thread t has lanes t and t + 32, or one thread's where it
// is short; chunks, and leaves of long members trees, are a block's.
#include <algorithm>

#include "jit/emit/grid_nest.h"
#include "jit/ir/reduce_order.h"
#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::Value;

void GridEmitter::outer_stores(Point& point, const Values& values, int phase) {
  if (schedule_.workers == Workers::thread)
    return NestEmitter::outer_stores(point, values, phase);
  when(is_leader(), [&] { NestEmitter::outer_stores(point, values, phase); });
}

/// Elements whose loads a thread has under way at once.
size_t GridEmitter::unroll() const {
  return nest_.exprs.size() <= tuning().gpu_most_unrolled_four  ? 4
         : nest_.exprs.size() <= tuning().gpu_most_unrolled_two ? 2
                                                                : 1;
}

std::vector<NestEmitter::Accumulators> GridEmitter::visit(
    Point& point, const Values& values, const Loop& loop,
    const std::vector<Value*>& flat, int64_t width) {
  const size_t each = static_cast<size_t>(width), all = flat.size() * each;
  std::vector<Point> points(all, point);
  std::vector<Values> inside(all, values);
  std::vector<Accumulators> out;
  for (size_t f = 0; f < flat.size(); ++f) {
    const size_t begin = f * each;
    for (size_t i = 0; i < each; ++i)
      set_reduced_index(
          points[begin + i],
          b_.CreateAdd(flat[f], index_constant(static_cast<int64_t>(i))), 0);
    for (size_t e = 0; e < rows_.size(); ++e) {
      if (!rows_[e].filled || !loop.needed[e]) continue;
      const std::vector<Value*> read = read_row(e, flat[f], width);
      for (size_t i = 0; i < each; ++i) inside[begin + i][e] = read[i];
    }
    for (size_t i = begin; i < begin + each; ++i)
      compute(loop.needed, points[i], inside[i]);
  }
  for (size_t i = 0; i < all; ++i) {
    store_outputs(loop.stores, points[i], inside[i]);
    out.push_back(elements(loop, inside[i], points[i]));
  }
  return out;
}

/// A loop that only stores: workers take elements in turn.
void GridEmitter::visit_all(Point& point, const Values& values,
                            const Loop& loop) {
  const int64_t count = reduced_points(), step = workers();
  const auto at_once = static_cast<int64_t>(unroll());
  const int64_t rounds = count / (step * at_once);
  auto element = [&](Value* start, int64_t i) {
    return b_.CreateAdd(b_.CreateAdd(start, index_constant(i * step)),
                        worker());
  };
  this->loop(index_constant(0), index_constant(rounds), 1, [&](Value* round) {
    Value* start = b_.CreateMul(round, index_constant(step * at_once));
    std::vector<Value*> flat;
    for (int64_t i = 0; i < at_once; ++i) flat.push_back(element(start, i));
    visit(point, values, loop, flat);
  });
  const int64_t done = rounds * step * at_once;
  if (done < count)
    this->loop(element(index_constant(done), 0), index_constant(count), step,
               [&](Value* flat) { visit(point, values, loop, {flat}); });
}

NestEmitter::Accumulators GridEmitter::combined(const Loop& loop,
                                                const std::vector<Value*>& a,
                                                const std::vector<Value*>& b,
                                                bool in_order) {
  return combine_all(loop, unflatten(loop, a), unflatten(loop, b), in_order);
}

// ---- lanes -----------------------------------------------------------------

void GridEmitter::phase_in_lanes(Point& point, Values& values,
                                 const Loop& phase) {
  synchronise();  // what was stored before is read now
  Loop loop = phase;
  if (keeps_rows()) {
    const std::vector<ExprId> fresh = keep_rows(loop);
    if (!fresh.empty() || loop.reductions.empty()) {
      const bool along = !fresh.empty() && takes_any_order(loop);
      std::vector<Value*> parts;
      if (along)
        for (int r : loop.reductions)
          for (Value* part : neutral(nest_.reductions[r], 0, values))
            parts.push_back(part);
      parts = fill_rows(point, values, loop, fresh, parts);
      if (along) {
        settle_rows(fresh);
        finish_phase(values, loop, over_workers(loop, parts));
        return synchronise();
      }
      synchronise();
      settle_rows(fresh);
      loop.stores.clear();
      if (loop.reductions.empty()) return;
    }
    loop.needed = needed_of(loop, true);
  }
  if (loop.reductions.empty()) {
    visit_all(point, values, loop);
    return synchronise();
  }
  const int64_t count = reduced_points();
  if (schedule_.workers == Workers::thread)
    return finish_phase(values, loop, few_in_thread(point, values, loop));
  const Values first = first_indices(point, values, loop, true);
  Accumulators results;
  if (schedule_.workers == Workers::warp) {
    Accumulators lanes = chunk_in_warp(
        point, values, first, loop, index_constant(0), index_constant(count));
    results = unflatten(loop, shuffle_all(Shuffle::index, flatten(lanes), 0));
  } else {
    auto length_of = [&](Value* start) -> Value* {
      if (count % orders().reduce_chunk == 0)
        return index_constant(orders().reduce_chunk);
      return b_.CreateBinaryIntrinsic(
          llvm::Intrinsic::smin, index_constant(orders().reduce_chunk),
          b_.CreateSub(index_constant(count), start));
    };
    const bool pairs = takes_pairs_of_chunks(loop);
    const Leaves chunks = [&](Value* leaf, Value* present,
                              llvm::ArrayRef<Value*> places) {
      if (pairs)
        return chunks_in_pairs(point, values, first, loop, leaf, present,
                               places);
      this->loop(wide(grid_.warp), present, block_warps, [&](Value* number) {
        Value* start = b_.CreateMul(b_.CreateAdd(leaf, number),
                                    index_constant(orders().reduce_chunk));
        std::vector<Value*> parts = flatten(
            chunk_in_warp(point, values, first, loop, start, length_of(start)));
        when(b_.CreateICmpEQ(grid_.lane, i32(0)), [&] {
          for (size_t i = 0; i < parts.size(); ++i)
            put_shared(places[i], number, parts[i]);
        });
      });
    };
    results = block_tree(
        loop, (count + orders().reduce_chunk - 1) / orders().reduce_chunk,
        chunks);
  }
  finish_phase(values, loop, results);
  synchronise();
}

/// At most 64 elements, each of them a lane of its own.
NestEmitter::Accumulators GridEmitter::few_in_thread(Point& point,
                                                     const Values& values,
                                                     const Loop& loop) {
  const int64_t count = reduced_points();
  CHECK(count <= reduce_lanes);
  std::vector<Value*> flat;
  for (int64_t i = 0; i < count; ++i) flat.push_back(index_constant(i));
  std::vector<Accumulators> lanes = visit(point, values, loop, flat);
  for (int64_t half = reduce_lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half && i + half < count; ++i)
      lanes[i] = combine_all(loop, lanes[i], lanes[i + half], false);
  return lanes[0];
}

/// One chunk, `length` elements from `start` on; thread 0 has the result.
NestEmitter::Accumulators GridEmitter::chunk_in_warp(
    Point& point, const Values& values, const Values& first, const Loop& loop,
    Value* start, Value* length) {
  Value* own = b_.CreateAdd(start, wide(grid_.lane));
  auto element = [&](Value* step, int64_t half) {
    return b_.CreateAdd(
        own, b_.CreateAdd(b_.CreateMul(step, index_constant(reduce_lanes)),
                          index_constant(half * warp_threads)));
  };
  std::vector<Value*> state;  // of lane t, then of lane t + 32
  for (int half = 0; half < 2; ++half)
    for (int r : loop.reductions)
      for (Value* part : neutral(nest_.reductions[r], 0, first))
        state.push_back(part);
  const size_t parts = state.size() / 2;
  auto take = [&](llvm::ArrayRef<Value*> before, Value* step, int64_t count) {
    std::vector<Value*> flat;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t half = 0; half < 2; ++half)
        flat.push_back(element(b_.CreateAdd(step, index_constant(i)), half));
    std::vector<Accumulators> got = visit(point, values, loop, flat);
    std::vector<Value*> low = before.take_front(parts).vec(),
                        high = before.drop_front(parts).vec();
    for (int64_t i = 0; i < count; ++i) {
      low = flatten(combined(loop, low, flatten(got[2 * i]), true));
      high = flatten(combined(loop, high, flatten(got[2 * i + 1]), true));
    }
    low.insert(low.end(), high.begin(), high.end());
    return low;
  };
  const auto at_once = static_cast<int64_t>(unroll());
  Value* steps = b_.CreateUDiv(length, index_constant(reduce_lanes));
  Value* rounds = b_.CreateUDiv(steps, index_constant(at_once));
  state = counted_loop(rounds, state, [&](Value* i, auto current) {
    return take(current, b_.CreateMul(i, index_constant(at_once)), at_once);
  });
  Value* done = b_.CreateMul(rounds, index_constant(at_once));
  state = counted_loop(b_.CreateSub(steps, done), state,
                       [&](Value* i, auto current) {
                         return take(current, b_.CreateAdd(done, i), 1);
                       });
  // A last round, in which some lanes have an element.
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(length);
  const bool whole = known && known->getSExtValue() % reduce_lanes == 0;
  std::vector<Value*> lanes;
  if (whole) lanes = state;
  for (int64_t half = 0; half < 2 && !whole; ++half) {
    auto mine = state.begin() + static_cast<ptrdiff_t>(half * parts);
    const std::vector<Value*> before(mine,
                                     mine + static_cast<ptrdiff_t>(parts));
    Value* flat = element(steps, half);
    Value* end = b_.CreateAdd(start, length);
    std::vector<Value*> after =
        choose(b_.CreateICmpSLT(flat, end), before, [&] {
          auto got = visit(point, values, loop, {flat});
          return flatten(combined(loop, before, flatten(got[0]), true));
        });
    lanes.insert(lanes.end(), after.begin(), after.end());
  }
  llvm::ArrayRef<Value*> both = lanes;
  std::vector<Value*> total = flatten(combined(
      loop, both.take_front(parts).vec(), both.drop_front(parts).vec(), false));
  for (int64_t half = warp_threads / 2; half > 0; half /= 2)
    total = flatten(
        combined(loop, total, shuffle_all(Shuffle::down, total, half), false));
  return unflatten(loop, total);
}

/// Whether all chunks are whole, there is an even number of them, and all that
/// they read lies in shared memory.
bool GridEmitter::takes_pairs_of_chunks(const Loop& loop) const {
  if (reduced_points() % (2 * orders().reduce_chunk) != 0) return false;
  for (size_t e = 0; e < rows_.size(); ++e) {
    if (!loop.needed[e] || !inner_[e]) continue;
    const Expr::Kind kind = nest_.exprs[e].kind;
    const bool in_memory =
        kind == Expr::Kind::load || kind == Expr::Kind::gather;
    if (rows_[e].filled ? rows_[e].bytes > 4 : in_memory) return false;
  }
  return loop.stores.empty();
}

/// Leaves of the tree over chunks, two for each warp: a thread has four
/// neighbouring lanes of one of them, and reads them at once.
void GridEmitter::chunks_in_pairs(Point& point, const Values& values,
                                  const Values& first, const Loop& loop,
                                  Value* leaf, Value* present,
                                  llvm::ArrayRef<Value*> places) {
  constexpr int64_t own = 4, threads = reduce_lanes / own;
  Value* half = b_.CreateLShr(wide(grid_.lane), index_constant(4));
  Value* thread = b_.CreateAnd(wide(grid_.lane), index_constant(threads - 1));
  std::vector<Value*> start;  // of one lane after the other
  for (int64_t i = 0; i < own; ++i)
    for (int r : loop.reductions)
      for (Value* part : neutral(nest_.reductions[r], 0, first))
        start.push_back(part);
  const size_t parts = start.size() / own;
  auto lane_of = [&](llvm::ArrayRef<Value*> all, size_t i) {
    return all.slice(i * parts, parts).vec();
  };
  Value* pairs = b_.CreateLShr(present, index_constant(1));
  this->loop(wide(grid_.warp), pairs, block_warps, [&](Value* pair) {
    Value* chunk =
        b_.CreateAdd(b_.CreateMul(pair, index_constant(2)), half);  // its leaf
    Value* begin =
        b_.CreateAdd(b_.CreateMul(b_.CreateAdd(leaf, chunk),
                                  index_constant(orders().reduce_chunk)),
                     b_.CreateMul(thread, index_constant(own)));
    const int64_t steps = orders().reduce_chunk / reduce_lanes;
    const auto at_once = std::min(static_cast<int64_t>(unroll()), steps);
    std::vector<Value*> state = carried_loop(
        index_constant(steps / at_once), start,
        [&](Value* round, llvm::ArrayRef<Value*> before) {
          std::vector<Value*> flat;
          for (int64_t i = 0; i < at_once; ++i)
            flat.push_back(b_.CreateAdd(
                begin,
                b_.CreateMul(
                    b_.CreateAdd(b_.CreateMul(round, index_constant(at_once)),
                                 index_constant(i)),
                    index_constant(reduce_lanes))));
          const std::vector<Accumulators> got =
              visit(point, values, loop, flat, own);
          std::vector<Value*> after;
          for (size_t i = 0; i < own; ++i) {
            std::vector<Value*> lane = lane_of(before, i);
            for (size_t step = 0; step < flat.size(); ++step)
              lane = flatten(
                  combined(loop, lane, flatten(got[step * own + i]), true));
            after.insert(after.end(), lane.begin(), lane.end());
          }
          return after;
        });
    std::vector<std::vector<Value*>> lanes;
    for (size_t i = 0; i < own; ++i) lanes.push_back(lane_of(state, i));
    for (int64_t by = threads / 2; by > 0; by /= 2)
      for (auto& lane : lanes)
        lane = flatten(
            combined(loop, lane, shuffle_all(Shuffle::down, lane, by), false));
    for (size_t by = own / 2; by > 0; by /= 2)
      for (size_t i = 0; i < by; ++i)
        lanes[i] = flatten(combined(loop, lanes[i], lanes[i + by], false));
    when(b_.CreateICmpEQ(thread, index_constant(0)), [&] {
      for (size_t i = 0; i < parts; ++i)
        put_shared(places[i], chunk, lanes[0][i]);
    });
  });
}

// ---- columns ---------------------------------------------------------------

void GridEmitter::phase_in_columns(Point& point, Values& values,
                                   const Loop& loop) {
  if (schedule_.workers == Workers::thread)
    return NestEmitter::phase_in_columns(point, values, loop);
  synchronise();
  if (loop.reductions.empty()) {
    visit_all(point, values, loop);
    return synchronise();
  }
  const Leaves leaves = [&](Value* start, Value* present,
                            llvm::ArrayRef<Value*> places) {
    Value* own = wide(grid_.thread);
    when(b_.CreateICmpSLT(own, present), [&] {
      auto got = visit(point, values, loop, {b_.CreateAdd(start, own)});
      std::vector<Value*> parts = flatten(got[0]);
      for (size_t i = 0; i < parts.size(); ++i)
        put_shared(places[i], own, parts[i]);
    });
  };
  finish_phase(values, loop, block_tree(loop, reduced_points(), leaves));
  synchronise();
}

}  // namespace unisono::jit
