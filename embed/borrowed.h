#pragma once
// Memory of somebody else as a device's, so that arrays may lie there.
#include <cstdint>
#include <memory>

#include "runtime/device.h"

namespace unisono {

/// A block at `data`, which a CPU device reads like its own. Nothing writes to
/// it. `owner` is let go with the block, after which the memory may be gone.
/// `data` is aligned to the elements that it holds, and has `bytes` bytes.
/// Buffer::device() of the block is not `device` but a device of its own, by
/// which programs know that the memory is not theirs to write to.
std::shared_ptr<Buffer> borrow(Device& device, const void* data, int64_t bytes,
                               std::shared_ptr<const void> owner);

}  // namespace unisono
