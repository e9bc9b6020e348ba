#include "jit/target/verify_grid.h"

#include <fmt/format.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/raw_ostream.h>

#include <cctype>
#include <string>

#include "jit/emit/grid_nest.h"

namespace unisono::jit {
namespace {

/// Operations of a kernel. The back end recurses over chains of them; longer
/// kernels exhaust its stack.
constexpr size_t most_instructions = 100000;

bool known_opcode(unsigned opcode) {
  using I = llvm::Instruction;
  switch (opcode) {
    case I::Ret:
    case I::Br:
    case I::FNeg:
    case I::Add:
    case I::FAdd:
    case I::Sub:
    case I::FSub:
    case I::Mul:
    case I::FMul:
    case I::UDiv:
    case I::SDiv:
    case I::FDiv:
    case I::URem:
    case I::SRem:
    case I::Shl:
    case I::LShr:
    case I::AShr:
    case I::And:
    case I::Or:
    case I::Xor:
    case I::Alloca:
    case I::Load:
    case I::Store:
    case I::GetElementPtr:
    case I::AtomicCmpXchg:
    case I::AtomicRMW:
    case I::Trunc:
    case I::ZExt:
    case I::SExt:
    case I::FPToUI:
    case I::FPToSI:
    case I::UIToFP:
    case I::SIToFP:
    case I::FPTrunc:
    case I::FPExt:
    case I::BitCast:
    case I::ICmp:
    case I::FCmp:
    case I::PHI:
    case I::Call:
    case I::Select:
    case I::ExtractElement:
    case I::InsertElement:
    case I::ExtractValue: return true;
    default: return false;  // FRem, Fence, Switch, Unreachable, ...
  }
}

bool known_intrinsic(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::sqrt:
    case llvm::Intrinsic::roundeven:
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::fabs:
    case llvm::Intrinsic::copysign:
    case llvm::Intrinsic::cttz:
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
    case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    case llvm::Intrinsic::nvvm_barrier0:
    case llvm::Intrinsic::nvvm_bar_warp_sync:
    case llvm::Intrinsic::nvvm_membar_gl:
    case llvm::Intrinsic::nvvm_rcp_approx_ftz_f:
    case llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f:
    case llvm::Intrinsic::nvvm_saturate_f:
    case llvm::Intrinsic::nvvm_shfl_sync_up_i32:
    case llvm::Intrinsic::nvvm_shfl_sync_down_i32:
    case llvm::Intrinsic::nvvm_shfl_sync_idx_i32: return true;
    default: return false;
  }
}

bool known_scalar(llvm::Type* type) {
  if (type->isHalfTy() || type->isBFloatTy() || type->isFloatTy() ||
      type->isDoubleTy() || type->isPointerTy())
    return true;
  if (!type->isIntegerTy()) return false;
  const unsigned bits = type->getIntegerBitWidth();
  return bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

/// Vectors are what one access moves, at most 16 bytes.
bool known_type(llvm::Type* type) {
  if (type->isVoidTy()) return true;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    return known_scalar(vector->getElementType()) &&
           vector->getPrimitiveSizeInBits() <= 128;
  return known_scalar(type);
}

bool moves_vectors(const llvm::Instruction& i) {
  return llvm::isa<llvm::LoadInst, llvm::StoreInst, llvm::BitCastInst,
                   llvm::ExtractElementInst, llvm::InsertElementInst>(i);
}

const char* forbidden_access(unsigned space, bool own) {
  if (space == global_space || space == shared_space || own) return nullptr;
  return "an access to memory of unknown kind";
}

/// Whether a generic pointer is into an alloca of the function.
bool is_own(const llvm::Value* pointer) {
  while (auto* gep = llvm::dyn_cast<llvm::GEPOperator>(pointer))
    pointer = gep->getPointerOperand();
  return llvm::isa<llvm::AllocaInst>(pointer);
}

const char* forbidden_atomic(const llvm::Instruction& i) {
  constexpr auto relaxed = llvm::AtomicOrdering::Monotonic;
  if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
    if (rmw->isFloatingPointOperation()) return "an atomic operation on floats";
    if (rmw->getOrdering() != relaxed) return "an ordered atomic operation";
    if (rmw->getPointerAddressSpace() != global_space)
      return "an atomic operation outside global memory";
  }
  if (auto* cas = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
    if (cas->getSuccessOrdering() != relaxed ||
        cas->getFailureOrdering() != relaxed)
      return "an ordered atomic operation";
    if (cas->getPointerAddressSpace() != global_space)
      return "an atomic operation outside global memory";
  }
  return nullptr;
}

/// Why an instruction is not admitted; null if it is.
const char* forbidden(const llvm::Instruction& i) {
  if (!known_opcode(i.getOpcode())) return "an operation that is not listed";
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) {
    const llvm::Function* callee = call->getCalledFunction();
    if (!callee || !callee->isIntrinsic()) return "a call";
    if (!known_intrinsic(callee->getIntrinsicID()))
      return "an intrinsic that is not listed";
  }
  if (!llvm::isa<llvm::AtomicCmpXchgInst>(i) && !known_type(i.getType()))
    return "a type that is not listed";
  for (const llvm::Value* operand : i.operands())
    if (operand->getType()->isVectorTy() && !moves_vectors(i))
      return "arithmetic on vectors";
  if (auto* op = llvm::dyn_cast<llvm::FPMathOperator>(&i))
    if (op->getFastMathFlags().any()) return "inexact arithmetic";
  if (const char* why = forbidden_atomic(i)) return why;
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
    return forbidden_access(load->getPointerAddressSpace(),
                            is_own(load->getPointerOperand()));
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
    return forbidden_access(store->getPointerAddressSpace(),
                            is_own(store->getPointerOperand()));
  return nullptr;
}

Error refused(std::string what) {
  return {Error::Kind::compile_failed,
          "a kernel for a GPU has " + std::move(what)};
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         c == '$';
}

/// Whether `word` stands in the text as (the start of) an opcode: after white
/// space or a predicate, not as part of a name.
bool has_opcode(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool starts = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t';
    const size_t end = at + word.size();
    if (starts && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

/// Whether the opcode at `at` is one of those approximations with which
/// quotients and roots begin (emit_usual) that are rounded to nearest.
bool begins_an_exact_one(std::string_view text, size_t at) {
  const size_t begin = text.find_last_of(" \t\n", at) + 1;
  const std::string_view opcode =
      text.substr(begin, text.find_first_of(" \t\n", at) - begin);
  return opcode == "rcp.approx.ftz.f32" || opcode == "rsqrt.approx.ftz.f32";
}

}  // namespace

Status verify_grid(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) {
      if (function.isIntrinsic()) continue;
      return refused("a function from outside: " + function.getName().str());
    }
    size_t count = 0;
    for (const llvm::Instruction& i : llvm::instructions(function)) {
      if (++count > most_instructions)
        return refused("more operations than can be compiled");
      if (const char* why = forbidden(i)) {
        std::string text;
        llvm::raw_string_ostream(text) << i;
        return refused(fmt::format("{}:{}", why, text));
      }
    }
  }
  return Unit{};
}

Status verify_ptx(std::string_view ptx) {
  constexpr std::string_view opcodes[] = {
      "trap",    "call",     ".extern",  "exit",    "add.f32", "add.f64",
      "sub.f32", "sub.f64",  "mul.f32",  "mul.f64", "add.f16", "sub.f16",
      "mul.f16", "add.bf16", "sub.bf16", "mul.bf16"};
  for (std::string_view opcode : opcodes)
    if (has_opcode(ptx, opcode))
      return refused(fmt::format("PTX with `{}`", opcode));
  for (std::string_view part : {".ftz", ".approx", "div.full", "fma.rz"})
    for (size_t at = ptx.find(part); at != std::string_view::npos;
         at = ptx.find(part, at + 1))
      if (!begins_an_exact_one(ptx, at))
        return refused(fmt::format("PTX with `{}`", part));
  return Unit{};
}

}  // namespace unisono::jit
