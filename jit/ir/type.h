#pragma once
#include <string>
#include <vector>

#include "jit/ir/dim.h"
#include "runtime/dtype.h"

namespace unisono::ir {

/// The type of one array: element type and sizes (symbols while checking).
struct Type {
  DType dtype = DType::F32;
  Shape shape;

  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const Type&) const = default;
  /// "f32[n, 3]", "i32".
  std::string to_string() const;
  /// True if every size is a constant.
  bool is_concrete() const;
  /// Sizes as integers, their product, and the bytes of all elements; only if
  /// `is_concrete()`. What int64 cannot hold counts as the largest int64.
  std::vector<int64_t> sizes() const;
  int64_t elements() const;
  int64_t bytes() const;
};

}  // namespace unisono::ir
