// Reductions, in the orders of reduce_order.h. Two forms: lanes of a vector are
// neighbours along the reduced axes (a chunk is spread over 64 lanes), or along
// the last kept axis (columns: every lane has a reduction of its own).
//
// A lane that has no element holds the neutral element of its operation, which
// combines to the same bits as taking no part: -0.0 for a sum of floats.
#include <algorithm>
#include <bit>

#include "jit/emit/nest.h"
#include "jit/ir/kinds.h"
#include "jit/ir/reduce_order.h"

namespace unisono::jit {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

// ---- phases ----------------------------------------------------------------

NestEmitter::Loop NestEmitter::loop_of_phase(int phase) const {
  Loop loop{.phase = phase};
  loop.needed.assign(nest_.exprs.size(), false);
  for (size_t r = 0; r < nest_.reductions.size(); ++r) {
    const Reduction& reduction = nest_.reductions[r];
    if (reduction.phase != phase) continue;
    loop.reductions.push_back(static_cast<int>(r));
    loop.needed[reduction.operand] = true;
    if (reduction.second >= 0) loop.needed[reduction.second] = true;
  }
  for (size_t s = 0; s < nest_.stores.size(); ++s) {
    const Store& store = nest_.stores[s];
    if (nest_.exprs[store.value].phase != phase ||
        !is_inner_store(nest_, inner_, store))
      continue;
    loop.stores.push_back(static_cast<int>(s));
    loop.needed[store.value] = true;
  }
  for (size_t e = nest_.exprs.size(); e-- > 0;) {
    const Expr& expr = nest_.exprs[e];
    if (expr.checked && inner_[e] && expr.phase == phase) loop.needed[e] = true;
    if (loop.needed[e])
      for (ExprId operand : expr.operands) loop.needed[operand] = true;
  }
  return loop;
}

void NestEmitter::outer_values(Point& point, Values& values, int phase) {
  std::vector<bool> needed(nest_.exprs.size());
  for (size_t e = 0; e < needed.size(); ++e)
    needed[e] = !inner_[e] && nest_.exprs[e].phase <= phase;
  compute(needed, point, values);
}

void NestEmitter::outer_stores(Point& point, const Values& values, int phase) {
  std::vector<int> stores;
  for (size_t s = 0; s < nest_.stores.size(); ++s)
    if (nest_.exprs[nest_.stores[s].value].phase == phase &&
        !is_inner_store(nest_, inner_, nest_.stores[s]))
      stores.push_back(static_cast<int>(s));
  store_outputs(stores, point, values);
}

void NestEmitter::finish_phase(Values& values, const Loop& loop,
                               const Accumulators& results) {
  for (size_t e = 0; e < nest_.exprs.size(); ++e) {
    const Expr& expr = nest_.exprs[e];
    if (expr.kind != Expr::Kind::reduced) continue;
    for (size_t i = 0; i < loop.reductions.size(); ++i)
      if (loop.reductions[i] == expr.reduction)
        values[e] = expr.best ? results[i].front() : results[i].back();
  }
}

void NestEmitter::emit_phases(Point& point, bool in_lanes) {
  Values values(nest_.exprs.size());
  int last = 0;
  for (const Expr& expr : nest_.exprs) last = std::max(last, expr.phase);
  for (int phase = 0; phase <= last; ++phase) {
    outer_values(point, values, phase);
    outer_stores(point, values, phase);
    const Loop loop = loop_of_phase(phase);
    if (std::none_of(loop.needed.begin(), loop.needed.end(),
                     [](bool needed) { return needed; }))
      continue;
    in_lanes ? phase_in_lanes(point, values, loop)
             : phase_in_columns(point, values, loop);
  }
}

void NestEmitter::emit_lanes(Point& point) {
  point.vector_axis = -1;
  fix_unit_parts(point);
  emit_phases(point, true);
}

void NestEmitter::emit_columns_at(Point& point) {
  nest_.scan ? emit_scan_in_order(point) : emit_phases(point, false);
}

// ---- accumulators ----------------------------------------------------------

namespace {

uint64_t bits_of(const std::vector<uint8_t>& bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

uint64_t neutral_bits(const Reduction& reduction) {
  const DType dtype = reduction.dtype;
  if (reduction.kind == Reduction::Kind::dot) return 0;
  if (finds_position(reduction))
    return bits_of(ir::identity_element(
        reduction.kind == Reduction::Kind::argmax ? Op::max : Op::min, dtype));
  if (reduction.op == Op::add && dtype == DType::F32) return uint64_t{1} << 31;
  if (reduction.op == Op::add && dtype == DType::F64) return uint64_t{1} << 63;
  return bits_of(
      ir::identity_element(ir::reduction_by(reduction.op, dtype), dtype));
}

}  // namespace

NestEmitter::Accumulator NestEmitter::neutral(const Reduction& reduction,
                                              unsigned lanes,
                                              const Values& first) {
  Point at;
  at.lanes = lanes;
  Accumulator out = {
      widened(element_constant(reduction.dtype, neutral_bits(reduction)), at)};
  if (finds_position(reduction))
    out.push_back(widened(first[reduction.second], at));
  return out;
}

NestEmitter::Accumulators NestEmitter::elements(const Loop& loop,
                                                const Values& values,
                                                Point& point) {
  Accumulators out;
  for (int r : loop.reductions) {
    const Reduction& reduction = nest_.reductions[r];
    out.push_back({widened(values[reduction.operand], point)});
    if (reduction.second >= 0)
      out.back().push_back(widened(values[reduction.second], point));
  }
  return out;
}

namespace {

unsigned lanes_of(Value* value) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type ? type->getNumElements() : 0;
}

}  // namespace

NestEmitter::Accumulator NestEmitter::better(const Reduction& reduction,
                                             const Accumulator& a,
                                             const Accumulator& b,
                                             bool in_order) {
  EmitContext c = context(lanes_of(a[0]));
  const DType dtype = reduction.dtype;
  const bool largest = reduction.kind == Reduction::Kind::argmax;
  const auto either = [&](Value* first, const Accumulator& yes,
                          const Accumulator& no) -> Accumulator {
    return {b_.CreateSelect(first, yes[0], no[0]),
            b_.CreateSelect(first, yes[1], no[1])};
  };
  if (in_order) {
    // A choice after another: of masks of several comparisons that are joined
    // before, LLVM makes bytes, which costs more than all else without AVX-512.
    Value* stays =
        emit_element(c, largest ? Op::le : Op::ge, dtype, {b[0], a[0]});
    const Accumulator found = either(stays, a, b);
    return is_floating(dtype)
               ? either(emit_element(c, Op::is_nan, dtype, {a[0]}), a, found)
               : found;
  }
  Value* take = emit_element(c, largest ? Op::gt : Op::lt, dtype, {b[0], a[0]});
  Value* same = emit_element(c, Op::eq, dtype, {b[0], a[0]});
  if (is_floating(dtype)) {
    Value* a_nan = emit_element(c, Op::is_nan, dtype, {a[0]});
    Value* b_nan = emit_element(c, Op::is_nan, dtype, {b[0]});
    take = b_.CreateOr(take, b_.CreateAnd(b_nan, b_.CreateNot(a_nan)));
    same = b_.CreateOr(same, b_.CreateAnd(a_nan, b_nan));
  }
  take = b_.CreateOr(take, b_.CreateAnd(same, b_.CreateICmpSLT(b[1], a[1])));
  return either(take, b, a);
}

NestEmitter::Accumulator NestEmitter::combine(const Reduction& reduction,
                                              const Accumulator& a,
                                              const Accumulator& b,
                                              bool in_order) {
  EmitContext c = context(lanes_of(a[0]));
  switch (reduction.kind) {
    case Reduction::Kind::combine:
      return {emit_element(c, reduction.op, reduction.dtype, {a[0], b[0]})};
    case Reduction::Kind::argmax:
    case Reduction::Kind::argmin: return better(reduction, a, b, in_order);
    case Reduction::Kind::dot:
      if (b.size() == 1)  // of two chains
        return {emit_element(c, Op::add, reduction.dtype, {a[0], b[0]})};
      if (is_floating(reduction.dtype))
        return {emit_element(c, Op::fma, reduction.dtype, {b[0], b[1], a[0]})};
      return {b_.CreateAdd(b_.CreateMul(b[0], b[1]), a[0])};
  }
  __builtin_unreachable();
}

NestEmitter::Accumulators NestEmitter::combine_all(const Loop& loop,
                                                   const Accumulators& a,
                                                   const Accumulators& b,
                                                   bool in_order) {
  Accumulators out;
  for (size_t i = 0; i < loop.reductions.size(); ++i)
    out.push_back(
        combine(nest_.reductions[loop.reductions[i]], a[i], b[i], in_order));
  return out;
}

std::vector<Value*> NestEmitter::flatten(const Accumulators& all) const {
  std::vector<Value*> out;
  for (const Accumulator& one : all)
    out.insert(out.end(), one.begin(), one.end());
  return out;
}

NestEmitter::Accumulators NestEmitter::unflatten(
    const Loop& loop, llvm::ArrayRef<Value*> values) const {
  Accumulators out;
  size_t next = 0;
  for (int r : loop.reductions) {
    const size_t parts = finds_position(nest_.reductions[r]) ? 2 : 1;
    out.push_back(values.slice(next, parts).vec());
    next += parts;
  }
  return out;
}

namespace {

/// Vectors of bits are carried as bytes, all ones or none: from turn to turn
/// LLVM would have each bit in a register of its own, without AVX-512.
bool carried_as_bytes(const Value* value) {
  return value->getType()->isVectorTy() &&
         value->getType()->isIntOrIntVectorTy(1);
}

}  // namespace

std::vector<Value*> NestEmitter::carried_loop(
    Value* count, std::vector<Value*> state,
    const std::function<std::vector<Value*>(Value*, llvm::ArrayRef<Value*>)>&
        step) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(count)) {
    if (constant->isZero()) return state;
    if (constant->isOne()) return step(index_constant(0), state);
  }
  llvm::LLVMContext& context = b_.getContext();
  const auto held = [&](Value* value) {
    return carried_as_bytes(value)
               ? b_.CreateSExt(value, value->getType()->getWithNewBitWidth(8))
               : value;
  };
  std::vector<Value*> first;
  for (Value* value : state) first.push_back(held(value));
  BasicBlock* before = b_.GetInsertBlock();
  auto* inside = BasicBlock::Create(context, "loop", frame_.function);
  auto* after = BasicBlock::Create(context, "after", frame_.function);
  b_.CreateBr(inside);  // the count is never 0
  b_.SetInsertPoint(inside);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(index_constant(0), before);
  std::vector<llvm::PHINode*> carried;
  std::vector<Value*> current;
  for (Value* value : first) {
    carried.push_back(b_.CreatePHI(value->getType(), 2));
    carried.back()->addIncoming(value, before);
  }
  for (size_t i = 0; i < state.size(); ++i)
    current.push_back(carried_as_bytes(state[i]) ? b_.CreateIsNeg(carried[i])
                                                 : carried[i]);
  std::vector<Value*> next = step(index, current);
  std::vector<Value*> kept;
  for (Value* value : next) kept.push_back(held(value));
  Value* following = b_.CreateAdd(index, index_constant(1));
  BasicBlock* end = b_.GetInsertBlock();
  index->addIncoming(following, end);
  for (size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(kept[i], end);
  b_.CreateCondBr(b_.CreateICmpSLT(following, count), inside, after);
  b_.SetInsertPoint(after);
  return next;
}

// ---- the members tree ------------------------------------------------------

/// Leaf number n closes as many blocks as n has trailing ones: the blocks that
/// wait on the stack, one of each size, are the ones of n.
void NestEmitter::push_leaf(const Loop& loop, llvm::ArrayRef<Value*> stacks,
                            Value* leaf, const Accumulators& value) {
  llvm::LLVMContext& context = b_.getContext();
  std::vector<Value*> parts = flatten(value);
  BasicBlock* before = b_.GetInsertBlock();
  auto* test = BasicBlock::Create(context, "closes", frame_.function);
  auto* join = BasicBlock::Create(context, "join", frame_.function);
  auto* put = BasicBlock::Create(context, "put", frame_.function);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  llvm::PHINode* level = b_.CreatePHI(b_.getInt64Ty(), 2);
  level->addIncoming(index_constant(0), before);
  std::vector<llvm::PHINode*> held;
  std::vector<Value*> current;
  for (Value* part : parts) {
    held.push_back(b_.CreatePHI(part->getType(), 2));
    held.back()->addIncoming(part, before);
    current.push_back(held.back());
  }
  Value* bit = b_.CreateAnd(b_.CreateLShr(leaf, level), index_constant(1));
  b_.CreateCondBr(b_.CreateICmpNE(bit, index_constant(0)), join, put);
  auto place = [&](size_t i) {
    return b_.CreateGEP(parts[i]->getType(), stacks[i], level);
  };
  b_.SetInsertPoint(join);
  std::vector<Value*> waiting;
  for (size_t i = 0; i < parts.size(); ++i)
    waiting.push_back(b_.CreateLoad(parts[i]->getType(), place(i)));
  std::vector<Value*> joined = flatten(combine_all(
      loop, unflatten(loop, waiting), unflatten(loop, current), false));
  level->addIncoming(b_.CreateAdd(level, index_constant(1)),
                     b_.GetInsertBlock());
  for (size_t i = 0; i < parts.size(); ++i)
    held[i]->addIncoming(joined[i], b_.GetInsertBlock());
  b_.CreateBr(test);
  b_.SetInsertPoint(put);
  for (size_t i = 0; i < parts.size(); ++i)
    b_.CreateStore(current[i], place(i));
}

NestEmitter::Accumulators NestEmitter::tree(const Loop& loop, int64_t count,
                                            bool last_differs,
                                            const Leaf& leaf) {
  if (count == 1) return leaf(index_constant(0), last_differs);
  const auto levels =
      static_cast<unsigned>(std::bit_width(static_cast<uint64_t>(count)));
  std::vector<Value*> stacks;
  std::vector<llvm::Type*> types;
  auto leaf_at = [&](Value* number, bool last) {
    Accumulators value = leaf(number, last);
    if (stacks.empty()) {
      llvm::IRBuilder<> entry(&frame_.function->getEntryBlock(),
                              frame_.function->getEntryBlock().begin());
      for (Value* part : flatten(value)) {
        types.push_back(part->getType());
        stacks.push_back(
            entry.CreateAlloca(part->getType(), entry.getInt32(levels)));
      }
    }
    push_leaf(loop, stacks, number, value);
  };
  const int64_t alike = last_differs ? count - 1 : count;
  this->loop(index_constant(0), index_constant(alike), 1, [&](Value* number) {
    if (loop.polls) poll();
    leaf_at(number, false);
  });
  if (last_differs) leaf_at(index_constant(count - 1), true);
  // Blocks that are left, the smallest first.
  Accumulators total;
  for (unsigned level = 0; level < levels; ++level) {
    if (!(count >> level & 1)) continue;
    std::vector<Value*> parts;
    for (size_t i = 0; i < stacks.size(); ++i)
      parts.push_back(b_.CreateLoad(
          types[i], b_.CreateGEP(types[i], stacks[i], index_constant(level))));
    Accumulators block = unflatten(loop, parts);
    total = total.empty() ? block : combine_all(loop, block, total, false);
  }
  return total;
}

// ---- lanes along the reduced axes ------------------------------------------

/// The reduced axes' indices at element `flat` of them in row-major order, for
/// `lanes` neighbours of which `flat`, a multiple of `lanes`, is the first.
void NestEmitter::set_reduced_index(Point& point, Value* flat, unsigned lanes) {
  std::vector<size_t> axes;
  int64_t count = 1;
  for (size_t a = 0; a < nest_.extents.size(); ++a)
    if (nest_.reduced[a]) axes.push_back(a), count *= nest_.extents[a];
  if (axes.empty()) return;
  const int64_t innermost = nest_.extents[axes.back()];
  const bool regular = lanes == 0 || axes.size() == 1 || innermost % lanes == 0;
  if (regular) {
    if (lanes) point.vector_axis = static_cast<int>(axes.back());
    Value* rest = flat;
    for (size_t i = axes.size(); i-- > 0;) {
      Value* extent = index_constant(nest_.extents[axes[i]]);
      point.index[axes[i]] = i ? b_.CreateURem(rest, extent) : rest;
      if (i) rest = b_.CreateUDiv(rest, extent);
    }
    return;
  }
  point.vector_axis = -1;
  const bool small = count <= INT32_MAX - 64;
  llvm::Type* type = small ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* rest =
      b_.CreateAdd(b_.CreateVectorSplat(lanes, b_.CreateTrunc(flat, type)),
                   lane_numbers(type, lanes));
  for (size_t i = axes.size(); i-- > 0;) {
    Value* extent =
        llvm::ConstantInt::get(vector_type(type, lanes),
                               static_cast<uint64_t>(nest_.extents[axes[i]]));
    Value* index = i ? b_.CreateURem(rest, extent) : rest;
    if (i) rest = b_.CreateUDiv(rest, extent);
    point.lane_index[axes[i]] =
        b_.CreateZExt(index, vector_type(b_.getInt64Ty(), lanes));
  }
}

/// Where argmax starts: the index of the first element, known as `second`.
Values NestEmitter::first_indices(Point& point, const Values& values,
                                  const Loop& loop, bool in_lanes) {
  std::vector<bool> needed(nest_.exprs.size());
  for (int r : loop.reductions)
    if (finds_position(nest_.reductions[r]))
      needed[nest_.reductions[r].second] = true;
  for (size_t e = needed.size(); e-- > 0;)
    if (needed[e])
      for (ExprId operand : nest_.exprs[e].operands) needed[operand] = true;
  Point at = point;
  if (in_lanes) at.lanes = 0, at.mask = nullptr;
  set_reduced_index(at, index_constant(0), 0);
  Values first = values;
  compute(needed, at, first);
  return first;
}

int64_t NestEmitter::reduced_points() const {
  return nest_.points() / nest_.kept_points();
}

void NestEmitter::phase_in_lanes(Point& point, Values& values,
                                 const Loop& loop) {
  const int64_t count = reduced_points();
  if (loop.reductions.empty()) {
    vector_loop(index_constant(0), index_constant(count),
                static_cast<unsigned>(plan_.lanes),
                [&](Value* index, unsigned lanes, Value* mask) {
                  Point at = point;
                  at.lanes = lanes;
                  at.mask = mask;
                  set_reduced_index(at, index, lanes);
                  Values inside = values;
                  compute(loop.needed, at, inside);
                  store_outputs(loop.stores, at, inside);
                });
    return;
  }
  const Values first = first_indices(point, values, loop, true);
  const int64_t chunks =
      (count + orders().reduce_chunk - 1) / orders().reduce_chunk;
  const int64_t rest = count % orders().reduce_chunk;
  Accumulators results =
      tree(loop, chunks, rest != 0, [&](Value* leaf, bool last) {
        Value* start =
            b_.CreateMul(leaf, index_constant(orders().reduce_chunk));
        return chunk_in_lanes(point, values, first, loop, start,
                              last ? rest : orders().reduce_chunk);
      });
  finish_phase(values, loop, results);
}

/// One chunk: all 64 lanes at once, or some after others where registers are
/// few. `length` elements from `start` on.
NestEmitter::Accumulators NestEmitter::chunk_in_lanes(
    Point& point, const Values& values, const Values& first, const Loop& loop,
    Value* start, int64_t length) {
  size_t parts = 0;
  for (int r : loop.reductions)
    parts += finds_position(nest_.reductions[r]) ? 2 : 1;
  // Accumulators beyond the 16 registers of narrower vectors lie in the first
  // cache, which costs less than to read a chunk twice.
  const int registers = frame_.machine.vector_bytes >= 64 ? 16 : 32;
  const unsigned lanes = std::min<unsigned>(
      reduce_lanes, static_cast<unsigned>(plan_.lanes) *
                        std::bit_floor(std::max<unsigned>(
                            1, static_cast<unsigned>(registers) /
                                   static_cast<unsigned>(parts))));
  std::vector<Accumulators> passes;
  for (int64_t lane = 0; lane < reduce_lanes; lane += lanes) {
    if (lane && lane >= length) break;  // no element, here or further on
    auto take = [&](Value* index, Value* mask, const Accumulators& state) {
      Point at = point;
      at.lanes = lanes;
      at.mask = mask;
      set_reduced_index(at, index, lanes);
      if (loop.phase == 0 && !mask) prefetch_lanes(loop.needed, at);
      Values inside = values;
      compute(loop.needed, at, inside);
      store_outputs(loop.stores, at, inside);
      return combine_all(loop, state, elements(loop, inside, at), true);
    };
    Accumulators state;
    for (int r : loop.reductions)
      state.push_back(neutral(nest_.reductions[r], lanes, first));
    const int64_t steps = length / reduce_lanes;
    Value* base = b_.CreateAdd(start, index_constant(lane));
    state = unflatten(
        loop,
        carried_loop(
            index_constant(steps), flatten(state),
            [&](Value* step, llvm::ArrayRef<Value*> current) {
              Value* index = b_.CreateAdd(
                  base, b_.CreateMul(step, index_constant(reduce_lanes)));
              return flatten(take(index, nullptr, unflatten(loop, current)));
            }));
    const int64_t left = std::min<int64_t>(length % reduce_lanes - lane, lanes);
    if (left > 0) {
      Value* mask = left < lanes ? constant_mask(left, lanes) : nullptr;
      Value* index = b_.CreateAdd(base, index_constant(steps * reduce_lanes));
      std::vector<Value*> before = flatten(state);
      std::vector<Value*> after = flatten(take(index, mask, state));
      if (mask)
        for (size_t i = 0; i < after.size(); ++i)
          after[i] = b_.CreateSelect(mask, after[i], before[i]);
      state = unflatten(loop, after);
    }
    passes.push_back(std::move(state));
  }
  // Lane i takes lane i + 32, and so on; passes without elements are neutral.
  for (int64_t half = reduce_lanes / lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      if (i + half < static_cast<int64_t>(passes.size()))
        passes[i] = combine_all(loop, passes[i], passes[i + half], false);
  for (size_t i = 0; i < loop.reductions.size(); ++i)
    passes[0][i] =
        halves(nest_.reductions[loop.reductions[i]], passes[0][i], lanes);
  return passes[0];
}

NestEmitter::Accumulator NestEmitter::halves(const Reduction& reduction,
                                             Accumulator value,
                                             unsigned lanes) {
  for (; lanes > 1; lanes /= 2) {
    Accumulator low, high;
    for (Value* part : value) {
      llvm::SmallVector<int> first, second;
      for (unsigned i = 0; i < lanes / 2; ++i) {
        first.push_back(static_cast<int>(i));
        second.push_back(static_cast<int>(i + lanes / 2));
      }
      low.push_back(b_.CreateShuffleVector(part, first));
      high.push_back(b_.CreateShuffleVector(part, second));
    }
    value = combine(reduction, low, high, false);
  }
  for (Value*& part : value) part = b_.CreateExtractElement(part, uint64_t{0});
  return value;
}

// ---- lanes along the last kept axis ----------------------------------------

void NestEmitter::phase_in_columns(Point& point, Values& values,
                                   const Loop& loop) {
  const int64_t count = reduced_points();
  auto visit = [&](Value* index) {
    Point at = point;
    set_reduced_index(at, index, 0);
    at.vector_axis = point.vector_axis;
    Values inside = values;
    compute(loop.needed, at, inside);
    store_outputs(loop.stores, at, inside);
    return elements(loop, inside, at);
  };
  if (loop.reductions.empty()) {
    this->loop(index_constant(0), index_constant(count), 1,
               [&](Value* index) { visit(index); });
    return;
  }
  const CombineOrder order = nest_.reductions[loop.reductions[0]].order;
  if (order == CombineOrder::members) {
    Accumulators results = tree(loop, count, false,
                                [&](Value* leaf, bool) { return visit(leaf); });
    return finish_phase(values, loop, results);
  }
  const int64_t run =
      order == CombineOrder::chain ? orders().dot_chain : orders().reduce_run;
  const Values first = first_indices(point, values, loop, false);
  auto leaf = [&](Value* number, bool last) {
    Accumulators state;
    for (int r : loop.reductions)
      state.push_back(neutral(nest_.reductions[r], point.lanes, first));
    Value* start = b_.CreateMul(number, index_constant(run));
    const int64_t length = last ? count % run : run;
    std::vector<Value*> parts = flatten(state);
    int64_t done = 0;
    if (plan_.square) {
      const int64_t rounds = length / plan_.square;
      parts = chain_in_squares(point, values, loop, start, rounds, parts);
      done = rounds * plan_.square;
      start = b_.CreateAdd(start, index_constant(done));
    }
    return unflatten(
        loop, carried_loop(index_constant(length - done), parts,
                           [&](Value* i, llvm::ArrayRef<Value*> current) {
                             return flatten(combine_all(
                                 loop, unflatten(loop, current),
                                 visit(b_.CreateAdd(start, i)), true));
                           }));
  };
  Accumulators results =
      tree(loop, (count + run - 1) / run, count % run != 0, leaf);
  finish_phase(values, loop, results);
}

}  // namespace unisono::jit
