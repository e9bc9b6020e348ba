// Functions and their launches.
#include <algorithm>
#include <cstring>

#include "simcuda/driver/driver.h"

namespace simcuda {

constexpr uint64_t registers_per_multiprocessor = 65536;

int blocks_per_multiprocessor(const FunctionObject& function, uint64_t threads,
                              uint64_t dynamic_shared) {
  const DeviceModel& m = function.module->device->model;
  const Kernel& kernel = *function.kernel;
  const uint64_t warps = (threads + warp_size - 1) / warp_size;
  uint64_t blocks = static_cast<uint64_t>(m.blocks_per_multiprocessor());
  blocks =
      std::min(blocks, static_cast<uint64_t>(m.threads_per_multiprocessor()) /
                           (warps * warp_size));
  const uint64_t registers =
      warps * warp_size * static_cast<uint64_t>((kernel.registers + 7) / 8 * 8);
  blocks = std::min(blocks, registers_per_multiprocessor / registers);
  const uint64_t shared = kernel.shared_bytes + dynamic_shared + 1024;
  blocks = std::min(
      blocks, static_cast<uint64_t>(m.shared_per_multiprocessor()) / shared);
  return static_cast<int>(blocks);
}

namespace {

struct LaunchArguments {
  Dimensions grid, block;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
};

/// The launch's limits; the values of the parameters go to `bytes`.
Code check_launch(const FunctionObject& function, const LaunchArguments& a,
                  std::vector<uint8_t>& bytes) {
  const Kernel& kernel = *function.kernel;
  const Dimensions& g = a.grid;
  const Dimensions& b = a.block;
  if (g.count() == 0 || b.count() == 0 || g.x > 2147483647u || g.y > 65535 ||
      g.z > 65535 || b.x > 1024 || b.y > 1024 || b.z > 64) {
    return invalid_value;
  }
  if (b.count() > kernel.max_threads) return invalid_value;
  const uint32_t* required = kernel.required_threads;
  if (required[0] != 0 &&
      (b.x != required[0] || b.y != required[1] || b.z != required[2])) {
    return invalid_value;
  }
  if (b.count() * static_cast<uint64_t>(kernel.registers) >
      registers_per_multiprocessor) {
    return launch_out_of_resources;
  }
  const DeviceModel& model = function.module->device->model;
  const int most = std::max(
      function.max_dynamic_shared,
      model.shared_per_block() - static_cast<int>(kernel.shared_bytes));
  if (a.shared_bytes > static_cast<unsigned>(most) ||
      a.shared_bytes + kernel.shared_bytes >
          static_cast<unsigned>(model.shared_per_block_optin())) {
    return invalid_value;
  }
  bytes.assign(kernel.parameter_bytes, 0);
  if (a.extra != nullptr) {
    if (a.parameters != nullptr) return invalid_value;
    const void* buffer = nullptr;
    size_t size = 0;
    for (void** at = a.extra; *at != nullptr; at += 2) {
      const auto key = reinterpret_cast<size_t>(*at);
      if (key == 1)
        buffer = at[1];
      else if (key == 2)
        size = *static_cast<size_t*>(at[1]);
      else
        return invalid_value;
    }
    if (buffer == nullptr || size < bytes.size()) return invalid_value;
    std::memcpy(bytes.data(), buffer, bytes.size());
    return success;
  }
  if (!kernel.parameters.empty() && a.parameters == nullptr)
    return invalid_value;
  for (size_t p = 0; p < kernel.parameters.size(); ++p) {
    if (a.parameters[p] == nullptr) return invalid_value;
    std::memcpy(bytes.data() + kernel.parameters[p].offset, a.parameters[p],
                kernel.parameters[p].bytes);
  }
  return success;
}

Code launch(Call& call, Function handle, const LaunchArguments& a,
            Stream stream) {
  Simulator& s = call.simulator;
  auto it = s.functions.find(handle);
  StreamObject* in = call.stream(stream);
  if (it == s.functions.end() || in == nullptr) return invalid_handle;
  FunctionObject& function = *it->second;
  DeviceState& device = *function.module->device;
  if (&device != call.device) return invalid_handle;
  if (in->device != call.device) return invalid_handle;
  std::vector<uint8_t> parameters;
  if (Code code = check_launch(function, a, parameters); code != success)
    return code;
  const auto resident = static_cast<uint64_t>(std::max(
      blocks_per_multiprocessor(function, a.block.count(), a.shared_bytes) *
          device.model.multiprocessors,
      1));
  if (a.cooperative && a.grid.count() > resident)
    return cooperative_launch_too_large;
  LaunchShape shape;
  shape.grid = a.grid;
  shape.block = a.block;
  shape.dynamic_shared = a.shared_bytes;
  shape.parameters = std::move(parameters);
  shape.multiprocessors = device.model.multiprocessors;
  shape.track_shared = s.configuration.unwritten_shared;
  shape.look_for_races = s.configuration.races;
  auto work = std::make_shared<Work>();
  work->what = "kernel `" + function.kernel->name + "`";
  work->device = &device;
  ++s.launches;
  const uint64_t number = s.next_launch++;
  shape.number = number;
  shape.seed = s.configuration.seed == 0
                   ? 0
                   : s.configuration.seed * 0x9e3779b97f4a7c15 + number;
  work->launch = [&s, &device, shape = std::move(shape),
                  kernel = function.kernel, resident] {
    return std::make_unique<Launch>(shape, kernel, device, resident,
                                    s.configuration.fuel);
  };
  return s.enqueue(call.lock, *in, std::move(work));
}

}  // namespace

// driver.cpp
bool& host_function_flag();

extern "C" {

Code cuFuncGetAttribute(int* value, FunctionAttribute attribute,
                        Function function) {
  return enter(Entry::func_get_attribute, Needs::initialised, [&](Call& call) {
    auto it = call.simulator.functions.find(function);
    if (it == call.simulator.functions.end()) return invalid_handle;
    if (value == nullptr) return invalid_value;
    const FunctionObject& f = *it->second;
    const Kernel& kernel = *f.kernel;
    switch (attribute) {
      case FunctionAttribute::max_threads_per_block: {
        const auto fit = static_cast<uint32_t>(
            registers_per_multiprocessor /
            static_cast<uint64_t>(kernel.registers) / warp_size * warp_size);
        *value = static_cast<int>(std::min(kernel.max_threads, fit));
        return success;
      }
      case FunctionAttribute::shared_size_bytes:
        *value = static_cast<int>(kernel.shared_bytes);
        return success;
      case FunctionAttribute::const_size_bytes: *value = 0; return success;
      case FunctionAttribute::local_size_bytes:
        *value = static_cast<int>(kernel.local_bytes);
        return success;
      case FunctionAttribute::num_regs:
        *value = kernel.registers;
        return success;
      case FunctionAttribute::ptx_version:
        *value = f.module->ptx_version;
        return success;
      case FunctionAttribute::binary_version:
        *value = f.module->device->model.capability;
        return success;
      case FunctionAttribute::cache_mode_ca: *value = 0; return success;
      case FunctionAttribute::max_dynamic_shared_size_bytes:
        *value = f.max_dynamic_shared;
        return success;
      case FunctionAttribute::preferred_shared_memory_carveout:
        *value = f.carveout;
        return success;
    }
    return invalid_value;
  });
}

Code cuFuncSetAttribute(Function function, FunctionAttribute attribute,
                        int value) {
  return enter(Entry::func_set_attribute, Needs::initialised, [&](Call& call) {
    auto it = call.simulator.functions.find(function);
    if (it == call.simulator.functions.end()) return invalid_handle;
    FunctionObject& f = *it->second;
    if (attribute == FunctionAttribute::max_dynamic_shared_size_bytes) {
      const int most = f.module->device->model.shared_per_block_optin() -
                       static_cast<int>(f.kernel->shared_bytes);
      if (value < 0 || value > most) return invalid_value;
      f.max_dynamic_shared = value;
      return success;
    }
    if (attribute == FunctionAttribute::preferred_shared_memory_carveout) {
      if (value < -1 || value > 100) return invalid_value;
      f.carveout = value;
      return success;
    }
    return invalid_value;
  });
}

Code cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function function,
                                                 int block_size,
                                                 size_t dynamic_shared) {
  return enter(
      Entry::occupancy_max_active_blocks, Needs::initialised, [&](Call& call) {
        auto it = call.simulator.functions.find(function);
        if (it == call.simulator.functions.end()) return invalid_handle;
        if (blocks == nullptr || block_size <= 0) return invalid_value;
        *blocks = blocks_per_multiprocessor(
            *it->second, static_cast<uint64_t>(block_size), dynamic_shared);
        return success;
      });
}

Code cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y,
                    unsigned grid_z, unsigned block_x, unsigned block_y,
                    unsigned block_z, unsigned shared_bytes, Stream stream,
                    void** parameters, void** extra) {
  return enter(Entry::launch_kernel, Needs::context, [&](Call& call) {
    LaunchArguments a;
    a.grid = {grid_x, grid_y, grid_z};
    a.block = {block_x, block_y, block_z};
    a.shared_bytes = shared_bytes;
    a.parameters = parameters;
    a.extra = extra;
    return launch(call, function, a, stream);
  });
}

Code cuLaunchCooperativeKernel(Function function, unsigned grid_x,
                               unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes,
                               Stream stream, void** parameters) {
  return enter(Entry::launch_cooperative_kernel, Needs::context,
               [&](Call& call) {
                 LaunchArguments a;
                 a.grid = {grid_x, grid_y, grid_z};
                 a.block = {block_x, block_y, block_z};
                 a.shared_bytes = shared_bytes;
                 a.parameters = parameters;
                 a.cooperative = true;
                 return launch(call, function, a, stream);
               });
}

Code cuLaunchHostFunc(Stream stream, HostFunction function, void* data) {
  return enter(Entry::launch_host_func, Needs::context, [&](Call& call) {
    StreamObject* in = call.stream(stream);
    if (in == nullptr) return invalid_handle;
    if (function == nullptr) return invalid_value;
    auto work = std::make_shared<Work>();
    work->what = "function of the host";
    work->device = in->device;
    work->run = [function, data]() -> Failure {
      host_function_flag() = true;
      function(data);
      host_function_flag() = false;
      return {};
    };
    return call.simulator.enqueue(call.lock, *in, std::move(work));
  });
}

__attribute__((visibility("default"))) int simcuda_await(void* stream,
                                                         bool (*may_run)(void*),
                                                         void (*run)(void*),
                                                         void* data) {
  return enter(Entry::launch_host_func, Needs::context, [&](Call& call) {
    StreamObject* in = call.stream(static_cast<Stream>(stream));
    if (in == nullptr) return invalid_handle;
    auto work = std::make_shared<Work>();
    work->what = "function of the host, of another process";
    work->device = in->device;
    work->may_run = [may_run, data] { return may_run(data); };
    work->run = [run, data]() -> Failure {
      run(data);
      return {};
    };
    return call.simulator.enqueue(call.lock, *in, std::move(work));
  });
}

}  // extern "C"
}  // namespace simcuda
