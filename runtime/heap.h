#pragma once
// Memory of one device. Pages come from the system in regions and stay, so
// that a block freed and asked for again causes no page faults. Small blocks
// are of fixed sizes with a free list each; large ones are ranges of pages,
// best fit, joined with their neighbours when freed. Freed memory keeps what
// was written there: only this process's devices ever see it, and programs
// write all of an array before anything reads it.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/result.h"

namespace unisono {

class Heap;

/// A lock for a few dozen instructions at a time, cheaper than a mutex where
/// nobody else wants it. Who waits spins, and soon gives up its processor each
/// time.
class SpinLock {
 public:
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void lock() {
    if (!try_lock()) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void wait();
  std::atomic<bool> held_ = false;
};

/// What all heaps of a machine may map together. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : limit_(limit) {}
  /// What this process may use: physical memory, or its control group's limit
  /// where that is less.
  static int64_t of_machine();
  /// 80 % of it.
  static int64_t default_limit();
  int64_t limit() const { return limit_; }
  /// Bytes that all heaps together have mapped now.
  int64_t mapped() const;

 private:
  friend class Heap;
  /// Counts `bytes` more, unless that is over the limit.
  bool reserve(int64_t bytes);
  void release(int64_t bytes);
  /// Gives the free regions of all heaps but `asking` back to the system.
  void trim_others(const Heap& asking);

  const int64_t limit_;
  mutable std::mutex mutex_;
  int64_t mapped_ = 0;
  std::vector<Heap*> heaps_;
};

/// One device's memory. Thread-safe.
class Heap {
 public:
  /// `budget` outlives the heap.
  explicit Heap(MemoryBudget& budget);
  /// Unmaps everything, blocks in use too.
  ~Heap();
  Heap(const Heap&) = delete;
  /// At least `bytes` >= 0, aligned to 64; null if the budget or the system
  /// refuses.
  void* allocate(int64_t bytes);
  /// Takes back what allocate(bytes) gave.
  void free(void* data, int64_t bytes);
  /// Gives regions that are wholly free back to the system.
  void trim();
  /// Bytes as they were asked for: now, and the most ever.
  int64_t bytes_in_use() const;
  int64_t peak_bytes() const;
  int64_t bytes_mapped() const;

 private:
  friend class MemoryBudget;
  struct FreeBlock {
    FreeBlock* next;
  };
  using Ranges = std::map<char*, int64_t>;  // start, bytes: whole pages

  void* allocate_small(int size_class);
  /// Poisons the block but for the link of the free list (poison.h).
  void add_free_block(int size_class, void* data);
  char* allocate_pages(int64_t bytes);
  void free_pages(char* start, int64_t bytes);
  char* take_free_range(int64_t bytes);
  void add_free_range(char* start, int64_t bytes);
  void remove_free_range(Ranges::iterator range);
  /// False if the budget or the system refuses.
  bool map_region(int64_t bytes);
  int64_t unmap_free_regions();

  MemoryBudget& budget_;
  mutable SpinLock lock_;
  static constexpr int size_classes = 36;
  std::array<FreeBlock*, size_classes> free_small_ = {};
  Ranges free_ranges_;
  std::set<std::pair<int64_t, char*>> free_by_size_;
  Ranges regions_;
  int64_t mapped_ = 0;
  int64_t in_use_ = 0;
  int64_t peak_ = 0;
  unsigned colour_ = 0;  // cache colour of the next large block
};

}  // namespace unisono
