#pragma once
#include <memory>

#include "runtime/device.h"
#include "runtime/heap.h"

namespace unisono {

/// A CPU device: a heap of its own, on a budget that it shares with the other
/// devices of its machine. Outlived by `budget`.
std::unique_ptr<Device> make_host_device(int index, MemoryBudget& budget);

}  // namespace unisono
