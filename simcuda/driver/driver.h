#pragma once
// What the exported functions have in common: how a call begins, and how
// handles become objects.
#include "simcuda/driver/simulator.h"

namespace simcuda {

extern "C" {
#define CUDA_FUNCTION(name, symbol, since, parameters) \
  __attribute__((visibility("default"))) Code symbol parameters;
#include "runtime/cuda/driver.def"
}

/// What must have happened before a call: nothing, cuInit, or that a context is
/// current, too.
enum class Needs : uint8_t { nothing, initialised, context };

/// One call of the driver: the simulator, its lock, the current context.
struct Call {
  Simulator& simulator;
  Simulator::Lock lock;
  DeviceState* device = nullptr;  // of the current context, if there is one

  bool valid_device(Device number) const {
    return number >= 0 && number < simulator.configuration.devices;
  }
  DeviceState& device_at(Device number) {
    return *simulator.devices[static_cast<size_t>(number)];
  }
  /// Null: no such context.
  DeviceState* context(Context handle) {
    for (auto& candidate : simulator.devices)
      if (candidate->handle() == handle && candidate->retained > 0)
        return candidate.get();
    return nullptr;
  }
  /// Null: no such stream.
  StreamObject* stream(Stream handle);
  template <class Map>
  auto find(Map& map, const void* handle) {
    auto it = map.find(const_cast<void*>(handle));
    return it == map.end() ? nullptr : &*it->second;
  }
  /// For calls that wait, or that a capture cannot hold: an error during a
  /// capture, which it breaks.
  Code refuse_in_capture();
  /// The error of a device that a call has waited for.
  Code outcome(const DeviceState& of) const { return of.sticky; }
};

/// Runs `body` after the checks that each call makes: the fault plan, cuInit, a
/// current context that is not lost. If a call that `gives_back` something
/// fails before `body`, the ledger does not count the object as a leak.
Code enter(Entry entry, Needs needs,
           const std::function<Code(Call& call)>& body,
           const Returned& gives_back = {});

inline Code give_back(Entry entry, Needs needs, const Returned& what,
                      const std::function<Code(Call& call)>& body) {
  return enter(entry, needs, body, what);
}

/// The contexts of this thread, the current one last.
std::vector<DeviceState*>& context_stack();

// memory.cpp
/// Whether [address, address + bytes) can be copied from or to. `allocation` is
/// the one that has the address, null for plain memory of the host, which is
/// allowed only if `host_too`.
bool check_range(Call& call, uint64_t address, uint64_t bytes, bool host_too,
                 std::shared_ptr<Allocation>& allocation);
Code allocate_on(Call& call, DeviceState& device, uint64_t bytes,
                 DevicePointer* pointer);
Code free_allocation(Call& call, Allocation& allocation);

// pool.cpp
void pool_gave_back(PoolObject& pool, uint64_t bytes);

// module.cpp
Code load_image(Call& call, const void* image, ModuleObject& module,
                std::string& log);

// launch.cpp
int blocks_per_multiprocessor(const FunctionObject& function, uint64_t threads,
                              uint64_t dynamic_shared);

}  // namespace simcuda
