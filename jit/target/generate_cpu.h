#pragma once
// Kernels and packed products to machine code of this processor.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jit/plan/cpu_lowering.h"
#include "jit/plan/fuse.h"
#include "jit/target/code_text.h"
#include "jit/target/generator.h"
#include "jit/target/target.h"
#include "runtime/execute/program.h"
#include "runtime/files/disk_cache.h"
#include "runtime/lru_cache.h"

namespace unisono::jit {

/// A request, and the key by which its code is kept. `sharers`: of the
/// last-level cache its stores have the n-th part, where that makes a
/// difference.
struct KeyedRequest {
  std::string key;
  Request request;
  int sharers = 1;
};

/// Starts threads, at most one for each processor, where there is much to
/// generate.
class CpuGenerator : public Generator {
 public:
  /// Code that another process made is found in `cache`, which may be null.
  explicit CpuGenerator(CpuTargetOptions options,
                        std::shared_ptr<DiskCache> cache = nullptr);

  const Lowering& lowering() override;
  bool plain_collectives() const override { return false; }
  Result<CompiledKernels> generate(const Plan& plan, int devices,
                                   const CodeTarget& target,
                                   CodeText* dump) override;
  void complete(CollectiveStep&, int, const CompiledKernels&) const override {}
  /// Code for all requests, by key_of. With `dump` all is generated again, to
  /// be seen.
  /// `sharers`: how many devices meet while they do this, each with arrays of
  /// its own in the one last-level cache.
  Result<CompiledKernels> generate(const std::vector<Request>& requests,
                                   CodeText* dump = nullptr, int sharers = 1);
  int64_t kernels_generated() const override { return kernels_generated_; }
  /// How many came from the cache on disk.
  int64_t kernels_found() const { return kernels_found_; }

 private:
  Target& target(size_t number);
  /// In several modules: LLVM cannot be stopped, so the stop flag is polled
  /// between them.
  Result<std::vector<Compiled>> generate_modules(
      std::span<const KeyedRequest> fresh, Target& target, CodeText* dump);
  /// Kernels are numbered from `first` on.
  Result<std::vector<Compiled>> generate_module(
      std::span<const KeyedRequest> fresh, size_t first, Target& target,
      CodeText* dump);

  const CpuTargetOptions options_;
  const std::shared_ptr<DiskCache> cache_;
  std::vector<std::unique_ptr<Target>> targets_;  // one for each thread
  std::optional<CpuLowering> lowering_;           // made when it is asked for
  LruCache<Compiled> kernels_{int64_t{64} << 20};
  std::atomic<int64_t> kernels_generated_ = 0, kernels_found_ = 0;
};

}  // namespace unisono::jit
