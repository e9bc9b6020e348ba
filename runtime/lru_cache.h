#pragma once
// What caches are made of. All of them evict the least recently used entry. Not
// thread-safe.
#include <algorithm>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace unisono {

/// A bounded number of values, which a search finds by looking at each.
template <class Value>
class LruList {
 public:
  explicit LruList(size_t capacity) : capacity_(capacity) {}

  /// The value for which `wanted` is true, the last used if there are several,
  /// or null. Makes it the last used. Valid until the next call.
  template <class Wanted>
  Value* find_if(const Wanted& wanted) {
    const auto found = std::find_if(values_.begin(), values_.end(), wanted);
    if (found == values_.end()) return nullptr;
    std::rotate(values_.begin(), found, found + 1);
    return &values_.front();
  }
  /// Adds a value as the last used. Valid until the next call.
  Value& put(Value value) {
    if (values_.size() >= capacity_) values_.pop_back();
    return *values_.insert(values_.begin(), std::move(value));
  }
  template <class Unwanted>
  void erase_if(const Unwanted& unwanted) {
    std::erase_if(values_, unwanted);
  }

 private:
  size_t capacity_;
  std::vector<Value> values_;  // the last used first
};

/// Values by key, bounded by the sum of the costs that they were put with.
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

}  // namespace unisono
