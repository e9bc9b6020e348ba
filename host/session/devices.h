#pragma once
// The devices that `--devices` asks for.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "runtime/files/disk_cache.h"
#include "runtime/result.h"

namespace unisono::host {

/// What `--devices` asks for: cpu:8 · cuda (all GPUs) · cuda:0,cuda:1 ·
/// cuda:0,cuda:0 (two on one GPU) · sim:8.
struct DeviceRequest {
  enum class Kind { cpu, cuda, sim };
  Kind kind = Kind::cpu;
  int count = 1;          // cpu, sim
  std::vector<int> gpus;  // cuda: one for each device; empty: all
  /// The most memory: bytes of all CPU devices, or of each GPU; or a share of
  /// the machine's, or the GPU's. Both 0: the default.
  int64_t memory_limit = 0;
  double memory_share = 0;
  bool cublas = true;  // large products by cuBLASLt, where it is there
  /// Whether simulated GPUs tell at the process's end what was not given back,
  /// unless $SIMCUDA decides it.
  bool report_leaks = true;
};
inline constexpr int max_devices = 64;

/// The number that a text is, digits alone; nothing if it is none, or too
/// large.
std::optional<int> number_in(std::string_view text);

/// Fails with one line about what is wrong with the text.
Result<DeviceRequest> parse_devices(std::string_view text);

/// Reads `--memory-limit`: 20G, 512M, 1.5T (K, M, G, T are powers of 1024), or
/// 75%. Fails with one line about what is wrong with the text.
Status parse_memory_limit(std::string_view text, DeviceRequest& request);

/// The folder in which compiled kernels are kept: $UNISONO_CACHE if that is set
/// ("off" or nothing: nowhere), else one in the user's cache folder; "" is
/// nowhere. Simulated GPUs gain nothing by a cache: for them it is "" unless
/// $UNISONO_CACHE is set.
std::string kernel_cache_folder(DeviceRequest::Kind kind);

/// The cache in that folder; null if it is "", or cannot be used: `why_not`, if
/// given, then gets the reason.
std::shared_ptr<DiskCache> open_kernel_cache(const std::string& folder,
                                             std::string* why_not = nullptr);

/// The devices of a request for GPUs, real or simulated; none for CPUs. The
/// library of products is $UNISONO_CUBLASLT if that is set, else the system's,
/// or none for simulated ones. The driver is $UNISONO_CUDA_DRIVER if that is
/// set, else the system's, or for simulated ones the library beside this
/// program. The code that the driver makes of kernels is kept in `cache`, which
/// may be null. `names` are the devices' in messages; empty: by their GPUs.
/// Fails with one line that says why there are no devices.
Result<std::vector<std::unique_ptr<Device>>> open_devices(
    const DeviceRequest& request, std::shared_ptr<DiskCache> cache = nullptr,
    std::vector<std::string> names = {});
/// How many GPUs `--devices cuda` could have.
Result<int> count_gpus();

/// What `unisono devices` says of the GPUs that could be asked for, and of the
/// cache of kernels.
std::string describe_gpus();

}  // namespace unisono::host
