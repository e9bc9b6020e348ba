#pragma once
#include <memory>

#include "runtime/device.h"
#include "runtime/heap.h"
#include "runtime/pool.h"

namespace unisono {

/// A CPU device, "cpu:INDEX": a heap of its own, on a budget that it shares
/// with the other devices of its machine. Large copies are shared out among the
/// pool's workers. `budget` and `pool` outlive the device.
std::unique_ptr<Device> make_host_device(int index, MemoryBudget& budget,
                                         Pool& pool);

}  // namespace unisono
