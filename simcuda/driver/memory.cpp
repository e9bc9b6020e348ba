// Device memory, pinned memory of the host, and what an address is.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "simcuda/driver/driver.h"

namespace simcuda {

bool check_range(Call& call, uint64_t address, uint64_t bytes, bool host_too,
                 std::shared_ptr<Allocation>& allocation) {
  allocation = call.simulator.memory.find(address);
  if (!allocation) {
    // Any memory of the host may be the other end of a copy.
    return host_too && address != 0 && address < (uint64_t{1} << 47);
  }
  return allocation->state.load() != Allocation::State::freed &&
         address + bytes <= allocation->end();
}

Code allocate_on(Call& call, DeviceState& device, uint64_t bytes,
                 DevicePointer* pointer) {
  if (bytes >
          device.model.memory - std::min(device.used, device.model.memory) ||
      call.simulator.planned_out_of_memory(device, bytes)) {
    return out_of_memory;
  }
  auto made = call.simulator.memory.allocate(
      device.number, bytes, Allocation::Kind::device, Allocation::State::live);
  if (!made) return out_of_memory;
  device.used += bytes;
  *pointer = made->begin;
  return success;
}

Code free_allocation(Call& call, Allocation& allocation) {
  DeviceState& owner = call.device_at(allocation.device);
  // The driver waits for the device before it takes memory away.
  call.simulator.wait_device(call.lock, owner);
  if (allocation.kind == Allocation::Kind::pool) {
    pool_gave_back(*static_cast<PoolObject*>(allocation.pool),
                   allocation.bytes);
  } else {
    owner.used -= allocation.bytes;
  }
  call.simulator.memory.free(allocation);
  return success;
}

extern "C" {

Code cuMemGetInfo_v2(size_t* free, size_t* total) {
  return enter(Entry::mem_get_info, Needs::context, [&](Call& call) {
    const DeviceState& device = *call.device;
    if (total) *total = device.model.memory;
    if (free) *free = device.model.memory - device.used;
    return success;
  });
}

Code cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  return enter(Entry::mem_alloc, Needs::context, [&](Call& call) {
    if (pointer == nullptr || bytes == 0) return invalid_value;
    if (Code code = call.refuse_in_capture(); code != success) return code;
    return allocate_on(call, *call.device, bytes, pointer);
  });
}

Code cuMemFree_v2(DevicePointer pointer) {
  return give_back(Entry::mem_free, Needs::context, pointer, [&](Call& call) {
    if (pointer == 0) return success;
    if (Code code = call.refuse_in_capture(); code != success) return code;
    auto allocation = call.simulator.memory.find(pointer);
    const bool fits = allocation && allocation->begin == pointer &&
                      allocation->state.load() != Allocation::State::freed &&
                      !allocation->free_asked &&
                      (allocation->kind == Allocation::Kind::device ||
                       allocation->kind == Allocation::Kind::pool);
    if (!fits) {
      call.simulator.report("cuMemFree of an address that cannot be freed: " +
                            call.simulator.memory.describe(pointer));
      return invalid_value;
    }
    return free_allocation(call, *allocation);
  });
}

Code cuMemGetAddressRange_v2(DevicePointer* base, size_t* size,
                             DevicePointer pointer) {
  return enter(Entry::mem_get_address_range, Needs::context, [&](Call& call) {
    auto allocation = call.simulator.memory.find(pointer);
    if (!allocation || allocation->device == host_device ||
        allocation->state.load() == Allocation::State::freed) {
      return not_found;
    }
    if (base) *base = allocation->begin;
    if (size) *size = allocation->bytes;
    return success;
  });
}

Code cuPointerGetAttribute(void* value, PointerAttribute attribute,
                           DevicePointer pointer) {
  return enter(
      Entry::pointer_get_attribute, Needs::initialised, [&](Call& call) {
        if (value == nullptr) return invalid_value;
        auto allocation = call.simulator.memory.find(pointer);
        if (!allocation || allocation->state.load() == Allocation::State::freed)
          return invalid_value;
        const bool host = allocation->device == host_device;
        auto put = [&](auto what) {
          std::memcpy(value, &what, sizeof(what));
          return success;
        };
        switch (attribute) {
          case PointerAttribute::context:
            if (host) return invalid_value;
            return put(call.device_at(allocation->device).handle());
          case PointerAttribute::memory_type:
            return put(host ? MemoryType::host : MemoryType::device);
          case PointerAttribute::device_pointer: return put(pointer);
          case PointerAttribute::host_pointer:
            return host ? put(pointer) : invalid_value;
          case PointerAttribute::is_managed: return put(0u);
          case PointerAttribute::device_ordinal:
            return put(host ? 0 : allocation->device);
          case PointerAttribute::range_start_addr:
            return put(allocation->begin);
          case PointerAttribute::range_size:
            return put(size_t{allocation->bytes});
          case PointerAttribute::mempool_handle:
            return put(reinterpret_cast<MemoryPool>(allocation->pool));
        }
        return invalid_value;
      });
}

Code cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return enter(Entry::mem_host_alloc, Needs::context, [&](Call& call) {
    if (pointer == nullptr || bytes == 0 || (flags & ~7u)) return invalid_value;
    if (Code code = call.refuse_in_capture(); code != success) return code;
    if (bytes > (uint64_t{1} << 46)) return out_of_memory;
    void* data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (data == nullptr) return out_of_memory;
    auto made =
        call.simulator.memory.add_host(data, bytes, Allocation::Kind::host);
    made->context = call.device->number;
    *pointer = data;
    return success;
  });
}

Code cuMemFreeHost(void* pointer) {
  return give_back(
      Entry::mem_free_host, Needs::context, pointer, [&](Call& call) {
        if (Code code = call.refuse_in_capture(); code != success) return code;
        auto allocation =
            call.simulator.memory.find(reinterpret_cast<uint64_t>(pointer));
        if (!allocation || allocation->data != pointer ||
            allocation->kind != Allocation::Kind::host) {
          return invalid_value;
        }
        call.simulator.wait_all(call.lock);
        call.simulator.memory.free(*allocation);
        std::free(pointer);
        return success;
      });
}

Code cuMemHostGetDevicePointer_v2(DevicePointer* device_pointer, void* pointer,
                                  unsigned flags) {
  return enter(Entry::mem_host_get_device_pointer, Needs::context,
               [&](Call& call) {
                 if (device_pointer == nullptr || flags != 0)
                   return invalid_value;
                 auto address = reinterpret_cast<uint64_t>(pointer);
                 auto allocation = call.simulator.memory.find(address);
                 if (!allocation || allocation->device != host_device)
                   return invalid_value;
                 *device_pointer = address;
                 return success;
               });
}

Code cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return enter(Entry::mem_host_register, Needs::context, [&](Call& call) {
    if (pointer == nullptr || bytes == 0 || (flags & ~15u))
      return invalid_value;
    if (flags & host_register_io_memory) return not_supported;
    const auto first = reinterpret_cast<uint64_t>(pointer);
    for (const auto& other : call.simulator.memory.all()) {
      if (other->device == host_device && first < other->end() &&
          other->begin < first + bytes) {
        return host_memory_already_registered;
      }
    }
    call.simulator.memory.add_host(pointer, bytes,
                                   Allocation::Kind::registered);
    return success;
  });
}

Code cuMemHostUnregister(void* pointer) {
  return give_back(
      Entry::mem_host_unregister, Needs::context, pointer, [&](Call& call) {
        auto allocation =
            call.simulator.memory.find(reinterpret_cast<uint64_t>(pointer));
        if (!allocation || allocation->data != pointer ||
            allocation->kind != Allocation::Kind::registered) {
          return host_memory_not_registered;
        }
        call.simulator.wait_all(call.lock);
        call.simulator.memory.free(*allocation);
        return success;
      });
}

}  // extern "C"
}  // namespace simcuda
