#pragma once
// A map that forgets what was not asked for the longest.
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

namespace unisono::jit {

/// Bounded by the sum of costs that its entries were put with. Not thread-safe.
template <class Value>
class LruCache {
 public:
  explicit LruCache(int64_t capacity) : capacity_(capacity) {}

  /// Null if unknown; valid until the next `put`.
  Value* find(const std::string& key) {
    auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, at->second);
    return &at->second->value;
  }
  void put(const std::string& key, Value value, int64_t cost) {
    if (auto at = index_.find(key); at != index_.end()) remove(at->second);
    entries_.push_front({key, std::move(value), cost});
    index_[key] = entries_.begin();
    total_ += cost;
    while (total_ > capacity_ && entries_.size() > 1)
      remove(std::prev(entries_.end()));
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    int64_t cost;
  };
  void remove(typename std::list<Entry>::iterator at) {
    total_ -= at->cost;
    index_.erase(at->key);
    entries_.erase(at);
  }

  int64_t capacity_, total_ = 0;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> index_;
};

}  // namespace unisono::jit
