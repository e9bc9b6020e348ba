#pragma once
// Arrays on devices: how their elements are placed, and the copies that bring
// them from one placement to another.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/dtype.h"

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

/// An immutable array on devices: element type, full shape, placement, and one
/// dense row-major block of memory per device. Copying shares the memory.
/// Thread-safe, as nothing changes after construction.
class Array {
 public:
  /// No array yet: it has no blocks, and may only be assigned to.
  Array() = default;
  /// `blocks[i]` holds the block of sharding.devices[i]; nothing is checked.
  Array(DType dtype, std::vector<int64_t> shape, Sharding sharding,
        std::vector<std::shared_ptr<Buffer>> blocks)
      : dtype_(dtype),
        shape_(std::move(shape)),
        sharding_(std::move(sharding)),
        blocks_(std::move(blocks)) {}

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t elements() const;
  /// Bytes of all elements, each counted once however many copies there are.
  int64_t bytes() const { return elements() * byte_size(dtype_); }
  const Sharding& sharding() const { return sharding_; }
  /// blocks()[i] is on sharding().devices[i].
  const std::vector<std::shared_ptr<Buffer>>& blocks() const { return blocks_; }
  /// The shape of each block: all blocks have the same one.
  std::vector<int64_t> block_shape() const;

 private:
  DType dtype_ = DType::F32;
  std::vector<int64_t> shape_;
  Sharding sharding_;
  std::vector<std::shared_ptr<Buffer>> blocks_;
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
