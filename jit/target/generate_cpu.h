#pragma once
// Kernels and packed products to machine code of this processor.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jit/plan/fuse.h"
#include "jit/target/code_text.h"
#include "jit/target/target.h"
#include "runtime/execute/program.h"
#include "runtime/lru_cache.h"

namespace unisono::jit {

/// What code is generated for: a kernel, or the three of a packed product.
using Request = std::variant<const Kernel*, const DotTask*>;

/// Requests with the same key get the same code.
std::string key_of(const Kernel& kernel);
std::string key_of(const DotTask& task);

/// The code of a request: launches in order.
struct Compiled {
  struct Launch {
    KernelFunction function = nullptr;
    int64_t units = 1, grain = 1;
    std::shared_ptr<const GridLaunch> grid = nullptr;  // on GPUs, instead
    int64_t code_bytes = 0;  // where code is for a profile
  };
  std::vector<Launch> launches;
  std::shared_ptr<LoadedCode> code;
};
using CompiledKernels = std::unordered_map<std::string, Compiled>;

/// Keeps what it generated: in memory, bounded. One thread at a time, with a
/// deep stack (on_deep_stacks); it starts others, one for each processor, where
/// there is much to generate.
class CpuGenerator {
 public:
  explicit CpuGenerator(CpuTargetOptions options)
      : options_(std::move(options)) {}

  const Machine& machine() { return target(0).machine(); }
  /// Code for all requests. With `dump` all is generated again, to be seen.
  Result<CompiledKernels> generate(const std::vector<Request>& requests,
                                   CodeText* dump = nullptr);
  int64_t kernels_generated() const { return kernels_generated_; }

 private:
  using Fresh = std::pair<std::string, Request>;
  Target& target(size_t number);
  /// In modules that LLVM compiles without a pause, with one between them.
  Result<std::vector<Compiled>> generate_modules(std::span<const Fresh> fresh,
                                                 Target& target,
                                                 CodeText* dump);
  /// Kernels are numbered from `first` on.
  Result<std::vector<Compiled>> generate_module(std::span<const Fresh> fresh,
                                                size_t first, Target& target,
                                                CodeText* dump);

  const CpuTargetOptions options_;
  std::vector<std::unique_ptr<Target>> targets_;  // one for each thread
  LruCache<Compiled> kernels_{int64_t{64} << 20};
  int64_t kernels_generated_ = 0;
};

}  // namespace unisono::jit
