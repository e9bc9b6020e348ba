// Scans along the last axis on a grid, in the order of scan_contiguous. Half a
// warp has a group of 16; groups' totals are folded in order by one thread.
#include <algorithm>

#include "jit/emit_grid_nest.h"
#include "jit/reduce_order.h"

namespace unisono::jit {

using llvm::Value;

void GridEmitter::emit_scan(Point& point) {
  point.vector_axis = -1;
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
  const int64_t groups = steps * together / scan_lanes;
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
  carried_loop(index_constant(chunks),
               {llvm::Constant::getNullValue(places.type)},
               [&](Value* number, llvm::ArrayRef<Value*> carry) {
                 return std::vector<Value*>{scan_chunk_here(
                     point, fixed, places, number, carry[0], steps)};
               });
}

/// Scans chunk `number`; gives the fold of this and all chunks before it.
Value* GridEmitter::scan_chunk_here(Point& point, const Values& fixed,
                                    const ScanPlaces& places, Value* number,
                                    Value* carry, int64_t steps) {
  const int64_t count = reduced_points(), together = workers();
  Value* start = b_.CreateMul(number, index_constant(reduce_chunk));
  Value* length = b_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smin, index_constant(reduce_chunk),
      b_.CreateSub(index_constant(count), start));
  Value* is_first = b_.CreateICmpEQ(number, index_constant(0));
  Value* lane = b_.CreateAnd(grid_.lane, i32(scan_lanes - 1));
  auto element = [&](int64_t step) {
    return b_.CreateAdd(worker(), index_constant(step * together));
  };
  auto group_of = [&](Value* index) {
    return b_.CreateUDiv(index, index_constant(scan_lanes));
  };
  std::vector<Point> points;
  std::vector<Value*> prefix;
  for (int64_t step = 0; step < steps; ++step) {
    Value* index = element(step);
    Point at = point;
    set_reduced_index(at, b_.CreateAdd(start, index), 0);
    std::vector<Value*> value =
        choose(b_.CreateICmpSLT(index, length),
               {llvm::Constant::getNullValue(places.type)}, [&] {
                 Values values = fixed;
                 compute(std::vector<bool>(values.size(), true), at, values);
                 return std::vector<Value*>{values[nest_.scan->operand]};
               });
    points.push_back(at);
    prefix.push_back(value[0]);
  }
  for (int64_t step = 0; step < steps; ++step) {
    for (int by = 1; by < scan_lanes; by *= 2) {
      Value* earlier = shuffle(Shuffle::up, prefix[step], i32(by), scan_lanes);
      prefix[step] =
          b_.CreateSelect(b_.CreateICmpUGE(lane, i32(by)),
                          scan_combine(earlier, prefix[step]), prefix[step]);
    }
    Value* index = element(step);
    Value* is_last = b_.CreateOr(
        b_.CreateAnd(b_.CreateICmpEQ(lane, i32(scan_lanes - 1)),
                     b_.CreateICmpSLT(index, length)),
        b_.CreateICmpEQ(index, b_.CreateSub(length, index_constant(1))));
    when(is_last,
         [&] { put_shared(places.totals, group_of(index), prefix[step]); });
  }
  synchronise();
  Value* groups =
      group_of(b_.CreateAdd(length, index_constant(scan_lanes - 1)));
  when(is_leader(), [&] {
    Value* total = get_shared(places.totals, places.type, index_constant(0));
    counted_loop(b_.CreateSub(groups, index_constant(1)), {total},
                 [&](Value* i, llvm::ArrayRef<Value*> before) {
                   Value* group = b_.CreateAdd(i, index_constant(1));
                   Value* sum = scan_combine(
                       before[0],
                       get_shared(places.totals, places.type, group));
                   put_shared(places.totals, group, sum);
                   return std::vector<Value*>{sum};
                 });
  });
  synchronise();
  for (int64_t step = 0; step < steps; ++step) {
    Value* index = element(step);
    when(b_.CreateICmpSLT(index, length), [&] {
      Value* group = group_of(index);
      Value* before = b_.CreateBinaryIntrinsic(
          llvm::Intrinsic::smax, b_.CreateSub(group, index_constant(1)),
          index_constant(0));
      Value* within = b_.CreateSelect(
          b_.CreateICmpEQ(group, index_constant(0)), prefix[step],
          scan_combine(get_shared(places.totals, places.type, before),
                       prefix[step]));
      put_scanned(
          b_.CreateSelect(is_first, within, scan_combine(carry, within)),
          points[step]);
    });
  }
  Value* total = get_shared(places.totals, places.type,
                            b_.CreateSub(groups, index_constant(1)));
  synchronise();  // before the totals are written again
  return b_.CreateSelect(is_first, total, scan_combine(carry, total));
}

}  // namespace unisono::jit
