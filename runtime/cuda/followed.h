#pragma once
// Whose work a queue's work comes after. Where another GPU is lost, what waits
// for it goes on as if it had done its part, and what it should have written is
// not there. So the host asks whether all of them are well before it believes
// what it has waited for.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

namespace unisono::cuda {

class StreamQueue;

/// Thread-safe.
class Followed {
 public:
  /// A queue, and when it was last followed.
  struct Note {
    const StreamQueue* queue = nullptr;
    uint64_t number = 0;
  };

  void add(const StreamQueue& queue) {
    std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(notes_, &queue, &Note::queue);
    Note& note = at == notes_.end() ? notes_.emplace_back() : *at;
    note = {&queue, ++last_};
  }
  std::vector<Note> notes() const {
    std::lock_guard lock(mutex_);
    return notes_;
  }
  /// What these have put is done, but not what was followed since.
  void forget(const std::vector<Note>& done) {
    std::lock_guard lock(mutex_);
    std::erase_if(notes_, [&](const Note& note) {
      return std::ranges::any_of(done, [&](const Note& other) {
        return other.queue == note.queue && other.number == note.number;
      });
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Note> notes_;
  uint64_t last_ = 0;
};

}  // namespace unisono::cuda
