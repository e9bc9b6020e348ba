#pragma once
// What the logical devices on one GPU share: its primary context, the code
// loaded there, and whether it still works.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/cuda/driver.h"
#include "runtime/files/disk_cache.h"
#include "runtime/grid.h"

namespace unisono::cuda {

/// Thread-safe.
class Gpu {
 public:
  /// The driver's GPU number `ordinal`, called `name` in messages. `cache`,
  /// which may be null, keeps the code that the driver makes of PTX; `cubins`
  /// is a folder with code that is ready (ready_cubins.h), or "". Fails for
  /// GPUs older than compute capability 7.5.
  static Result<std::shared_ptr<Gpu>> open(std::shared_ptr<const Driver> driver,
                                           int ordinal, std::string name,
                                           std::shared_ptr<DiskCache> cache,
                                           std::string cubins = {});
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver() const { return *driver_; }
  Device device() const { return device_; }
  Context context() const { return context_; }
  /// 90 is sm_90.
  int capability() const { return capability_; }
  /// "cuda:0"
  const std::string& name() const { return name_; }
  /// "NVIDIA H200"
  const std::string& model() const { return model_; }

  /// `code` as a Status; its error says what failed (Driver::error). After a
  /// sticky code the GPU is lost.
  Status check(Code code, std::string_view doing);
  /// Whether nothing works here any more.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// Why the GPU was lost; only for one that is.
  Error lost_error() const;

  /// A kernel, and the dynamic shared memory that a launch of it asks for.
  struct Kernel {
    Function function = nullptr;
    unsigned shared_bytes = 0;
  };
  /// The kernel `entry` of `code`, which is loaded if it is not yet. Valid
  /// while somebody else holds `code`, too.
  Result<Kernel> kernel(const std::shared_ptr<const GridCode>& code,
                        const std::string& entry);
  /// Unloads code that nobody else holds any more.
  void unload_unused();

 private:
  explicit Gpu(std::shared_ptr<const Driver> driver)
      : driver_(std::move(driver)) {}
  struct Loaded {
    std::shared_ptr<const GridCode> code;  // so that its address stays its own
    Module module = nullptr;
    unsigned shared_bytes = 0;  // of GridCode::Image
    std::unordered_map<std::string, Function> functions = {};
  };
  Status load(Loaded& loaded);
  Status assemble(const GridCode::Image& image, const std::string& key,
                  Module& module);
  Code link(const GridCode::Image& image, const std::string& key,
            unsigned count, JitOption* options, void** values, Module& module);
  std::string cache_key(const GridCode::Image& image) const;
  void unload_unknown();

  std::shared_ptr<const Driver> driver_;
  std::shared_ptr<DiskCache> cache_;
  Device device_ = 0;
  Context context_ = nullptr;
  int capability_ = 0;
  std::string name_, model_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::map<const GridCode*, Loaded> loaded_;
  Error why_lost_;
  std::string cubins_;  // a folder, or ""
};

/// Makes the GPU's context the thread's current one while this object lives.
/// Afterwards the context that was current before is so again, even where calls
/// of the driver failed between.
class CurrentContext {
 public:
  explicit CurrentContext(const Gpu& gpu) : driver_(gpu.driver()) {
    const bool known = twice([&] { return driver_.ctx_get_current(&before_); });
    if (known && before_ != gpu.context())
      changed_ = twice([&] { return driver_.ctx_set_current(gpu.context()); });
  }
  ~CurrentContext() {
    if (changed_) twice([&] { return driver_.ctx_set_current(before_); });
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  /// Calls again after a failure: the driver may answer once with an error of
  /// earlier work.
  template <class Call>
  static bool twice(Call&& call) {
    return call() == success || call() == success;
  }

  const Driver& driver_;
  Context before_ = nullptr;
  bool changed_ = false;
};

}  // namespace unisono::cuda
