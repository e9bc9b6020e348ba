#pragma once
// What one element of a map operation is, as LLVM IR: the rows of
// jit/ir/ops.def instantiated for the algebra of scalar_llvm.h. The same bits
// as element.h, on scalars and on fixed vectors of any width.
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include "jit/ir/graph.h"
#include "jit/scalar/element_error.h"
#include "runtime/dtype.h"

namespace unisono::jit {

/// A checked error that emitted elements can meet: where `mask` (i1, or a
/// vector of i1) holds, the element is at fault and its result is 0; `value`
/// (i64, or a vector) is the operand at fault.
struct EmittedFault {
  Fault fault;
  llvm::Value* mask;
  llvm::Value* value;
};

/// Where and how elements are emitted. Emission may append basic blocks: after
/// a call the builder stands in another block than before, so read
/// `builder.GetInsertBlock()` only when it is needed (a loop's back-edge).
struct EmitContext {
  llvm::IRBuilderBase& builder;
  /// Elements per value: 0 means scalars, W vectors <W x T>.
  unsigned lanes = 0;
  /// Whether the target converts half <-> float in hardware (x86: f16c);
  /// otherwise by integer operations, to the same bits.
  bool native_half = false;
  /// Whether the target has instructions for exponents (AVX-512F with VL:
  /// vscalef, vgetexp, vgetmant); otherwise by integer operations, too.
  bool native_exponents = false;
  /// Whether the code runs in this process: rare functions (scalar.h) are then
  /// called here instead of emitted, which saves milliseconds of compilation.
  bool in_process = false;
  /// Whether a rare function is inlined, in a branch, instead of called: for
  /// scalars on targets where calls are expensive.
  bool inline_rare = false;
  /// Whether f16 and bf16 are the target's types, with +, - and x of their own
  /// (GPUs; LLVM writes out what an older one lacks): once rounded, as f32's
  /// result is that is rounded again, since f32 has twice their digits and two.
  bool native_sixteen = false;
  /// Whether the target is a GPU: the smaller, the larger and the sign are
  /// taken by its own instructions, and scalars alone are emitted.
  bool grid = false;
  /// How many f32 one instruction of the target takes, each from any of eight:
  /// 8 with AVX2, 16 with AVX-512, 4 on AArch64; 0: there is none.
  unsigned row_lanes = 0;
  /// Where a GPU's block has a table of the module in its shared memory.
  llvm::function_ref<llvm::Value*(llvm::GlobalVariable* table)> in_shared = {};
  /// Appended to by checked operations; the caller takes them.
  llvm::SmallVector<EmittedFault> faults = {};
};

/// The type of elements in registers, <lanes x T> or T: bool is i1, f16 and
/// bf16 are i16 (their bits), the others as expected.
llvm::Type* register_type(EmitContext& context, DType dtype);
/// The type of elements in memory: bool is i8, the others as in registers.
llvm::Type* memory_type(EmitContext& context, DType dtype);
/// Conversions between the two (bool: != 0, zero extension; others: none).
llvm::Value* from_memory(EmitContext& context, DType dtype, llvm::Value* value);
llvm::Value* to_memory(EmitContext& context, DType dtype, llvm::Value* value);

/// `op` on register values of `dtype`, as element_loop defines it: for `select`
/// operands[0] is bool. The row must admit `dtype` (CHECKed).
llvm::Value* emit_element(EmitContext& context, ir::Op op, DType dtype,
                          llvm::ArrayRef<llvm::Value*> operands);
/// exp of an `x` that is at most 0, or NaN: the bits of emit_element in fewer
/// instructions. Null for types other than f32 and bf16.
llvm::Value* emit_exp_below_zero(EmitContext& context, DType dtype,
                                 llvm::Value* x);
/// A divisor b of many, f32 or bf16 (null for other types): 1 / b, and whether
/// emit_quotient may use it.
struct EmittedDivisor {
  llvm::Value* value = nullptr;
  llvm::Value* reciprocal = nullptr;
  llvm::Value* usable = nullptr;  // i1
};
EmittedDivisor emit_divisor(EmitContext& context, DType dtype, llvm::Value* b);
/// The bits of x / b if b is usable and, for f32, x is one of
/// `quick_numerator`: y = 1 / b is rounded to nearest, so x y and one step with
/// the remainder are (Markstein, 1990; for all 24-bit x and b that lie near the
/// middle between two results it was looked at). 16 bits have no such middle: x
/// y is enough.
llvm::Value* emit_quotient(EmitContext& context, DType dtype, llvm::Value* x,
                           const EmittedDivisor& divisor);
/// |x| of numerators for which no step of emit_quotient leaves the normal
/// range.
constexpr float least_numerator = 0x1p-100f, most_numerator = 0x1p100f;

/// div, sqrt, log or exp of f32 scalars for a GPU: the bits of emit_element in
/// fewer instructions, for operands in the range of usual_numbers.h. It begins
/// with what the GPU approximates to an ulp, and goes on as its own division
/// and root do, but for what tells apart which operands they are good for.
llvm::Value* emit_usual(EmitContext& context, ir::Op op,
                        llvm::ArrayRef<llvm::Value*> operands);

/// The conversion that cast_loop defines.
llvm::Value* emit_cast(EmitContext& context, DType from, DType to,
                       llvm::Value* value);

}  // namespace unisono::jit
