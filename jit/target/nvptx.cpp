#include "jit/target/nvptx.h"

#include <fmt/format.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <array>

#include "jit/target/diagnostic_handler.h"
#include "jit/target/verify_grid.h"
#include "runtime/check.h"

namespace unisono::jit {
namespace {

/// Capabilities, each with the oldest PTX version that has all that we use.
struct Capability {
  int number;
  const char* ptx;
};
constexpr std::array capabilities = {
    Capability{75, "+ptx63"}, Capability{80, "+ptx70"},
    Capability{86, "+ptx71"}, Capability{87, "+ptx74"},
    Capability{89, "+ptx78"}, Capability{90, "+ptx78"},
};

void wake_llvm() {
  static const bool awake = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  CHECK(awake);
}

}  // namespace

int code_capability(int device_capability) {
  int best = oldest_capability;
  for (const Capability& c : capabilities)
    if (c.number <= device_capability) best = c.number;
  return best;
}

NvptxTarget::NvptxTarget(int capability) {
  wake_llvm();
  auto known =
      std::find_if(capabilities.begin(), capabilities.end(),
                   [&](const Capability& c) { return c.number == capability; });
  CHECK(known != capabilities.end());
  const char* triple = "nvptx64-nvidia-cuda";
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  CHECK(target);
  llvm::TargetOptions options;
  // An fma stands where the IR says fma, and nowhere else.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  machine_.reset(target->createTargetMachine(
      triple, fmt::format("sm_{}", capability), known->ptx, options,
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

NvptxTarget::~NvptxTarget() = default;

void NvptxTarget::prepare(llvm::Module& module) {
  module.setDataLayout(machine_->createDataLayout());
  module.setTargetTriple(machine_->getTargetTriple().str());
}

Result<std::string> NvptxTarget::ptx(llvm::Module& module) {
  auto failed = [](std::string why) {
    return Error{Error::Kind::compile_failed, std::move(why)};
  };
  std::string errors;
  llvm::raw_string_ostream why(errors);
  if (llvm::verifyModule(module, &why)) return failed(errors);
  TRY(verify_grid(module));
  module.getContext().setDiagnosticHandler(
      std::make_unique<Diagnostics>(errors));
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr,
                                    llvm::CodeGenFileType::AssemblyFile))
    return failed("no PTX can be generated");
  passes.run(module);
  module.getContext().setDiagnosticHandler(nullptr);
  if (!errors.empty()) return failed(errors);
  std::string ptx(text.data(), text.size());
  TRY(verify_ptx(ptx));
  return ptx;
}

}  // namespace unisono::jit
