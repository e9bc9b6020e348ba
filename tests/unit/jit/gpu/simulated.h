#pragma once
// GPUs of the simulated CUDA driver (simcuda/).
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device.h"

namespace unisono::jit::testing {

/// A new simulation with so many GPUs; settings like "peers=none; seed=3". One
/// at a time.
inline std::vector<std::unique_ptr<Device>> simulated_gpus(
    int count, const std::string& settings = "") {
  CudaOptions options;
  options.driver = SIMCUDA_LIBRARY;
  options.kind = "sim";
  options.configuration =
      "devices=" + std::to_string(count) + ";races=fault;" + settings;
  auto devices = open_cuda_devices(options);
  if (!devices) FAIL(devices.error().message);
  return std::move(*devices);
}

/// What the simulation that there is exports for tests (simcuda.h).
template <class F>
F* simulated_function(const char* name) {
  void* library = dlopen(SIMCUDA_LIBRARY, RTLD_NOW);
  REQUIRE(library);
  return reinterpret_cast<F*>(dlsym(library, name));
}
/// How often a function of the driver was called in it.
inline uint64_t simulated_calls(const char* name) {
  return simulated_function<uint64_t(const char*)>("simcuda_calls")(name);
}
/// `launches`, `copied_bytes`, `peer_bytes`.
inline uint64_t simulated_counter(const char* name) {
  return simulated_function<uint64_t(const char*)>("simcuda_counter")(name);
}
/// What was found wrong in it.
inline std::string simulated_findings() {
  std::string text(1 << 16, '\0');
  auto* findings =
      simulated_function<size_t(char*, size_t)>("simcuda_findings");
  text.resize(std::min(findings(text.data(), text.size()), text.size()));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace unisono::jit::testing
