#pragma once
// What sessions share: workers, compiled code, deadlines, and GPUs.
#include <memory>
#include <string>

#include "embed/counted.h"
#include "embed/stop.h"
#include "embed/unisono.h"
#include "jit/compile.h"
#include "runtime/execute/program.h"
#include "runtime/pool.h"

namespace unisono::embed {

/// Thread-safe. Each session on CPUs has a machine of its own, so that what it
/// may allocate is its own affair, and one cannot see what another has freed;
/// workers and compiled code are the engine's. GPUs are the engine's, too.
class Engine {
 public:
  /// Refused if there are no such devices.
  explicit Engine(const UnisonoEngineOptions& options);

  /// The machine of a new session. `device_bytes` 0: the engine's limit.
  std::shared_ptr<Runtime> machine(int64_t device_bytes) const;
  const std::shared_ptr<jit::Compiler>& compiler() const { return compiler_; }
  Deadlines& deadlines() { return deadlines_; }
  bool reference_only() const { return reference_only_; }
  size_t device_count() const;

 private:
  int cpu_devices_ = 1;
  int64_t device_bytes_ = 0;
  bool reference_only_ = false;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<jit::Compiler> compiler_;
  std::shared_ptr<Runtime> gpus_;  // null if devices are CPUs
  Deadlines deadlines_;
};

}  // namespace unisono::embed

struct UnisonoEngine : unisono::embed::Counted<UnisonoEngine> {
  std::shared_ptr<unisono::embed::Engine> engine;
};
