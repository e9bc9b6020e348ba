// Expressions of a nest as LLVM values: scalars, or one vector for the lanes
// of a point where they differ from lane to lane.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "jit/emit/nest.h"
#include "runtime/check.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

using llvm::Value;

EmitContext NestEmitter::context(unsigned lanes) {
  return EmitContext{.builder = b_,
                     .lanes = lanes,
                     .native_half = frame_.machine.native_half,
                     .native_exponents = frame_.machine.native_exponents,
                     .in_process = true,
                     .row_lanes = frame_.machine.row_lanes};
}

llvm::Type* NestEmitter::vector_type(llvm::Type* element, unsigned lanes) {
  return lanes ? llvm::FixedVectorType::get(element, lanes) : element;
}

Value* NestEmitter::index_constant(int64_t value) {
  return b_.getInt64(static_cast<uint64_t>(value));
}

Value* NestEmitter::lane_numbers(llvm::Type* element, unsigned lanes) {
  llvm::SmallVector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes; ++i)
    numbers.push_back(llvm::ConstantInt::get(element, i));
  return llvm::ConstantVector::get(numbers);
}

Value* NestEmitter::lane_mask(Value* active, unsigned lanes) {
  Value* count = b_.CreateTrunc(active, b_.getInt32Ty());
  return b_.CreateICmpULT(lane_numbers(b_.getInt32Ty(), lanes),
                          b_.CreateVectorSplat(lanes, count));
}

Value* NestEmitter::constant_mask(int64_t active, unsigned lanes) {
  llvm::SmallVector<llvm::Constant*> bits;
  for (unsigned i = 0; i < lanes; ++i) bits.push_back(b_.getInt1(i < active));
  return llvm::ConstantVector::get(bits);
}

Value* NestEmitter::widened(Value* value, const Point& point) {
  if (point.lanes == 0 || value->getType()->isVectorTy()) return value;
  return b_.CreateVectorSplat(point.lanes, value);
}

// ---- index arithmetic ------------------------------------------------------

Value* NestEmitter::unit_part(const Affine& at, const Point& point) {
  Value* sum = index_constant(at.constant);
  for (size_t a = 0; a < at.factors.size(); ++a)
    if (at.factors[a] && point.index[a])
      sum = b_.CreateAdd(
          sum, b_.CreateMul(point.index[a], index_constant(at.factors[a])));
  return sum;
}

void NestEmitter::fix_unit_parts(const Point& point) {
  for (size_t a = 0; a < point.index.size(); ++a)
    unit_axis_[a] = point.index[a] != nullptr;
  for (size_t e = 0; e < nest_.exprs.size(); ++e)
    unit_parts_[e] = unit_part(nest_.exprs[e].at, point);
  for (size_t s = 0; s < nest_.stores.size(); ++s)
    store_parts_[s] = unit_part(nest_.stores[s].at, point);
  if (nest_.scan) side_part_ = unit_part(nest_.scan->at, point);
  if (nest_.scatter) side_part_ = unit_part(nest_.scatter->at, point);
}

Value* NestEmitter::offset_at(const Affine& at, Value* unit_part,
                              const Point& point) {
  Value* sum = unit_part;
  for (size_t a = 0; a < at.factors.size(); ++a) {
    if (!at.factors[a] || unit_axis_[a] || !point.index[a]) continue;
    sum = b_.CreateAdd(
        sum, b_.CreateMul(point.index[a], index_constant(at.factors[a])));
  }
  return sum;
}

bool NestEmitter::varies(const Affine& at, const Point& point) const {
  if (point.lanes == 0) return false;
  for (size_t a = 0; a < at.factors.size(); ++a)
    if (at.factors[a] &&
        (static_cast<int>(a) == point.vector_axis || point.lane_index[a]))
      return true;
  return false;
}

Value* NestEmitter::lane_offsets(const Affine& at, Value* offset,
                                 const Point& point) {
  Value* sum = nullptr;
  for (size_t a = 0; a < at.factors.size(); ++a) {
    if (!at.factors[a] || !point.lane_index[a]) continue;
    Value* factor =
        b_.CreateVectorSplat(point.lanes, index_constant(at.factors[a]));
    Value* part = b_.CreateMul(point.lane_index[a], factor);
    sum = sum ? b_.CreateAdd(sum, part) : part;
  }
  if (!sum) return nullptr;
  return b_.CreateAdd(sum, b_.CreateVectorSplat(point.lanes, offset));
}

Value* NestEmitter::element_pointer(int argument, DType dtype, Value* offset) {
  EmitContext c = context(0);
  return b_.CreateGEP(memory_type(c, dtype), frame_.arguments[argument],
                      offset);
}

// ---- memory ----------------------------------------------------------------

namespace {

llvm::SmallVector<int> reversed(unsigned lanes) {
  llvm::SmallVector<int> order;
  for (unsigned i = lanes; i-- > 0;) order.push_back(static_cast<int>(i));
  return order;
}

llvm::Align element_align(DType dtype) {
  return llvm::Align(static_cast<uint64_t>(byte_size(dtype)));
}

}  // namespace

Value* NestEmitter::load_at(int argument, DType dtype, Value* offset,
                            int64_t stride, Point& point) {
  EmitContext c = context(point.lanes), scalar = context(0);
  llvm::Type* element = memory_type(scalar, dtype);
  if (point.lanes == 0) {
    Value* at = element_pointer(argument, dtype, offset);
    return from_memory(c, dtype,
                       b_.CreateAlignedLoad(element, at, element_align(dtype)));
  }
  llvm::Type* type = memory_type(c, dtype);
  if (stride == 1) {
    Value* at = element_pointer(argument, dtype, offset);
    Value* loaded;
    if (point.mask) {
      loaded = b_.CreateMaskedLoad(type, at, element_align(dtype), point.mask,
                                   llvm::Constant::getNullValue(type));
    } else {
      loaded = b_.CreateAlignedLoad(type, at, element_align(dtype));
    }
    return from_memory(c, dtype, loaded);
  }
  if (stride == -1 && !point.mask) {
    Value* at = element_pointer(
        argument, dtype, b_.CreateSub(offset, index_constant(point.lanes - 1)));
    Value* loaded = b_.CreateAlignedLoad(type, at, element_align(dtype));
    return from_memory(c, dtype,
                       b_.CreateShuffleVector(loaded, reversed(point.lanes)));
  }
  if (point.mask) {
    Value* steps =
        b_.CreateMul(lane_numbers(b_.getInt64Ty(), point.lanes),
                     b_.CreateVectorSplat(point.lanes, index_constant(stride)));
    return gather_at(
        argument, dtype,
        b_.CreateAdd(b_.CreateVectorSplat(point.lanes, offset), steps), point);
  }
  Value* first = element_pointer(argument, dtype, offset);
  Value* loaded = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < point.lanes; ++i) {
    Value* at = b_.CreateGEP(element, first,
                             index_constant(static_cast<int64_t>(i) * stride));
    loaded = b_.CreateInsertElement(
        loaded, b_.CreateAlignedLoad(element, at, element_align(dtype)), i);
  }
  return from_memory(c, dtype, loaded);
}

Value* NestEmitter::gather_at(int argument, DType dtype, Value* offsets,
                              Point& point) {
  EmitContext c = context(point.lanes);
  llvm::Type* type = memory_type(c, dtype);
  Value* at = element_pointer(argument, dtype, offsets);
  Value* mask =
      point.mask ? point.mask : constant_mask(point.lanes, point.lanes);
  return from_memory(c, dtype,
                     b_.CreateMaskedGather(type, at, element_align(dtype), mask,
                                           llvm::Constant::getNullValue(type)));
}

void NestEmitter::scatter_at(int argument, DType dtype, Value* offsets,
                             Value* stored, Point& point) {
  Value* mask =
      point.mask ? point.mask : constant_mask(point.lanes, point.lanes);
  b_.CreateMaskedScatter(stored, element_pointer(argument, dtype, offsets),
                         element_align(dtype), mask);
}

void NestEmitter::store(const Affine& at, Value* unit_part, int argument,
                        DType dtype, Value* value, Point& point,
                        bool streaming) {
  Value* offset = offset_at(at, unit_part, point);
  store_at(argument, dtype, offset, at, value, point, streaming);
}

/// A wide vector is stored register by register, from its first element on:
/// where registers do not lie at multiples of a cache line, both halves of a
/// line are then written one after the other. LLVM cuts one store into several
/// without an order.
void NestEmitter::store_in_order(Value* stored, Value* to, DType dtype,
                                 bool streaming) {
  auto* type = llvm::cast<llvm::FixedVectorType>(stored->getType());
  llvm::Type* element = type->getElementType();
  const unsigned lanes = type->getNumElements();
  const auto size = static_cast<unsigned>(byte_size(dtype));
  const unsigned each = std::min(
      lanes,
      std::max(static_cast<unsigned>(frame_.machine.vector_bytes) / size, 1U));
  for (unsigned first = 0; first < lanes; first += each) {
    Value* part = stored;
    if (each < lanes) {
      llvm::SmallVector<int> own(each);
      std::iota(own.begin(), own.end(), static_cast<int>(first));
      part = b_.CreateShuffleVector(stored, own);
    }
    auto* instruction = b_.CreateAlignedStore(
        part, b_.CreateGEP(element, to, index_constant(first)),
        streaming ? llvm::Align(std::min(64U, each * size))
                  : element_align(dtype));
    if (streaming)
      instruction->setMetadata(
          llvm::LLVMContext::MD_nontemporal,
          llvm::MDNode::get(b_.getContext(),
                            llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  }
}

void NestEmitter::store_at(int argument, DType dtype, Value* offset,
                           const Affine& at, Value* value, Point& point,
                           bool streaming) {
  const bool vector = varies(at, point);
  EmitContext c = context(vector ? point.lanes : 0);
  CHECK(vector || !value->getType()->isVectorTy());
  Value* stored = to_memory(c, dtype, vector ? widened(value, point) : value);
  const int64_t stride =
      vector && point.vector_axis >= 0 ? at.factors[point.vector_axis] : 0;
  if (!vector) {
    b_.CreateAlignedStore(stored, element_pointer(argument, dtype, offset),
                          element_align(dtype));
    return;
  }
  if (Value* offsets = lane_offsets(at, offset, point))
    return scatter_at(argument, dtype, offsets, stored, point);
  if (stride == 1 && point.mask) {
    b_.CreateMaskedStore(stored, element_pointer(argument, dtype, offset),
                         element_align(dtype), point.mask);
    return;
  }
  if (stride == 1)
    return store_in_order(stored, element_pointer(argument, dtype, offset),
                          dtype, streaming);
  if (stride == -1 && !point.mask) {
    Value* first = element_pointer(
        argument, dtype, b_.CreateSub(offset, index_constant(point.lanes - 1)));
    b_.CreateAlignedStore(b_.CreateShuffleVector(stored, reversed(point.lanes)),
                          first, element_align(dtype));
    return;
  }
  if (point.mask) {
    Value* steps =
        b_.CreateMul(lane_numbers(b_.getInt64Ty(), point.lanes),
                     b_.CreateVectorSplat(point.lanes, index_constant(stride)));
    return scatter_at(
        argument, dtype,
        b_.CreateAdd(b_.CreateVectorSplat(point.lanes, offset), steps), stored,
        point);
  }
  Value* first = element_pointer(argument, dtype, offset);
  EmitContext scalar = context(0);
  for (unsigned i = 0; i < point.lanes; ++i)
    b_.CreateAlignedStore(
        b_.CreateExtractElement(stored, i),
        b_.CreateGEP(memory_type(scalar, dtype), first,
                     index_constant(static_cast<int64_t>(i) * stride)),
        element_align(dtype));
}

void NestEmitter::store_outputs(const std::vector<int>& stores, Point& point,
                                const Values& values) {
  for (int s : stores) {
    const Store& output = nest_.stores[s];
    locate(nest_.exprs[output.value]);
    store(output.at, store_parts_[s], output.argument,
          frame_.kernel.arguments[output.argument].dtype, values[output.value],
          point, plan_.streaming);
  }
}

// ---- expressions -----------------------------------------------------------

void NestEmitter::compute(const std::vector<bool>& needed, Point& point,
                          Values& values) {
  for (size_t e = 0; e < nest_.exprs.size(); ++e)
    if (needed[e] && !values[e])
      values[e] =
          value_of(nest_.exprs[e], static_cast<ExprId>(e), point, values);
}

void NestEmitter::locate(const Expr&) {}

Value* NestEmitter::value_of(const Expr& expr, ExprId id, Point& point,
                             const Values& values) {
  check_number_ = 0;
  locate(expr);
  switch (expr.kind) {
    case Expr::Kind::constant: return element_constant(expr.dtype, expr.bits);
    case Expr::Kind::position: return frame_.position;
    case Expr::Kind::iota: return iota(expr, id, point);
    case Expr::Kind::gather: return gather(expr, id, point, values);
    case Expr::Kind::operation: return operation(expr, id, point, values);
    case Expr::Kind::load: {
      Value* offset = offset_at(expr.at, unit_parts_[id], point);
      if (!varies(expr.at, point)) {
        Point scalar;
        return load_at(expr.argument, expr.dtype, offset, 0, scalar);
      }
      if (Value* offsets = lane_offsets(expr.at, offset, point))
        return gather_at(expr.argument, expr.dtype, offsets, point);
      return load_at(expr.argument, expr.dtype, offset,
                     expr.at.factors[point.vector_axis], point);
    }
    case Expr::Kind::choice: return values[segment_->chosen[id]];
    case Expr::Kind::turns: return take_inner_turns(expr.loop, point, values);
    case Expr::Kind::turned:
      return last_[static_cast<size_t>(expr.loop)]
                  [static_cast<size_t>(expr.carry)];
    case Expr::Kind::carried:
    case Expr::Kind::reduced: break;  // known before
  }
  CHECK(!"a result before its loop");
  return nullptr;
}

Value* NestEmitter::element_constant(DType dtype, uint64_t bits) {
  EmitContext c = context(0);
  llvm::Type* type = register_type(c, dtype);
  if (type->isIntegerTy())
    return llvm::ConstantInt::get(
        type, llvm::APInt(64, bits).trunc(type->getIntegerBitWidth()));
  const unsigned width = type->getPrimitiveSizeInBits();
  return llvm::ConstantFP::get(
      type, llvm::APFloat(type->getFltSemantics(),
                          llvm::APInt(64, bits).zextOrTrunc(width)));
}

/// maximum or minimum with a constant operand, in fewer instructions: null if
/// that is not what it is. Operands are floats.
Value* NestEmitter::bounded(const Expr& expr, Value* a, Value* b) {
  const bool largest = expr.op == ir::Op::maximum;
  const bool known = largest || expr.op == ir::Op::minimum;
  const bool first = nest_.exprs[expr.operands[0]].kind == Expr::Kind::constant;
  const bool second =
      nest_.exprs[expr.operands[1]].kind == Expr::Kind::constant;
  if (!known || first == second ||
      (expr.dtype != DType::F32 && expr.dtype != DType::F64))
    return nullptr;
  const Expr& constant = nest_.exprs[expr.operands[first ? 0 : 1]];
  const auto* value = llvm::cast<llvm::ConstantFP>(
      element_constant(constant.dtype, constant.bits));
  if (value->isNaN()) return nullptr;
  Value *bound = first ? a : b, *x = first ? b : a;
  auto better = [&](Value* p, Value* q) {
    return b_.CreateSelect(
        largest ? b_.CreateFCmpOGT(p, q) : b_.CreateFCmpOLT(p, q), p, q);
  };
  // Where x is a zero of the other sign, or NaN, the result is x ...
  const bool x_wins = !value->isZero() || value->isNegative() == largest;
  if (x_wins) return better(bound, x);
  // ... or else the bound, unless x is NaN.
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, better(x, bound));
}

/// The quotient by a power of two, rounded down, or what is left: null if that
/// is not what it is. Integers with a sign; others LLVM knows.
Value* NestEmitter::divided_by_power(const Expr& expr, Value* x) {
  if ((expr.op != ir::Op::floor_div && expr.op != ir::Op::mod) ||
      !is_signed(expr.dtype))
    return nullptr;
  const Expr& by = nest_.exprs[expr.operands[1]];
  if (by.kind != Expr::Kind::constant || !std::has_single_bit(by.bits) ||
      by.bits >> (8 * byte_size(by.dtype) - 1) != 0)
    return nullptr;
  llvm::Type* type = x->getType();
  return expr.op == ir::Op::mod
             ? b_.CreateAnd(x, llvm::ConstantInt::get(type, by.bits - 1))
             : b_.CreateAShr(
                   x,
                   llvm::ConstantInt::get(
                       type, static_cast<uint64_t>(std::countr_zero(by.bits))));
}

Value* NestEmitter::operation(const Expr& expr, ExprId id, Point& point,
                              const Values& values) {
  llvm::SmallVector<Value*> operands;
  bool vector = false;
  for (ExprId operand : expr.operands) {
    operands.push_back(values[operand]);
    vector = vector || values[operand]->getType()->isVectorTy();
  }
  if (vector)
    for (Value*& operand : operands) operand = widened(operand, point);
  EmitContext c = context(vector ? point.lanes : 0);
  if (operands.size() == 2)
    for (Value* result : {bounded(expr, operands[0], operands[1]),
                          divided_by_power(expr, operands[0])})
      if (result) return result;
  Value* result =
      expr.op == ir::Op::cast
          ? emit_cast(c, expr.operand_dtype, expr.dtype, operands[0])
          : emit_element(c, expr.op, expr.operand_dtype, operands);
  if (expr.checked)
    for (const EmittedFault& fault : c.faults)
      report(static_cast<int32_t>(fault.fault), fault.mask, fault.value, 0,
             {expr.source, expr.member, static_cast<size_t>(id)}, point);
  return result;
}

Value* NestEmitter::iota(const Expr& expr, ExprId id, Point& point) {
  const AffineRange reach = range(expr.at, nest_.extents);
  const bool small = reach.low >= INT32_MIN && reach.high <= INT32_MAX;
  llvm::Type* type = small ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* offset = offset_at(expr.at, unit_parts_[id], point);
  EmitContext c = context(varies(expr.at, point) ? point.lanes : 0);
  Value* value;
  if (!c.lanes) {
    value = b_.CreateTrunc(offset, type);
  } else if (Value* offsets = lane_offsets(expr.at, offset, point)) {
    value = b_.CreateTrunc(offsets, vector_type(type, point.lanes));
  } else {
    const int64_t factor = expr.at.factors[point.vector_axis];
    Value* steps = b_.CreateMul(
        lane_numbers(type, point.lanes),
        llvm::ConstantInt::get(vector_type(type, point.lanes),
                               static_cast<uint64_t>(factor), true));
    value = b_.CreateAdd(
        b_.CreateVectorSplat(point.lanes, b_.CreateTrunc(offset, type)), steps);
  }
  // Never below 0: the upper half of 64 bits is then known.
  const bool widens = is_integer(expr.dtype) && byte_size(expr.dtype) == 8;
  const DType narrow = widens && reach.low >= 0 ? DType::U32 : DType::I32;
  return emit_cast(c, small ? narrow : DType::I64, expr.dtype, value);
}

/// `offset` plus index * stride of every indexed axis, a vector if an index is
/// one; null if no index can be valid.
Value* NestEmitter::indexed_offset(Value* offset,
                                   const std::vector<Expr::IndexedAxis>& axes,
                                   const std::vector<ExprId>& indices,
                                   Bounds bounds, const Check& check,
                                   Point& point, const Values& values) {
  bool exists = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    Value* index = values[indices[i]];
    const bool vector = index->getType()->isVectorTy();
    llvm::Type* type = vector_type(b_.getInt64Ty(), vector ? point.lanes : 0);
    index = b_.CreateSExt(index, type);
    auto constant = [&](int64_t value) {
      return llvm::ConstantInt::get(type, static_cast<uint64_t>(value), true);
    };
    llvm::Constant* size = constant(axes[i].size);
    auto bounded_index = [&] {
      Value* wrapped = b_.CreateSelect(b_.CreateICmpSLT(index, constant(0)),
                                       b_.CreateAdd(index, size), index);
      if (bounds == Bounds::clamped) {
        wrapped = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, wrapped,
                                           constant(axes[i].size - 1));
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, wrapped,
                                        constant(0));
      }
      Value* bad = b_.CreateICmpUGE(wrapped, size);
      if (bounds == Bounds::reported)
        report(ErrorWord::index_out_of_bounds, bad, index, axes[i].size, check,
               point);
      return b_.CreateSelect(bad, constant(0), wrapped);
    };
    Value* place = axes[i].inside ? index : bounded_index();
    exists = exists && axes[i].size > 0;
    Value* step = b_.CreateMul(place, constant(axes[i].stride));
    if (vector || offset->getType()->isVectorTy()) {
      step = widened(step, point);
      offset = widened(offset, point);
    }
    offset = b_.CreateAdd(offset, step);
  }
  return exists ? offset : nullptr;
}

/// Offsets of all lanes where `offset` stands for the first one or for each,
/// and `at` says how they go on.
Value* NestEmitter::all_lane_offsets(const Affine& at, Value* offset,
                                     Point& point) {
  Value* all = widened(offset, point);
  if (Value* irregular = lane_offsets(at, index_constant(0), point))
    all = b_.CreateAdd(all, irregular);
  else if (point.vector_axis >= 0 && at.factors[point.vector_axis])
    all = b_.CreateAdd(
        all, b_.CreateMul(lane_numbers(b_.getInt64Ty(), point.lanes),
                          b_.CreateVectorSplat(
                              point.lanes,
                              index_constant(at.factors[point.vector_axis]))));
  return all;
}

Value* NestEmitter::gather(const Expr& expr, ExprId id, Point& point,
                           const Values& values) {
  Value* offset = offset_at(expr.at, unit_parts_[id], point);
  offset = indexed_offset(
      offset, expr.indexed, expr.operands, bounds_of(expr.checked),
      {expr.source, expr.member, static_cast<size_t>(id)}, point, values);
  if (!offset) return element_constant(expr.dtype, 0);
  const bool own = varies(expr.at, point);
  if (!own && !offset->getType()->isVectorTy()) {
    Point scalar;
    return load_at(expr.argument, expr.dtype, offset, 0, scalar);
  }
  if (!offset->getType()->isVectorTy() && point.vector_axis >= 0)
    return load_at(expr.argument, expr.dtype, offset,
                   expr.at.factors[point.vector_axis], point);
  return gather_at(expr.argument, expr.dtype,
                   all_lane_offsets(expr.at, offset, point), point);
}

// ---- checked errors --------------------------------------------------------

namespace {

/// report(error, code, source, value, bound, member, rank): the error of the
/// first member is kept, of its errors that of the check with the lowest rank,
/// of these the first. So what is reported depends neither on the width of
/// vectors nor on who runs what.
llvm::Function* report_function(llvm::Module& module) {
  if (auto* known = module.getFunction("report")) return known;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), i32, i32, i64, i64, i64, i32}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                          "report", module);
  function->setDoesNotThrow();
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(context, name, function);
  };
  auto *entry = block("entry"), *keep = block("keep"), *done = block("done");
  b.SetInsertPoint(entry);
  struct Field {
    size_t offset;
    llvm::Type* type;
    Value* value;
  };
  const Field fields[] = {
      {offsetof(ErrorWord, code), i32, function->getArg(1)},
      {offsetof(ErrorWord, source), i32, function->getArg(2)},
      {offsetof(ErrorWord, value), i64, function->getArg(3)},
      {offsetof(ErrorWord, bound), i64, function->getArg(4)},
      {offsetof(ErrorWord, member), i64, function->getArg(5)},
      {offsetof(ErrorWord, rank), i32, function->getArg(6)}};
  auto at = [&](const Field& field) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), function->getArg(0),
                                        field.offset);
  };
  auto known = [&](const Field& field) {
    return b.CreateLoad(field.type, at(field));
  };
  const Field &member = fields[4], &rank = fields[5];
  Value* known_member = known(member);
  Value* same_member = b.CreateICmpEQ(member.value, known_member);
  Value* earlier = b.CreateOr(
      b.CreateICmpSLT(member.value, known_member),
      b.CreateAnd(same_member, b.CreateICmpULT(rank.value, known(rank))));
  Value* none = b.CreateIsNull(known(fields[0]));
  b.CreateCondBr(b.CreateOr(none, earlier), keep, done);
  b.SetInsertPoint(keep);
  for (const Field& field : fields) b.CreateStore(field.value, at(field));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return function;
}

}  // namespace

/// The member, among the device's, whose element stands in `lane` (null: in
/// the first).
Value* NestEmitter::member_at(const MemberPlace& place, Value* lane,
                              Point& point) {
  if (place.per_member == 0) return index_constant(0);
  Value* element = unit_part(place.element, point);  // of all axes, here
  const bool vector = lane && varies(place.element, point);
  if (vector) {
    const int64_t step =
        point.vector_axis >= 0 ? place.element.factors[point.vector_axis] : 0;
    Value* offsets = lane_offsets(place.element, element, point);
    element = offsets ? b_.CreateExtractElement(offsets, lane)
                      : b_.CreateAdd(element,
                                     b_.CreateMul(lane, index_constant(step)));
  }
  return b_.CreateSDiv(element, index_constant(place.per_member));
}

void NestEmitter::report(int32_t code, Value* where, Value* value,
                         int64_t bound, const Check& check, Point& point) {
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(where))
    if (constant->isNullValue()) return;
  const bool vector = where->getType()->isVectorTy();
  if (vector && point.mask) where = b_.CreateAnd(where, point.mask);
  Value* any = vector ? b_.CreateOrReduce(where) : where;
  if (nest_.turns) failures_.push_back(any);
  llvm::LLVMContext& context = b_.getContext();
  auto* bad = llvm::BasicBlock::Create(context, "fault", frame_.function);
  auto* good = llvm::BasicBlock::Create(context, "checked", frame_.function);
  b_.CreateCondBr(any, bad, good,
                  llvm::MDBuilder(context).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(bad);
  Value* lane = nullptr;
  if (vector) {
    const unsigned lanes = point.lanes;
    Value* bits = b_.CreateBitCast(where, b_.getIntNTy(lanes));
    lane = b_.CreateZExtOrTrunc(  // small integers have over 64 lanes
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getInt1(true)),
        b_.getInt64Ty());
    value = b_.CreateExtractElement(value, lane);
  }
  const auto rank = frame_.checks + static_cast<uint32_t>(check.rank);
  b_.CreateCall(report_function(frame_.module),
                {frame_.error, b_.getInt32(static_cast<uint32_t>(code)),
                 b_.getInt32(check.source), value, index_constant(bound),
                 member_at(check.member, lane, point), b_.getInt32(rank)});
  b_.CreateBr(good);
  b_.SetInsertPoint(good);
}

}  // namespace unisono::jit
