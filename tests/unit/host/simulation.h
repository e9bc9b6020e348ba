#pragma once
// Simulated GPUs for sessions, and what the simulation exports for tests
// (simcuda.h).
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/device.h"
#include "tests/unit/host/machine.h"

namespace unisono::host::testing {

template <class F>
F* simulated(const char* name) {
  static void* const library = dlopen(SIMCUDA_LIBRARY, RTLD_NOW);
  REQUIRE(library);
  auto* function = reinterpret_cast<F*>(dlsym(library, name));
  const bool found = function != nullptr;
  REQUIRE(found);
  return function;
}
inline void plan(const std::string& text) {
  REQUIRE(simulated<int(const char*)>("simcuda_plan")(text.c_str()) == 0);
}
inline uint64_t calls(const char* function = nullptr) {
  return simulated<uint64_t(const char*)>("simcuda_calls")(function);
}
inline std::string_view failed_call() {
  const char* name = simulated<const char*()>("simcuda_failed")();
  return name ? name : "";
}
/// What simcuda_leaks, simcuda_findings or simcuda_log tell.
inline std::string report(const char* name) {
  auto* function = simulated<size_t(char*, size_t)>(name);
  std::string text(function(nullptr, 0), '\0');
  text.resize(std::min(function(text.data(), text.size()), text.size()) - 1);
  return text;
}
inline std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> found;
  for (size_t end; !text.empty(); text.remove_prefix(end + 1)) {
    end = std::min(text.find('\n'), text.size() - 1);
    found.push_back(text.substr(0, end));
  }
  return found;
}

/// Ends the contexts of all devices, also those that could not be released.
inline void end_contexts() {
  auto* release = simulated<int(int)>("cuDevicePrimaryCtxRelease_v2");
  for (int device = 0; device < 64; ++device)
    while (release(device) == 0) {
    }
}

/// A new simulation by these keys; the same text as before would leave the one
/// there is as it is. `gpus`: see CudaOptions.
inline Result<std::vector<std::unique_ptr<Device>>> simulated_gpus(
    const std::string& keys, std::vector<int> gpus = {},
    const std::string& driver = SIMCUDA_LIBRARY) {
  CudaOptions options;
  options.driver = driver;
  options.kind = "sim";
  options.gpus = std::move(gpus);
  options.configuration = "threads=1;leaks=off;" + keys;
  return open_cuda_devices(options);
}
inline std::unique_ptr<Machine> simulated_machine(const std::string& keys,
                                                  std::vector<int> gpus = {}) {
  auto devices = simulated_gpus(keys, std::move(gpus));
  if (!devices) FAIL(devices.error().message);
  return std::make_unique<Machine>(std::move(*devices));
}

}  // namespace unisono::host::testing
