#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "jit/ir/type.h"
#include "jit/reference/reference.h"

namespace unisono::jit::reference {

/// The elements of one array while a graph is evaluated: shared, immutable once
/// they have a second owner. Elements that are all equal may be held once
/// (`repeated`). Few bytes lie in the value itself, so that scalars cost no
/// allocation.
class Value {
 public:
  Value() = default;

  /// Room for `bytes`; not ok() if there is no memory.
  static Value allocate(int64_t bytes) {
    Value v;
    v.bytes_ = bytes;
    if (bytes > inline_bytes) {
      v.heap_.reset(new (std::nothrow) uint8_t[static_cast<size_t>(bytes)]);
      v.owned_ = true;
    }
    return v;
  }
  /// Bytes that outlive the value, not copied.
  static Value view(const uint8_t* data, int64_t bytes) {
    Value v;
    v.bytes_ = bytes;
    v.repeated_ = false;
    if (bytes <= inline_bytes) {
      if (bytes > 0) std::memcpy(v.inline_, data, static_cast<size_t>(bytes));
    } else {
      v.heap_ = std::shared_ptr<uint8_t[]>(std::shared_ptr<void>(),
                                           const_cast<uint8_t*>(data));
    }
    return v;
  }

  bool ok() const { return bytes_ <= inline_bytes || heap_; }
  const uint8_t* data() const { return heap_ ? heap_.get() : inline_; }
  /// To fill a value that was just allocated, or that is exclusive.
  uint8_t* mutable_data() { return heap_ ? heap_.get() : inline_; }
  /// Whether the elements are this value's alone.
  bool is_exclusive() const {
    return bytes_ <= inline_bytes || (owned_ && heap_.use_count() == 1);
  }
  int64_t bytes() const { return bytes_; }
  bool is_repeated() const { return repeated_; }
  /// Says that the one element held stands for all.
  void set_repeated(bool repeated) { repeated_ = repeated; }

 private:
  static constexpr int64_t inline_bytes = 16;
  int64_t bytes_ = 0;
  bool repeated_ = false;
  bool owned_ = false;
  alignas(16) uint8_t inline_[inline_bytes] = {};
  std::shared_ptr<uint8_t[]> heap_;
};

}  // namespace unisono::jit::reference
