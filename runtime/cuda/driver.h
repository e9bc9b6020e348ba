#pragma once
// The CUDA driver, opened at run time: nothing of it is needed to build, and a
// machine without it only lacks the devices.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/cuda/types.h"
#include "runtime/result.h"

namespace unisono::cuda {

/// The functions of driver.def, by their names there. Immutable. A simulated
/// driver is closed with the last pointer to this; a real one stays open, as it
/// has threads of its own.
class Driver {
 public:
  /// The library at `path`, initialised; "" is the system's. An error
  /// (device_lost) says in one line why there is none: no library, a stub, too
  /// old, no device. `configuration` is for a simulated driver
  /// (simcuda_configure); "" for others.
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
  /// Another text for another build of the library, though its version be the
  /// same: its file's name, size and time.
  const std::string& build() const { return build_; }
  bool simulated() const { return simulated_; }
  /// Lets kernels that are put in `stream` from now on end early while `*flag`
  /// is set; null: never. Does nothing where the driver is not simulated.
  void end_early(Stream stream, const std::atomic<bool>* flag) const;
  /// The error for `code`, which is not success, that says what was done
  /// ("copying to cuda:0"). Its kind is out_of_memory, compile_failed or, for
  /// all else, device_lost.
  Error error(Code code, std::string_view doing) const;

 private:
  Driver() = default;
  Status configure(const std::string& text);
  Status bind();
  Status start();

  void* library_ = nullptr;
  int (*interrupt_)(void* stream, const bool* flag) = nullptr;
  std::string path_, build_;
  int version_ = 0;
  bool simulated_ = false, init_called_ = false;
};

/// Whether no call in this process works any more after one gave `code`.
bool is_sticky(Code code);
/// "12.2" for 12020.
std::string version_text(int version);

}  // namespace unisono::cuda
