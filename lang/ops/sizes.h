#pragma once
// Questions about sizes. While a program is checked, an open size is what it
// has to be: the answer is the size to go on with, or nothing where it is
// certainly wrong. The run, of which all sizes are numbers, asks the same
// again.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "jit/ir/dim.h"
#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// The size of two axes that must have the same one.
inline std::optional<ir::Dim> same_size(const ir::Dim& a, const ir::Dim& b) {
  if (compare(a, b) == ir::Comparison::different) return std::nullopt;
  return a.is_open() ? b : a;
}

/// Whether two shapes may be one.
inline bool same_sizes(const ir::Shape& a, const ir::Shape& b) {
  return std::ranges::equal(a, b, [](const ir::Dim& x, const ir::Dim& y) {
    return compare(x, y) != ir::Comparison::different;
  });
}

/// The shape that both have.
inline std::optional<ir::Shape> same_shape(const ir::Shape& a,
                                           const ir::Shape& b) {
  if (!same_sizes(a, b)) return std::nullopt;
  ir::Shape out = a;
  for (size_t i = 0; i < a.size(); ++i) out[i] = *same_size(a[i], b[i]);
  return out;
}

/// The size of two axes that are broadcast to one: equal, or one of them 1. Of
/// two open ones nobody knows which it is.
inline std::optional<ir::Dim> broadcast_size(Walk& walk, const ir::Dim& a,
                                             const ir::Dim& b) {
  if (a == b || b == ir::Dim(1)) return a;
  if (a == ir::Dim(1)) return b;
  if (compare(a, b) == ir::Comparison::different) return std::nullopt;
  if (!a.is_open()) return a;
  return b.is_open() ? walk.open_size() : b;
}

/// A part of `a` that is cut into n equal ones; n is not 0.
inline std::optional<ir::Dim> equal_parts(const ir::Dim& a, const ir::Dim& n) {
  if (auto part = exact_div(a, n)) return part;
  const bool open = a.is_open() || n.is_open();
  return open ? std::optional(floor_div(a, n)) : std::nullopt;
}

inline bool is_one(const ir::Dim& size) {
  return same_size(size, ir::Dim(1)).has_value();
}

/// The length of an array as a program may write it: a number, `n`, `len(v)`.
inline std::string written_size(const CallArgument& array,
                                const ir::Dim& size) {
  return size.is_open() ? fmt::format("len({})", array.where.text())
                        : size.to_string();
}

}  // namespace unisono::lang
