#include "runtime/host_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

void copy_rows(char* to, const char* from, const CopyExtent& extent,
               int64_t rows) {
  auto copy = [&](auto bytes) {
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(to + row * extent.to_step, from + row * extent.from_step,
                  bytes);
  };
  const bool is_fill = extent.from_step == 0 && extent.to_step == extent.bytes;
  // Single elements are moved in registers, without a call each.
  auto single = [&]<class Element>(Element element) {
    if (!is_fill) return copy(std::integral_constant<size_t, sizeof element>());
    std::memcpy(&element, from, sizeof element);
    std::fill_n(reinterpret_cast<Element*>(to), rows, element);
  };
  switch (extent.bytes) {
    case 1: return single(uint8_t{});
    case 2: return single(uint16_t{});
    case 4: return single(uint32_t{});
    case 8: return single(uint64_t{});
    default: return copy(static_cast<size_t>(extent.bytes));
  }
}

class HostDevice final : public Device {
 public:
  HostDevice(int index, MemoryBudget& budget, Pool& pool)
      : name_(fmt::format("cpu:{}", index)),
        index_(index),
        budget_(budget),
        pool_(pool),
        heap_(budget) {}

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }
  DeviceKind kind() const override { return DeviceKind::cpu; }

  Result<Buffer> allocate(int64_t bytes) override {
    if (void* data = heap_.allocate(bytes)) return Buffer(this, data, bytes);
    relieve();
    if (void* data = heap_.allocate(bytes)) return Buffer(this, data, bytes);
    return Error{.kind = Error::Kind::out_of_memory,
                 .message = fmt::format(
                     "out of memory on {}: {} bytes asked for, {} in "
                     "use there, and all devices may have {}",
                     name_, bytes, heap_.bytes_in_use(), budget_.limit())};
  }
  void free(void* data, int64_t bytes) override { heap_.free(data, bytes); }

  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override {
    return copy(to, from, extent);
  }
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override {
    return copy(to, from, extent);
  }
  Status copy_from_peer(void* to, const Device& peer, const void* from,
                        const CopyExtent& extent) override {
    // In no list of devices: a file (runtime/files/file_device.h), which reads.
    if (peer.index() < 0)
      return const_cast<Device&>(peer).copy_to_host(to, from, extent);
    return copy(to, from, extent);
  }

  int64_t bytes_in_use() const override { return heap_.bytes_in_use(); }
  int64_t peak_bytes() const override { return heap_.peak_bytes(); }

 private:
  /// In pieces: who waits for the copy may not want it any more.
  Status copy(void* to, const void* from, const CopyExtent& extent) {
    auto* target = static_cast<char*>(to);
    auto* source = static_cast<const char*>(from);
    const std::atomic<bool>* stop = stop_flag();  // of this thread, not theirs
    auto stopped = [&] {
      return stop && stop->load(std::memory_order_relaxed);
    };
    auto in_parallel = [&](int64_t units, int64_t grain, auto&& part) {
      pool_.parallel_pieces(units, grain, this, stopped, part);
    };
    if (extent.rows > 1 && extent.bytes < tuning().copy_grain) {
      in_parallel(
          extent.rows, tuning().copy_grain / std::max<int64_t>(extent.bytes, 1),
          [&](int64_t begin, int64_t end) {
            copy_rows(target + begin * extent.to_step,
                      source + begin * extent.from_step, extent, end - begin);
          });
    } else {
      for (int64_t row = 0; row < extent.rows; ++row)
        in_parallel(
            extent.bytes, tuning().copy_grain, [&](int64_t begin, int64_t end) {
              std::memcpy(target + row * extent.to_step + begin,
                          source + row * extent.from_step + begin, end - begin);
            });
    }
    if (stopped()) return stopped_error();
    return Unit{};
  }

  const std::string name_;
  const int index_;
  const MemoryBudget& budget_;
  Pool& pool_;
  Heap heap_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int index, MemoryBudget& budget,
                                         Pool& pool) {
  return std::make_unique<HostDevice>(index, budget, pool);
}

}  // namespace unisono
