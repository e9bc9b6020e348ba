#pragma once
// The CUDA driver, opened when it is wanted: nothing of it is needed to build,
// and a machine without it only lacks the devices.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/cuda/types.h"
#include "runtime/result.h"

namespace unisono::cuda {

/// The functions of driver.def, by their names there. A simulated driver
/// is closed with the last pointer to it.
class Driver {
 public:
  /// The library at `path`, initialised; "" is the system's. Says in one line
  /// why there is none: no library, a stub, too old, no device.
  /// `configuration` is for a simulated one; "" for others.
  static Result<std::shared_ptr<const Driver>> open(
      const std::string& path, const std::string& configuration = {});
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

#define CUDA_TEST_FUNCTION(...)
#define CUDA_FUNCTION(name, symbol, since, parameters) \
  Code(*name) parameters = nullptr;
#include "runtime/cuda/driver.def"

  /// 12020 is 12.2.
  int version() const { return version_; }
  const std::string& path() const { return path_; }
  bool simulated() const { return simulated_; }
  /// Kernels of the stream end early while the flag is set: simulated ones do.
  void end_early(Stream stream, const std::atomic<bool>* flag) const;
  /// What went wrong while `doing` something ("copying to cuda:0").
  Error error(Code code, std::string_view doing) const;

 private:
  Driver() = default;
  Status configure(const std::string& text);
  Status bind();
  Status start();

  void* library_ = nullptr;
  int (*interrupt_)(void* stream, const bool* flag) = nullptr;
  std::string path_;
  int version_ = 0;
  bool simulated_ = false, init_called_ = false;
};

/// Whether nothing works any more after this result.
bool is_sticky(Code code);
/// "12.2" for 12020.
std::string version_text(int version);

}  // namespace unisono::cuda
