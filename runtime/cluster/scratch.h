#pragma once
// Memory of one collective, which the next one uses again.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tuning/tuning.h"

namespace unisono {

class Scratch {
 public:
  /// Aligned as `new` aligns; it is there until `reuse`.
  char* take(int64_t bytes) {
    constexpr int64_t line = 64;
    bytes = (bytes + line - 1) / line * line;
    if (pieces_.empty() || pieces_.back().used + bytes > pieces_.back().bytes) {
      const int64_t size = std::max(bytes, tuning().scratch_bytes);
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
    if (pieces_.size() > 1 || used > tuning().scratch_kept_bytes)
      pieces_.clear();
    if (used > tuning().scratch_kept_bytes) return;
    if (pieces_.empty()) take(used);
    pieces_.back().used = 0;
  }

 private:
  struct Piece {
    std::unique_ptr<char[]> data;
    int64_t bytes = 0, used = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace unisono
