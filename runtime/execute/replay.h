#pragma once
// What the executor of devices with queues keeps of them.
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/queue.h"

namespace unisono {

/// Turns of a loop as captured work, and what they were captured with: it can
/// be used again while that is the same.
struct Replay {
  enum class State : uint8_t { seen, ready, impossible };
  State state = State::seen;
  std::unique_ptr<Queue::Captured> work;
  int64_t turns = 0;
  std::vector<const void*> addresses;
};

/// Copies of a device's memory that are under way in lanes of copies. Kernels
/// that are put next need not wait unless they use that memory.
class CopiesBeside {
 public:
  bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  void add(const void* begin, int64_t bytes) {
    if (bytes > 0) ranges_.push_back({start(begin), start(begin) + bytes});
  }
  bool touch(const void* begin, int64_t bytes) const {
    for (const Range& range : ranges_)
      if (start(begin) < range.end && range.begin < start(begin) + bytes)
        return true;
    return false;
  }

 private:
  struct Range {
    int64_t begin, end;
  };
  static int64_t start(const void* pointer) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
  }
  std::vector<Range> ranges_;
};

}  // namespace unisono
