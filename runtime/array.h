#pragma once
// Arrays on devices: how their elements are placed, and the copies that bring
// them from one placement to another.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/recycling.h"

namespace unisono {

/// One axis of a mesh of devices: `size` devices stand along it, and each has
/// an equal part of the array's axis `axis`; with axis -1 all of them have the
/// same elements.
struct MeshCut {
  int64_t size = 1;
  int axis = -1;
  bool operator==(const MeshCut&) const = default;
};

/// Where an array lives: cut into equal blocks along `axis`, block i on
/// devices[i]; or, with axis -1, one whole copy on each of `devices` (which may
/// share one buffer). One device and axis -1 is an ordinary array. On a mesh of
/// devices, in row-major order, several axes may be cut: then `mesh` says how,
/// and `axis` is -1. Such a sharding is made by `on_mesh`, so that equal
/// placements compare equal.
struct Sharding {
  int axis = -1;
  std::vector<Device*> devices;
  std::vector<MeshCut> mesh = {};

  /// `mesh` is not empty, its first axis is the outermost, and the product of
  /// its sizes is the number of devices. Axes of one device are left out and
  /// neighbours with one `axis` joined; if at most one axis remains, the result
  /// has an empty `mesh`.
  static Sharding on_mesh(std::vector<MeshCut> mesh,
                          std::vector<Device*> devices);
  /// Whether an axis of the array is cut.
  bool is_split() const;
  bool operator==(const Sharding&) const = default;
  /// "split(0) over cpu:0, cpu:1", "copied to cpu:0, cpu:1", "on cpu:0",
  /// "split(0, 1) over 2 x 3 devices: cpu:0, cpu:1, ...".
  std::string to_string() const;
};

/// An array without its elements. Arrays that are alike share one, such as the
/// results of a function that is called again.
struct ArrayLayout {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;  // of the whole array
  Sharding sharding;
};

/// The blocks of one array, by device: most often one, in memory that is quick
/// to get.
using DeviceBlocks =
    std::vector<std::shared_ptr<Buffer>, Recycling<std::shared_ptr<Buffer>>>;

/// An immutable array on devices: element type, full shape, placement, and one
/// dense row-major block of memory per device. Copying shares the memory.
/// Thread-safe, as nothing changes after construction.
class Array {
 public:
  /// No array yet: it has no blocks and says that it is a scalar.
  Array() = default;
  /// `blocks[i]` holds the block of layout->sharding.devices[i]; nothing is
  /// checked.
  Array(std::shared_ptr<const ArrayLayout> layout, DeviceBlocks blocks)
      : layout_(std::move(layout)), blocks_(std::move(blocks)) {}
  Array(DType dtype, std::vector<int64_t> shape, Sharding sharding,
        DeviceBlocks blocks);

  DType dtype() const { return layout().dtype; }
  const std::vector<int64_t>& shape() const { return layout().shape; }
  int rank() const { return static_cast<int>(shape().size()); }
  int64_t elements() const;
  /// Bytes of all elements, each counted once however many copies there are.
  int64_t bytes() const { return elements() * byte_size(dtype()); }
  const Sharding& sharding() const { return layout().sharding; }
  const ArrayLayout& layout() const { return layout_ ? *layout_ : no_layout; }
  /// blocks()[i] is on sharding().devices[i].
  const DeviceBlocks& blocks() const { return blocks_; }
  /// The shape of each block: all blocks have the same one.
  std::vector<int64_t> block_shape() const;

 private:
  static const ArrayLayout no_layout;
  std::shared_ptr<const ArrayLayout> layout_;
  DeviceBlocks blocks_;
};

/// Counts copies of blocks or parts of them, for tests and `--stats`. Functions
/// that take a counter add to it; it may be null.
struct CopyCounter {
  int64_t copies = 0;
  int64_t bytes = 0;
  class Recorder* recorder = nullptr;  // told of each copy; may be null
};

// Errors of all four: out_of_memory, device_lost, cancelled.

/// The elements at `bytes`, dense and row-major, as an array on `device` alone.
/// They have been copied when this returns.
Result<Array> array_from_host(Device& device, DType dtype,
                              std::vector<int64_t> shape, const void* bytes);
/// All elements, dense and row-major, in the host's memory; std::bad_alloc if
/// that has no room.
Result<std::vector<uint8_t>> array_to_host(const Array& array,
                                           CopyCounter* counter = nullptr);
/// The same elements placed as `to` says. Blocks that are already in their
/// place are shared; all others are copied from device to device. The size of
/// an axis that is cut must be a multiple of the number of its parts (CHECK).
Result<Array> reshard(const Array& array, const Sharding& to,
                      CopyCounter* counter = nullptr);

/// The part of `array` from `start` on, with `extent` elements along each axis,
/// as an array on `device`. Only this part is copied, or nothing if `device`
/// has it as a block. It must lie within the array (CHECK).
Result<Array> copy_part(const Array& array, const std::vector<int64_t>& start,
                        const std::vector<int64_t>& extent, Device& device,
                        CopyCounter* counter = nullptr);

}  // namespace unisono
