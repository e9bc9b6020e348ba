#pragma once
// The memory of all simulated devices, in one unified address space that the
// host cannot dereference. Every allocation has exact bounds and space around
// it, freed addresses are used again only where `reuse` says so, and bits say
// which bytes were ever written: so what a real GPU lets pass is found here.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "runtime/cuda/types.h"

namespace simcuda {

using unisono::cuda::Code;

constexpr int max_devices = 64;
constexpr int host_device = -1;

/// Addresses of device d begin here; not canonical, so a host that follows
/// one gets SIGSEGV.
constexpr uint64_t device_base(int device) {
  return uint64_t{1} << 56 | static_cast<uint64_t>(device) << 48;
}

struct Allocation {
  enum class Kind : uint8_t {
    device,      // cuMemAlloc
    pool,        // stream-ordered
    module,      // variables of a module
    host,        // cuMemHostAlloc
    registered,  // cuMemHostRegister
  };
  enum class State : uint8_t {
    pending,  // stream-ordered, and the stream is not there yet
    live,
    freed,
  };
  uint64_t begin = 0;
  uint64_t bytes = 0;
  int device = 0;
  int context = host_device;  // the one that pinned memory ends with
  Kind kind = Kind::device;
  std::atomic<State> state{State::live};
  uint8_t* data = nullptr;  // the host's memory behind the addresses
  uint64_t number = 0;      // of this allocation, in order
  void* pool = nullptr;
  uint64_t room = 0;      // bytes from its address on that are nobody else's
  uint64_t freed_in = 0;  // the number of the stream that cuMemFreeAsync named
  bool free_asked = false;  // cuMemFreeAsync was called
  bool given_back = false;  // given back, or refused when that was tried

  /// One bit for each byte; empty when all have been written.
  std::unique_ptr<std::atomic<uint64_t>[]> written;
  std::atomic<int64_t> unwritten{0};

  uint64_t end() const { return begin + bytes; }
  bool tracks() const { return unwritten.load(std::memory_order_relaxed) != 0; }
  void mark_written(uint64_t offset, uint64_t count);
  /// Marks those that were written of the bytes of `other` from `from` on.
  void mark_as(uint64_t offset, const Allocation& other, uint64_t from,
               uint64_t count);
  /// The first of these bytes that was never written, or -1.
  int64_t first_unwritten(uint64_t offset, uint64_t count) const;
  ~Allocation();
};

/// Whether the allocation is no leak. Variables of a module go with the module.
inline bool is_given_back(const Allocation& allocation) {
  return allocation.kind == Allocation::Kind::module || allocation.given_back ||
         allocation.free_asked;
}

/// A part of an allocation that may be used without another look-up, while
/// DeviceMemory::generation stays the same.
struct MemoryRange {
  uint64_t begin = 1;
  uint64_t end = 0;
  uint8_t* data = nullptr;  // of begin
  Allocation* allocation = nullptr;
  bool writable = false;
  bool contains(uint64_t first, uint64_t last) const {
    return first >= begin && last <= end;
  }
};

/// Thread-safe.
class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t seed) : seed_(seed) {}
  DeviceMemory(const DeviceMemory&) = delete;

  /// Null: the machine has no memory left.
  std::shared_ptr<Allocation> allocate(int device, uint64_t bytes,
                                       Allocation::Kind kind,
                                       Allocation::State state);
  /// Stream-ordered memory, pending. With `reuse` at the address of what was
  /// freed last in the same stream, if that was of this pool and has room.
  std::shared_ptr<Allocation> allocate_from(void* pool, int device,
                                            uint64_t bytes, uint64_t stream,
                                            bool reuse);
  /// A pool ends: its addresses do not come back.
  void forget_pool(const void* pool);
  /// Host memory that devices can see: `data` is its address for all.
  std::shared_ptr<Allocation> add_host(void* data, uint64_t bytes,
                                       Allocation::Kind kind);
  /// Frees an allocation. The address is remembered, to explain later uses; the
  /// bytes are given back when no kernel runs that could still look at them.
  void free(Allocation& allocation);
  void activate(Allocation& allocation) {
    allocation.state = Allocation::State::live;
    ++generation_;
  }
  /// The allocation that has this address, also a pending one, or null.
  std::shared_ptr<Allocation> find(uint64_t address) const;
  /// For messages: what lies near an address that is in no allocation.
  std::string describe(uint64_t address) const;
  /// Grows whenever allocations or ranges that were found before may no longer
  /// be right.
  uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }
  void forget_ranges() { ++generation_; }
  std::vector<std::shared_ptr<Allocation>> all() const;

  void kernel_begins();
  void kernel_ends();

 private:
  const uint64_t seed_;
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Allocation>> map_;  // by begin
  std::shared_ptr<Allocation> make(int device, uint64_t bytes,
                                   Allocation::Kind kind,
                                   Allocation::State state) const;
  /// Gives it an address of its own. With the lock held.
  void place(Allocation& made);

  uint64_t next_[max_devices] = {};
  uint64_t allocations_ = 0;
  std::vector<std::shared_ptr<Allocation>> limbo_;
  std::vector<uint64_t> freed_order_;
  struct Freed {
    uint64_t order, begin;
  };
  /// Freed addresses of pools, by stream and room, the last one last. There
  /// are few rooms, and many addresses of each.
  using Reusable = std::map<uint64_t, std::map<uint64_t, std::vector<Freed>>>;
  std::map<const void*, Reusable> reusable_;
  uint64_t frees_ = 0;
  /// Takes the one that was freed last of those that suit, if there is one.
  bool take_reusable(Allocation& made, uint64_t stream);
  int kernels_ = 0;
  std::atomic<uint64_t> generation_{1};
};

/// What the kernels of one device can see.
class MemoryView {
 public:
  virtual ~MemoryView() = default;
  virtual DeviceMemory& memory() = 0;
  virtual int device() const = 0;
  /// Whether this device may reach the allocation, and write to it.
  virtual bool may_read(const Allocation& allocation) const = 0;
  virtual bool may_write(const Allocation& allocation) const = 0;
  /// Something that works on this memory but is a mistake.
  virtual void report(const std::string& finding) = 0;
  /// Whether reading bytes that nobody wrote ends the kernel.
  virtual bool strict_reads() const = 0;
};

}  // namespace simcuda
