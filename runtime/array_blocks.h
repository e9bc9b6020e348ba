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

}  // namespace unisono
