// Stream-ordered memory: it exists from when its stream comes to the
// allocation until it comes to the free. Addresses come back in the same stream
// with `reuse`, and never otherwise; the bytes that a pool keeps are counted as
// a real one counts them.
#include <algorithm>
#include <cstring>

#include "simcuda/driver/driver.h"

namespace simcuda {

/// Frees what the pool holds beyond `keep` bytes.
static void trim(PoolObject& pool, uint64_t keep) {
  const uint64_t rest = std::max(pool.used, keep);
  if (pool.reserved <= rest) return;
  pool.device->used -= pool.reserved - rest;
  pool.reserved = rest;
}

void pool_gave_back(PoolObject& pool, uint64_t bytes) {
  pool.used -= bytes;
  // A real pool does so at the next wait.
  trim(pool, pool.threshold);
}

namespace {

PoolObject* pool_of(Call& call, MemoryPool handle) {
  void* key = handle;
  for (auto& device : call.simulator.devices)
    if (key == &device->default_pool) return &device->default_pool;
  return call.find(call.simulator.pools, key);
}

bool fits(const PoolObject& pool, uint64_t bytes) {
  const DeviceState& device = *pool.device;
  const uint64_t kept = pool.reserved - pool.used;
  const uint64_t more = bytes > kept ? bytes - kept : 0;
  if (pool.max_size != 0 && pool.used + bytes > pool.max_size) return false;
  return more <=
         device.model.memory - std::min(device.used, device.model.memory);
}

Code allocate_from(Call& call, DevicePointer* pointer, uint64_t bytes,
                   PoolObject& pool, Stream stream) {
  if (pointer == nullptr || bytes == 0) return invalid_value;
  StreamObject* in = call.stream(stream);
  if (in == nullptr) return invalid_handle;
  if (in->capture) {
    in->capture->invalidated = true;
    return stream_capture_unsupported;
  }
  DeviceState& device = *pool.device;
  if (call.simulator.planned_out_of_memory(device, bytes)) return out_of_memory;
  if (!fits(pool, bytes)) {
    // Frees that are on their way may make room, as they do for a driver.
    call.simulator.wait_device(call.lock, device);
    if (!fits(pool, bytes)) return out_of_memory;
  }
  const bool reuse = call.simulator.configuration.reuse;
  // What the stream frees before is free for what it allocates now.
  if (reuse) call.simulator.wait_for(call.lock, in->last_free);
  auto made = call.simulator.memory.allocate_from(&pool, device.number, bytes,
                                                  in->number, reuse);
  if (!made) return out_of_memory;
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  if (pool.used > pool.reserved) {
    device.used += pool.used - pool.reserved;
    pool.reserved = pool.used;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  }
  *pointer = made->begin;
  auto work = std::make_shared<Work>();
  work->what = "allocation of " + std::to_string(bytes) + " bytes";
  work->device = in->device;
  work->uses = {{made->begin, made->end(), MemoryUse::Kind::write}};
  DeviceMemory* memory = &call.simulator.memory;
  work->run = [made, memory]() -> Failure {
    memory->activate(*made);
    return {};
  };
  return call.simulator.enqueue(call.lock, *in, std::move(work));
}

Code set_number(PoolObject& pool, MemoryPoolAttribute attribute,
                const void* value) {
  uint64_t wide = 0;
  int narrow = 0;
  const int which = static_cast<int>(attribute);
  if (which >= 4)
    std::memcpy(&wide, value, sizeof(wide));
  else
    std::memcpy(&narrow, value, sizeof(narrow));
  switch (attribute) {
    case MemoryPoolAttribute::reuse_follow_event_dependencies:
    case MemoryPoolAttribute::reuse_allow_opportunistic:
    case MemoryPoolAttribute::reuse_allow_internal_dependencies:
      pool.reuse[which - 1] = narrow;
      return success;
    case MemoryPoolAttribute::release_threshold:
      pool.threshold = wide;
      return success;
    case MemoryPoolAttribute::reserved_mem_high:
      if (wide != 0) return invalid_value;
      pool.reserved_high = pool.reserved;
      return success;
    case MemoryPoolAttribute::used_mem_high:
      if (wide != 0) return invalid_value;
      pool.used_high = pool.used;
      return success;
    case MemoryPoolAttribute::reserved_mem_current:
    case MemoryPoolAttribute::used_mem_current: return invalid_value;
  }
  return invalid_value;
}

}  // namespace

extern "C" {

Code cuDeviceGetDefaultMemPool(MemoryPool* pool, Device device) {
  return enter(
      Entry::device_get_default_mem_pool, Needs::initialised, [&](Call& call) {
        if (pool == nullptr) return invalid_value;
        if (!call.valid_device(device)) return invalid_device;
        *pool =
            reinterpret_cast<MemoryPool>(&call.device_at(device).default_pool);
        return success;
      });
}

Code cuDeviceGetMemPool(MemoryPool* pool, Device device) {
  return enter(Entry::device_get_mem_pool, Needs::initialised, [&](Call& call) {
    if (pool == nullptr) return invalid_value;
    if (!call.valid_device(device)) return invalid_device;
    *pool = reinterpret_cast<MemoryPool>(call.device_at(device).pool);
    return success;
  });
}

Code cuDeviceSetMemPool(Device device, MemoryPool pool) {
  return enter(Entry::device_set_mem_pool, Needs::initialised, [&](Call& call) {
    if (!call.valid_device(device)) return invalid_device;
    PoolObject* object = pool_of(call, pool);
    if (object == nullptr) return invalid_value;
    if (object->device->number != device) return invalid_device;
    call.device_at(device).pool = object;
    return success;
  });
}

Code cuMemPoolCreate(MemoryPool* pool, const MemoryPoolProperties* p) {
  return enter(Entry::mem_pool_create, Needs::initialised, [&](Call& call) {
    if (pool == nullptr || p == nullptr ||
        p->allocType != AllocationType::pinned ||
        p->location.type != MemoryLocationType::device ||
        p->win32SecurityAttributes != nullptr) {
      return invalid_value;
    }
    for (unsigned char byte : p->reserved)
      if (byte != 0) return invalid_value;
    if (p->handleTypes != AllocationHandle::none) return not_supported;
    if (!call.valid_device(p->location.id)) return invalid_device;
    auto made = std::make_unique<PoolObject>();
    made->device = &call.device_at(p->location.id);
    made->max_size = p->maxSize;
    void* handle = made.get();
    call.simulator.pools[handle] = std::move(made);
    *pool = static_cast<MemoryPool>(handle);
    return success;
  });
}

Code cuMemPoolDestroy(MemoryPool pool) {
  return give_back(
      Entry::mem_pool_destroy, Needs::initialised, pool, [&](Call& call) {
        PoolObject* object = call.find(call.simulator.pools, pool);
        if (object == nullptr) return invalid_value;
        DeviceState& device = *object->device;
        call.simulator.wait_device(call.lock, device);
        uint64_t in_use = 0;
        for (const auto& allocation : call.simulator.memory.all()) {
          if (allocation->pool != object) continue;
          if (!is_given_back(*allocation)) in_use += allocation->bytes;
          call.simulator.memory.free(*allocation);
        }
        if (in_use != 0) {
          call.simulator.report("a memory pool is destroyed with " +
                                std::to_string(in_use) + " bytes in use");
        }
        call.simulator.memory.forget_pool(object);
        object->used = 0;
        trim(*object, 0);
        if (device.pool == object) device.pool = &device.default_pool;
        call.simulator.pools.erase(pool);
        return success;
      });
}

Code cuMemPoolSetAttribute(MemoryPool pool, MemoryPoolAttribute attribute,
                           void* value) {
  return enter(Entry::mem_pool_set_attribute, Needs::initialised,
               [&](Call& call) {
                 PoolObject* object = pool_of(call, pool);
                 if (object == nullptr || value == nullptr)
                   return invalid_value;
                 return set_number(*object, attribute, value);
               });
}

Code cuMemPoolGetAttribute(MemoryPool pool, MemoryPoolAttribute attribute,
                           void* value) {
  return enter(Entry::mem_pool_get_attribute, Needs::initialised,
               [&](Call& call) {
                 PoolObject* object = pool_of(call, pool);
                 if (object == nullptr || value == nullptr)
                   return invalid_value;
                 auto put = [&](auto what) {
                   std::memcpy(value, &what, sizeof(what));
                   return success;
                 };
                 switch (attribute) {
                   case MemoryPoolAttribute::reuse_follow_event_dependencies:
                   case MemoryPoolAttribute::reuse_allow_opportunistic:
                   case MemoryPoolAttribute::reuse_allow_internal_dependencies:
                     return put(object->reuse[static_cast<int>(attribute) - 1]);
                   case MemoryPoolAttribute::release_threshold:
                     return put(object->threshold);
                   case MemoryPoolAttribute::reserved_mem_current:
                     return put(object->reserved);
                   case MemoryPoolAttribute::reserved_mem_high:
                     return put(object->reserved_high);
                   case MemoryPoolAttribute::used_mem_current:
                     return put(object->used);
                   case MemoryPoolAttribute::used_mem_high:
                     return put(object->used_high);
                 }
                 return invalid_value;
               });
}

Code cuMemPoolSetAccess(MemoryPool pool, const MemoryAccessDescription* access,
                        size_t count) {
  return enter(Entry::mem_pool_set_access, Needs::initialised, [&](Call& call) {
    PoolObject* object = pool_of(call, pool);
    if (object == nullptr || access == nullptr) return invalid_value;
    for (size_t i = 0; i < count; ++i) {
      const int device = access[i].location.id;
      if (access[i].location.type != MemoryLocationType::device)
        return invalid_value;
      if (!call.valid_device(device)) return invalid_device;
      const int owner = object->device->number;
      if (device == owner) {
        if (access[i].flags != MemoryAccess::read_write) return invalid_value;
        continue;
      }
      if (!call.simulator.configuration.peers[static_cast<size_t>(device)]
                                             [static_cast<size_t>(owner)]) {
        return invalid_device;
      }
      object->readers.remove(device);
      object->writers.remove(device);
      if (access[i].flags != MemoryAccess::none) object->readers.add(device);
      if (access[i].flags == MemoryAccess::read_write)
        object->writers.add(device);
    }
    call.simulator.memory.forget_ranges();
    return success;
  });
}

Code cuMemPoolGetAccess(MemoryAccess* access, MemoryPool pool,
                        MemoryLocation* location) {
  return enter(Entry::mem_pool_get_access, Needs::initialised, [&](Call& call) {
    PoolObject* object = pool_of(call, pool);
    if (object == nullptr || access == nullptr || location == nullptr)
      return invalid_value;
    if (!call.valid_device(location->id)) return invalid_device;
    const int device = location->id;
    *access = device == object->device->number || object->writers.has(device)
                  ? MemoryAccess::read_write
              : object->readers.has(device) ? MemoryAccess::read
                                            : MemoryAccess::none;
    return success;
  });
}

Code cuMemPoolTrimTo(MemoryPool pool, size_t keep) {
  return enter(Entry::mem_pool_trim_to, Needs::initialised, [&](Call& call) {
    PoolObject* object = pool_of(call, pool);
    if (object == nullptr) return invalid_value;
    trim(*object, keep);
    return success;
  });
}

Code cuMemAllocAsync(DevicePointer* pointer, size_t bytes, Stream stream) {
  return enter(Entry::mem_alloc_async, Needs::context, [&](Call& call) {
    StreamObject* in = call.stream(stream);
    if (in == nullptr) return invalid_handle;
    return allocate_from(call, pointer, bytes, *in->device->pool, stream);
  });
}

Code cuMemAllocFromPoolAsync(DevicePointer* pointer, size_t bytes,
                             MemoryPool pool, Stream stream) {
  return enter(Entry::mem_alloc_from_pool_async, Needs::context,
               [&](Call& call) {
                 PoolObject* object = pool_of(call, pool);
                 if (object == nullptr) return invalid_value;
                 return allocate_from(call, pointer, bytes, *object, stream);
               });
}

Code cuMemFreeAsync(DevicePointer pointer, Stream stream) {
  return give_back(
      Entry::mem_free_async, Needs::context, pointer, [&](Call& call) {
        StreamObject* in = call.stream(stream);
        if (in == nullptr) return invalid_handle;
        auto allocation = call.simulator.memory.find(pointer);
        if (!allocation || allocation->begin != pointer ||
            allocation->kind != Allocation::Kind::pool ||
            allocation->free_asked ||
            allocation->state.load() == Allocation::State::freed) {
          call.simulator.report(
              "cuMemFreeAsync of an address that cannot be "
              "freed: " +
              call.simulator.memory.describe(pointer));
          return invalid_value;
        }
        if (in->capture) {
          in->capture->invalidated = true;
          return stream_capture_unsupported;
        }
        allocation->free_asked = true;
        if (call.simulator.configuration.reuse)
          allocation->freed_in = in->number;
        auto work = std::make_shared<Work>();
        work->what = "free of " + std::to_string(allocation->bytes) + " bytes";
        work->device = in->device;
        work->uses = {
            {allocation->begin, allocation->end(), MemoryUse::Kind::write}};
        Simulator* simulator = &call.simulator;
        work->run = [allocation, simulator]() -> Failure {
          const bool early =
              allocation->state.load() == Allocation::State::pending;
          {
            Simulator::Lock lock(simulator->mutex);
            if (allocation->state.load() != Allocation::State::freed) {
              pool_gave_back(*static_cast<PoolObject*>(allocation->pool),
                             allocation->bytes);
            }
          }
          if (early) {
            simulator->report(
                "stream-ordered memory is freed before it is "
                "allocated: " +
                simulator->memory.describe(allocation->begin));
          }
          simulator->memory.free(*allocation);
          return {};
        };
        const Code code =
            call.simulator.enqueue(call.lock, *in, std::move(work));
        if (code == success) in->last_free = in->last;
        return code;
      });
}

}  // extern "C"
}  // namespace simcuda
