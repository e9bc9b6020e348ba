#include <fmt/format.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <exception>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "jit/target/diagnostic_handler.h"
#include "jit/target/instrument.h"
#include "jit/target/loader.h"
#include "jit/target/target.h"
#include "runtime/check.h"
#include "runtime/stack_thread.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

Error failed(std::string why) {
  return {Error::Kind::compile_failed, std::move(why)};
}

/// LLVM's passes, or some of them: where loops are plain, those that look for
/// simpler addresses find nothing, and take as long as a third of all others.
class ChosenPasses : public llvm::legacy::PassManagerBase {
 public:
  ChosenPasses(llvm::legacy::PassManager& passes, bool plain)
      : passes_(passes), plain_(plain) {}
  void add(llvm::Pass* pass) override {
    const llvm::StringRef name = pass->getPassName();
    const bool of_addresses =
        name == "Loop Strength Reduction" ||
        name == "Canonicalize Freeze Instructions in Loops";
    if (plain_ && of_addresses)
      delete pass;  // NOLINT: it is ours now, as it would be the manager's
    else
      passes_.add(pass);
  }

 private:
  llvm::legacy::PassManager& passes_;
  const bool plain_;
};

/// What makes object files of modules, one after the other: to make the passes
/// takes longer than they need for a small module. LLVM resets all that they
/// know of a module at its end.
struct ObjectPasses {
  llvm::legacy::PassManager passes;
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream{object};
};

/// The context that modules are made in, and what makes code of them; given up
/// after some modules, as LLVM keeps all types and constants of a context.
struct Workshop {
  llvm::LLVMContext context;
  std::unique_ptr<ObjectPasses> passes[2] = {};  // of plain modules the second
  int modules = 0;
  /// A module is being made. If the next one comes then, memory or patience had
  /// ended meanwhile, and nobody knows how LLVM left the context.
  bool in_use = false;
};

class CpuTarget : public Target {
 public:
  explicit CpuTarget(const CpuTargetOptions& options);
  const Machine& machine() const override { return machine_; }
  const std::string& description() const override { return description_; }
  void prepare(llvm::Module& module) override {
    module.setDataLayout(generator().createDataLayout());
    module.setTargetTriple(triple_);
  }
  llvm::LLVMContext& context() override {
    if (!workshop_ || workshop_->in_use ||
        ++workshop_->modules > tuning().most_context_modules)
      workshop_ = std::make_unique<Workshop>();
    workshop_->in_use = true;
    return workshop_->context;
  }
  Result<std::vector<char>> object(llvm::Module& module, bool plain) override;
  Result<std::shared_ptr<LoadedCode>> load(
      std::span<const char> object,
      const std::vector<std::string>& names) override;
  Result<std::string> assembly(llvm::Module& module, bool plain) override;

 private:
  std::unique_ptr<ObjectPasses> make_passes(bool plain);
  Status run(llvm::legacy::PassManager& passes, llvm::Module& module);

  llvm::TargetMachine& generator();

  const bool profile_;
  std::string triple_, cpu_, features_, description_;
  Machine machine_;
  std::unique_ptr<llvm::TargetMachine> generator_;  // made at the first use
  std::unique_ptr<Workshop> workshop_;              // likewise
  std::unique_ptr<Loader> loader_;                  // made at the first load
};

void wake_llvm() {
  static const bool awake = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  CHECK(awake);
}

/// Bytes of the largest cache of this processor, from its own description:
/// what the system says may count those of other processors.
int64_t last_level_cache() {
  int64_t largest = 0;
#if defined(__x86_64__)
  // Intel's leaf and AMD's, which have the same form.
  for (unsigned leaf : {0x4u, 0x8000001du})
    for (unsigned i = 0; i < 8; ++i) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || (a & 31) == 0) break;
      const int64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 1023) + 1;
      const int64_t line = (b & 4095) + 1, sets = int64_t{c} + 1;
      largest = std::max(largest, ways * partitions * line * sets);
    }
#endif
  return largest > 0 ? std::min(largest, tuning().most_cache_bytes)
                     : int64_t{32} << 20;
}

/// The features of a processor that is not this one.
llvm::StringMap<bool> features_of(const llvm::Target& target,
                                  const std::string& triple,
                                  const std::string& cpu) {
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      target.createMCSubtargetInfo(triple, cpu, ""));
  CHECK(info && info->isCPUStringValid(cpu));
  llvm::StringMap<bool> out;
  for (const char* name :
       {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"})
    out[name] = info->checkFeatures(std::string("+") + name);
  return out;
}

const llvm::Target& llvm_target(const std::string& triple) {
  wake_llvm();
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  CHECK(target);
  return *target;
}

CpuTarget::CpuTarget(const CpuTargetOptions& options)
    : profile_(options.profile), triple_(llvm::sys::getProcessTriple()) {
  const bool here = options.cpu.empty();
  llvm::StringMap<bool> features =
      here ? llvm::sys::getHostCPUFeatures()
           : features_of(llvm_target(triple_), triple_, options.cpu);
  const bool wide = features["avx512f"] && features["avx512bw"] &&
                    features["avx512dq"] && features["avx512vl"];
  const int widest = wide ? 64 : features["avx2"] && features["fma"] ? 32 : 16;
  const int bytes = options.vector_bytes ? options.vector_bytes : widest;
  const int native = std::min(bytes, widest);
  std::string list;
  for (const auto& feature : features)
    if (here) list += (feature.second ? ",+" : ",-") + feature.first().str();
  if (native < 64) list += ",-avx512f";
  if (native < 32) list += ",-avx,-fma,-f16c";
  machine_.vector_bytes = bytes;
  machine_.masked_bytes = native == 64;
  machine_.native_half = native >= 32 && features["f16c"];
  machine_.native_exponents = native == 64;
  const bool neon = llvm::Triple(triple_).isAArch64() && native >= 16;
  machine_.row_lanes = native == 64 ? 16 : native == 32 ? 8 : neon ? 4 : 0;
  machine_.last_level_cache = last_level_cache();
  cpu_ = here ? llvm::sys::getHostCPUName().str() : options.cpu;
  if (!list.empty()) features_ = list.substr(1);
  // In one order: that of the map is another in each process.
  llvm::SmallVector<llvm::StringRef> sorted;
  llvm::StringRef(features_).split(sorted, ',');
  std::ranges::sort(sorted);
  description_ =
      fmt::format("{} {} {} bytes, cache of {}\n{}\n", triple_, cpu_, bytes,
                  machine_.last_level_cache, llvm::join(sorted, ","));
}

llvm::TargetMachine& CpuTarget::generator() {
  if (!generator_) {
    llvm::TargetOptions strict;
    strict.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    generator_.reset(llvm_target(triple_).createTargetMachine(
        triple_, cpu_, features_, strict, llvm::Reloc::PIC_,
        llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less, true));
  }
  return *generator_;
}

/// Null if there are none for this processor.
std::unique_ptr<ObjectPasses> CpuTarget::make_passes(bool plain) {
  auto made = std::make_unique<ObjectPasses>();
  ChosenPasses chosen(made->passes, plain);
  llvm::MCContext* context = nullptr;
  if (generator().addPassesToEmitMC(chosen, context, made->stream))
    return nullptr;
  return made;
}

Status CpuTarget::run(llvm::legacy::PassManager& passes, llvm::Module& module) {
  std::string errors;
  llvm::raw_string_ostream why(errors);
  if (llvm::verifyModule(module, &why)) return failed(errors);
  instrument(module);
  module.getContext().setDiagnosticHandler(
      std::make_unique<Diagnostics>(errors));
  passes.run(module);
  module.getContext().setDiagnosticHandler(nullptr);
  if (!errors.empty()) return failed(errors);
  return Unit{};
}

Result<std::vector<char>> CpuTarget::object(llvm::Module& module, bool plain) {
  std::unique_ptr<ObjectPasses> own;
  const bool kept = workshop_ && &module.getContext() == &workshop_->context;
  std::unique_ptr<ObjectPasses>& passes =
      kept ? workshop_->passes[plain ? 1 : 0] : own;
  if (!passes) passes = make_passes(plain);
  if (!passes) return failed("no code can be generated for this processor");
  try {
    TRY(run(passes->passes, module));
    std::vector<char> object(passes->object.begin(), passes->object.end());
    passes->object.clear();
    if (kept) workshop_->in_use = false;
    return object;
  } catch (...) {
    passes = nullptr;  // before the module, of which they know
    throw;
  }
}

Result<std::shared_ptr<LoadedCode>> CpuTarget::load(
    std::span<const char> object, const std::vector<std::string>& names) {
  if (!loader_) {
    auto loader = TRY(Loader::make(profile_));
    loader_ = std::move(loader);
  }
  return loader_->load(object, names);
}

Result<std::string> CpuTarget::assembly(llvm::Module& module, bool plain) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  ChosenPasses chosen(passes, plain);
  if (generator().addPassesToEmitFile(chosen, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return failed("no code can be generated for this processor");
  TRY(run(passes, module));
  return std::string(text.data(), text.size());
}

}  // namespace

std::unique_ptr<Target> make_cpu_target(const CpuTargetOptions& options) {
  return std::make_unique<CpuTarget>(options);
}

void on_deep_stacks(size_t count, const std::function<void(size_t)>& f) {
  constexpr size_t stack_bytes = size_t{64} << 20;
  const std::atomic<bool>* stop = stop_flag();
  std::vector<std::exception_ptr> failures(count);  // no memory, or stopped
  auto run = [&](size_t i) {
    const StopScope scope(stop);
    try {
      f(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  {
    std::vector<StackThread> threads;
    threads.reserve(count);
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back(stack_bytes, [&run, i] { run(i); });
    for (size_t i = 0; i < count; ++i)
      if (!threads[i].started()) run(i);  // with the stack there is
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace unisono::jit
