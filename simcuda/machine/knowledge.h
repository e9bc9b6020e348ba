#pragma once
// What threads of a launch know of each other's accesses (races.h). Threads
// that learn from each other mostly know the same: a value is shared, never
// changed, by all who have it, and only what differs is joined.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace simcuda {

/// The time up to which accesses of a block are known.
struct BlockTimes {
  uint32_t everyone = 0;  // of all its threads
  /// Of some of them, what is later: (thread, time), sorted.
  std::vector<std::pair<uint32_t, uint32_t>> threads;

  bool covers(uint32_t thread, uint32_t time) const;
  /// Knows all that `other` does.
  bool includes(const BlockTimes& other) const;
};

/// Times of blocks.
class Knowledge {
 public:
  Knowledge() = default;
  Knowledge(uint32_t block, BlockTimes times);

  bool empty() const { return blocks_ == nullptr; }
  void clear() { blocks_.reset(); }
  bool covers(uint32_t block, uint32_t thread, uint32_t time) const;
  void join(const Knowledge& other);
  /// What it says of this block.
  Knowledge only(uint32_t block) const;
  /// The same value, not one that happens to be equal.
  bool same(const Knowledge& other) const { return blocks_ == other.blocks_; }

 private:
  struct Entry {
    uint32_t block;
    std::shared_ptr<const BlockTimes> times;
  };
  using Blocks = std::vector<Entry>;  // sorted

  static bool includes(const Blocks& all, const Blocks& some);
  const Entry* find(uint32_t block) const;

  std::shared_ptr<const Blocks> blocks_;  // null: nothing
};

}  // namespace simcuda
