// Generated code is watched as the rest of a build with sanitizers is. With
// AddressSanitizer heaps poison what is no array's (runtime/heap.cpp), so a
// kernel that leaves its arrays is found out; with ThreadSanitizer one that
// another thread's kernel reads or writes beside, without order.
#include "jit/target/instrument.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNISONO_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define UNISONO_THREAD_SANITIZER 1
#endif
#endif

#ifdef UNISONO_ADDRESS_SANITIZER
#include <dlfcn.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>

#include <string_view>
#endif

#ifdef UNISONO_THREAD_SANITIZER
#include <dlfcn.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <string_view>
#include <vector>
#endif

namespace unisono::jit {

#ifdef UNISONO_ADDRESS_SANITIZER

void instrument(llvm::Module& module) {
  for (llvm::Function& function : module)
    if (!function.isDeclaration())
      function.addFnAttr(llvm::Attribute::SanitizeAddress);
  // Constant tables: nothing would register what lies between them.
  for (llvm::GlobalVariable& global : module.globals()) {
    llvm::GlobalValue::SanitizerMetadata unwatched;
    unwatched.NoAddress = true;
    global.setSanitizerMetadata(unwatched);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::AddressSanitizerOptions options;
  options.InsertVersionCheck = false;
  options.UseAfterReturn = llvm::AsanDetectStackUseAfterReturnMode::Never;
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AddressSanitizerPass(
      options, /*UseGlobalGC=*/false, /*UseOdrIndicator=*/false,
      llvm::AsanDtorKind::None, llvm::AsanCtorKind::None));
  passes.run(module, modules);
}

void* sanitizer_function(const char* name) {
  if (!std::string_view(name).starts_with("__asan_")) return nullptr;
  return dlsym(RTLD_DEFAULT, name);
}

#elif defined(UNISONO_THREAD_SANITIZER)

// LLVM's own pass leaves vectors of more than 16 bytes alone, which is most of
// what kernels read. Masked accesses, at the ends of rows, are not watched.
void instrument(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* nothing = llvm::Type::getVoidTy(context);
  llvm::Type* address = llvm::PointerType::getUnqual(context);
  llvm::Type* size = llvm::Type::getInt64Ty(context);
  const auto read =
      module.getOrInsertFunction("__tsan_read_range", nothing, address, size);
  const auto write =
      module.getOrInsertFunction("__tsan_write_range", nothing, address, size);
  for (llvm::Function& function : module) {
    std::vector<llvm::Instruction*> accesses;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      const llvm::Value* pointer =
          llvm::getLoadStorePointerOperand(&instruction);
      if (!pointer || instruction.isAtomic()) continue;
      if (llvm::isa<llvm::AllocaInst>(pointer->stripInBoundsOffsets()))
        continue;
      accesses.push_back(&instruction);
    }
    for (llvm::Instruction* access : accesses) {
      const uint64_t bytes = module.getDataLayout().getTypeStoreSize(
          llvm::getLoadStoreType(access));
      llvm::IRBuilder<> builder(access);
      builder.CreateCall(llvm::isa<llvm::LoadInst>(access) ? read : write,
                         {llvm::getLoadStorePointerOperand(access),
                          llvm::ConstantInt::get(size, bytes)});
    }
  }
}

void* sanitizer_function(const char* name) {
  if (!std::string_view(name).starts_with("__tsan_")) return nullptr;
  return dlsym(RTLD_DEFAULT, name);
}

#else

void instrument(llvm::Module&) {}
void* sanitizer_function(const char*) { return nullptr; }

#endif

}  // namespace unisono::jit
