#pragma once
// Devices and their memory. CPUs (host_device.h) and GPUs (cuda/device.h)
// implement the interface.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/result.h"

namespace unisono {

class Device;
class Queue;

/// Owns memory of one device, and gives it back in the end to the device, which
/// must still exist. Move-only. Only code that runs on the device dereferences
/// the pointer; all others copy.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* data, int64_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();
  void* data() const { return data_; }
  /// As they were asked for.
  int64_t bytes() const { return bytes_; }
  /// Null of an empty buffer.
  Device* device() const { return device_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// What a copy covers: `rows` runs of `bytes` bytes each, whose starts lie
/// `to_step` and `from_step` bytes apart.
struct CopyExtent {
  CopyExtent(int64_t bytes) : bytes(bytes) {}  // NOLINT: implicit, one run
  CopyExtent(int64_t bytes, int64_t rows, int64_t to_step, int64_t from_step)
      : bytes(bytes), rows(rows), to_step(to_step), from_step(from_step) {}
  int64_t bytes;
  int64_t rows = 1;
  int64_t to_step = 0;
  int64_t from_step = 0;
};

/// Kinds of devices, by the code that they run: jit has a Generator for each.
enum class DeviceKind : uint8_t {
  cpu,  // machine code of this processor
  gpu,  // PTX
};

/// One logical device: memory of its own, and copies in and out of it. What it
/// runs is a Program (execute/program.h). Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  /// "cpu:0"
  virtual const std::string& name() const = 0;
  /// Position in the session's list of devices.
  virtual int index() const = 0;
  /// At least `bytes` (0 is allowed), aligned to 64; contents are unspecified
  /// but never another session's data. out_of_memory names the bytes.
  virtual Result<Buffer> allocate(int64_t bytes) = 0;
  /// For Buffer: takes back what `allocate` gave for `bytes`.
  virtual void free(void* data, int64_t bytes) = 0;
  /// Copies between this device's memory and the host's, and from the memory of
  /// a peer, a device of the same Runtime, to this device's. All work that is
  /// started after a copy has returned sees it done. No program that is still
  /// running may use the memory, except that of a peer. Errors: device_lost,
  /// cancelled.
  virtual Status copy_from_host(void* to, const void* from,
                                const CopyExtent& extent) = 0;
  virtual Status copy_to_host(void* to, const void* from,
                              const CopyExtent& extent) = 0;
  virtual Status copy_from_peer(void* to, const Device& peer, const void* from,
                                const CopyExtent& extent) = 0;
  virtual DeviceKind kind() const = 0;
  /// The queue, owned by the device, of one that runs kernels by itself; null
  /// where threads of this process run them.
  virtual Queue* queue() { return nullptr; }
  /// The compute capability of a GPU (90 is sm_90); 0 for others.
  virtual int capability() const { return 0; }
  /// Bytes allocated now, and the most ever.
  virtual int64_t bytes_in_use() const = 0;
  virtual int64_t peak_bytes() const = 0;
  /// Sets a function that frees memory which can be done without. Any thread
  /// whose allocation fails calls it, and then tries once more. Set before the
  /// device is used.
  void on_shortage(std::function<void()> give_back) {
    give_back_ = std::move(give_back);
  }

  /// Bytes of its machine's memory that it has, with what it keeps for later.
  virtual int64_t bytes_held() const { return bytes_in_use(); }
  /// The most bytes that it may allocate; 0: as many as there are.
  virtual int64_t memory_limit() const { return 0; }
  /// Gives most of what it keeps for later back to the machine, but what was in
  /// use a short time ago.
  virtual void give_back_unused() {}
  /// Threads that may help with copies. Set before the device is used.
  virtual void use_workers(std::shared_ptr<class Pool>) {}  // NOLINT: kept

 protected:
  void relieve() const {
    if (give_back_) give_back_();
  }

 private:
  std::function<void()> give_back_;
};

inline Buffer::~Buffer() {
  if (device_ && data_) device_->free(data_, bytes_);
}

}  // namespace unisono
