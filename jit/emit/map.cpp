// The loop over units of a nest, loops along its axes, and the simplest form:
// every point by itself, in vectors along the last axis.
#include <numeric>

#include "jit/emit/nest.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// A reverse scan is a scan of the reversed axes.
Nest forwards(const Nest& nest) {
  Nest out = nest;
  if (!nest.scan || !nest.scan->reverse) return out;
  for_each_affine(out, [&](Affine& at) {
    for (size_t a = 0; a < out.extents.size(); ++a) {
      if (!out.reduced[a]) continue;
      at.constant += at.factors[a] * (out.extents[a] - 1);
      at.factors[a] = -at.factors[a];
    }
  });
  return out;
}

}  // namespace

NestEmitter::NestEmitter(Frame& frame, const Nest& nest, const Schedule& plan)
    : frame_(frame),
      b_(frame.builder),
      nest_(forwards(nest)),
      plan_(plan),
      inner_(inner_expressions(nest_)),
      in_loop_(varying_expressions(nest_, plan.vector_axis)),
      unit_axis_(nest_.extents.size()),
      unit_parts_(nest_.exprs.size()),
      store_parts_(nest_.stores.size()) {}

// ---- loops -----------------------------------------------------------------

void NestEmitter::loop(Value* begin, Value* end, int64_t step,
                       const Body& body) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first && last) {
    const int64_t length = last->getSExtValue() - first->getSExtValue();
    if (length <= 0) return;
    if (length <= step) return body(begin);
  }
  llvm::LLVMContext& context = b_.getContext();
  BasicBlock* before = b_.GetInsertBlock();
  auto* inside = BasicBlock::Create(context, "loop", frame_.function);
  auto* after = BasicBlock::Create(context, "after", frame_.function);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  body(index);
  Value* next = b_.CreateAdd(index, index_constant(step));
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  b_.SetInsertPoint(after);
}

void NestEmitter::masked_loop(Value* begin, Value* end, unsigned lanes,
                              const VectorBody& body) {
  loop(begin, end, lanes, [&](Value* i) {
    Value* active = b_.CreateSub(end, i);
    auto* left = llvm::dyn_cast<llvm::ConstantInt>(active);
    body(i, lanes,
         left ? constant_mask(left->getSExtValue(), lanes)
              : lane_mask(active, lanes));
  });
}

void NestEmitter::vector_loop(Value* begin, Value* end, unsigned lanes,
                              const VectorBody& body) {
  if (plan_.all_masked) return masked_loop(begin, end, lanes, body);
  Value* rest = b_.CreateSub(end, begin);
  Value* full =
      b_.CreateAnd(rest, index_constant(-static_cast<int64_t>(lanes)));
  Value* middle = b_.CreateAdd(begin, full);
  loop(begin, middle, lanes, [&](Value* i) { body(i, lanes, nullptr); });
  rest = b_.CreateSub(end, middle);
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(rest)) {
    const int64_t left = constant->getSExtValue();
    if (left == 0) return;
    if (plan_.scalar_tails)
      loop(middle, end, 1, [&](Value* i) { body(i, 0, nullptr); });
    else
      body(middle, lanes, constant_mask(left, lanes));
    return;
  }
  if (plan_.scalar_tails) {
    loop(middle, end, 1, [&](Value* i) { body(i, 0, nullptr); });
    return;
  }
  llvm::LLVMContext& context = b_.getContext();
  auto* tail = BasicBlock::Create(context, "tail", frame_.function);
  auto* after = BasicBlock::Create(context, "after", frame_.function);
  b_.CreateCondBr(b_.CreateICmpEQ(rest, index_constant(0)), after, tail);
  b_.SetInsertPoint(tail);
  body(middle, lanes, lane_mask(rest, lanes));
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void NestEmitter::poll() { jit::poll(b_, frame_.flags, frame_.leave); }

// ---- units -----------------------------------------------------------------

void NestEmitter::emit(Value* begin, Value* end) {
  loop(begin, end, 1, [&](Value* unit) { emit_unit(unit); });
}

void NestEmitter::emit_unit(Value* unit) {
  poll();
  Point point;
  const size_t axes = nest_.extents.size();
  point.index.assign(axes, nullptr);
  point.lane_index.assign(axes, nullptr);
  point.vector_axis = plan_.vector_axis;
  Value* rest = unit;
  int64_t left = plan_.units;  // how many values the rest may have
  auto take = [&](int64_t extent) {
    if (extent == 1) return index_constant(0);
    left /= extent;
    if (left == 1) return std::exchange(rest, index_constant(0));
    Value* size = index_constant(extent);
    Value* index = b_.CreateURem(rest, size);
    rest = b_.CreateUDiv(rest, size);
    return index;
  };
  Value* block = take(plan_.blocks);
  for (size_t a = axes; a-- > 0;) {
    if (nest_.reduced[a] || static_cast<int>(a) == plan_.vector_axis) continue;
    // Of the axis of squares a unit is one block, too.
    const bool tiled = static_cast<int>(a) == plan_.tile_axis;
    const bool in_rows = static_cast<int>(a) == plan_.rows_axis;
    const int64_t extent =
        tiled     ? (nest_.extents[a] + plan_.block - 1) / plan_.block
        : in_rows ? nest_.extents[a] / plan_.rows
                  : nest_.extents[a];
    point.index[a] = take(extent);
  }
  switch (plan_.form) {
    case Form::map: return emit_map(point, block);
    case Form::tiles: return emit_tiles(point, block);
    case Form::lanes: return emit_lanes(point);
    case Form::scan: return emit_scan(point, block);
    case Form::columns:
      if (plan_.rows_at_once) return emit_wide_columns(point, block);
      return with_columns(point, block,
                          [&](Point& at) { emit_columns_at(at); });
    case Form::scatter:
      return with_columns(point, block,
                          [&](Point& at) { emit_scatter_at(at); });
  }
}

std::vector<int> NestEmitter::all_stores() const {
  std::vector<int> stores(nest_.stores.size());
  std::iota(stores.begin(), stores.end(), 0);
  return stores;
}

/// The part of an axis that is block number `block`.
std::pair<Value*, Value*> NestEmitter::block_range(int axis, Value* block) {
  const int64_t extent = nest_.extents[axis];
  Value *begin = index_constant(0), *end = index_constant(extent);
  if (extent <= plan_.block) return {begin, end};
  begin = b_.CreateMul(block, index_constant(plan_.block));
  Value* next = b_.CreateAdd(begin, index_constant(plan_.block));
  if (extent % plan_.block == 0) return {begin, next};
  return {begin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, next, end)};
}

void NestEmitter::emit_map(Point& point, Value* block) {
  if (nest_.turns) return emit_turns(point, block);
  fix_unit_parts(point);
  const int axis = plan_.vector_axis;
  std::vector<Segment> parts;
  if (axis >= 0) parts = segments(nest_, axis);
  std::vector<bool> fixed(nest_.exprs.size(), axis < 0);
  for (const Segment& part : parts)
    for (size_t e = 0; e < fixed.size(); ++e)
      if (part.needed[e] && !in_loop_[e]) fixed[e] = true;
  Values values(nest_.exprs.size());
  Point scalar = point;
  scalar.vector_axis = -1;
  compute(fixed, scalar, values);
  const std::vector<int> stores = all_stores();
  if (axis < 0) return store_outputs(stores, scalar, values);
  auto body = [&](Value* index, unsigned lanes, Value* mask) {
    Point at = point;
    at.index[axis] = index;
    at.lanes = lanes;
    at.mask = mask;
    if (lanes == 0) at.vector_axis = -1;
    Values inside = values;
    compute(segment_->needed, at, inside);
    store_outputs(stores, at, inside);
  };
  const auto [begin, end] = block_range(axis, block);
  for (const Segment& part : parts) {
    segment_ = &part;
    emit_segment(begin, end, body);
  }
}

/// The part of begin ... end - 1 that lies in the present segment.
void NestEmitter::emit_segment(Value* begin, Value* end,
                               const VectorBody& body) {
  const unsigned lanes = static_cast<unsigned>(plan_.lanes);
  const int64_t extent = nest_.extents[plan_.vector_axis];
  auto clipped = [&](int64_t first, int64_t last, const auto& emit) {
    Value *from = begin, *to = end;
    if (first > 0)
      from = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, from,
                                      index_constant(first));
    if (last < extent)
      to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, to,
                                    index_constant(last));
    // A block may lie before the segment, or behind it.
    to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, from, to);
    emit(from, to);
  };
  auto one_by_one = [&](Value* from, Value* to) {
    loop(from, to, 1, [&](Value* i) { body(i, 0, nullptr); });
  };
  auto masked = [&](Value* from, Value* to) {
    if (plan_.scalar_tails) return one_by_one(from, to);
    masked_loop(from, to, lanes, body);
  };
  const int64_t first = segment_->begin, last = segment_->end;
  auto in_vectors = [&](Value* from, Value* to) {
    if (last - first < extent || extent % lanes != 0)
      return vector_loop(from, to, lanes, body);
    loop(from, to, lanes, [&](Value* i) { body(i, lanes, nullptr); });
  };
  if (lanes == 1 || last - first < tuning().few_edge_points)
    return clipped(first, last, one_by_one);
  if (last - first < lanes) return clipped(first, last, masked);
  // Stores that bypass the cache begin at a multiple of the vectors' length.
  const int64_t step = plan_.streaming ? lanes : 1;
  const int64_t middle = (first + step - 1) / step * step;
  if (first < middle) clipped(first, middle, masked);
  clipped(middle, last, in_vectors);
}

/// The last kept axis in vectors, one per unit; the last one may be short.
void NestEmitter::with_columns(Point& point, Value* block,
                               const std::function<void(Point&)>& emit) {
  const int axis = plan_.vector_axis;
  const unsigned lanes = static_cast<unsigned>(plan_.lanes);
  if (axis < 0 || lanes == 1) {
    if (axis >= 0)
      point.index[axis] = b_.CreateMul(block, index_constant(plan_.block));
    point.vector_axis = -1;
    fix_unit_parts(point);
    return emit(point);
  }
  point.index[axis] = b_.CreateMul(block, index_constant(plan_.block));
  point.lanes = lanes;
  fix_unit_parts(point);
  const int64_t left = nest_.extents[axis] % lanes;
  Point last = point;
  if (left) last.mask = constant_mask(left, lanes);
  if (left == 0 || plan_.blocks == 1) return emit(last);
  llvm::LLVMContext& context = b_.getContext();
  auto* full = BasicBlock::Create(context, "full", frame_.function);
  auto* tail = BasicBlock::Create(context, "tail", frame_.function);
  auto* after = BasicBlock::Create(context, "after", frame_.function);
  b_.CreateCondBr(b_.CreateICmpEQ(block, index_constant(plan_.blocks - 1)),
                  tail, full);
  b_.SetInsertPoint(full);
  emit(point);
  b_.CreateBr(after);
  b_.SetInsertPoint(tail);
  emit(last);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace unisono::jit
