// A loop at each point of a nest: carries are registers. Points along the last
// axis are lanes.
#include <algorithm>
#include <utility>

#include "jit/emit/nest.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::BasicBlock;
using llvm::Value;

void NestEmitter::emit_turns(Point& point, Value* block) {
  const int axis = plan_.vector_axis;
  if (axis >= 0)
    point.index[axis] = b_.CreateMul(block, index_constant(plan_.block));
  if (plan_.lanes == 1) {
    point.vector_axis = -1;
  } else {
    const auto lanes = static_cast<unsigned>(plan_.lanes);
    const int64_t extent = nest_.extents[axis];
    point.lanes = lanes;
    if (extent % lanes)
      point.mask = lane_mask(
          b_.CreateSub(index_constant(extent), point.index[axis]), lanes);
  }
  fix_unit_parts(point);
  Values values(nest_.exprs.size());
  take_turns(point, values);
  store_outputs(all_stores(), point, values);
}

/// The expressions that `id` needs and that are not known yet.
std::vector<bool> NestEmitter::needed_for(ExprId id,
                                          const Values& values) const {
  std::vector<bool> needed(values.size());
  needed[id] = true;
  for (size_t e = values.size(); e-- > 0;)
    if (needed[e] && !values[e])
      for (ExprId operand : nest_.exprs[e].operands) needed[operand] = true;
  return needed;
}

/// Where a check has failed since the last call, the turns end.
void NestEmitter::leave_if_failed() {
  if (failures_.empty()) return;
  Value* any = failures_[0];
  for (size_t i = 1; i < failures_.size(); ++i)
    any = b_.CreateOr(any, failures_[i]);
  failures_.clear();
  auto* good = BasicBlock::Create(b_.getContext(), "good", frame_.function);
  b_.CreateCondBr(any, frame_.leave, good);
  b_.SetInsertPoint(good);
}

/// Turns of `loop`; in some of which others may be taken.
void NestEmitter::poll_after(Value* turns, int loop) {
  if (!frame_.machine.stops_kernels) return;
  const bool has_others =
      std::ranges::any_of(nest_.inner, [&](const Turns& inner) {
        return inner.parent == loop && inner.count != 1;
      });
  const uint64_t every =
      has_others || nest_.exprs.size() > tuning().least_long_body
          ? tuning().long_turns_between_looks
          : tuning().turns_between_looks;
  const int64_t count = nest_.turns_of(loop).count;
  if (count >= 0 && static_cast<uint64_t>(count) < every) return;
  llvm::LLVMContext& context = b_.getContext();
  auto* look = BasicBlock::Create(context, "look", frame_.function);
  auto* again = BasicBlock::Create(context, "again", frame_.function);
  Value* rest = b_.CreateAnd(turns, b_.getInt64(every - 1));
  b_.CreateCondBr(b_.CreateICmpEQ(rest, b_.getInt64(0)), look, again);
  b_.SetInsertPoint(look);
  poll();
  b_.CreateBr(again);
  b_.SetInsertPoint(again);
}

/// What a turn writes; neighbours with one condition share its branch.
void NestEmitter::put_all(const std::vector<Turns::Put>& puts,
                          llvm::ArrayRef<Value*> parts, Point& point,
                          const Values& now) {
  llvm::LLVMContext& context = b_.getContext();
  for (size_t p = 0; p < puts.size();) {
    const ExprId condition = puts[p].condition;
    BasicBlock* over = nullptr;
    if (condition >= 0) {
      auto* taken = BasicBlock::Create(context, "put", frame_.function);
      over = BasicBlock::Create(context, "over", frame_.function);
      b_.CreateCondBr(now[condition], taken, over);
      b_.SetInsertPoint(taken);
    }
    for (; p < puts.size() && puts[p].condition == condition; ++p) {
      const Turns::Put& put = puts[p];
      Value* offset = b_.CreateAdd(
          parts[p], b_.CreateMul(now[put.index], index_constant(put.stride)));
      store_at(put.store.argument,
               frame_.kernel.arguments[put.store.argument].dtype, offset,
               put.store.at, now[put.store.value], point, false);
    }
    if (!over) continue;
    b_.CreateBr(over);
    b_.SetInsertPoint(over);
  }
}

/// Computes all expressions: before the loop those that its turns do not
/// change, after it carries have their last values.
void NestEmitter::take_turns(Point& point, Values& values) {
  in_turns_ = turns_of_expressions(nest_);
  last_.resize(nest_.inner.size());
  compute(expressions_in(before_turns), point, values);
  set_carries(values, -1, last_carries(-1, point, values));
}

/// The expressions that are computed in each turn of `loop`.
std::vector<bool> NestEmitter::expressions_in(int loop) const {
  std::vector<bool> out;
  for (const int turns : in_turns_) out.push_back(turns == loop);
  return out;
}

void NestEmitter::set_carries(Values& to, int loop,
                              llvm::ArrayRef<Value*> from) const {
  for (size_t e = 0; e < to.size(); ++e)
    if (const Expr& expr = nest_.exprs[e];
        expr.kind == Expr::Kind::carried && expr.loop == loop)
      to[e] = from[static_cast<size_t>(expr.carry)];
}

/// Takes turns inside others, which end first if a check has failed.
Value* NestEmitter::take_inner_turns(int loop, Point& point,
                                     const Values& values) {
  leave_if_failed();
  last_[static_cast<size_t>(loop)] = last_carries(loop, point, values);
  return b_.getTrue();
}

/// All turns of a loop; what its carries are afterwards.
std::vector<Value*> NestEmitter::last_carries(int loop, Point& point,
                                              const Values& values) {
  const Turns& turns = nest_.turns_of(loop);
  auto shaped = [&](const Turns::Carry& carry, Value* value) {
    const bool vector = in_loop_[carry.first] || in_loop_[carry.next];
    return vector ? widened(value, point) : value;
  };
  std::vector<Value*> state, put_parts;
  for (const Turns::Carry& carry : turns.carries)
    state.push_back(shaped(carry, values[carry.first]));
  for (const Turns::Put& put : turns.puts)
    put_parts.push_back(
        offset_at(put.store.at, unit_part(put.store.at, point), point));
  if (turns.count == 0) return state;

  llvm::LLVMContext& context = b_.getContext();
  auto* head = BasicBlock::Create(context, "turn", frame_.function);
  auto* done = BasicBlock::Create(context, "turned", frame_.function);
  // Where the turns are over, and with which carries.
  std::vector<std::pair<BasicBlock*, std::vector<Value*>>> ends;
  if (turns.guard >= 0) {
    ends.emplace_back(b_.GetInsertBlock(), state);
    b_.CreateCondBr(values[turns.guard], head, done);
  } else {
    b_.CreateBr(head);
  }
  BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(head);
  llvm::PHINode* turn = b_.CreatePHI(b_.getInt64Ty(), 2);
  turn->addIncoming(index_constant(0), before);
  std::vector<llvm::PHINode*> carried;
  for (Value*& value : state) {
    carried.push_back(b_.CreatePHI(value->getType(), 2));
    carried.back()->addIncoming(value, before);
    value = carried.back();
  }
  Values now = values;
  set_carries(now, loop, state);
  if (turns.condition >= 0) {
    compute(needed_for(turns.condition, now), point, now);
    leave_if_failed();
    auto* work = BasicBlock::Create(context, "work", frame_.function);
    ends.emplace_back(b_.GetInsertBlock(), state);
    b_.CreateCondBr(now[turns.condition], work, done);
    b_.SetInsertPoint(work);
  }
  compute(expressions_in(loop), point, now);
  put_all(turns.puts, put_parts, point, now);
  leave_if_failed();
  std::vector<Value*> next;
  for (const Turns::Carry& carry : turns.carries)
    next.push_back(shaped(carry, now[carry.next]));
  Value* following = b_.CreateAdd(turn, index_constant(1));
  if (turns.count != 1) poll_after(following, loop);
  BasicBlock* end = b_.GetInsertBlock();
  turn->addIncoming(following, end);
  for (size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], end);
  if (turns.condition >= 0) {
    b_.CreateBr(head);
  } else {
    b_.CreateCondBr(b_.CreateICmpSLT(following, index_constant(turns.count)),
                    head, done);
    ends.emplace_back(end, std::move(next));
  }
  b_.SetInsertPoint(done);
  if (ends.size() == 1) return ends[0].second;
  for (size_t i = 0; i < state.size(); ++i) {
    llvm::PHINode* last = b_.CreatePHI(state[i]->getType(), 2);
    for (const auto& [block, values_there] : ends)
      last->addIncoming(values_there[i], block);
    state[i] = last;
  }
  return state;
}

}  // namespace unisono::jit
