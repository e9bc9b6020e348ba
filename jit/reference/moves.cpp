// Kinds that move elements without computing, and iota.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "jit/reference/kernels.h"
#include "jit/reference/walk.h"
#include "jit/scalar/element.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::reference {
namespace {

/// Calls f with an unsigned integer type of the element's size.
template <class F>
void with_element_size(DType dtype, F&& f) {
  switch (byte_size(dtype)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

/// out, dense = the elements of x at `offset` along `axes`.
template <class T>
void copy_from(T* out, const T* x, int64_t offset, const Axes& axes) {
  for_each_run(axes, offset, [&](int64_t start, int64_t n, int64_t stride) {
    const T* from = x + start;
    if (stride == 1)
      std::memcpy(out, from, static_cast<size_t>(n) * sizeof(T));
    else
      for (int64_t i = 0; i < n; ++i) out[i] = from[i * stride];
    out += n;
  });
}

/// The elements of out at `offset` along `axes` = x, dense.
template <class T>
void copy_to(T* out, int64_t offset, const Axes& axes, const T* x) {
  for_each_run(axes, offset, [&](int64_t start, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i) out[start + i * stride] = *x++;
  });
}

/// Where each result element comes from: offset + sum of position * stride.
struct Source {
  int64_t offset = 0;
  Axes axes;
};

Source transposed(const ir::Node& node, const ir::Type& x) {
  const auto strides = dense_strides(x.sizes());
  Source s;
  for (int axis : ir::attrs<ir::AxesAttrs>(node).axes)
    s.axes.add(x.shape[axis].value(), strides[axis]);
  return s;
}

Source broadcast(const ir::Node& node, const ir::Type& x) {
  const auto strides = dense_strides(x.sizes());
  const auto result = node.type.sizes();
  const auto& a = ir::attrs<ir::BroadcastAttrs>(node);
  Source s{0, {result, std::vector<int64_t>(result.size(), 0)}};
  for (size_t i = 0; i < a.axes.size(); ++i)
    if (x.shape[i].value() != 1) s.axes.strides[a.axes[i]] = strides[i];
  return s;
}

Source sliced(const ir::Node& node, const ir::Type& x) {
  const auto strides = dense_strides(x.sizes());
  const auto result = node.type.sizes();
  const auto& a = ir::attrs<ir::SliceAttrs>(node);
  Source s;
  for (size_t i = 0; i < strides.size(); ++i) {
    // A step beyond the axis is never taken; it need not fit.
    const int64_t step = result[i] > 1 ? a.step[i].value() : 1;
    s.offset += a.start[i].value() * strides[i];
    s.axes.add(result[i], step * strides[i]);
  }
  return s;
}

Source flipped(const ir::Node& node, const ir::Type& x) {
  const auto strides = dense_strides(x.sizes());
  const auto result = node.type.sizes();
  Source s{0, {result, strides}};
  for (int axis : ir::attrs<ir::AxesAttrs>(node).axes) {
    s.offset += (result[axis] - 1) * strides[axis];
    s.axes.strides[axis] = -strides[axis];
  }
  return s;
}

template <class T>
void pad(const ir::Node& node, View x, const T* value, T* out) {
  const auto& a = ir::attrs<ir::PadAttrs>(node);
  const auto strides = dense_strides(node.type.sizes());
  in_pieces(node.type.elements(), tuning().moved_between_looks,
            [&](int64_t begin, int64_t end) {
              std::fill(out + begin, out + end, *value);
            });
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i)
    offset += a.low[i].value() * strides[i];
  copy_to(out, offset, Axes{x.type.sizes(), strides},
          reinterpret_cast<const T*>(x.data));
}

template <class T>
void concat(const ir::Node& node, std::span<const View> x, T* out) {
  const int axis = ir::attrs<ir::AxisAttrs>(node).axis;
  const auto strides = dense_strides(node.type.sizes());
  int64_t offset = 0;
  for (const View& v : x) {
    copy_to(out, offset, Axes{v.type.sizes(), strides},
            reinterpret_cast<const T*>(v.data));
    offset += v.type.shape[axis].value() * strides[axis];
  }
}

}  // namespace

void copy_bytes(uint8_t* to, const uint8_t* from, int64_t bytes) {
  in_pieces(bytes, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void move(const ir::Node& node, std::span<const View> x, uint8_t* out) {
  with_element_size(node.type.dtype, [&]<class T>(T) {
    T* results = reinterpret_cast<T*>(out);
    const auto copy = [&](const Source& s) {
      copy_from(results, reinterpret_cast<const T*>(x[0].data), s.offset,
                s.axes);
    };
    switch (ir::move_of(node.op)) {
      case ir::Move::pad:
        return pad(node, x[0], reinterpret_cast<const T*>(x[1].data), results);
      case ir::Move::concat: return concat(node, x, results);
      case ir::Move::reshape:
        return copy_bytes(out, x[0].data, node.type.bytes());
      case ir::Move::transpose: return copy(transposed(node, x[0].type));
      case ir::Move::broadcast: return copy(broadcast(node, x[0].type));
      case ir::Move::slice: return copy(sliced(node, x[0].type));
      case ir::Move::flip: return copy(flipped(node, x[0].type));
    }
  });
}

void iota(const ir::Node& node, uint8_t* out) {
  const auto sizes = node.type.sizes();
  const int axis = ir::attrs<ir::IotaAttrs>(node).axis;
  const int64_t size = byte_size(node.type.dtype);
  const auto line = std::make_unique_for_overwrite<uint8_t[]>(
      static_cast<size_t>(sizes[axis] * size));
  std::vector<int64_t> counts(
      static_cast<size_t>(std::min(sizes[axis], tuning().moved_between_looks)));
  const void* operand = counts.data();
  const int64_t dense = 1;
  in_pieces(sizes[axis], tuning().moved_between_looks,
            [&](int64_t begin, int64_t end) {
              std::iota(counts.begin(), counts.end(), begin);
              cast_loop(DType::I64, node.type.dtype)(line.get() + begin * size,
                                                     &operand, &dense,
                                                     end - begin, nullptr);
            });
  Axes along{sizes, std::vector<int64_t>(sizes.size(), 0)};
  along.strides[axis] = 1;
  with_element_size(node.type.dtype, [&]<class T>(T) {
    copy_from(reinterpret_cast<T*>(out), reinterpret_cast<const T*>(line.get()),
              0, along);
  });
}

}  // namespace unisono::jit::reference
