#include "tests/unit/jit/element/element_jit.h"

#include <doctest/doctest.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include "jit/emit/rare_symbol.h"

namespace unisono::jit {

using llvm::Value;

namespace {
namespace orc = llvm::orc;

/// Defines the rare functions that code asks for.
class RareFunctions : public orc::DefinitionGenerator {
 public:
  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind,
                            orc::JITDylib& dylib, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& wanted) override {
    orc::SymbolMap found;
    for (const auto& [name, flags] : wanted)
      if (void* function = function_of(*name))
        found[name] = {orc::ExecutorAddr::fromPtr(function),
                       llvm::JITSymbolFlags::Exported};
    if (found.empty()) return llvm::Error::success();
    return dylib.define(orc::absoluteSymbols(std::move(found)));
  }
};
}  // namespace

ElementJit::ElementJit(const std::string& cpu) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto target =
      llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  if (!cpu.empty()) {
    target.setCPU(cpu);
    target.getFeatures() = llvm::SubtargetFeatures();
  }
  target.setCodeGenOptLevel(llvm::CodeGenOptLevel::Less);
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  in_process = cpu.empty();
  native_half = cpu.empty() && host.lookup("f16c");
  native_exponents =
      cpu.empty() && host.lookup("avx512f") && host.lookup("avx512vl");
  const bool avx512 = cpu.empty() && host.lookup("avx512f"),
             avx2 = cpu.empty() ? host.lookup("avx2") : cpu == "x86-64-v3";
  row_lanes = avx512 ? 16 : avx2 ? 8 : 0;
  jit_ = llvm::cantFail(llvm::orc::LLJITBuilder()
                            .setJITTargetMachineBuilder(std::move(target))
                            .create());
  jit_->getMainJITDylib().addGenerator(std::make_unique<RareFunctions>());
}

void ElementJit::emit(llvm::Module& module, const Loop& loop) {
  llvm::LLVMContext& llvm_context = module.getContext();
  llvm::IRBuilder<> b(llvm_context);
  llvm::Type* pointer = b.getPtrTy();
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(
          b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty()}, false),
      llvm::Function::ExternalLinkage, loop.name, module);
  function->addFnAttr("prefer-vector-width", "512");
  // Lets vectors be spilled to aligned places.
  function->addFnAttr("frame-pointer", "all");
  auto* entry = llvm::BasicBlock::Create(llvm_context, "entry", function);
  auto* body = llvm::BasicBlock::Create(llvm_context, "body", function);
  auto* done = llvm::BasicBlock::Create(llvm_context, "done", function);
  b.SetInsertPoint(entry);
  b.CreateBr(body);

  b.SetInsertPoint(body);
  EmitContext context{b, loop.lanes, native_half, native_exponents, in_process};
  context.row_lanes = row_lanes;
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  auto place = [&](Value* base, DType dtype) {
    return b.CreateGEP(b.getInt8Ty(), base,
                       b.CreateMul(i, b.getInt64(byte_size(dtype))));
  };
  llvm::SmallVector<Value*> operands;
  for (size_t k = 0; k < loop.operands.size(); ++k) {
    const DType dtype = loop.operands[k];
    Value* base =
        b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, function->getArg(2),
                                                   static_cast<int64_t>(k)));
    Value* stored = b.CreateAlignedLoad(memory_type(context, dtype),
                                        place(base, dtype), llvm::Align(1));
    operands.push_back(from_memory(context, dtype, stored));
  }
  Value* result = loop.emit(context, operands);
  b.CreateAlignedStore(to_memory(context, loop.result, result),
                       place(function->getArg(0), loop.result), llvm::Align(1));
  llvm::Type* flags = memory_type(context, DType::Bool);
  Value* at_fault = llvm::Constant::getNullValue(flags);
  for (const EmittedFault& fault : context.faults)
    at_fault = b.CreateOr(at_fault, b.CreateZExt(fault.mask, flags));
  b.CreateAlignedStore(at_fault, place(function->getArg(1), DType::Bool),
                       llvm::Align(1));
  Value* next = b.CreateAdd(i, b.getInt64(loop.lanes == 0 ? 1 : loop.lanes));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, function->getArg(3)), body, done);

  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

void ElementJit::add(const std::vector<Loop>& loops) {
  auto llvm_context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("elements", *llvm_context);
  module->setDataLayout(jit_->getDataLayout());
  for (const Loop& loop : loops) emit(*module, loop);
  std::string message;
  llvm::raw_string_ostream stream(message);
  REQUIRE_MESSAGE(!llvm::verifyModule(*module, &stream), message);
  llvm::cantFail(jit_->addIRModule(
      llvm::orc::ThreadSafeModule(std::move(module), std::move(llvm_context))));
}

CompiledLoop ElementJit::operator[](const std::string& name) {
  return llvm::cantFail(jit_->lookup(name)).toPtr<CompiledLoop>();
}

}  // namespace unisono::jit
