#include "runtime/host_device.h"

#include <fmt/format.h>

#include <cstring>

namespace unisono {
namespace {

class HostDevice final : public Device {
 public:
  HostDevice(int index, MemoryBudget& budget)
      : name_(fmt::format("cpu:{}", index)),
        index_(index),
        budget_(budget),
        heap_(budget) {}

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }

  Result<Buffer> allocate(int64_t bytes) override {
    if (void* data = heap_.allocate(bytes)) return Buffer(this, data, bytes);
    return Error{.kind = Error::Kind::out_of_memory,
                 .message = fmt::format(
                     "out of memory on {}: {} bytes asked for, {} in "
                     "use there, and all devices may have {}",
                     name_, bytes, heap_.bytes_in_use(), budget_.limit())};
  }
  void free(void* data, int64_t bytes) override { heap_.free(data, bytes); }

  void copy_from_host(void* to, const void* from, int64_t bytes) override {
    copy(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, int64_t bytes) override {
    copy(to, from, bytes);
  }
  void copy_from_peer(void* to, const Device&, const void* from,
                      int64_t bytes) override {
    copy(to, from, bytes);
  }

  int64_t bytes_in_use() const override { return heap_.bytes_in_use(); }
  int64_t peak_bytes() const override { return heap_.peak_bytes(); }

 private:
  // An empty copy may come with null pointers, which memcpy does not allow.
  static void copy(void* to, const void* from, int64_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }

  const std::string name_;
  const int index_;
  const MemoryBudget& budget_;
  Heap heap_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int index, MemoryBudget& budget) {
  return std::make_unique<HostDevice>(index, budget);
}

}  // namespace unisono
