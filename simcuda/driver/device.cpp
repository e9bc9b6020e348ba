// Devices, and the primary context that each has.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simcuda/driver/driver.h"

namespace simcuda {
namespace {

int attribute_value(const DeviceModel& m, int number, DeviceAttribute which,
                    bool& known) {
  known = true;
  switch (which) {
    case DeviceAttribute::max_threads_per_block: return 1024;
    case DeviceAttribute::max_block_dim_x: return 1024;
    case DeviceAttribute::max_block_dim_y: return 1024;
    case DeviceAttribute::max_block_dim_z: return 64;
    case DeviceAttribute::max_grid_dim_x: return 2147483647;
    case DeviceAttribute::max_grid_dim_y: return 65535;
    case DeviceAttribute::max_grid_dim_z: return 65535;
    case DeviceAttribute::max_shared_memory_per_block:
      return m.shared_per_block();
    case DeviceAttribute::total_constant_memory: return 65536;
    case DeviceAttribute::warp_size: return simcuda::warp_size;
    case DeviceAttribute::max_pitch: return 2147483647;
    case DeviceAttribute::max_registers_per_block: return 65536;
    case DeviceAttribute::clock_rate_khz: return 1'000'000;
    case DeviceAttribute::multiprocessor_count: return m.multiprocessors;
    case DeviceAttribute::kernel_exec_timeout: return 0;
    case DeviceAttribute::integrated: return 0;
    case DeviceAttribute::can_map_host_memory: return 1;
    case DeviceAttribute::compute_mode: return 0;
    case DeviceAttribute::concurrent_kernels: return 1;
    case DeviceAttribute::ecc_enabled: return 0;
    case DeviceAttribute::pci_bus_id: return number + 1;
    case DeviceAttribute::pci_device_id: return 0;
    case DeviceAttribute::memory_clock_rate_khz: return 1'000'000;
    case DeviceAttribute::global_memory_bus_width: return 64;
    case DeviceAttribute::l2_cache_size: return 4 << 20;
    case DeviceAttribute::max_threads_per_multiprocessor:
      return m.threads_per_multiprocessor();
    case DeviceAttribute::async_engine_count: return 2;
    case DeviceAttribute::unified_addressing: return 1;
    case DeviceAttribute::pci_domain_id: return 0;
    case DeviceAttribute::compute_capability_major: return m.capability / 10;
    case DeviceAttribute::compute_capability_minor: return m.capability % 10;
    case DeviceAttribute::stream_priorities_supported: return 1;
    case DeviceAttribute::max_shared_memory_per_multiprocessor:
      return m.shared_per_multiprocessor();
    case DeviceAttribute::max_registers_per_multiprocessor: return 65536;
    case DeviceAttribute::managed_memory: return 0;
    case DeviceAttribute::host_native_atomic_supported: return 0;
    case DeviceAttribute::pageable_memory_access: return 0;
    case DeviceAttribute::concurrent_managed_access: return 0;
    case DeviceAttribute::can_use_host_pointer_for_registered_mem: return 1;
    case DeviceAttribute::cooperative_launch: return 1;
    case DeviceAttribute::max_shared_memory_per_block_optin:
      return m.shared_per_block_optin();
    case DeviceAttribute::max_blocks_per_multiprocessor:
      return m.blocks_per_multiprocessor();
    case DeviceAttribute::reserved_shared_memory_per_block: return 1024;
    case DeviceAttribute::memory_pools_supported: return 1;
  }
  known = false;
  return 0;
}

/// What a context owns ends with it.
void destroy_context(Call& call, DeviceState& device) {
  Simulator& s = call.simulator;
  s.wait_device(call.lock, device);
  s.left_behind(device);
  auto of_device = [&](auto& entry) { return entry.second->device == &device; };
  std::erase_if(s.streams, of_device);
  std::erase_if(s.events, of_device);
  std::erase_if(s.execs, of_device);
  std::erase_if(s.links, of_device);
  std::erase_if(s.functions, [&](auto& entry) {
    return entry.second->module->device == &device;
  });
  std::erase_if(s.modules, of_device);
  for (const auto& allocation : s.memory.all()) {
    if (allocation->device == device.number) s.memory.free(*allocation);
    if (allocation->context != device.number) continue;
    s.wait_all(call.lock);
    s.memory.free(*allocation);
    std::free(allocation->data);
  }
  std::erase_if(s.pools, of_device);
  PoolObject& pool = device.default_pool;
  pool.threshold = pool.used = pool.used_high = 0;
  pool.reserved = pool.reserved_high = 0;
  pool.readers.clear();
  pool.writers.clear();
  device.pool = &device.default_pool;
  device.used = 0;
  device.peers.clear();
  for (auto& other : s.devices) other->peers.remove(device.number);
  device.legacy.last.reset();
  device.orphans.clear();
  device.retained = device.releases_refused = 0;
  device.sticky = success;
  s.memory.forget_ranges();
}

}  // namespace

extern "C" {

Code cuDeviceGet(Device* device, int ordinal) {
  return enter(Entry::device_get, Needs::initialised, [&](Call& call) {
    if (device == nullptr) return invalid_value;
    if (!call.valid_device(ordinal)) return invalid_device;
    *device = ordinal;
    return success;
  });
}

Code cuDeviceGetCount(int* count) {
  return enter(Entry::device_get_count, Needs::initialised, [&](Call& call) {
    if (count == nullptr) return invalid_value;
    *count = call.simulator.configuration.devices;
    return success;
  });
}

Code cuDeviceGetName(char* name, int size, Device device) {
  return enter(Entry::device_get_name, Needs::initialised, [&](Call& call) {
    if (name == nullptr || size <= 0) return invalid_value;
    if (!call.valid_device(device)) return invalid_device;
    const int cc = call.device_at(device).model.capability;
    std::snprintf(name, static_cast<size_t>(size),
                  "Simulated GPU (sm_%d), no. %d", cc, device);
    return success;
  });
}

Code cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  return enter(Entry::device_get_uuid, Needs::initialised, [&](Call& call) {
    if (uuid == nullptr) return invalid_value;
    if (!call.valid_device(device)) return invalid_device;
    std::memcpy(uuid->bytes, "simulated GPU   ", 16);
    uuid->bytes[15] = static_cast<unsigned char>(device);
    return success;
  });
}

Code cuDeviceTotalMem_v2(size_t* bytes, Device device) {
  return enter(Entry::device_total_mem, Needs::initialised, [&](Call& call) {
    if (bytes == nullptr) return invalid_value;
    if (!call.valid_device(device)) return invalid_device;
    *bytes = call.device_at(device).model.memory;
    return success;
  });
}

Code cuDeviceGetAttribute(int* value, DeviceAttribute attribute,
                          Device device) {
  return enter(Entry::device_get_attribute, Needs::initialised,
               [&](Call& call) {
                 if (value == nullptr) return invalid_value;
                 if (!call.valid_device(device)) return invalid_device;
                 bool known = false;
                 *value = attribute_value(call.device_at(device).model, device,
                                          attribute, known);
                 return known ? success : invalid_value;
               });
}

Code cuDeviceGetPCIBusId(char* id, int size, Device device) {
  return enter(Entry::device_get_pci_bus_id, Needs::initialised,
               [&](Call& call) {
                 if (id == nullptr || size < 13) return invalid_value;
                 if (!call.valid_device(device)) return invalid_device;
                 std::snprintf(id, static_cast<size_t>(size), "0000:%02X:00.0",
                               device + 1);
                 return success;
               });
}

Code cuDeviceCanAccessPeer(int* can, Device device, Device peer) {
  return enter(
      Entry::device_can_access_peer, Needs::initialised, [&](Call& call) {
        if (can == nullptr) return invalid_value;
        if (!call.valid_device(device) || !call.valid_device(peer))
          return invalid_device;
        *can =
            call.simulator.configuration
                .peers[static_cast<size_t>(device)][static_cast<size_t>(peer)];
        return success;
      });
}

Code cuDeviceGetP2PAttribute(int* value, PeerAttribute attribute, Device device,
                             Device peer) {
  return enter(
      Entry::device_get_p2p_attribute, Needs::initialised, [&](Call& call) {
        if (value == nullptr) return invalid_value;
        if (!call.valid_device(device) || !call.valid_device(peer) ||
            device == peer) {
          return invalid_device;
        }
        const bool linked =
            call.simulator.configuration
                .peers[static_cast<size_t>(device)][static_cast<size_t>(peer)];
        switch (attribute) {
          case PeerAttribute::performance_rank: *value = 0; return success;
          case PeerAttribute::access_supported:
          case PeerAttribute::native_atomic_supported:
            *value = linked;
            return success;
          case PeerAttribute::array_access_supported:
            *value = 0;
            return success;
        }
        return invalid_value;
      });
}

Code cuDevicePrimaryCtxRetain(Context* context, Device device) {
  return enter(Entry::primary_ctx_retain, Needs::initialised, [&](Call& call) {
    if (context == nullptr) return invalid_value;
    if (!call.valid_device(device)) return invalid_device;
    DeviceState& state = call.device_at(device);
    if (state.sticky != success) return state.sticky;
    ++state.retained;
    *context = state.handle();
    return success;
  });
}

Code cuDevicePrimaryCtxRelease_v2(Device device) {
  return give_back(Entry::primary_ctx_release, Needs::initialised,
                   Returned::context(device), [&](Call& call) {
                     if (!call.valid_device(device)) return invalid_device;
                     DeviceState& state = call.device_at(device);
                     if (state.retained == 0) return invalid_context;
                     if (state.retained == 1)
                       destroy_context(call, state);
                     else
                       --state.retained;
                     return success;
                   });
}

Code cuDevicePrimaryCtxReset_v2(Device device) {
  return enter(Entry::primary_ctx_reset, Needs::initialised, [&](Call& call) {
    if (!call.valid_device(device)) return invalid_device;
    DeviceState& state = call.device_at(device);
    const int retained = state.retained;
    if (retained > 0) destroy_context(call, state);
    state.retained = retained;
    return success;
  });
}

Code cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned flags) {
  return enter(Entry::primary_ctx_set_flags, Needs::initialised,
               [&](Call& call) {
                 if (!call.valid_device(device)) return invalid_device;
                 if (flags & ~31u) return invalid_value;
                 call.device_at(device).flags = flags;
                 return success;
               });
}

Code cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  return enter(Entry::primary_ctx_get_state, Needs::initialised,
               [&](Call& call) {
                 if (!call.valid_device(device)) return invalid_device;
                 DeviceState& state = call.device_at(device);
                 if (flags) *flags = state.flags;
                 if (active) *active = state.retained > 0;
                 return success;
               });
}

Code cuCtxGetCurrent(Context* context) {
  return enter(Entry::ctx_get_current, Needs::initialised, [&](Call& call) {
    if (context == nullptr) return invalid_value;
    *context = call.device ? call.device->handle() : nullptr;
    return success;
  });
}

Code cuCtxSetCurrent(Context context) {
  return enter(Entry::ctx_set_current, Needs::initialised, [&](Call& call) {
    auto& stack = context_stack();
    if (context == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return success;
    }
    DeviceState* device = call.context(context);
    if (device == nullptr) return invalid_context;
    if (stack.empty())
      stack.push_back(device);
    else
      stack.back() = device;
    return success;
  });
}

Code cuCtxPushCurrent_v2(Context context) {
  return enter(Entry::ctx_push_current, Needs::initialised, [&](Call& call) {
    DeviceState* device = call.context(context);
    if (device == nullptr) return invalid_context;
    context_stack().push_back(device);
    return success;
  });
}

Code cuCtxPopCurrent_v2(Context* context) {
  return enter(Entry::ctx_pop_current, Needs::initialised, [&](Call&) {
    auto& stack = context_stack();
    if (stack.empty()) return invalid_context;
    if (context) *context = stack.back()->handle();
    stack.pop_back();
    return success;
  });
}

Code cuCtxGetDevice(Device* device) {
  return enter(Entry::ctx_get_device, Needs::initialised, [&](Call& call) {
    if (device == nullptr) return invalid_value;
    if (call.device == nullptr) return invalid_context;
    *device = call.device->number;
    return success;
  });
}

Code cuCtxSynchronize() {
  return enter(Entry::ctx_synchronize, Needs::context, [&](Call& call) {
    // Whatever the capture's mode: it would wait for what is not there.
    for (auto& [handle, stream] : call.simulator.streams) {
      if (stream->device != call.device || !stream->capture) continue;
      stream->capture->invalidated = true;
      return stream_capture_unsupported;
    }
    if (Code code = call.refuse_in_capture(); code != success) return code;
    call.simulator.wait_device(call.lock, *call.device);
    return call.outcome(*call.device);
  });
}

Code cuCtxGetLimit(size_t* value, Limit limit) {
  return enter(Entry::ctx_get_limit, Needs::context, [&](Call& call) {
    if (value == nullptr) return invalid_value;
    const auto which = static_cast<size_t>(limit);
    if (which >= 3) return unsupported_limit;
    *value = call.device->limits[which];
    return success;
  });
}

Code cuCtxSetLimit(Limit limit, size_t value) {
  return enter(Entry::ctx_set_limit, Needs::context, [&](Call& call) {
    const auto which = static_cast<size_t>(limit);
    if (which >= 3) return unsupported_limit;
    call.device->limits[which] = value;
    return success;
  });
}

Code cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enter(Entry::ctx_get_stream_priority_range, Needs::context,
               [&](Call&) {
                 if (least) *least = 0;
                 if (greatest) *greatest = -5;
                 return success;
               });
}

Code cuCtxEnablePeerAccess(Context peer, unsigned flags) {
  return enter(Entry::ctx_enable_peer_access, Needs::context, [&](Call& call) {
    if (flags != 0) return invalid_value;
    DeviceState* other = call.context(peer);
    if (other == nullptr) return invalid_context;
    if (other == call.device) return invalid_device;
    if (!call.simulator.configuration.peers[static_cast<size_t>(
            call.device->number)][static_cast<size_t>(other->number)]) {
      return peer_access_unsupported;
    }
    if (!call.device->peers.add(other->number))
      return peer_access_already_enabled;
    return success;
  });
}

Code cuCtxDisablePeerAccess(Context peer) {
  return enter(Entry::ctx_disable_peer_access, Needs::context, [&](Call& call) {
    DeviceState* other = call.context(peer);
    if (other == nullptr) return invalid_context;
    if (!call.device->peers.remove(other->number))
      return peer_access_not_enabled;
    call.simulator.memory.forget_ranges();
    return success;
  });
}

}  // extern "C"
}  // namespace simcuda
