#include "simcuda/machine/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace simcuda {
namespace {

constexpr uint64_t red_zone = 512;  // between allocations, at least
constexpr uint64_t alignment = 512;
constexpr size_t max_freed = 10'000;  // remembered to explain errors
constexpr uint64_t big = 1 << 20;     // from here on memory is mapped

uint8_t* obtain(uint64_t bytes) {
  if (bytes >= big) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
  }
  return static_cast<uint8_t*>(
      std::aligned_alloc(64, (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64));
}
void give_back(uint8_t* data, uint64_t bytes) {
  if (bytes >= big)
    munmap(data, bytes);
  else
    std::free(data);
}

const char* kind_name(Allocation::Kind kind) {
  switch (kind) {
    case Allocation::Kind::device: return "device memory";
    case Allocation::Kind::pool: return "stream-ordered memory";
    case Allocation::Kind::module: return "a module's variable";
    case Allocation::Kind::host: return "pinned host memory";
    case Allocation::Kind::registered: return "registered host memory";
  }
  return "";
}

bool of_host(const Allocation& a) {
  return a.kind == Allocation::Kind::host ||
         a.kind == Allocation::Kind::registered;
}

std::string name_of(const Allocation& a) {
  std::string text = "allocation #" + std::to_string(a.number) + " (" +
                     std::to_string(a.bytes) + " bytes of " + kind_name(a.kind);
  if (!of_host(a)) text += " on device " + std::to_string(a.device);
  return text + ")";
}

/// Bits offset ... offset + count of words, a word at a time.
template <class Visit>
void each_word(uint64_t offset, uint64_t count, Visit&& visit) {
  for (uint64_t end = offset + count; offset < end;) {
    uint64_t bit = offset % 64;
    uint64_t n = std::min<uint64_t>(64 - bit, end - offset);
    uint64_t mask = (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << bit;
    if (!visit(offset / 64, mask)) return;
    offset += n;
  }
}

}  // namespace

void Allocation::mark_written(uint64_t offset, uint64_t count) {
  if (!tracks()) return;
  int64_t fresh = 0;
  each_word(offset, count, [&](uint64_t word, uint64_t mask) {
    if ((~written[word].load(std::memory_order_relaxed) & mask) != 0) {
      uint64_t before = written[word].fetch_or(mask);
      fresh += std::popcount(mask & ~before);
    }
    return true;
  });
  if (fresh != 0) unwritten.fetch_sub(fresh);
}

void Allocation::mark_as(uint64_t offset, const Allocation& other,
                         uint64_t from, uint64_t count) {
  if (!other.tracks()) return mark_written(offset, count);
  each_word(from, count, [&](uint64_t word, uint64_t mask) {
    uint64_t there = other.written[word].load(std::memory_order_relaxed) & mask;
    while (there != 0) {
      const auto first = static_cast<uint64_t>(std::countr_zero(there));
      const auto run = static_cast<uint64_t>(std::countr_one(there >> first));
      mark_written(offset + word * 64 + first - from, run);
      there &= first + run == 64 ? 0 : ~uint64_t{0} << (first + run);
    }
    return true;
  });
}

int64_t Allocation::first_unwritten(uint64_t offset, uint64_t count) const {
  if (!tracks()) return -1;
  int64_t first = -1;
  each_word(offset, count, [&](uint64_t word, uint64_t mask) {
    uint64_t missing = ~written[word].load(std::memory_order_relaxed) & mask;
    if (missing == 0) return true;
    first = static_cast<int64_t>(
        word * 64 + static_cast<uint64_t>(std::countr_zero(missing)));
    return false;
  });
  return first;
}

Allocation::~Allocation() {
  if (data != nullptr && !of_host(*this)) give_back(data, bytes);
}

std::shared_ptr<Allocation> DeviceMemory::make(int device, uint64_t bytes,
                                               Allocation::Kind kind,
                                               Allocation::State state) const {
  auto made = std::make_shared<Allocation>();
  made->bytes = bytes;
  made->device = device;
  made->kind = kind;
  made->state = state;
  made->data = obtain(bytes);
  if (made->data == nullptr) return nullptr;
  // What nobody wrote is garbage; mapped memory, being large, stays zero.
  if (bytes < big)
    std::memset(made->data, static_cast<int>(0x5a ^ (seed_ & 0xff)), bytes);
  const uint64_t words = (bytes + 63) / 64;
  made->written = std::make_unique<std::atomic<uint64_t>[]>(words);
  made->unwritten = static_cast<int64_t>(bytes);
  return made;
}

void DeviceMemory::place(Allocation& made) {
  uint64_t& next = next_[made.device];
  if (next == 0) next = alignment * 8;
  made.begin = device_base(made.device) + next;
  made.room = (made.bytes + alignment - 1) / alignment * alignment;
  next += (made.bytes + red_zone + alignment - 1) / alignment * alignment;
}

std::shared_ptr<Allocation> DeviceMemory::allocate(int device, uint64_t bytes,
                                                   Allocation::Kind kind,
                                                   Allocation::State state) {
  auto made = make(device, bytes, kind, state);
  if (!made) return nullptr;
  std::unique_lock lock(mutex_);
  place(*made);
  made->number = ++allocations_;
  map_[made->begin] = made;
  return made;
}

bool DeviceMemory::take_reusable(Allocation& made, uint64_t stream) {
  auto& rooms = reusable_[made.pool][stream];
  auto last = rooms.end();
  for (auto it = rooms.lower_bound(made.bytes);
       it != rooms.end() && made.bytes > it->first / 4; ++it) {
    if (last == rooms.end() ||
        it->second.back().order > last->second.back().order)
      last = it;
  }
  if (last == rooms.end()) return false;
  made.begin = last->second.back().begin;
  made.room = last->first;
  last->second.pop_back();
  if (last->second.empty()) rooms.erase(last);
  return true;
}

std::shared_ptr<Allocation> DeviceMemory::allocate_from(void* pool, int device,
                                                        uint64_t bytes,
                                                        uint64_t stream,
                                                        bool reuse) {
  auto made =
      make(device, bytes, Allocation::Kind::pool, Allocation::State::pending);
  if (!made) return nullptr;
  made->pool = pool;
  std::unique_lock lock(mutex_);
  if (reuse && take_reusable(*made, stream))
    ++generation_;
  else
    place(*made);
  made->number = ++allocations_;
  map_[made->begin] = made;
  return made;
}

void DeviceMemory::forget_pool(const void* pool) {
  std::unique_lock lock(mutex_);
  reusable_.erase(pool);
}

std::shared_ptr<Allocation> DeviceMemory::add_host(void* data, uint64_t bytes,
                                                   Allocation::Kind kind) {
  auto made = std::make_shared<Allocation>();
  made->bytes = bytes;
  made->device = host_device;
  made->kind = kind;
  made->data = static_cast<uint8_t*>(data);
  made->begin = reinterpret_cast<uint64_t>(data);
  std::unique_lock lock(mutex_);
  made->number = ++allocations_;
  map_[made->begin] = made;
  return made;
}

void DeviceMemory::free(Allocation& allocation) {
  std::unique_lock lock(mutex_);
  auto it = map_.find(allocation.begin);
  if (it == map_.end()) return;
  std::shared_ptr<Allocation> gone = it->second;
  gone->state = Allocation::State::freed;
  ++generation_;
  // The bytes are kept while a kernel may look at them.
  if (kernels_ > 0) limbo_.push_back(gone);
  if (of_host(*gone)) {
    map_.erase(it);
    return;
  }
  // In its place stays what explains a later use.
  auto note = std::make_shared<Allocation>();
  note->begin = gone->begin;
  note->bytes = gone->bytes;
  note->device = gone->device;
  note->kind = gone->kind;
  note->number = gone->number;
  note->state = Allocation::State::freed;
  it->second = note;
  if (gone->freed_in != 0)
    reusable_[gone->pool][gone->freed_in][gone->room].push_back(
        {++frees_, gone->begin});
  freed_order_.push_back(note->begin);
  if (freed_order_.size() > 2 * max_freed) {
    for (size_t i = 0; i < max_freed; ++i) {
      const auto old = map_.find(freed_order_[i]);
      if (old != map_.end() && old->second->state == Allocation::State::freed)
        map_.erase(old);
    }
    freed_order_.erase(freed_order_.begin(), freed_order_.begin() + max_freed);
  }
}

std::shared_ptr<Allocation> DeviceMemory::find(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto it = map_.upper_bound(address);
  if (it == map_.begin()) return nullptr;
  --it;
  return address < it->second->end() ||
                 (it->second->bytes == 0 && address == it->first)
             ? it->second
             : nullptr;
}

std::string DeviceMemory::describe(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto above = map_.upper_bound(address);
  std::string text;
  if (above != map_.begin()) {
    const Allocation& a = *std::prev(above)->second;
    if (address < a.end()) {
      text = name_of(a) + ", byte " + std::to_string(address - a.begin);
      return text;
    }
    if (address - a.end() < (uint64_t{1} << 32) &&
        address >> 48 == a.begin >> 48) {
      text = std::to_string(address - a.end()) + " bytes behind the end of " +
             name_of(a);
    }
  }
  if (above != map_.end()) {
    const Allocation& a = *above->second;
    uint64_t before = a.begin - address;
    if (before <= red_zone && before < (uint64_t{1} << 32)) {
      if (!text.empty()) text += ", ";
      text += std::to_string(before) + " bytes before " + name_of(a);
    }
  }
  if (!text.empty()) return text;
  if (address < (uint64_t{1} << 47))
    return "an address of the host that no device can reach";
  return "which belongs to no allocation";
}

std::vector<std::shared_ptr<Allocation>> DeviceMemory::all() const {
  std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Allocation>> list;
  for (const auto& [begin, allocation] : map_)
    if (allocation->state != Allocation::State::freed)
      list.push_back(allocation);
  return list;
}

void DeviceMemory::kernel_begins() {
  std::unique_lock lock(mutex_);
  ++kernels_;
}

void DeviceMemory::kernel_ends() {
  std::vector<std::shared_ptr<Allocation>> gone;  // freed without the lock
  std::unique_lock lock(mutex_);
  if (--kernels_ == 0) gone.swap(limbo_);
}

}  // namespace simcuda
