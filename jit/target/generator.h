#pragma once
// Generators turn a plan's kernels into code for one kind of device.
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "jit/plan/fuse.h"
#include "jit/plan/lowering.h"
#include "jit/target/code_text.h"
#include "jit/target/target.h"
#include "runtime/execute/program.h"
#include "runtime/result.h"

namespace unisono::jit {

/// One thing to generate code for: a kernel, or a packed product, which has
/// three launches. Points into the plan.
using Request = std::variant<const Kernel*, const DotTask*>;

/// Requests with the same key get the same code.
std::string key_of(const Kernel& kernel);
std::string key_of(const DotTask& task);

/// The code of a request: its launches, in order.
struct Compiled {
  struct Launch {
    KernelFunction function = nullptr;
    int64_t units = 1, grain = 1;
    std::shared_ptr<const GridLaunch> grid = nullptr;  // on GPUs, instead
    int64_t code_bytes = 0;  // 0 unless code is for a profile
  };
  std::vector<Launch> launches;
  std::shared_ptr<LoadedCode> code;
};
/// By key_of the request.
using CompiledKernels = std::unordered_map<std::string, Compiled>;

/// One for each kind of device: generate_cpu.h, generate_gpu.h. Caches what it
/// generated: in memory, bounded. Called by one thread at a time, which has a
/// deep stack (on_deep_stacks).
class Generator {
 public:
  virtual ~Generator() = default;
  /// How plans for these devices are made.
  virtual const Lowering& lowering() = 0;
  /// Whether devices meet in plain collectives alone (spmd in transforms.h).
  virtual bool plain_collectives() const = 0;
  /// Code for all kernels of the plan, and for its collectives of `devices`
  /// devices where they need some. With `dump`, which may be null, all is
  /// generated again, to be seen. Errors: compile_failed; throws Stopped.
  virtual Result<CompiledKernels> generate(const Plan& plan, int devices,
                                           const CodeTarget& target,
                                           CodeText* dump) = 0;
  /// Puts the kernels that a collective of the plan needs into its step.
  virtual void complete(CollectiveStep& step, int devices,
                        const CompiledKernels& kernels) const = 0;
  /// How many so far, those found in the cache not counted.
  virtual int64_t kernels_generated() const = 0;
};

/// All that a plan needs code for, in the order of steps.
std::vector<Request> requests_of(const Plan& plan);

}  // namespace unisono::jit
