#pragma once
// Memory of one collective, which the next one uses again.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace unisono {

class Scratch {
 public:
  /// Aligned as `new` aligns; it is there until `reuse`.
  char* take(int64_t bytes) {
    constexpr int64_t line = 64, least = 64 << 10;
    bytes = (bytes + line - 1) / line * line;
    if (pieces_.empty() || pieces_.back().used + bytes > pieces_.back().bytes) {
      const int64_t size = std::max(bytes, least);
      pieces_.push_back(
          {std::make_unique_for_overwrite<char[]>(static_cast<size_t>(size)),
           size, 0});
    }
    Piece& piece = pieces_.back();
    piece.used += bytes;
    return piece.data.get() + piece.used - bytes;
  }

  /// What was taken is free. Next time there is one piece for all, unless that
  /// is large.
  void reuse() {
    int64_t used = 0;
    for (const Piece& piece : pieces_) used += piece.used;
    if (pieces_.size() > 1 || used > most_kept) pieces_.clear();
    if (used > most_kept) return;
    if (pieces_.empty()) take(used);
    pieces_.back().used = 0;
  }

 private:
  static constexpr int64_t most_kept = int64_t{256} << 20;
  struct Piece {
    std::unique_ptr<char[]> data;
    int64_t bytes = 0, used = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace unisono
