#pragma once
// Arrays where programs have read them and may read them again, as long as
// there is memory.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/array.h"
#include "runtime/tuning/tuning.h"

namespace unisono {

class KeptCopies;

/// The kept copies of all arrays of a Runtime. Thread-safe.
class CopyShelf {
 public:
  /// Lets go of every copy that may go. A run holds the copies that it reads.
  void give_back();
  /// Whether a device was short of memory once: new copies might make it
  /// short again and again.
  bool was_short() const { return was_short_; }

 private:
  friend class KeptCopies;
  struct All {
    std::mutex mutex;  // guards the copies, too
    std::unordered_set<KeptCopies*> kept;
  };
  const std::shared_ptr<All> all_ = std::make_shared<All>();
  std::atomic<bool> was_short_{false};
};

/// The same elements in some placements. Of one array, whose elements do not
/// change meanwhile. It may outlive the shelf.
class KeptCopies {
 public:
  /// `may_go`: whether memory that is short takes them.
  KeptCopies(CopyShelf& shelf, bool may_go)
      : all_(shelf.all_), may_go_(may_go) {
    std::lock_guard lock(all_->mutex);
    all_->kept.insert(this);
  }
  ~KeptCopies() {
    std::lock_guard lock(all_->mutex);
    all_->kept.erase(this);
  }
  KeptCopies(const KeptCopies&) = delete;
  KeptCopies& operator=(const KeptCopies&) = delete;

  std::optional<Array> find(const Sharding& placement) const {
    std::lock_guard lock(all_->mutex);
    for (const Array& copy : copies_)
      if (copy.sharding() == placement) return copy;
    return std::nullopt;
  }
  /// Of many placements the oldest goes.
  void keep(Array copy) {
    Array gone;  // freed after the lock
    std::lock_guard lock(all_->mutex);
    if (copies_.size() >= tuning().most_kept_placements) {
      gone = std::move(copies_.front());
      copies_.erase(copies_.begin());
    }
    copies_.push_back(std::move(copy));
  }

 private:
  friend class CopyShelf;
  const std::shared_ptr<CopyShelf::All> all_;
  const bool may_go_;
  std::vector<Array> copies_;
};

inline void CopyShelf::give_back() {
  was_short_ = true;
  std::vector<std::vector<Array>> gone;  // freed after the lock
  std::lock_guard lock(all_->mutex);
  for (KeptCopies* kept : all_->kept)
    if (kept->may_go_) gone.push_back(std::exchange(kept->copies_, {}));
}

}  // namespace unisono
