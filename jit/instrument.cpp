// Generated code is watched as the rest of a build with AddressSanitizer is:
// heaps poison what is no array's (runtime/heap.cpp), so a kernel that leaves
// its arrays is found out.
#include "jit/instrument.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNISONO_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef UNISONO_ADDRESS_SANITIZER
#include <dlfcn.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>

#include <string_view>
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

void* asan_function(const char* name) {
  if (!std::string_view(name).starts_with("__asan_")) return nullptr;
  return dlsym(RTLD_DEFAULT, name);
}

#else

void instrument(llvm::Module&) {}
void* asan_function(const char*) { return nullptr; }

#endif

}  // namespace unisono::jit
