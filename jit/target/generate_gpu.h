#pragma once
// Kernels to PTX for the compute capabilities of a program's devices.
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit/kernel/kernel.h"
#include "jit/kernel/source_lines.h"
#include "jit/plan/gpu_lowering.h"
#include "jit/target/code_text.h"
#include "jit/target/generator.h"
#include "jit/target/nvptx.h"
#include "runtime/grid.h"
#include "runtime/lru_cache.h"
#include "runtime/result.h"

namespace unisono::jit {

/// Launches by their kernels, printed.
using GridLaunches =
    std::unordered_map<std::string, std::shared_ptr<const GridLaunch>>;

/// Keeps what it generated: in memory, bounded, keyed by the printed kernel and
/// the capabilities. One thread at a time.
class GpuGenerator : public Generator {
 public:
  /// With `lines`, code says which lines it computes (emit_grid).
  explicit GpuGenerator(SourceLines lines = {}) : lines_(std::move(lines)) {}
  const Lowering& lowering() override { return lowering_; }
  bool plain_collectives() const override { return true; }
  Result<CompiledKernels> generate(const Plan& plan, int devices,
                                   const CodeTarget& target,
                                   CodeText* dump) override;
  void complete(CollectiveStep& step, int devices,
                const CompiledKernels& kernels) const override;
  /// Launches of all kernels. Those not known yet are generated for each
  /// capability, in modules of a few kernels. With `dump` all are generated
  /// again, to be seen, and the text is that of one module.
  Result<GridLaunches> generate(const std::vector<const Kernel*>& kernels,
                                const std::vector<int>& capabilities,
                                CodeText* dump = nullptr);
  int64_t kernels_generated() const override { return kernels_generated_; }

 private:
  NvptxTarget& target(int capability);
  std::string llvm_text(std::span<const Kernel* const> all, int capability);
  /// Kernels are numbered from `first` on.
  Result<std::vector<std::shared_ptr<const GridLaunch>>> generate_module(
      std::span<const Kernel* const> kernels, size_t first,
      const std::vector<int>& capabilities, CodeText* dump);

  /// What kernels that are kept are found by.
  std::string kept_by(const Kernel& kernel, const std::string& key) const;

  const SourceLines lines_;
  const GpuLowering lowering_;
  std::map<int, NvptxTarget> targets_;
  LruCache<std::shared_ptr<const GridLaunch>> kernels_{int64_t{64} << 20};
  int64_t kernels_generated_ = 0;
};

}  // namespace unisono::jit
