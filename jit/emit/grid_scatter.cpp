// Scatters to few columns on a grid: positions at once, in the kernels that
// gpu_stages.h makes. Which position wins, and the order of sums, are those of
// one thread after another.
#include "jit/emit/grid_nest.h"
#include "runtime/check.h"

namespace unisono::jit {

using llvm::Value;

namespace {

const Affine alone = {};

}  // namespace

/// `offset` and what the position's indices add: along the array, or as number
/// of a target.
Value* GridEmitter::place_of(const Point& point, const Values& values,
                             Value* offset, Bounds bounds, bool as_target) {
  const Scatter& scatter = *nest_.scatter;
  std::vector<Expr::IndexedAxis> axes = scatter.indexed;
  if (as_target) {
    int64_t stride = 1;
    for (size_t i = axes.size(); i-- > 0; stride *= axes[i].size)
      axes[i].stride = stride;
  }
  Point at = point;
  check_number_ = 0;
  Value* place = indexed_offset(
      offset, axes, scatter.indices, bounds,
      {scatter.source, scatter.member, nest_.exprs.size()}, at, values);
  CHECK(place);  // no axis is without elements
  return place;
}

Value* GridEmitter::scratch_at(int argument, Value* index) {
  Point scalar;
  return load_at(argument, DType::I32, index, 0, scalar);
}

void GridEmitter::emit_scatter_at(Point& point) {
  using Part = Scatter::Part;
  const Scatter& scatter = *nest_.scatter;
  if (scatter.part == Part::in_order)
    return NestEmitter::emit_scatter_at(point);
  if (scatter.part == Part::sorted) return emit_sorted(point);
  point.vector_axis = -1;
  Values values(nest_.exprs.size());
  compute(std::vector<bool>(values.size(), true), point, values);
  Value* base = offset_at(scatter.at, side_part_, point);
  Point scalar;
  switch (scatter.part) {
    case Part::in_order:
    case Part::sorted: break;
    case Part::targets: {
      Value* target = place_of(point, values, index_constant(0),
                               bounds_of(scatter.checked), true);
      return store_at(scatter.argument, DType::I32, base, alone, narrow(target),
                      scalar, false);
    }
    case Part::winners: {
      Value* target = place_of(point, values, index_constant(0),
                               bounds_of(scatter.checked), true);
      Value* number = b_.CreateAdd(
          narrow(offset_at(scatter.position, unit_part(scatter.position, point),
                           point)),
          i32(1));
      b_.CreateAtomicRMW(llvm::AtomicRMWInst::UMax,
                         element_pointer(scatter.argument, DType::I32, target),
                         number, llvm::MaybeAlign(4),
                         llvm::AtomicOrdering::Monotonic);
      return;
    }
    case Part::chosen: return emit_chosen(point, values);
    case Part::atomic: {
      EmitContext c = context(0);
      Value* place =
          place_of(point, values, base, bounds_of(scatter.checked), false);
      b_.CreateAtomicRMW(
          llvm::AtomicRMWInst::Add,
          element_pointer(scatter.argument, scatter.dtype, place),
          to_memory(c, scatter.dtype, values[scatter.value]),
          llvm::MaybeAlign(static_cast<uint64_t>(byte_size(scatter.dtype))),
          llvm::AtomicOrdering::Monotonic);
      return;
    }
  }
}

/// For kernels after the one that found the targets, which reported: a position
/// writes where its target is, or two would write one place.
GridEmitter::Bounds GridEmitter::looked_at_before() const {
  return nest_.scatter->checked ? Bounds::were_reported : Bounds::clamped;
}

/// Stores the point if its position is the last one of its target.
void GridEmitter::emit_chosen(Point& point, const Values& values) {
  const Scatter& scatter = *nest_.scatter;
  Value* winner = scratch_at(
      scatter.targets,
      place_of(point, values, index_constant(0), looked_at_before(), true));
  Value* number =
      b_.CreateAdd(narrow(offset_at(scatter.position,
                                    unit_part(scatter.position, point), point)),
                   i32(1));
  when(b_.CreateICmpEQ(winner, number), [&] {
    Point scalar;
    Value* base = offset_at(scatter.at, side_part_, point);
    store_at(scatter.argument, scatter.dtype,
             place_of(point, values, base, looked_at_before(), false), alone,
             values[scatter.value], scalar, false);
  });
}

/// The first position of a target does all of them, in order.
void GridEmitter::emit_sorted(Point& point) {
  const Scatter& scatter = *nest_.scatter;
  const int64_t count = reduced_points();
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  auto position_at = [&](Value* place) {
    return wide(scratch_at(scatter.order, place));
  };
  auto target_of = [&](Value* position) {
    return scratch_at(scatter.targets, position);
  };
  Value* first = position_at(repeat_);
  Value* target = target_of(first);
  std::vector<Value*> begins =
      choose(b_.CreateICmpSGT(repeat_, index_constant(0)), {b_.getTrue()}, [&] {
        Value* before = position_at(b_.CreateSub(repeat_, index_constant(1)));
        return std::vector<Value*>{b_.CreateICmpNE(target_of(before), target)};
      });
  auto values_at = [&](Value* position, Point& at) {
    at = point;
    set_reduced_index(at, position, 0);
    Values values = fixed;
    compute(std::vector<bool>(values.size(), true), at, values);
    return values;
  };
  when(begins[0], [&] {
    EmitContext c = context(0);
    Point at, scalar;
    const Values own = values_at(first, at);
    Value* base = offset_at(scatter.at, side_part_, at);
    Value* place = place_of(at, own, base, looked_at_before(), false);
    Value* old = load_at(scatter.argument, scatter.dtype, place, 0, scalar);
    auto joined = [&](Value* sum, Value* value) {
      if (!scatter.add) return value;
      sum = emit_element(c, ir::Op::add, scatter.dtype, {sum, value});
      // Each sum is rounded as if it had been stored.
      return from_memory(c, scatter.dtype, to_memory(c, scatter.dtype, sum));
    };
    Value* sum = joined(old, own[scatter.value]);
    auto* head =
        llvm::BasicBlock::Create(b_.getContext(), "positions", frame_.function);
    auto* body =
        llvm::BasicBlock::Create(b_.getContext(), "position", frame_.function);
    auto* done =
        llvm::BasicBlock::Create(b_.getContext(), "summed", frame_.function);
    Value* second = b_.CreateAdd(repeat_, index_constant(1));
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    llvm::PHINode* total = b_.CreatePHI(sum->getType(), 2);
    i->addIncoming(second, before);
    total->addIncoming(sum, before);
    std::vector<Value*> next =
        choose(b_.CreateICmpSLT(i, index_constant(count)),
               {b_.getFalse(), index_constant(0)}, [&] {
                 Value* position = position_at(i);
                 return std::vector<Value*>{
                     b_.CreateICmpEQ(target_of(position), target), position};
               });
    b_.CreateCondBr(next[0], body, done);
    b_.SetInsertPoint(body);
    Point there;
    const Values values = values_at(next[1], there);
    Value* more = joined(total, values[scatter.value]);
    Value* next_place = b_.CreateAdd(i, index_constant(1));
    total->addIncoming(more, b_.GetInsertBlock());
    i->addIncoming(next_place, b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
    store_at(scatter.argument, scatter.dtype, place, alone, total, scalar,
             false);
  });
}

}  // namespace unisono::jit
