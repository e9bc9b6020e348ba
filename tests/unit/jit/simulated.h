#pragma once
// GPUs of the simulated CUDA driver (tests/simcuda).
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda_device.h"

namespace unisono::jit::testing {

/// A new simulation with so many GPUs; settings like "peers=none; seed=3". One
/// at a time.
inline std::vector<std::unique_ptr<Device>> simulated_gpus(
    int count, const std::string& settings = "") {
  CudaOptions options;
  options.driver = SIMCUDA_LIBRARY;
  options.kind = "sim";
  options.configuration = "devices=" + std::to_string(count) + ";" + settings;
  auto devices = open_cuda_devices(options);
  if (!devices) FAIL(devices.error().message);
  return std::move(*devices);
}

}  // namespace unisono::jit::testing
