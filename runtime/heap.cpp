#include "runtime/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <thread>

#include "runtime/check.h"
#include "runtime/poison.h"

namespace unisono {
namespace {

constexpr int64_t page = 4096;
constexpr int64_t huge_page = int64_t{2} << 20;
constexpr int64_t largest_small = int64_t{64} << 10;
constexpr int64_t smallest_region = int64_t{256} << 10;
/// Who asks for so much will work on it for long enough to care for huge pages,
/// even if all that a device has would fit into less than one.
constexpr int64_t worth_huge_page = int64_t{128} << 10;
constexpr int64_t largest_growth = int64_t{64} << 20;
// No array is larger; sums of sizes below cannot overflow.
constexpr int64_t largest_block = int64_t{1} << 56;

int64_t round_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Sizes 64, 128, 192, 256, and from there four steps per doubling: 320, 384,
// 448, 512, 640, ...
int size_class_of(int64_t bytes) {
  if (bytes <= 256) return bytes <= 64 ? 0 : static_cast<int>((bytes - 1) / 64);
  auto last = static_cast<uint64_t>(bytes - 1);
  int doubling = std::bit_width(last) - 9;  // 256 ... 511 is doubling 0
  int quarter = static_cast<int>(last >> (doubling + 6)) & 3;
  return 4 + doubling * 4 + quarter;
}

int64_t size_of_class(int size_class) {
  if (size_class < 4) return 64 * (size_class + 1);
  int doubling = (size_class - 4) / 4, quarter = (size_class - 4) % 4;
  return int64_t{64} * (5 + quarter) << doubling;
}

// Large blocks begin at different places in their first page: the same element
// of several arrays would else fall into the same set of every cache.
constexpr int64_t colours = 16;
constexpr int64_t colour_step = 192;
static_assert(colours * colour_step <= page && colour_step % 64 == 0);

// Addresses mean something else the next time they are mapped.
void unmap_region(char* start, int64_t bytes) {
  unpoison(start, bytes);
  munmap(start, bytes);
}

int64_t pages_for(int64_t bytes) { return round_up(bytes, page) + page; }

int64_t read_number(const char* path) {
  int64_t value = -1;
  if (std::FILE* file = std::fopen(path, "re")) {
    long long number = 0;
    if (std::fscanf(file, "%lld", &number) == 1) value = number;
    std::fclose(file);
  }
  return value;
}

}  // namespace

void SpinLock::wait() {
  constexpr int spins = 200;
  do {
    for (int i = 0; held_.load(std::memory_order_relaxed); ++i)
      if (i >= spins) std::this_thread::yield();
  } while (!try_lock());
}

int64_t MemoryBudget::default_limit() { return of_machine() / 5 * 4; }

int64_t MemoryBudget::of_machine() {
  int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t group = read_number(path);
    if (group > 0) memory = std::min(memory, group);
  }
  return memory;
}

int64_t MemoryBudget::mapped() const {
  std::lock_guard lock(mutex_);
  return mapped_;
}

bool MemoryBudget::reserve(int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > limit_ - mapped_) return false;
  mapped_ += bytes;
  return true;
}

void MemoryBudget::release(int64_t bytes) {
  std::lock_guard lock(mutex_);
  mapped_ -= bytes;
}

void MemoryBudget::trim_others(const Heap& asking) {
  std::lock_guard lock(mutex_);
  for (Heap* heap : heaps_) {
    if (heap == &asking) continue;
    // One that is busy is passed over: who holds its lock may wait for ours.
    std::unique_lock heap_lock(heap->lock_, std::try_to_lock);
    if (heap_lock) mapped_ -= heap->unmap_free_regions();
  }
}

Heap::Heap(MemoryBudget& budget) : budget_(budget) {
  std::lock_guard lock(budget_.mutex_);
  budget_.heaps_.push_back(this);
}

Heap::~Heap() {
  {
    std::lock_guard lock(budget_.mutex_);
    std::erase(budget_.heaps_, this);
  }
  for (auto [start, bytes] : regions_) unmap_region(start, bytes);
  budget_.release(mapped_);
}

void* Heap::allocate(int64_t bytes) {
  CHECK(bytes >= 0);
  if (bytes > largest_block) return nullptr;
  std::lock_guard lock(lock_);
  void* data = nullptr;
  if (bytes <= largest_small)
    data = allocate_small(size_class_of(bytes));
  else if (char* start = allocate_pages(pages_for(bytes)))
    data = start + colour_step * (colour_++ % colours);
  if (data) {
    poison(data, sizeof(FreeBlock));
    unpoison(data, bytes);
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
  }
  return data;
}

void Heap::free(void* data, int64_t bytes) {
  std::lock_guard lock(lock_);
  in_use_ -= bytes;
  if (bytes <= largest_small) {
    add_free_block(size_class_of(bytes), data);
  } else {
    poison(data, bytes);
    auto address = reinterpret_cast<uintptr_t>(data);
    auto* start = static_cast<char*>(data) - address % page;
    add_free_range(start, pages_for(bytes));
  }
}

void Heap::add_free_block(int size_class, void* data) {
  poison(data, size_of_class(size_class));
  unpoison(data, sizeof(FreeBlock));
  auto* block = static_cast<FreeBlock*>(data);
  block->next = free_small_[size_class];
  free_small_[size_class] = block;
}

void* Heap::allocate_small(int size_class) {
  FreeBlock*& list = free_small_[size_class];
  if (!list) {
    // Cut a run of pages into blocks. They never become pages again: a program
    // that needed many blocks of a size will again.
    int64_t size = size_of_class(size_class);
    int64_t bytes = size < page ? 4 * page : size % page ? 4 * size : size;
    char* start = allocate_pages(bytes);
    if (!start) return nullptr;
    for (char* block = start + bytes / size * size; block != start;) {
      block -= size;
      add_free_block(size_class, block);
    }
  }
  FreeBlock* block = list;
  list = block->next;
  return block;
}

char* Heap::allocate_pages(int64_t bytes) {
  if (char* start = take_free_range(bytes)) return start;
  // Grow by as much as there is already, so that the number of regions stays
  // small; if that is refused, by what is needed.
  int64_t least = bytes < worth_huge_page ? smallest_region : huge_page;
  int64_t growth = std::clamp(mapped_, least, largest_growth);
  if (!map_region(std::max(growth, bytes)) && !map_region(bytes)) {
    if (int64_t unmapped = unmap_free_regions()) budget_.release(unmapped);
    budget_.trim_others(*this);
    if (!map_region(bytes)) return nullptr;
  }
  return take_free_range(bytes);
}

char* Heap::take_free_range(int64_t bytes) {
  auto best = free_by_size_.lower_bound({bytes, nullptr});
  if (best == free_by_size_.end()) return nullptr;
  auto [size, start] = *best;
  remove_free_range(free_ranges_.find(start));
  if (size > bytes) {
    free_ranges_[start + bytes] = size - bytes;
    free_by_size_.insert({size - bytes, start + bytes});
  }
  return start;
}

void Heap::remove_free_range(Ranges::iterator range) {
  free_by_size_.erase({range->second, range->first});
  free_ranges_.erase(range);
}

void Heap::add_free_range(char* start, int64_t bytes) {
  // Neighbours in one region join; two regions may touch, but are given back
  // to the system apart, so a range never spans both.
  auto after = free_ranges_.lower_bound(start);
  if (after != free_ranges_.end() && after->first == start + bytes &&
      !regions_.contains(after->first)) {
    bytes += after->second;
    remove_free_range(after);
  }
  auto before = free_ranges_.lower_bound(start);
  if (before != free_ranges_.begin() && !regions_.contains(start)) {
    --before;
    if (before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      remove_free_range(before);
    }
  }
  free_ranges_[start] = bytes;
  free_by_size_.insert({bytes, start});
}

bool Heap::map_region(int64_t bytes) {
  bool huge = bytes >= huge_page;
  int64_t unit = huge ? huge_page : page;
  bytes = round_up(bytes, unit);
  if (!budget_.reserve(bytes)) return false;
  // Map more than needed and cut off the ends that are not aligned.
  int64_t extra = huge ? huge_page : 0;
  void* mapping = mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    budget_.release(bytes);
    return false;
  }
  auto* start = static_cast<char*>(mapping);
  if (huge) {
    auto address = reinterpret_cast<uintptr_t>(start);
    int64_t before = round_up(static_cast<int64_t>(address), huge_page) -
                     static_cast<int64_t>(address);
    if (before) munmap(start, before);
    start += before;
    if (extra - before) munmap(start + bytes, extra - before);
    madvise(start, bytes, MADV_HUGEPAGE);
  }
  poison(start, bytes);
  regions_[start] = bytes;
  mapped_ += bytes;
  add_free_range(start, bytes);
  return true;
}

int64_t Heap::unmap_free_regions() {
  int64_t unmapped = 0;
  for (auto region = regions_.begin(); region != regions_.end();) {
    auto range = free_ranges_.find(region->first);
    if (range != free_ranges_.end() && range->second == region->second) {
      remove_free_range(range);
      unmap_region(region->first, region->second);
      unmapped += region->second;
      region = regions_.erase(region);
    } else {
      ++region;
    }
  }
  mapped_ -= unmapped;
  return unmapped;
}

void Heap::trim() {
  std::lock_guard lock(lock_);
  if (int64_t unmapped = unmap_free_regions()) budget_.release(unmapped);
}

int64_t Heap::bytes_in_use() const {
  std::lock_guard lock(lock_);
  return in_use_;
}

int64_t Heap::peak_bytes() const {
  std::lock_guard lock(lock_);
  return peak_;
}

int64_t Heap::bytes_mapped() const {
  std::lock_guard lock(lock_);
  return mapped_;
}

}  // namespace unisono
