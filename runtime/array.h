#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/dtype.h"

namespace unisono {

/// One axis of a grid of devices: how many there are along it, and the array's
/// axis that they share; with -1 all of them have the same.
struct GridCut {
  int64_t size = 1;
  int axis = -1;
  bool operator==(const GridCut&) const = default;
};

/// Where an array lives: cut into equal blocks along `axis`, block i on
/// devices[i]; or, with axis -1, one whole copy on each of `devices` (which may
/// share one buffer). One device and axis -1 is an ordinary array. On a grid of
/// devices, in row-major order, several axes may be cut: then `grid` says how,
/// and `axis` is -1. Made by `on_grid`, so that equal places compare equal.
struct Sharding {
  int axis = -1;
  std::vector<Device*> devices;
  std::vector<GridCut> grid = {};

  static Sharding on_grid(std::vector<GridCut> grid,
                          std::vector<Device*> devices);
  bool is_split() const;
  bool operator==(const Sharding&) const = default;
  /// "split(0) over cpu:0, cpu:1", "copied to cpu:0, cpu:1", "on cpu:0",
  /// "split(0, 1) over (2, 3): cpu:0, cpu:1, ...".
  std::string to_string() const;
};

/// An immutable array on devices: element type, full shape, placement, and one
/// dense row-major block of memory per device. Copying shares the memory.
/// Thread-safe, as nothing changes after construction.
class Array {
 public:
  Array() = default;
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
  int64_t bytes() const { return elements() * byte_size(dtype_); }
  const Sharding& sharding() const { return sharding_; }
  /// blocks()[i] is on sharding().devices[i].
  const std::vector<std::shared_ptr<Buffer>>& blocks() const { return blocks_; }
  /// The shape of each block.
  std::vector<int64_t> block_shape() const;

 private:
  DType dtype_ = DType::F32;
  std::vector<int64_t> shape_;
  Sharding sharding_;
  std::vector<std::shared_ptr<Buffer>> blocks_;
};

/// Counts of what moved, for tests and `--stats`.
struct CopyCounter {
  int64_t copies = 0;
  int64_t bytes = 0;
  class Recorder* recorder = nullptr;  // told of each copy, if there is one
};

/// A dense row-major host copy to `device`. `bytes` holds all elements.
Result<Array> array_from_host(Device& device, DType dtype,
                              std::vector<int64_t> shape, const void* bytes);
/// All elements, dense and row-major, gathered to the host.
Result<std::vector<uint8_t>> array_to_host(const Array& array,
                                           CopyCounter* counter = nullptr);
/// The same elements placed as `to` says; shares blocks that are already
/// there, and copies only what differs, device to device. The split axis's
/// size must be a multiple of the number of devices (CHECK).
Result<Array> reshard(const Array& array, const Sharding& to,
                      CopyCounter* counter = nullptr);

/// The elements from `start` on, `extent` of them along each axis, brought to
/// `device`: only these are copied.
Result<Array> copy_part(const Array& array, const std::vector<int64_t>& start,
                        const std::vector<int64_t>& extent, Device& device,
                        CopyCounter* counter = nullptr);

}  // namespace unisono
