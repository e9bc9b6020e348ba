#pragma once
// The shadow memory of the race detector (races.h): which threads touched each
// byte last while a kernel runs. Four bytes share a cell until a single byte of
// their kilobyte is accessed; from then on each byte there has its own.
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simcuda {

/// One access: by which thread, when by the block's clock, at which
/// instruction.
struct RaceSlot {
  enum Kind : uint32_t { none, read, write, strong_read, strong_write };
  static constexpr uint32_t pc_bits = 19;

  uint32_t block = 0;
  uint32_t time = 0;
  uint32_t what = 0;  // kind, thread, pc

  static RaceSlot make(uint32_t block, uint32_t time, Kind kind,
                       uint32_t thread, uint32_t pc) {
    return {block, time,
            kind << 29 | thread << pc_bits | (pc & ((1u << pc_bits) - 1))};
  }
  bool empty() const { return what == 0; }
  Kind kind() const { return static_cast<Kind>(what >> 29); }
  uint32_t thread() const { return what >> pc_bits & 1023; }
  uint32_t pc() const { return what & ((1u << pc_bits) - 1); }
  bool writes() const { return kind() == write || kind() == strong_write; }
  /// Atomic operations, and what is volatile, relaxed, acquire or release.
  bool strong() const { return kind() >= strong_read; }
  bool same_thread(const RaceSlot& o) const {
    return block == o.block && thread() == o.thread();
  }
  bool same_warp(const RaceSlot& o) const {
    return block == o.block && thread() / 32 == o.thread() / 32;
  }
  bool conflicts(const RaceSlot& o) const {
    return !empty() && (writes() || o.writes()) && !(strong() && o.strong());
  }
};

/// The last write, two other accesses that nothing orders, and a read that
/// need not see writes (`ld.global.nc`).
struct RaceCell {
  RaceSlot last, a, b, stale;
  bool touched() const {
    return !(last.empty() && a.empty() && b.empty() && stale.empty());
  }
};

class RaceShadow {
 public:
  static constexpr uint64_t page_bytes = 1024;
  // Beyond so many pages memory is not watched: 12 KiB each.
  static constexpr size_t most_pages = 1 << 16;

  struct Page {
    uint32_t shift = 2;  // log2 of the bytes of a cell
    std::vector<RaceCell> cells = std::vector<RaceCell>(page_bytes / 4);
    void split();
  };

  /// The page with this number, made if need be; null if there are too many.
  Page* page(uint64_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number == number) return recent.page;
    return find(number, recent);
  }
  void clear();
  /// visit(address, bytes, cell) for each cell that was touched, in order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [number, page] : sorted()) {
      for (size_t c = 0; c < page->cells.size(); ++c) {
        if (!page->cells[c].touched()) continue;
        visit(number * page_bytes + (c << page->shift),
              uint64_t{1} << page->shift, page->cells[c]);
      }
    }
  }

 private:
  struct Recent {
    uint64_t number = ~uint64_t{0};
    Page* page = nullptr;
  };
  Page* find(uint64_t number, Recent& recent);
  std::vector<std::pair<uint64_t, const Page*>> sorted() const;

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, 64> recent_;
};

}  // namespace simcuda
