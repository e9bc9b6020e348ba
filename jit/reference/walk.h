#pragma once
// Walks over the elements of dense and strided arrays.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::reference {

/// Row-major strides of a dense array, in elements.
inline std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

inline int64_t product(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (int64_t s : sizes) out *= s;
  return out;
}

/// Some axes of an array: their sizes and strides, outermost first.
struct Axes {
  std::vector<int64_t> sizes, strides;

  void add(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  }
  int64_t count() const { return product(sizes); }
};

/// The same elements in the same order with fewer axes: neighbours that are
/// evenly spaced together become one.
inline Axes merged(const Axes& axes) {
  Axes out;
  for (size_t i = 0; i < axes.sizes.size(); ++i) {
    const int64_t size = axes.sizes[i], stride = axes.strides[i];
    if (size == 1) continue;
    if (!out.sizes.empty() && out.strides.back() == stride * size) {
      out.sizes.back() *= size;
      out.strides.back() = stride;
    } else {
      out.add(size, stride);
    }
  }
  if (out.sizes.empty()) out.add(1, 1);
  return out;
}

/// Calls run(offset, count, stride) for the innermost axis's elements, in
/// row-major order of the others, starting from `offset`; several times for a
/// long axis. Polls.
template <class Run>
void for_each_run(const Axes& axes, int64_t offset, Run&& run) {
  if (axes.count() == 0) return;
  const Axes m = merged(axes);
  const size_t outer = m.sizes.size() - 1;
  std::vector<int64_t> at(outer, 0);
  StopPoll poll(tuning().moved_between_looks);
  while (true) {
    const int64_t size = m.sizes[outer], stride = m.strides[outer];
    for (int64_t i = 0; i < size; i += tuning().moved_between_looks) {
      const int64_t count = std::min(size - i, tuning().moved_between_looks);
      run(offset + i * stride, count, stride);
      poll.did(count);
    }
    size_t i = outer;
    while (i > 0) {
      --i;
      offset += m.strides[i];
      if (++at[i] < m.sizes[i]) break;
      offset -= at[i] * m.strides[i];
      at[i] = 0;
      if (i == 0) return;
    }
    if (outer == 0) return;
  }
}

/// Calls f(offset) for every element, in row-major order.
template <class F>
void for_each_offset(const Axes& axes, int64_t offset, F&& f) {
  for_each_run(axes, offset, [&](int64_t start, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i) f(start + i * stride);
  });
}

}  // namespace unisono::jit::reference
