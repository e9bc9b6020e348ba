#include "jit/emit/element_llvm.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "jit/emit/scalar_llvm.h"
#include "jit/scalar/element_rows.h"
#include "jit/scalar/exp_short.h"
#include "jit/scalar/usual.h"

namespace unisono::jit {
namespace {

using llvm::Value;
using scalar::Lanes;

template <DType D>
using Compute = typename ComputeOf<D>::type;

/// The target's type of f16 or bf16, and values of it from bits and back.
template <DType D>
llvm::Type* sixteen_type(EmitContext& c) {
  return scalar::shaped(
      c, D == DType::F16 ? c.builder.getHalfTy() : c.builder.getBFloatTy());
}
template <DType D>
Value* as_sixteen(EmitContext& c, Value* bits) {
  return c.builder.CreateBitCast(bits, sixteen_type<D>(c));
}
Value* bits_of_sixteen(EmitContext& c, Value* value) {
  llvm::IRBuilderBase& b = c.builder;
  return b.CreateBitCast(value, scalar::shaped(c, b.getInt16Ty()));
}

template <DType D>
Value* convert_sixteen(EmitContext& c, Value* bits) {
  llvm::IRBuilderBase& b = c.builder;
  return b.CreateFPExt(as_sixteen<D>(c, bits),
                       scalar::shaped(c, b.getFloatTy()));
}
template <DType D>
Value* convert_to_sixteen(EmitContext& c, Value* value) {
  return bits_of_sixteen(c, c.builder.CreateFPTrunc(value, sixteen_type<D>(c)));
}

/// The f32 of a bf16 that is one of two in a word from memory; null where it is
/// something else. Apart, each would be taken from the word first.
Value* convert_half_of_word(EmitContext& c, Value* bits) {
  auto* taken = llvm::dyn_cast<llvm::ExtractElementInst>(bits);
  if (!taken) return nullptr;
  auto* cast = llvm::dyn_cast<llvm::BitCastInst>(taken->getVectorOperand());
  auto* place = llvm::dyn_cast<llvm::ConstantInt>(taken->getIndexOperand());
  if (!cast || !place) return nullptr;
  llvm::Type* words = cast->getSrcTy();
  if (!words->isVectorTy() || !words->getScalarType()->isIntegerTy(32))
    return nullptr;
  llvm::IRBuilderBase& b = c.builder;
  const uint64_t number = place->getZExtValue();
  Value* word = b.CreateExtractElement(cast->getOperand(0), number / 2);
  return b.CreateBitCast(number % 2 ? b.CreateAnd(word, b.getInt32(0xffff0000))
                                    : b.CreateShl(word, uint64_t{16}),
                         b.getFloatTy());
}

/// A register value as one to compute with, and back.
template <DType D>
Lanes<Compute<D>> read(EmitContext& c, Value* value) {
  if constexpr (D == DType::F16) {
    if (c.native_half) return {c, convert_sixteen<D>(c, value)};
    return scalar::float_of_half(Lanes<uint16_t>(c, value));
  } else if constexpr (D == DType::BF16) {
    if (c.native_sixteen)
      if (Value* whole = convert_half_of_word(c, value)) return {c, whole};
    return scalar::float_of_bfloat(Lanes<uint16_t>(c, value));
  } else {
    return {c, value};
  }
}
template <DType D>
Value* write(EmitContext& c, Lanes<Compute<D>> value) {
  if constexpr (D == DType::F16) {
    if (c.native_half) return convert_to_sixteen<D>(c, value.in(c));
    return scalar::half_of_float(value).in(c);
  } else if constexpr (D == DType::BF16) {
    if (c.native_sixteen) return convert_to_sixteen<D>(c, value.in(c));
    return scalar::bfloat_of_float(value).in(c);
  } else {
    return value.in(c);
  }
}

/// The larger or smaller one as IEEE 754 has it, NaN first and -0 < +0, which
/// is one instruction of a GPU; null for other operations.
Value* emit_extreme(EmitContext& c, ir::Op op, Value* x, Value* y) {
  if (op == ir::Op::maximum)
    return c.builder.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, y);
  if (op == ir::Op::minimum)
    return c.builder.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, y);
  return nullptr;
}

/// The target's own operation on f16 or bf16; null if it has none.
template <DType D>
Value* emit_sixteen(EmitContext& c, ir::Op op, llvm::ArrayRef<Value*> x) {
  auto made = [&](auto&& of) {
    return bits_of_sixteen(c,
                           of(as_sixteen<D>(c, x[0]), as_sixteen<D>(c, x[1])));
  };
  llvm::IRBuilderBase& b = c.builder;
  if (op == ir::Op::add)
    return made([&](Value* l, Value* r) { return b.CreateFAdd(l, r); });
  if (op == ir::Op::sub)
    return made([&](Value* l, Value* r) { return b.CreateFSub(l, r); });
  if (op == ir::Op::mul)
    return made([&](Value* l, Value* r) { return b.CreateFMul(l, r); });
  // A conversion of NaN would lose its sign.
  if (op == ir::Op::copysign) {
    Value* number =
        b.CreateAnd(x[0], llvm::ConstantInt::get(x[0]->getType(), 0x7fff));
    return b.CreateOr(number, b.CreateAnd(x[1], llvm::ConstantInt::get(
                                                    x[1]->getType(), 0x8000)));
  }
  if constexpr (D == DType::BF16)
    if (op == ir::Op::exp)
      return write<D>(c, scalar::exp_of_few_digits(read<D>(c, x[0])));
  if (op == ir::Op::maximum || op == ir::Op::minimum)
    return convert_to_sixteen<D>(
        c, emit_extreme(c, op, convert_sixteen<D>(c, x[0]),
                        convert_sixteen<D>(c, x[1])));
  return nullptr;
}

template <class Row, DType D>
Value* emit_row(EmitContext& c, llvm::ArrayRef<Value*> operands) {
  if constexpr (!ir::admits(Row::type_class, D)) {
    CHECK(!"the row admits this element type");
    return nullptr;
  } else {
    CHECK(operands.size() == Row::operands);
    auto result = [&] {
      if constexpr (Row::operands == 1)
        return Row::apply(read<D>(c, operands[0]));
      else
        return Row::apply(read<D>(c, operands[0]), read<D>(c, operands[1]));
    }();
    if constexpr (Row::gives_bool)
      return result.in(c);
    else
      return write<D>(c, result);
  }
}

template <DType D>
Value* emit_fma(EmitContext& c, llvm::ArrayRef<Value*> x) {
  if constexpr (ir::admits(ir::TypeClass::Float, D)) {
    return write<D>(c,
                    fma(read<D>(c, x[0]), read<D>(c, x[1]), read<D>(c, x[2])));
  } else {
    CHECK(!"fma admits this element type");
    return nullptr;
  }
}

Value* emit_f32_fma(llvm::IRBuilderBase& b, Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

/// One step of Newton's makes an approximation within an ulp, which is what
/// PTX promises, the nearest float to 1 / b, but for 32 of all b, where it may
/// be the next one; the remainder does the rest (all b and approximations were
/// gone through, and for those 32 all numerators).
Value* usual_quotient(EmitContext& c, Value* x, Value* divisor) {
  llvm::IRBuilderBase& b = c.builder;
  Value* one = llvm::ConstantFP::get(b.getFloatTy(), 1);
  Value* minus = b.CreateFNeg(divisor);
  Value* reciprocal = b.CreateFDiv(one, divisor);
  if (!llvm::isa<llvm::Constant>(divisor)) {
    reciprocal = b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {},
                                   {divisor});
    reciprocal = emit_f32_fma(
        b, reciprocal, emit_f32_fma(b, minus, reciprocal, one), reciprocal);
  }
  Value* quotient = b.CreateFMul(x, reciprocal);
  return emit_f32_fma(b, emit_f32_fma(b, minus, quotient, x), reciprocal,
                      quotient);
}

/// What `sqrt.rn` becomes on all GPUs from sm_75 on.
Value* usual_root(EmitContext& c, Value* x) {
  llvm::IRBuilderBase& b = c.builder;
  Value* inverse =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f, {}, {x});
  Value* root = b.CreateFMul(x, inverse);
  Value* half =
      b.CreateFMul(inverse, llvm::ConstantFP::get(b.getFloatTy(), 0.5));
  return emit_f32_fma(b, emit_f32_fma(b, b.CreateFNeg(root), root, x), half,
                      root);
}

/// Emission follows the algebra to the letter, whatever flags are set.
class ExactMath {
 public:
  explicit ExactMath(EmitContext& context) : guard_(context.builder) {
    context.builder.clearFastMathFlags();
  }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

}  // namespace

llvm::Type* register_type(EmitContext& context, DType dtype) {
  return with_dtype(dtype, [&]<DType D>() {
    llvm::IRBuilderBase& b = context.builder;
    if constexpr (D == DType::F16 || D == DType::BF16)
      return scalar::shaped(context, b.getInt16Ty());
    else
      return scalar::shaped(context, scalar::element_type<Compute<D>>(context));
  });
}

llvm::Type* memory_type(EmitContext& context, DType dtype) {
  if (dtype != DType::Bool) return register_type(context, dtype);
  return scalar::shaped(context, context.builder.getInt8Ty());
}

Value* from_memory(EmitContext& context, DType dtype, Value* value) {
  if (dtype != DType::Bool) return value;
  return context.builder.CreateIsNotNull(value);
}

Value* to_memory(EmitContext& context, DType dtype, Value* value) {
  if (dtype != DType::Bool) return value;
  return context.builder.CreateZExt(value, memory_type(context, dtype));
}

Value* emit_element(EmitContext& context, ir::Op op, DType dtype,
                    llvm::ArrayRef<Value*> operands) {
  ExactMath exact(context);
  if (op == ir::Op::select)
    return context.builder.CreateSelect(operands[0], operands[1], operands[2]);
  return with_dtype(dtype, [&]<DType D>() {
    if (op == ir::Op::fma) return emit_fma<D>(context, operands);
    if constexpr (D == DType::F16 || D == DType::BF16)
      if (context.native_sixteen)
        if (Value* own = emit_sixteen<D>(context, op, operands)) return own;
    if constexpr (D == DType::F32)
      if (context.native_sixteen && operands.size() == 2)
        if (Value* own = emit_extreme(context, op, operands[0], operands[1]))
          return own;
    CHECK(has_row(op));
    return with_row(
        op, [&]<class Row>() { return emit_row<Row, D>(context, operands); });
  });
}

Value* emit_exp_below_zero(EmitContext& context, DType dtype, Value* x) {
  ExactMath exact(context);
  if (dtype == DType::F32)
    return exp_below_zero(read<DType::F32>(context, x)).in(context);
  if (dtype == DType::BF16)
    return write<DType::BF16>(
        context, exp_of_few_digits_below_zero(read<DType::BF16>(context, x)));
  return nullptr;
}

EmittedDivisor emit_divisor(EmitContext& context, DType dtype, Value* b) {
  if (dtype != DType::F32 && dtype != DType::BF16) return {};
  ExactMath exact(context);
  llvm::IRBuilderBase& builder = context.builder;
  const bool single = dtype == DType::F32;
  Value* value = single ? b : read<DType::BF16>(context, b).in(context);
  auto number = [&](double constant) {
    return llvm::ConstantFP::get(value->getType(), constant);
  };
  // Quotients of f32's numerators then are normal.
  const double most = single ? 0x1p26 : 0x1p100;
  Value* size = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  Value* usable =
      builder.CreateAnd(builder.CreateFCmpOGE(size, number(1 / most)),
                        builder.CreateFCmpOLE(size, number(most)));
  return {value, builder.CreateFDiv(number(1), value), usable};
}

Value* emit_quotient(EmitContext& context, DType dtype, Value* x,
                     const EmittedDivisor& divisor) {
  ExactMath exact(context);
  llvm::IRBuilderBase& b = context.builder;
  if (dtype == DType::BF16) {
    Value* numerator = read<DType::BF16>(context, x).in(context);
    return convert_to_sixteen<DType::BF16>(
        context, b.CreateFMul(numerator, divisor.reciprocal));
  }
  Value* quotient = b.CreateFMul(x, divisor.reciprocal);
  Value* rest = emit_f32_fma(b, b.CreateFNeg(divisor.value), quotient, x);
  return emit_f32_fma(b, rest, divisor.reciprocal, quotient);
}

Value* emit_usual(EmitContext& context, ir::Op op,
                  llvm::ArrayRef<Value*> operands) {
  ExactMath exact(context);
  if (op == ir::Op::div)
    return usual_quotient(context, operands[0], operands[1]);
  if (op == ir::Op::sqrt) return usual_root(context, operands[0]);
  const auto x = read<DType::F32>(context, operands[0]);
  if (op == ir::Op::log) return log_usual(x).in(context);
  CHECK(op == ir::Op::exp);
  return exp_usual(x).in(context);
}

Value* emit_cast(EmitContext& context, DType from, DType to, Value* value) {
  ExactMath exact(context);
  return with_dtype(from, [&]<DType From>() {
    return with_dtype(to, [&]<DType To>() {
      constexpr bool sixteen_bits = To == DType::F16 || To == DType::BF16;
      return write<To>(context, scalar::cast_to<Compute<To>>(
                                    read<From>(context, value), sixteen_bits));
    });
  });
}

}  // namespace unisono::jit
