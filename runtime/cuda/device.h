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
  /// One logical device for each: the number of its GPU. A GPU may be named
  /// more than once. Empty: all GPUs there are.
  std::vector<int> gpus;
  /// Devices are called "cuda:0", by their GPU, or "sim:0", in order.
  std::string kind = "cuda";
  /// For simulated drivers (simcuda_configure), before anything else; "" is
  /// nothing.
  std::string configuration = {};
  /// Whether large products of matrices may be cuBLASLt's, and its library; ""
  /// is the system's, or none with a simulated driver.
  bool cublas = true;
  std::string cublas_library = {};
  /// Keeps what the driver makes of kernels, for later processes; may be null.
  std::shared_ptr<DiskCache> cache = nullptr;
};

/// Opens the driver and the devices, Device::index from 0 on. Peer access is
/// enabled between all pairs that have it.
Result<std::vector<std::unique_ptr<Device>>> open_cuda_devices(
    const CudaOptions& options);

/// One line for each GPU that the driver finds, for the driver and for
/// cuBLASLt.
Result<std::vector<std::string>> describe_cuda(const std::string& driver,
                                               const std::string& cublas);

}  // namespace unisono
