#include "embed/borrowed.h"

#include <utility>

namespace unisono {
namespace {

/// The device of one borrowed block: `device`, but for the end of the block.
class Borrowed final : public Device {
 public:
  Borrowed(Device& device, std::shared_ptr<const void> owner)
      : device_(device), owner_(std::move(owner)) {}

  const std::string& name() const override { return device_.name(); }
  int index() const override { return device_.index(); }
  DeviceKind kind() const override { return device_.kind(); }
  Result<Buffer> allocate(int64_t bytes) override {
    return device_.allocate(bytes);
  }
  void free(void*, int64_t) override { owner_.reset(); }
  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override {
    return device_.copy_from_host(to, from, extent);
  }
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override {
    return device_.copy_to_host(to, from, extent);
  }
  Status copy_from_peer(void* to, const Device& peer, const void* from,
                        const CopyExtent& extent) override {
    return device_.copy_from_peer(to, peer, from, extent);
  }
  int64_t bytes_in_use() const override { return device_.bytes_in_use(); }
  int64_t peak_bytes() const override { return device_.peak_bytes(); }

 private:
  Device& device_;
  std::shared_ptr<const void> owner_;
};

/// A block and its device, which goes last.
struct Block {
  Borrowed device;
  Buffer buffer;
};

}  // namespace

std::shared_ptr<Buffer> borrow(Device& device, const void* data, int64_t bytes,
                               std::shared_ptr<const void> owner) {
  auto block =
      std::make_shared<Block>(Borrowed(device, std::move(owner)), Buffer());
  block->buffer = Buffer(&block->device, const_cast<void*>(data), bytes);
  return {block, &block->buffer};
}

}  // namespace unisono
