#pragma once
// From a plan's kernels to code that a kind of device runs.
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "jit/kernel/schedule.h"
#include "jit/plan/fuse.h"
#include "jit/target/code_text.h"
#include "jit/target/target.h"
#include "runtime/execute/program.h"
#include "runtime/result.h"

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

/// What code is generated for.
struct CodeTarget {
  int devices = 1;
  /// Of GPUs: their compute capabilities, each once.
  std::vector<int> capabilities = {};
};

/// One for each kind of device: generate_cpu.h, generate_grid.h. Keeps what it
/// generated: in memory, bounded. One thread at a time, with a deep stack
/// (on_deep_stacks).
class Generator {
 public:
  virtual ~Generator() = default;
  /// What plans are made for.
  virtual const Machine& machine() = 0;
  /// Code for all kernels of the plan, and for its collectives, where those
  /// need some. With `dump` all is generated again, to be seen.
  virtual Result<CompiledKernels> generate(const Plan& plan,
                                           const CodeTarget& target,
                                           CodeText* dump) = 0;
  /// The kernels that a collective of the plan needs are put into its step.
  virtual void complete(CollectiveStep& step, const CodeTarget& target,
                        const CompiledKernels& kernels) const = 0;
  virtual int64_t kernels_generated() const = 0;
};

/// All that a plan needs code for, in the order of steps.
std::vector<Request> requests_of(const Plan& plan);

}  // namespace unisono::jit
