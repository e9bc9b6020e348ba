#pragma once
// What of an array lies where, for who moves its blocks by himself.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/result.h"

namespace unisono {

/// Blocks, by number, that hold each element once.
std::vector<size_t> distinct_blocks(const Sharding& sharding);

/// visit(whole, block, extent) for the rows of a block, until one fails: their
/// offsets, in bytes, in the dense row-major array and in the block. The
/// extent's steps are those of the array and of the block; offsets ascend.
using RunVisitor = std::function<Status(int64_t whole, int64_t block,
                                        const CopyExtent& extent)>;
Status for_each_run(const Array& array, size_t block, const RunVisitor& visit);

/// A reshard whose copies are for another thread: `array`'s memory is there,
/// and `fill`, called once, brings the elements. What it reads it keeps.
/// `counter` has counted the copies; `places` are the blocks that it writes to.
struct BegunReshard {
  Array array;
  std::function<Status()> fill;
  std::vector<const void*> places = {};
};
Result<BegunReshard> begin_reshard(const Array& array, const Sharding& to,
                                   CopyCounter& counter);

/// Elements of an array that lie evenly: along each axis `extent[i]` of them,
/// from `start[i]` on, `step[i]` places apart. A step is not 0, and below 0 on
/// CPUs alone.
struct Elements {
  std::vector<int64_t> start, step, extent;
};

/// Copies these elements, which must lie within the array (CHECK), to `to`,
/// dense memory of `device`. `counter` may be null. Errors: device_lost,
/// cancelled.
Status read_elements(void* to, Device& device, const Array& array,
                     const Elements& elements, CopyCounter* counter);
/// The mirror of it: writes `from` to these elements of an array of this
/// layout, in each block that holds some, in its place; so nobody else may have
/// an interest in these blocks (blocks_with). `from` has the rank of the array,
/// and along each axis one element for each, or one for all of them. What stays
/// on its device is not counted.
Status write_elements(const ArrayLayout& layout, const DeviceBlocks& blocks,
                      const Elements& elements, const Array& from,
                      CopyCounter* counter);
/// The numbers of the blocks that hold some of these elements.
std::vector<size_t> blocks_with(const ArrayLayout& layout,
                                const Elements& elements);

}  // namespace unisono
