#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace unisono::cuda {
namespace {

/// The oldest driver that has all that is required.
constexpr int oldest_version = 12000;

Error unusable(std::string why) {
  return {.kind = Error::Kind::device_lost, .message = std::move(why)};
}

}  // namespace

bool is_sticky(Code code) {
  switch (static_cast<int>(code)) {
#define CUDA_ERROR(name, value, text)
#define CUDA_STICKY_ERROR(name, value, text) case value:
#include "runtime/cuda/errors.def"
    return true;
    default: return false;  // also codes that newer drivers have
  }
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

namespace {

std::string_view text_of(Code code) {
  switch (static_cast<int>(code)) {
#define CUDA_ERROR(name, value, text) \
  case value: return text;
#include "runtime/cuda/errors.def"
    default: return "an error that this program does not know";
  }
}

}  // namespace

Error Driver::error(Code code, std::string_view doing) const {
  Error error;
  error.kind = code == out_of_memory ? Error::Kind::out_of_memory
               : code == invalid_ptx || code == unsupported_ptx_version ||
                       code == no_binary_for_gpu || code == invalid_image ||
                       code == jit_compiler_not_found
                   ? Error::Kind::compile_failed
                   : Error::Kind::device_lost;
  error.message = fmt::format("{}: {} (CUDA error {})", doing, text_of(code),
                              static_cast<int>(code));
  return error;
}

/// The library that `symbol` is in: what its links lead to ("libcuda.so.550.54"
/// by "libcuda.so.1"), its size and its time.
static std::string build_of(const void* symbol) {
  Dl_info info{};
  if (!dladdr(symbol, &info) || !info.dli_fname) return "";
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::canonical(info.dli_fname, error);
  if (error) return info.dli_fname;
  const auto size = std::filesystem::file_size(file, error);
  const auto time = std::filesystem::last_write_time(file, error);
  return fmt::format("{} {} {}", file.filename().string(), size,
                     time.time_since_epoch().count());
}

Result<std::shared_ptr<const Driver>> Driver::open(
    const std::string& path, const std::string& configuration) {
  std::shared_ptr<Driver> driver(new Driver);
  driver->path_ = path.empty() ? "libcuda.so.1" : path;
  driver->library_ = dlopen(driver->path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver->library_)
    return unusable(fmt::format("there is no CUDA driver: {}", dlerror()));
  driver->simulated_ = dlsym(driver->library_, "simcuda_configure") != nullptr;
  if (driver->simulated_)
    driver->interrupt_ = reinterpret_cast<int (*)(void*, const bool*)>(
        dlsym(driver->library_, "simcuda_interrupt"));
  if (!configuration.empty()) TRY(driver->configure(configuration));
  TRY(driver->bind());
  TRY(driver->start());
  return std::shared_ptr<const Driver>(std::move(driver));
}

// A real driver has threads of its own, which go on.
Driver::~Driver() {
  if (library_ && (simulated_ || !init_called_)) dlclose(library_);
}

void Driver::end_early(Stream stream, const std::atomic<bool>* flag) const {
  static_assert(sizeof *flag == sizeof(bool) &&
                std::atomic<bool>::is_always_lock_free);
  if (interrupt_) interrupt_(stream, reinterpret_cast<const bool*>(flag));
}

Status Driver::configure(const std::string& text) {
  auto function = reinterpret_cast<int (*)(const char*)>(
      dlsym(library_, "simcuda_configure"));
  if (!function)
    return unusable(
        fmt::format("{} is no simulated CUDA driver; sim:N needs one", path_));
  const int refused = function(text.c_str());
  if (refused == 2)
    return unusable(
        fmt::format("this process uses other simulated GPUs, which have to be "
                    "closed before there are those of `{}`",
                    text.substr(0, text.find(';'))));
  if (refused != 0)
    return unusable(fmt::format("{} does not understand `{}`", path_, text));
  return Unit{};
}

Status Driver::bind() {
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library_, symbol));
    if (!function && !missing) missing = symbol;
  };
#define CUDA_TEST_FUNCTION(...)
#define CUDA_FUNCTION(name, symbol, since, parameters) find(name, #symbol);
#include "runtime/cuda/driver.def"
  if (driver_get_version) driver_get_version(&version_);
  build_ = build_of(reinterpret_cast<const void*>(init));
  if (!missing) return Unit{};
  if (!init || !driver_get_version)
    return unusable(
        fmt::format("{} is no CUDA driver: it has no `{}`", path_, missing));
  return unusable(fmt::format(
      "the CUDA driver {} is version {}, which has no `{}`; {} or newer is "
      "needed",
      path_, version_text(version_), missing, version_text(oldest_version)));
}

Status Driver::start() {
  init_called_ = true;
  const Code code = init(0);
  if (code == stub_library)
    return unusable(fmt::format(
        "{} is a stub to link with, not a CUDA driver; install the GPU's "
        "driver, or set UNISONO_CUDA_DRIVER to it",
        path_));
  if (code == no_device)
    return unusable(fmt::format("the CUDA driver {} (version {}) found no GPU",
                                path_, version_text(version_)));
  if (code != success)
    return unusable(fmt::format(
        "the CUDA driver {} (version {}) does not start: {} (CUDA error {})",
        path_, version_text(version_), text_of(code), static_cast<int>(code)));
  if (version_ < oldest_version)
    return unusable(fmt::format(
        "the CUDA driver {} is version {}; {} or newer is needed", path_,
        version_text(version_), version_text(oldest_version)));
  return Unit{};
}

}  // namespace unisono::cuda
