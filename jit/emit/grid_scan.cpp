// Scans on a grid. Along the last axis, in the order of scan_contiguous: a
// chunk's elements are brought to shared memory, from where each thread takes a
// group of 16; the first warp folds the groups' totals. Few long lines are cut
// up (gpu_stages.h): a block does a chunk, and tells the blocks of later chunks
// what it closes of the members tree. Scans along another axis: a thread does a
// column in order, or, where columns are few and long, a run of one, in three
// kernels.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "jit/emit/grid_nest.h"
#include "jit/ir/reduce_order.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::Value;

namespace {

/// Bytes of an access, and those that the banks of shared memory give at once.
constexpr int64_t access_bytes = 16, bank_bytes = 128;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t GridEmitter::scanned_at_once() const {
  return tuning().gpu_column_at_once;
}

// ---- along the last axis ----------------------------------------------------

void GridEmitter::emit_scan(Point& point, Value* block) {
  using Part = Scan::Part;
  const Part part = nest_.scan->part;
  point.vector_axis = -1;
  if (part == Part::carries) return scan_carries(row_of(point));
  Value* row = part == Part::linked ? row_of(point) : nullptr;
  fix_unit_parts(point);
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const int64_t chunks = ceil_div(reduced_points(), orders().reduce_chunk);
  const ScanPlaces places = scan_places(chunks);
  if (part == Part::linked) {
    const ScannedChunk chunk = scan_groups(point, fixed, places, block);
    return put_chunk(point, chunk, places, linked_carry(places, row, block));
  }
  // All threads but those of one warp wait.
  auto folded = [&](const std::function<void(Value * total)>& then) {
    when(b_.CreateICmpULT(worker(), index_constant(warp_threads)),
         [&] { then(fold_totals(places)); });
    synchronise();
  };
  if (chunks == 1) {
    const ScannedChunk chunk =
        scan_groups(point, fixed, places, index_constant(0));
    folded([](Value*) {});
    return put_chunk(point, chunk, places, nullptr);
  }
  carried_loop(
      index_constant(chunks), {scan_neutral(0)},
      [&](Value* number, llvm::ArrayRef<Value*> state) {
        const ScannedChunk chunk = scan_groups(point, fixed, places, number);
        folded([&](Value* total) {
          when(is_leader(), [&] {
            put_shared(places.carry, index_constant(0),
                       next_carry(carry_blocks_in(places), number, total));
          });
        });
        Value* next = get_shared(places.carry, places.type, index_constant(0));
        put_chunk(point, chunk, places, state[0]);
        return std::vector<Value*>{next};
      });
}

/// Shared memory for the chunks of a line, of a block or of each warp.
GridEmitter::ScanPlaces GridEmitter::scan_places(int64_t chunks) {
  EmitContext c = context(0);
  ScanPlaces places{};
  places.type = register_type(c, nest_.scan->dtype);
  const int64_t together = workers();
  const int64_t size = byte_size(nest_.scan->dtype);
  const bool is_line = std::ranges::count(nest_.reduced, true) == 1;
  places.width = access_bytes / size;
  if (!is_line || reduced_points() % places.width) places.width = 1;
  places.steps = ceil_div(std::min(reduced_points(), orders().reduce_chunk),
                          together * places.width);
  places.groups =
      std::min(places.steps * together * places.width, orders().reduce_chunk) /
      scan_lanes;
  const bool warps = schedule_.workers == Workers::warp;
  int64_t used = 0;
  auto array = [&](llvm::Type* type, int64_t count) {
    Value* all = shared_array(type, count * (warps ? block_warps : 1), used);
    if (!warps) return all;
    llvm::Type* stored =
        type->isIntegerTy(1) ? static_cast<llvm::Type*>(b_.getInt8Ty()) : type;
    return b_.CreateGEP(stored, all,
                        b_.CreateMul(wide(grid_.warp), index_constant(count)));
  };
  // What lies beyond a chunk is brought there, too.
  places.elements =
      array(b_.getInt8Ty(), places.steps * together * places.width * size);
  places.totals = array(places.type, std::max<int64_t>(together, scan_lanes));
  places.blocks = array(places.type, scan_lanes);
  if (chunks > 1) {
    places.carry = array(places.type, 1);
    places.waiting = array(places.type, warp_threads);
  }
  return places;
}

/// The blocks of a members tree over chunks that wait, in shared memory.
NestEmitter::CarryBlocks GridEmitter::carry_blocks_in(
    const ScanPlaces& places) {
  return {[this, places](Value* level) {
            return get_shared(places.waiting, places.type, level);
          },
          [this, places](Value* level, Value* value) {
            put_shared(places.waiting, level, value);
          }};
}

/// The address of the chunk's element number `element`. A group is some pieces
/// of 16 bytes, which are turned round by as many places as are 128 bytes
/// before it: so neither threads with neighbouring pieces nor those with the
/// same piece of neighbouring groups meet in a bank.
Value* GridEmitter::staged(const ScanPlaces& places, Value* element) {
  const int64_t size = byte_size(nest_.scan->dtype);
  const int64_t pieces = scan_lanes * size / access_bytes;
  Value* byte = b_.CreateMul(element, index_constant(size));
  if (pieces > 1) {
    Value* turns = b_.CreateUDiv(byte, index_constant(bank_bytes));
    Value* piece = b_.CreateAnd(
        b_.CreateAdd(b_.CreateUDiv(byte, index_constant(access_bytes)), turns),
        index_constant(pieces - 1));
    byte = b_.CreateOr(b_.CreateAnd(byte, index_constant(-scan_lanes * size |
                                                         (access_bytes - 1))),
                       b_.CreateMul(piece, index_constant(access_bytes)));
  }
  return b_.CreateGEP(b_.getInt8Ty(), places.elements, byte);
}

/// The addresses of a group's pieces.
std::vector<Value*> GridEmitter::staged_group(const ScanPlaces& places,
                                              Value* group) {
  const int64_t width = access_bytes / byte_size(nest_.scan->dtype);
  Value* first = b_.CreateMul(group, index_constant(scan_lanes));
  std::vector<Value*> out;
  for (int64_t i = 0; i < scan_lanes; i += width)
    out.push_back(staged(places, b_.CreateAdd(first, index_constant(i))));
  return out;
}

/// The addresses of pieces of 16 values that lie side by side from `at` on.
std::vector<Value*> GridEmitter::pieces_at(Value* at) {
  const int64_t size = byte_size(nest_.scan->dtype);
  std::vector<Value*> out;
  for (int64_t i = 0; i < scan_lanes * size; i += access_bytes)
    out.push_back(
        b_.CreateConstGEP1_64(b_.getInt8Ty(), at, static_cast<uint64_t>(i)));
  return out;
}

/// 16 values, with wide accesses.
std::vector<Value*> GridEmitter::read_sixteen(
    const std::vector<Value*>& pieces) {
  const auto width = scan_lanes / static_cast<int64_t>(pieces.size());
  std::vector<Value*> out;
  for (Value* at : pieces)
    for (Value* value : read_wide(at, nest_.scan->dtype, width))
      out.push_back(value);
  return out;
}

void GridEmitter::write_sixteen(const std::vector<Value*>& pieces,
                                const std::vector<Value*>& values) {
  const auto width = scan_lanes / static_cast<int64_t>(pieces.size());
  auto next = values.begin();
  for (Value* at : pieces) {
    write_wide(at, nest_.scan->dtype, {next, next + width});
    next += width;
  }
}

/// The first `count` of 16 values at `pieces` are replaced by the folds of
/// those before each; the fold of all. Piece by piece, for want of registers.
Value* GridEmitter::fold_sixteen(const std::vector<Value*>& pieces,
                                 int64_t count) {
  const DType dtype = nest_.scan->dtype;
  const auto width = scan_lanes / static_cast<int64_t>(pieces.size());
  Value *before = scan_neutral(0), *sum = nullptr;
  for (Value* at : pieces) {
    std::vector<Value*> values = read_wide(at, dtype, width);
    for (Value*& value : values) {
      if (count-- <= 0) break;
      sum = sum ? scan_combine(sum, value) : value;
      value = std::exchange(before, sum);
    }
    write_wide(at, dtype, values);
    if (count <= 0) break;
  }
  return sum;
}

/// Replaces the totals of groups by what their blocks of 16 groups have before
/// them, and those of blocks by what the chunk has before these. One warp does
/// it; gives the chunk's total, in its first thread.
Value* GridEmitter::fold_totals(const ScanPlaces& places) {
  const int64_t size = byte_size(nest_.scan->dtype);
  const int64_t blocks = ceil_div(places.groups, scan_lanes);
  Value* lane = wide(grid_.lane);
  Value* none = llvm::Constant::getNullValue(places.type);
  Value* total =
      choose(b_.CreateICmpULT(lane, index_constant(blocks)), {none}, [&] {
        Value* at =
            b_.CreateGEP(b_.getInt8Ty(), places.totals,
                         b_.CreateMul(lane, index_constant(scan_lanes * size)));
        return std::vector<Value*>{
            fold_sixteen(pieces_at(at), std::min(places.groups, scan_lanes))};
      })[0];
  if (blocks == 1) return total;
  when(b_.CreateICmpULT(lane, index_constant(blocks)),
       [&] { put_shared(places.blocks, lane, total); });
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {i32(-1)});
  return choose(b_.CreateIsNull(lane), {none}, [&] {
    return std::vector<Value*>{fold_sixteen(pieces_at(places.blocks), blocks)};
  })[0];
}

/// What this thread brings to shared memory in a step: elements that lie side
/// by side from number `first` of the line on.
std::vector<Value*> GridEmitter::scanned_elements(Point& point,
                                                  const Values& fixed,
                                                  Value* first, int64_t width) {
  const auto axis = static_cast<int>(std::ranges::find(nest_.reduced, true) -
                                     nest_.reduced.begin());
  Point at = point;
  set_reduced_index(at, first, 0);
  std::vector<std::vector<Value*>> loaded(nest_.exprs.size());
  for (size_t e = 0; e < loaded.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (width > 1 && inner_[e] && expr.kind == Expr::Kind::load &&
        aligned_along(expr.at, axis, width))
      loaded[e] =
          load_wide(expr, offset_at(expr.at, unit_parts_[e], at), width);
  }
  std::vector<Value*> out;
  for (int64_t i = 0; i < width; ++i) {
    Values values = fixed;
    for (size_t e = 0; e < loaded.size(); ++e)
      if (!loaded[e].empty()) values[e] = loaded[e][static_cast<size_t>(i)];
    Point own = point;
    set_reduced_index(own, b_.CreateAdd(first, index_constant(i)), 0);
    compute(std::vector<bool>(values.size(), true), own, values);
    out.push_back(values[nest_.scan->operand]);
  }
  return out;
}

/// This thread's group of chunk `number`.
GridEmitter::ScannedChunk GridEmitter::scan_groups(Point& point,
                                                   const Values& fixed,
                                                   const ScanPlaces& places,
                                                   Value* number) {
  const int64_t count = reduced_points(), together = workers();
  ScannedChunk out;
  Value* start = b_.CreateMul(number, index_constant(orders().reduce_chunk));
  // Where all chunks are whole, nothing is asked of elements.
  const bool whole =
      count % orders().reduce_chunk == 0 &&
      places.steps * together * places.width == orders().reduce_chunk;
  Value* length = b_.CreateSub(index_constant(count), start);
  if (places.steps * together * places.width > orders().reduce_chunk)
    length = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, length,
                                      index_constant(orders().reduce_chunk));
  const std::vector<Value*> none(static_cast<size_t>(places.width),
                                 llvm::Constant::getNullValue(places.type));
  std::vector<std::vector<Value*>> elements;
  const int64_t step_bytes =
      together * places.width * byte_size(nest_.scan->dtype);
  // Steps whose pieces are turned alike lie at constant distances.
  const bool alike = step_bytes / bank_bytes % scan_lanes == 0;
  for (int64_t step = 0; step < places.steps; ++step) {
    Value* element =
        b_.CreateMul(b_.CreateAdd(worker(), index_constant(step * together)),
                     index_constant(places.width));
    Value* first = b_.CreateAdd(start, element);
    out.present.push_back(whole ? static_cast<Value*>(b_.getTrue())
                                : b_.CreateICmpSLT(element, length));
    elements.push_back(choose(out.present.back(), none, [&] {
      return scanned_elements(point, fixed, first, places.width);
    }));
    out.firsts.push_back(first);
    out.places.push_back(
        step && alike
            ? b_.CreateConstGEP1_64(b_.getInt8Ty(), out.places[0],
                                    static_cast<uint64_t>(step * step_bytes))
            : staged(places, element));
  }
  for (size_t step = 0; step < elements.size(); ++step)
    write_wide(out.places[step], nest_.scan->dtype, elements[step]);
  synchronise();
  Value* group = worker();
  if (places.groups < together)
    group = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, group,
                                     index_constant(places.groups - 1));
  out.own = staged_group(places, group);
  out.prefix = read_sixteen(out.own);
  for (int64_t by = 1; by < scan_lanes; by *= 2)
    for (size_t i = scan_lanes; i-- > static_cast<size_t>(by);)
      out.prefix[i] =
          scan_combine(out.prefix[i - static_cast<size_t>(by)], out.prefix[i]);
  put_shared(places.totals, worker(), out.prefix.back());
  synchronise();
  return out;
}

/// Stores a chunk after its groups' totals are folded, and `carry` (null:
/// nothing).
void GridEmitter::put_chunk(Point& point, const ScannedChunk& chunk,
                            const ScanPlaces& places, Value* carry) {
  Value* groups = get_shared(places.totals, places.type, worker());
  Value* base = carry;
  if (places.groups > scan_lanes) {
    Value* blocks =
        get_shared(places.blocks, places.type,
                   b_.CreateUDiv(worker(), index_constant(scan_lanes)));
    base = carry ? scan_combine(carry, blocks) : blocks;
  }
  std::vector<Value*> results;
  for (Value* prefix : chunk.prefix) {
    Value* within = scan_combine(groups, prefix);
    results.push_back(base ? scan_combine(base, within) : within);
  }
  Value* has_group =
      places.groups < workers()
          ? b_.CreateICmpULT(worker(), index_constant(places.groups))
          : static_cast<Value*>(b_.getTrue());
  when(has_group, [&] { write_sixteen(chunk.own, results); });
  synchronise();
  for (size_t step = 0; step < chunk.firsts.size(); ++step)
    when(chunk.present[step], [&] {
      put_elements(
          point, chunk.firsts[step],
          read_wide(chunk.places[step], nest_.scan->dtype, places.width));
    });
}

/// Stores results that lie side by side from number `first` of the line on.
void GridEmitter::put_elements(Point& point, Value* first,
                               const std::vector<Value*>& values) {
  const Scan& scan = *nest_.scan;
  const auto axis = static_cast<int>(std::ranges::find(nest_.reduced, true) -
                                     nest_.reduced.begin());
  const auto width = static_cast<int64_t>(values.size());
  Point at = point;
  if (width > 1 && aligned_along(scan.at, axis, width)) {
    set_reduced_index(at, first, 0);
    EmitContext c = context(0);
    std::vector<Value*> stored = values;
    if (scan.dtype != scan.result)
      for (Value*& value : stored)
        value = emit_cast(c, scan.dtype, scan.result, value);
    write_wide(element_pointer(scan.argument, scan.result,
                               offset_at(scan.at, side_part_, at)),
               scan.result, stored);
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    set_reduced_index(at, b_.CreateAdd(first, index_constant(i)), 0);
    put_scanned(values[static_cast<size_t>(i)], at);
  }
}

// ---- chunks that wait for one another ---------------------------------------

/// The next unit: blocks take them in the order in which they begin, so none
/// waits for one that has not begun.
Value* GridEmitter::take_ticket() {
  int64_t used = 0;
  Value* place = shared_array(b_.getInt32Ty(), 1, used);
  when(is_leader(), [&] {
    put_shared(
        place, index_constant(0),
        b_.CreateAtomicRMW(
            llvm::AtomicRMWInst::Add,
            element_pointer(nest_.scan->flags, DType::I32, index_constant(0)),
            i32(1), llvm::MaybeAlign(4), llvm::AtomicOrdering::Monotonic));
  });
  synchronise();
  Value* ticket = wide(get_shared(place, b_.getInt32Ty(), index_constant(0)));
  synchronise();
  return ticket;
}

/// What comes before chunk `number` of a line. Each chunk, n, tells once the
/// block of the members tree that it closes, the one that ends with it: its
/// level is the number of n's trailing ones. The blocks before n are, for each
/// bit of n that is set, the one that ends where the bits below begin.
Value* GridEmitter::linked_carry(const ScanPlaces& places, Value* row,
                                 Value* number) {
  const Scan& scan = *nest_.scan;
  const int64_t chunks = ceil_div(reduced_points(), orders().reduce_chunk);
  Value* line = b_.CreateMul(row, index_constant(chunks));
  auto node = [&](Value* chunk) { return b_.CreateAdd(line, chunk); };
  auto flag = [&](Value* chunk) {
    return element_pointer(scan.flags, DType::I32,
                           b_.CreateAdd(node(chunk), index_constant(1)));
  };
  auto value_at = [&](Value* chunk) {
    return element_pointer(scan.carries, scan.dtype, node(chunk));
  };
  auto fence = [&] {
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_membar_gl, {}, {});
  };
  EmitContext c = context(0);
  auto publish = [&](Value*, Value* value) {
    b_.CreateStore(to_memory(c, scan.dtype, value), value_at(number), true);
    fence();
    b_.CreateStore(i32(1), flag(number), true);
  };
  Value* is_odd = b_.CreateTrunc(number, b_.getInt1Ty());
  CarryBlocks blocks = carry_blocks_in(places);
  when(b_.CreateICmpULT(worker(), index_constant(warp_threads)), [&] {
    Value* total = fold_totals(places);
    when(b_.CreateAnd(is_leader(), b_.CreateNot(is_odd)),
         [&] { publish(nullptr, total); });
    Value* bit = wide(grid_.lane);
    Value* above = b_.CreateLShr(number, bit);
    when(b_.CreateTrunc(above, b_.getInt1Ty()), [&] {
      Value* chunk = b_.CreateSub(b_.CreateShl(above, bit), index_constant(1));
      Value* there = flag(chunk);
      auto* wait =
          llvm::BasicBlock::Create(b_.getContext(), "wait", frame_.function);
      auto* come =
          llvm::BasicBlock::Create(b_.getContext(), "come", frame_.function);
      b_.CreateBr(wait);
      b_.SetInsertPoint(wait);
      b_.CreateCondBr(
          b_.CreateIsNotNull(b_.CreateLoad(b_.getInt32Ty(), there, true)), come,
          wait);
      b_.SetInsertPoint(come);
      fence();
      blocks.put(bit, from_memory(c, scan.dtype,
                                  b_.CreateLoad(memory_type(c, scan.dtype),
                                                value_at(chunk), true)));
    });
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {i32(-1)});
    when(is_leader(), [&] {
      when(is_odd, [&] { push_part({blocks.get, publish}, number, total); });
      // A chunk's carry begins with the smallest block.
      Value* carry = choose(b_.CreateIsNotNull(number), {scan_neutral(0)}, [&] {
        Value* lowest = b_.CreateIntrinsic(
            llvm::Intrinsic::cttz, {b_.getInt64Ty()}, {number, b_.getTrue()});
        return std::vector<Value*>{
            fold_blocks(blocks, without_lowest(number), blocks.get(lowest))};
      })[0];
      put_shared(places.carry, index_constant(0), carry);
    });
  });
  synchronise();
  return get_shared(places.carry, places.type, index_constant(0));
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

// ---- along another axis -----------------------------------------------------

/// A thread: a column, or a run of one.
void GridEmitter::emit_scan_in_order(Point& point) {
  const Scan& scan = *nest_.scan;
  if (scan.part == Scan::Part::whole)
    return NestEmitter::emit_scan_in_order(point);
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const int64_t count = reduced_points();
  const bool totals = scan.part == Scan::Part::totals;
  Value* start = b_.CreateMul(repeat_, index_constant(orders().reduce_run));
  Value* columns = index_constant(nest_.kept_points());
  Value* column = row_of(point);
  Point scalar;
  Value* nothing = scan_neutral(0);
  Value* carry =
      totals ? nullptr : choose(b_.CreateIsNotNull(repeat_), {nothing}, [&] {
        Value* before = b_.CreateSub(repeat_, index_constant(1));
        return std::vector<Value*>{load_at(
            scan.carries, scan.dtype,
            b_.CreateAdd(b_.CreateMul(before, columns), column), 0, scalar)};
      })[0];
  auto run = [&](int64_t length) {
    const int64_t at_once = scanned_at_once(), left = length % at_once;
    Value* total = nothing;
    if (length > left)
      total = scan_run(point, fixed, start, carry, total,
                       index_constant(length / at_once), at_once, !totals);
    if (left)
      total = scan_run(point, fixed,
                       b_.CreateAdd(start, index_constant(length - left)),
                       carry, total, index_constant(left), 1, !totals);
    return total;
  };
  const int64_t full = count / orders().reduce_run;
  auto whole = [&] {
    Value* total = run(orders().reduce_run);
    const Affine alone = constant_affine(0, 0);
    if (totals)
      store_at(scan.argument, scan.dtype,
               b_.CreateAdd(b_.CreateMul(repeat_, columns), column), alone,
               total, scalar, false);
  };
  if (count % orders().reduce_run == 0) return whole();
  Value* is_whole = b_.CreateICmpSLT(repeat_, index_constant(full));
  when(is_whole, whole);
  // Nobody asks for the total of the last run.
  if (!totals)
    when(b_.CreateNot(is_whole), [&] { run(count % orders().reduce_run); });
}

/// The total of each run of a column becomes the members tree over all up to
/// it, in place. A block does as many as it has threads: a run takes what its
/// aligned block of 2, then 4, 8 ... has before it, then the blocks before
/// these.
void GridEmitter::scan_carries(Value* column) {
  const Scan& scan = *nest_.scan;
  const int64_t count = reduced_points();
  EmitContext c = context(0);
  ScanPlaces places{};
  places.type = register_type(c, scan.dtype);
  int64_t used = 0;
  places.totals = shared_array(places.type, grid_threads, used);
  places.waiting = shared_array(places.type, warp_threads, used);
  const CarryBlocks blocks = carry_blocks_in(places);
  const Affine alone = constant_affine(0, 0);
  Point scalar;
  Value* columns = index_constant(nest_.kept_points());
  loop(index_constant(0), index_constant(count), grid_threads,
       [&](Value* start) {
         Value* index = b_.CreateAdd(start, worker());
         Value* place = b_.CreateAdd(b_.CreateMul(index, columns), column);
         Value* inside = b_.CreateICmpSLT(index, index_constant(count));
         Value* value = choose(inside, {scan_neutral(0)}, [&] {
           return std::vector<Value*>{
               load_at(scan.argument, scan.dtype, place, 0, scalar)};
         })[0];
         for (int step = 1; step < grid_threads; step *= 2) {
           put_shared(places.totals, worker(), value);
           synchronise();
           Value* last_before = b_.CreateOr(
               b_.CreateAnd(grid_.thread, i32(-2 * step)), i32(step - 1));
           Value* earlier =
               get_shared(places.totals, places.type, wide(last_before));
           value = b_.CreateSelect(
               b_.CreateIsNotNull(b_.CreateAnd(grid_.thread, i32(step))),
               scan_combine(earlier, value), value);
           synchronise();
         }
         put_shared(places.totals, worker(), value);
         Value* tile = b_.CreateUDiv(start, index_constant(grid_threads));
         value = fold_blocks(blocks, tile, value);
         when(inside, [&] {
           store_at(scan.argument, scan.dtype, place, alone, value, scalar,
                    false);
         });
         synchronise();
         when(is_leader(), [&] {
           push_part(blocks, tile,
                     get_shared(places.totals, places.type,
                                index_constant(grid_threads - 1)));
         });
         synchronise();
       });
}

}  // namespace unisono::jit
