// Scans, in the orders of reduce_order.h. Along the array's last axis, groups
// of 16 neighbours are one vector each; along another axis, lanes are
// neighbours along the last kept axis and every lane scans in order. What has
// nothing before it takes the neutral element, which changes no bits.
#include <bit>

#include "jit/emit/nest.h"
#include "jit/ir/reduce_order.h"

namespace unisono::jit {

using llvm::Value;

Value* NestEmitter::scan_combine(Value* a, Value* b) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(b->getType());
  EmitContext c = context(type ? type->getNumElements() : 0);
  return emit_element(c, nest_.scan->op, nest_.scan->dtype, {a, b});
}

/// In all lanes; 0 lanes: a scalar.
Value* NestEmitter::scan_neutral(unsigned lanes) {
  const Reduction as_reduction{.op = nest_.scan->op,
                               .dtype = nest_.scan->dtype};
  return neutral(as_reduction, lanes, {})[0];
}

void NestEmitter::put_scanned(Value* value, Point& point) {
  const Scan& scan = *nest_.scan;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  EmitContext c = context(type ? type->getNumElements() : 0);
  value = scan.dtype == scan.result
              ? value
              : emit_cast(c, scan.dtype, scan.result, value);
  store(scan.at, side_part_, scan.argument, scan.result, value, point,
        plan_.streaming);
}

namespace {

std::vector<bool> everything(const Nest& nest) {
  return std::vector<bool>(nest.exprs.size(), true);
}

}  // namespace

/// Where a ScanCarry of values like `alike` keeps its blocks, for `parts`
/// parts.
NestEmitter::CarryBlocks NestEmitter::carry_blocks(Value* alike,
                                                   int64_t parts) {
  llvm::IRBuilder<> entry(&frame_.function->getEntryBlock(),
                          frame_.function->getEntryBlock().begin());
  llvm::Type* type = alike->getType();
  Value* blocks = entry.CreateAlloca(
      type, entry.getInt32(static_cast<uint32_t>(
                std::bit_width(static_cast<uint64_t>(parts)))));
  auto place = [this, type, blocks](Value* level) {
    return b_.CreateGEP(type, blocks, level);
  };
  return {[this, type, place](Value* level) {
            return b_.CreateLoad(type, place(level));
          },
          [this, place](Value* level, Value* value) {
            b_.CreateStore(value, place(level));
          }};
}

/// ScanCarry's `push` of part `number`; gives the block that it closes, and
/// `put` gets that and its level.
Value* NestEmitter::push_part(const CarryBlocks& blocks, Value* number,
                              Value* total) {
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* closes = llvm::BasicBlock::Create(context, "closes", frame_.function);
  auto* join = llvm::BasicBlock::Create(context, "join", frame_.function);
  auto* put = llvm::BasicBlock::Create(context, "put", frame_.function);
  b_.CreateBr(closes);
  b_.SetInsertPoint(closes);
  llvm::PHINode* level = b_.CreatePHI(b_.getInt64Ty(), 2);
  llvm::PHINode* held = b_.CreatePHI(total->getType(), 2);
  level->addIncoming(index_constant(0), before);
  held->addIncoming(total, before);
  Value* bit = b_.CreateAnd(b_.CreateLShr(number, level), index_constant(1));
  b_.CreateCondBr(b_.CreateIsNotNull(bit), join, put);
  b_.SetInsertPoint(join);
  Value* joined = scan_combine(blocks.get(level), held);
  level->addIncoming(b_.CreateAdd(level, index_constant(1)),
                     b_.GetInsertBlock());
  held->addIncoming(joined, b_.GetInsertBlock());
  b_.CreateBr(closes);
  b_.SetInsertPoint(put);
  blocks.put(level, held);
  return held;
}

/// `sum` after the blocks whose levels are the bits of `rest`, the smallest
/// first.
Value* NestEmitter::fold_blocks(const CarryBlocks& blocks, Value* rest,
                                Value* sum) {
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* fold = llvm::BasicBlock::Create(context, "fold", frame_.function);
  auto* more = llvm::BasicBlock::Create(context, "more", frame_.function);
  auto* done = llvm::BasicBlock::Create(context, "done", frame_.function);
  b_.CreateBr(fold);
  b_.SetInsertPoint(fold);
  llvm::PHINode* left = b_.CreatePHI(b_.getInt64Ty(), 2);
  llvm::PHINode* total = b_.CreatePHI(sum->getType(), 2);
  left->addIncoming(rest, before);
  total->addIncoming(sum, before);
  b_.CreateCondBr(b_.CreateIsNotNull(left), more, done);
  b_.SetInsertPoint(more);
  Value* lowest = b_.CreateIntrinsic(llvm::Intrinsic::cttz, {b_.getInt64Ty()},
                                     {left, b_.getTrue()});
  Value* next = scan_combine(blocks.get(lowest), total);
  left->addIncoming(without_lowest(left), b_.GetInsertBlock());
  total->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(fold);
  b_.SetInsertPoint(done);
  return total;
}

Value* NestEmitter::without_lowest(Value* bits) {
  return b_.CreateAnd(bits, b_.CreateSub(bits, index_constant(1)));
}

/// ScanCarry's `push` of part `number`, then `carry`.
Value* NestEmitter::next_carry(const CarryBlocks& blocks, Value* number,
                               Value* total) {
  Value* closed = push_part(blocks, number, total);
  Value* count = b_.CreateAdd(number, index_constant(1));
  return fold_blocks(blocks, without_lowest(count), closed);
}

void NestEmitter::emit_scan(Point& point, Value*) {
  point.vector_axis = -1;
  fix_unit_parts(point);
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const int64_t count = reduced_points();
  const int64_t full = count / orders().reduce_chunk,
                rest = count % orders().reduce_chunk;
  Value* carry = full ? scan_neutral(0) : nullptr;
  if (full) {
    const CarryBlocks blocks = carry_blocks(carry, full);
    carry = carried_loop(
        index_constant(full), {carry},
        [&](Value* number, llvm::ArrayRef<Value*> state) {
          poll();
          Value* total =
              scan_chunk(point, fixed, number, state[0], orders().reduce_chunk);
          return std::vector<Value*>{next_carry(blocks, number, total)};
        })[0];
  }
  if (rest) scan_chunk(point, fixed, index_constant(full), carry, rest);
}

/// Scans chunk `number` after `carry` (null: nothing); gives its total, if it
/// is a whole one.
Value* NestEmitter::scan_chunk(Point& point, const Values& fixed, Value* number,
                               Value* carry, int64_t length) {
  Value* start = b_.CreateMul(number, index_constant(orders().reduce_chunk));
  const bool many = carry || length > scan_block;
  auto block = [&](Value* index, Value* blocks, int64_t size) {
    Value* base = !many   ? nullptr
                  : carry ? scan_combine(carry, blocks)
                          : blocks;
    Value* total = scan_block_of(
        point, fixed,
        b_.CreateAdd(start, b_.CreateMul(index, index_constant(scan_block))),
        base, size);
    return scan_combine(blocks, total);
  };
  const int64_t full = length / scan_block, left = length % scan_block;
  Value* blocks = scan_neutral(0);
  if (full)
    blocks = carried_loop(
        index_constant(full), {blocks},
        [&](Value* i, llvm::ArrayRef<Value*> state) {
          return std::vector<Value*>{block(i, state[0], scan_block)};
        })[0];
  if (left) block(index_constant(full), blocks, left);
  return blocks;
}

/// Scans a block of groups after `base` (null: nothing); gives its total, if it
/// is a whole one.
Value* NestEmitter::scan_block_of(Point& point, const Values& fixed,
                                  Value* start, Value* base, int64_t length) {
  const int last = scan_lanes - 1;
  auto group = [&](Value* index, Value* groups, int64_t used) {
    Point at = point;
    at.lanes = scan_lanes;
    if (used < scan_lanes) at.mask = constant_mask(used, scan_lanes);
    set_reduced_index(at, b_.CreateAdd(start, index), scan_lanes);
    if (!at.mask) prefetch_lanes(everything(nest_), at);
    Values values = fixed;
    compute(everything(nest_), at, values);
    Value* lanes = widened(values[nest_.scan->operand], at);
    for (int step = 1; step < scan_lanes; step *= 2) {
      llvm::SmallVector<int> shifted;
      llvm::SmallVector<llvm::Constant*> takes_part;
      for (int i = 0; i < scan_lanes; ++i) {
        shifted.push_back(i < step ? i : i - step);
        takes_part.push_back(b_.getInt1(i >= step));
      }
      Value* earlier = b_.CreateShuffleVector(lanes, shifted);
      lanes = b_.CreateSelect(llvm::ConstantVector::get(takes_part),
                              scan_combine(earlier, lanes), lanes);
    }
    Value* within = scan_combine(groups, lanes);
    put_scanned(base ? scan_combine(widened(base, at), within) : within, at);
    // In all lanes, so that the fold stays in vectors.
    Value* own =
        b_.CreateShuffleVector(lanes, llvm::SmallVector<int>(scan_lanes, last));
    return scan_combine(groups, own);
  };
  const int64_t full = length / scan_lanes, left = length % scan_lanes;
  Value* groups = scan_neutral(scan_lanes);
  if (full)
    groups = carried_loop(index_constant(full), {groups},
                          [&](Value* i, llvm::ArrayRef<Value*> state) {
                            return std::vector<Value*>{group(
                                b_.CreateMul(i, index_constant(scan_lanes)),
                                state[0], scan_lanes)};
                          })[0];
  if (left) group(index_constant(full * scan_lanes), groups, left);
  return b_.CreateExtractElement(groups, static_cast<uint64_t>(last));
}

/// Scans `length` points from `start` on after `carry` (null: nothing), so many
/// at once; gives their total.
Value* NestEmitter::scan_run(Point& point, const Values& fixed, Value* start,
                             Value* carry, Value* total, Value* rounds,
                             int64_t at_once, bool stores) {
  return carried_loop(
      rounds, {total}, [&](Value* round, llvm::ArrayRef<Value*> state) {
        Value* first =
            b_.CreateAdd(start, b_.CreateMul(round, index_constant(at_once)));
        std::vector<Point> points;
        std::vector<Value*> operands;
        for (int64_t i = 0; i < at_once; ++i) {
          Point at = point;
          set_reduced_index(at, b_.CreateAdd(first, index_constant(i)), 0);
          at.vector_axis = point.vector_axis;
          Values values = fixed;
          compute(everything(nest_), at, values);
          operands.push_back(widened(values[nest_.scan->operand], at));
          points.push_back(at);
        }
        Value* sum = state[0];
        for (size_t i = 0; i < operands.size(); ++i) {
          sum = scan_combine(sum, operands[i]);
          if (stores)
            put_scanned(carry ? scan_combine(carry, sum) : sum, points[i]);
        }
        return std::vector<Value*>{sum};
      })[0];
}

void NestEmitter::emit_scan_in_order(Point& point) {
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const int64_t count = reduced_points();
  const int64_t full = count / orders().reduce_run,
                rest = count % orders().reduce_run;
  Value* nothing = scan_neutral(point.lanes);
  auto run = [&](Value* number, Value* carry, int64_t length) {
    poll();
    Value* start = b_.CreateMul(number, index_constant(orders().reduce_run));
    const int64_t at_once = scanned_at_once(), left = length % at_once;
    Value* total = nothing;
    if (length > left)
      total = scan_run(point, fixed, start, carry, total,
                       index_constant(length / at_once), at_once, true);
    if (left)
      total = scan_run(point, fixed,
                       b_.CreateAdd(start, index_constant(length - left)),
                       carry, total, index_constant(left), 1, true);
    return total;
  };
  Value* carry = count > orders().reduce_run ? nothing : nullptr;
  if (full && carry) {
    const CarryBlocks blocks = carry_blocks(nothing, full);
    carry = carried_loop(
        index_constant(full), {carry},
        [&](Value* number, llvm::ArrayRef<Value*> state) {
          Value* total = run(number, state[0], orders().reduce_run);
          return std::vector<Value*>{next_carry(blocks, number, total)};
        })[0];
  } else if (full) {
    run(index_constant(0), nullptr, orders().reduce_run);
  }
  if (rest) run(index_constant(full), carry, rest);
}

}  // namespace unisono::jit
