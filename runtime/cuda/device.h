#pragma once
// GPUs as devices.
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/files/disk_cache.h"
#include "runtime/result.h"

namespace unisono {

struct CudaOptions {
  /// The driver's library; "" is the system's.
  std::string driver;
  /// For each logical device the number of its GPU; a GPU may be named more
  /// than once. Empty: all GPUs there are, at most 64.
  std::vector<int> gpus;
  /// What devices are called, with the number of their GPU: "cuda:0", and
  /// "cuda:0.1" for the second one on that GPU; "sim:0" of a simulated driver.
  std::string kind = "cuda";
  /// Other names, one for each device; empty: those above.
  std::vector<std::string> names = {};
  /// For a simulated driver: the text for simcuda_configure, which is called
  /// before anything else; "" for others.
  std::string configuration = {};
  /// Whether large products of matrices may be cuBLASLt's, and its library; ""
  /// is the system's, or none with a simulated driver.
  bool cublas = true;
  std::string cublas_library = {};
  /// The most that a device may allocate: bytes, or else a share of its GPU's
  /// memory, which the devices on that GPU divide; 0: as much as there is.
  int64_t memory_limit = 0;
  double memory_share = 0;
  /// Keeps the code that the driver makes of kernels for later processes; may
  /// be null.
  std::shared_ptr<DiskCache> cache = nullptr;
  /// A folder with code of kernels that is ready (ready_cubins.h); "": none.
  std::string cubins = {};
};

/// Opens the driver and the devices, at least one, with Device::index from 0
/// on. Peer access is enabled between all pairs that have it. An error
/// (device_lost) says in one line why there are no devices.
Result<std::vector<std::unique_ptr<Device>>> open_cuda_devices(
    const CudaOptions& options);

/// How many GPUs the driver finds, which may be none.
Result<int> count_cuda_devices(const std::string& driver);

/// One line for each GPU that the driver finds, one for the driver, one for
/// cuBLASLt and one for NCCL. The arguments are paths of the libraries, "" the
/// system's.
Result<std::vector<std::string>> describe_cuda(const std::string& driver,
                                               const std::string& cublas,
                                               const std::string& nccl);

}  // namespace unisono
