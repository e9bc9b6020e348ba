#pragma once
// From the addresses of 32 lanes to memory of the host, checked.
#include "simcuda/machine/block.h"
#include "simcuda/machine/lanes.h"

namespace simcuda {

/// Where each lane that executes accesses `bytes` bytes.
struct LaneAddresses {
  uint8_t* at[warp_size];
  /// All lanes execute, and lane n begins where lane n − 1 ends.
  bool contiguous = false;
};

enum class Access : uint8_t { read, write, read_write };

/// Fills in `lanes`; a fault when an address is misaligned or not the
/// kernel's. Writes are noted, so that later reads know; reads of what nobody
/// wrote are reported.
Flow resolve(Warp& warp, const Instruction& i, uint32_t bytes, Access access,
             LaneAddresses& lanes);
/// For one operand of several: its own base row, offset and space.
Flow resolve_at(Warp& warp, const Instruction& i, Slot base, bool narrow,
                int64_t offset, Space space, uint32_t bytes, Access access,
                LaneAddresses& lanes);

}  // namespace simcuda
