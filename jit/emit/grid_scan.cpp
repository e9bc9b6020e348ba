// Scans on a grid. Along the last axis, in the order of scan_contiguous: half a
// warp has a group of 16; groups' totals are folded in order by one thread.
// Few long lines are done in three kernels (gpu_stages.h), a block a chunk.
// Scans along another axis are in order: columns that are few and long are
// folded by one thread of a block from shared memory, to and from which all
// bring them, so that it waits for no memory.
#include <algorithm>

#include "jit/emit/grid_nest.h"
#include "jit/ir/reduce_order.h"

namespace unisono::jit {

using llvm::Value;

namespace {

/// Values that are folded in order: so many are loaded at once.
constexpr int64_t folded_at_once = 8;
/// Values that a block folds at once.
constexpr int64_t carries_at_once = 1024;

}  // namespace

void GridEmitter::emit_scan(Point& point, Value* block) {
  using Part = Scan::Part;
  const Part part = nest_.scan->part;
  point.vector_axis = -1;
  Value* row = part == Part::whole ? nullptr : row_of(point);
  if (part == Part::carries) return scan_carries(row);
  fix_unit_parts(point);
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const int64_t count = reduced_points();
  const int64_t chunks = (count + reduce_chunk - 1) / reduce_chunk;
  const int64_t together = workers();
  const int64_t steps =
      (std::min(count, reduce_chunk) + together - 1) / together;
  EmitContext c = context(0);
  int64_t used = 0;
  ScanPlaces places{};
  places.type = register_type(c, nest_.scan->dtype);
  const int64_t groups = steps * together / scan_lanes + folded_at_once;
  const bool warps = schedule_.workers == Workers::warp;
  places.totals =
      shared_array(places.type, groups * (warps ? block_warps : 1), used);
  if (warps) {
    llvm::Type* stored = places.type->isIntegerTy(1)
                             ? static_cast<llvm::Type*>(b_.getInt8Ty())
                             : places.type;
    places.totals =
        b_.CreateGEP(stored, places.totals,
                     b_.CreateMul(wide(grid_.warp), index_constant(groups)));
  }
  Value* none = llvm::Constant::getNullValue(places.type);
  if (part == Part::whole) {
    carried_loop(index_constant(chunks), {none},
                 [&](Value* number, llvm::ArrayRef<Value*> carry) {
                   return std::vector<Value*>{scan_chunk_here(
                       point, fixed, places, number, carry[0], steps)};
                 });
    return;
  }
  const ScannedGroups scanned = scan_groups(point, fixed, places, block, steps);
  Value* place = b_.CreateAdd(b_.CreateMul(row, index_constant(chunks)), block);
  Point scalar;
  if (part == Part::totals) {
    Value* total = get_shared(places.totals, places.type,
                              b_.CreateSub(scanned.groups, index_constant(1)));
    const Affine alone = constant_affine(0, 0);
    when(is_leader(), [&] {
      store_at(nest_.scan->argument, nest_.scan->dtype, place, alone, total,
               scalar, false);
    });
    return;
  }
  Value* is_first = b_.CreateICmpEQ(block, index_constant(0));
  put_chunk(scanned, places, is_first,
            choose(b_.CreateNot(is_first), {none}, [&] {
              return std::vector<Value*>{
                  load_at(nest_.scan->carries, nest_.scan->dtype,
                          b_.CreateSub(place, index_constant(1)), 0, scalar)};
            })[0]);
}

/// The number of the line that a point is on.
Value* GridEmitter::row_of(const Point& point) {
  Value* row = index_constant(0);
  for (size_t a = 0; a < nest_.extents.size(); ++a) {
    if (nest_.reduced[a]) continue;
    row = b_.CreateAdd(b_.CreateMul(row, index_constant(nest_.extents[a])),
                       point.index[a]);
  }
  return row;
}

/// What comes before each chunk of a line but the first, from their totals, in
/// place: the fold of all up to it, in order.
void GridEmitter::scan_carries(Value* row) {
  const Scan& scan = *nest_.scan;
  const int64_t count = reduced_points();
  Value* line = b_.CreateMul(row, index_constant(count));
  Point scalar;
  const Affine alone = constant_affine(0, 0);
  fold_together(
      count,
      [&](Value* index) {
        return load_at(scan.argument, scan.dtype, b_.CreateAdd(line, index), 0,
                       scalar);
      },
      [&](Value* index, Value* value) {
        store_at(scan.argument, scan.dtype, b_.CreateAdd(line, index), alone,
                 value, scalar, false);
      });
}

/// A column: a thread, or, where there are few and they are long, a block.
void GridEmitter::emit_scan_in_order(Point& point) {
  if (schedule_.workers == Workers::thread)
    return NestEmitter::emit_scan_in_order(point);
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  auto place = [&](Value* index) {
    Point at = point;
    set_reduced_index(at, index, 0);
    at.vector_axis = point.vector_axis;
    return at;
  };
  fold_together(
      reduced_points(),
      [&](Value* index) {
        Point at = place(index);
        Values values = fixed;
        compute(std::vector<bool>(values.size(), true), at, values);
        return values[nest_.scan->operand];
      },
      [&](Value* index, Value* value) {
        Point at = place(index);
        put_scanned(value, at);
      });
}

void GridEmitter::fold_together(
    int64_t count, const std::function<Value*(Value*)>& get,
    const std::function<void(Value*, Value*)>& put) {
  const int64_t each = carries_at_once / workers();
  EmitContext c = context(0);
  int64_t used = 0;
  ScanPlaces places{};
  places.type = register_type(c, nest_.scan->dtype);
  places.totals =
      shared_array(places.type, carries_at_once + 1 + folded_at_once, used);
  // Place 0 has what comes before, 1 ... those that are folded now.
  this->loop(
      index_constant(0), index_constant(count), carries_at_once,
      [&](Value* start) {
        auto each_own = [&](auto&& body) {
          for (int64_t e = 0; e < each; ++e) {
            Value* own = b_.CreateAdd(worker(), index_constant(e * workers()));
            Value* index = b_.CreateAdd(start, own);
            when(b_.CreateICmpSLT(index, index_constant(count)),
                 [&] { body(index, b_.CreateAdd(own, index_constant(1))); });
          }
        };
        each_own([&](Value* index, Value* place) {
          put_shared(places.totals, place, get(index));
        });
        synchronise();
        Value* left = b_.CreateSub(index_constant(count), start);
        Value* present = b_.CreateBinaryIntrinsic(
            llvm::Intrinsic::smin, left, index_constant(carries_at_once));
        Value* is_first = b_.CreateICmpEQ(start, index_constant(0));
        Value* first = b_.CreateZExt(is_first, b_.getInt64Ty());
        when(is_leader(), [&] {
          fold_in_order(places, first,
                        b_.CreateAdd(present, index_constant(1)));
        });
        synchronise();
        each_own([&](Value* index, Value* place) {
          put(index, get_shared(places.totals, places.type, place));
        });
        synchronise();
        when(is_leader(), [&] {
          put_shared(places.totals, index_constant(0),
                     get_shared(places.totals, places.type, present));
        });
        synchronise();
      });
}

/// Places first + 1 ... count - 1 become the fold of all from `first` on.
void GridEmitter::fold_in_order(const ScanPlaces& places, Value* first,
                                Value* count) {
  Value* left = b_.CreateSub(b_.CreateSub(count, first), index_constant(1));
  Value* rounds =
      b_.CreateUDiv(b_.CreateAdd(left, index_constant(folded_at_once - 1)),
                    index_constant(folded_at_once));
  Value* total = get_shared(places.totals, places.type, first);
  counted_loop(rounds, {total}, [&](Value* i, llvm::ArrayRef<Value*> before) {
    Value* start =
        b_.CreateAdd(b_.CreateAdd(first, index_constant(1)),
                     b_.CreateMul(i, index_constant(folded_at_once)));
    std::vector<Value*> next;
    // Beyond `count` there is room, and nobody looks.
    for (int64_t j = 0; j < folded_at_once; ++j)
      next.push_back(get_shared(places.totals, places.type,
                                b_.CreateAdd(start, index_constant(j))));
    Value* sum = before[0];
    for (int64_t j = 0; j < folded_at_once; ++j) {
      sum = scan_combine(sum, next[static_cast<size_t>(j)]);
      put_shared(places.totals, b_.CreateAdd(start, index_constant(j)), sum);
    }
    return std::vector<Value*>{sum};
  });
}

/// The group of this thread's element `step` in a chunk.
Value* GridEmitter::group_of(int64_t step) {
  static_assert(warp_threads % scan_lanes == 0);
  return b_.CreateAdd(b_.CreateUDiv(worker(), index_constant(scan_lanes)),
                      index_constant(step * workers() / scan_lanes));
}

/// The groups of chunk `number`, and their totals folded.
GridEmitter::ScannedGroups GridEmitter::scan_groups(Point& point,
                                                    const Values& fixed,
                                                    const ScanPlaces& places,
                                                    Value* number,
                                                    int64_t steps) {
  const int64_t count = reduced_points(), together = workers();
  ScannedGroups out;
  Value* start = b_.CreateMul(number, index_constant(reduce_chunk));
  // Where all chunks are whole, nothing is asked of elements.
  const bool whole =
      count % reduce_chunk == 0 && steps * together == reduce_chunk;
  Value* length = whole
                      ? index_constant(reduce_chunk)
                      : b_.CreateBinaryIntrinsic(
                            llvm::Intrinsic::smin, index_constant(reduce_chunk),
                            b_.CreateSub(index_constant(count), start));
  Value* lane = b_.CreateAnd(grid_.lane, i32(scan_lanes - 1));
  Value* own = b_.CreateAdd(start, worker());
  auto element = [&](int64_t step) {
    return b_.CreateAdd(worker(), index_constant(step * together));
  };
  for (int64_t step = 0; step < steps; ++step) {
    Point at = point;
    set_reduced_index(at, b_.CreateAdd(own, index_constant(step * together)),
                      0);
    out.present.push_back(whole ? static_cast<Value*>(b_.getTrue())
                                : b_.CreateICmpSLT(element(step), length));
    std::vector<Value*> value = choose(
        out.present.back(), {llvm::Constant::getNullValue(places.type)}, [&] {
          Values values = fixed;
          compute(std::vector<bool>(values.size(), true), at, values);
          return std::vector<Value*>{values[nest_.scan->operand]};
        });
    out.points.push_back(at);
    out.prefix.push_back(value[0]);
  }
  for (int64_t step = 0; step < steps; ++step) {
    Value*& prefix = out.prefix[static_cast<size_t>(step)];
    for (int by = 1; by < scan_lanes; by *= 2) {
      Value* earlier = shuffle(Shuffle::up, prefix, i32(by), scan_lanes);
      prefix = b_.CreateSelect(b_.CreateICmpUGE(lane, i32(by)),
                               scan_combine(earlier, prefix), prefix);
    }
    Value* is_last = b_.CreateAnd(b_.CreateICmpEQ(lane, i32(scan_lanes - 1)),
                                  out.present[static_cast<size_t>(step)]);
    if (!whole)
      is_last = b_.CreateOr(
          is_last, b_.CreateICmpEQ(element(step),
                                   b_.CreateSub(length, index_constant(1))));
    when(is_last, [&] { put_shared(places.totals, group_of(step), prefix); });
  }
  synchronise();
  out.groups =
      b_.CreateUDiv(b_.CreateAdd(length, index_constant(scan_lanes - 1)),
                    index_constant(scan_lanes));
  when(is_leader(),
       [&] { fold_in_order(places, index_constant(0), out.groups); });
  synchronise();
  return out;
}

/// Stores a chunk after its groups are known, and `carry`, unless it is first.
void GridEmitter::put_chunk(const ScannedGroups& scanned,
                            const ScanPlaces& places, Value* is_first,
                            Value* carry) {
  for (size_t step = 0; step < scanned.prefix.size(); ++step) {
    when(scanned.present[step], [&] {
      Value* group = group_of(static_cast<int64_t>(step));
      Value* last = b_.CreateSub(group, index_constant(1));
      Value* prefix = scanned.prefix[step];
      // Only a chunk's first elements may have no group before theirs.
      Value* no_group = b_.getFalse();
      if (step == 0) {
        no_group = b_.CreateICmpEQ(group, index_constant(0));
        last = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, last,
                                        index_constant(0));
      }
      Value* within = b_.CreateSelect(
          no_group, prefix,
          scan_combine(get_shared(places.totals, places.type, last), prefix));
      Point at = scanned.points[step];
      put_scanned(
          b_.CreateSelect(is_first, within, scan_combine(carry, within)), at);
    });
  }
}

/// Scans chunk `number`; gives the fold of this and all chunks before it.
Value* GridEmitter::scan_chunk_here(Point& point, const Values& fixed,
                                    const ScanPlaces& places, Value* number,
                                    Value* carry, int64_t steps) {
  Value* is_first = b_.CreateICmpEQ(number, index_constant(0));
  const ScannedGroups scanned =
      scan_groups(point, fixed, places, number, steps);
  put_chunk(scanned, places, is_first, carry);
  Value* total = get_shared(places.totals, places.type,
                            b_.CreateSub(scanned.groups, index_constant(1)));
  synchronise();  // before the totals are written again
  return b_.CreateSelect(is_first, total, scan_combine(carry, total));
}

}  // namespace unisono::jit
