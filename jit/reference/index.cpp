// gather and scatter: for each position of the index arrays, in row-major
// order, the part of the array that lies there.
#include <algorithm>
#include <cstring>

#include "jit/reference/kernels.h"
#include "jit/reference/walk.h"
#include "jit/scalar/element.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::reference {
namespace {

/// The array that indices count in: where its indexed axes step to, and the
/// axes of a part.
struct Indexed {
  std::vector<int> axes;
  std::vector<int64_t> sizes, strides;  // of the indexed axes
  Axes part;

  Indexed(const ir::Type& type, const std::vector<int>& axes) : axes(axes) {
    const auto all_sizes = type.sizes();
    const auto all_strides = dense_strides(all_sizes);
    for (int axis : axes) {
      sizes.push_back(all_sizes[axis]);
      strides.push_back(all_strides[axis]);
    }
    for (int i = 0; i < type.rank(); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end())
        part.add(all_sizes[i], all_strides[i]);
  }

  /// Whether a part is one short piece of memory.
  bool part_lies_together() const {
    const Axes pieces = merged(part);
    return pieces.sizes.size() == 1 && pieces.strides[0] == 1 &&
           pieces.sizes[0] <= tuning().moved_between_looks;
  }
};

int64_t index_at(View indices, int64_t i) {
  if (indices.type.dtype == DType::I32)
    return reinterpret_cast<const int32_t*>(indices.data)[i];
  return reinterpret_cast<const int64_t*>(indices.data)[i];
}

/// Calls at(offset) for every position of the index arrays, with the offset of
/// the part they name. An array without elements has no valid index; then an
/// unchecked one calls nothing(), as there is nothing to clamp to.
template <class At, class Nothing>
std::optional<BadIndex> for_each_part(const Indexed& array,
                                      std::span<const View> indices,
                                      bool checked, At&& at,
                                      Nothing&& nothing) {
  const int64_t positions = indices[0].type.elements();
  const int64_t work = array.part.count() + 1;
  StopPoll poll(tuning().moved_between_looks);
  for (int64_t p = 0; p < positions; ++p) {
    poll.did(work);
    int64_t offset = 0;
    bool exists = true;
    for (size_t k = 0; k < indices.size(); ++k) {
      const int64_t size = array.sizes[k];
      int64_t i = index_at(indices[k], p);
      if (checked && (i < -size || i >= size))
        return BadIndex{i, size, array.axes[k]};
      if (i < 0) i += size;
      i = std::max<int64_t>(std::min(i, size - 1), 0);
      exists &= size > 0;
      offset += i * array.strides[k];
    }
    exists ? at(offset) : nothing();
  }
  return std::nullopt;
}

}  // namespace

std::optional<BadIndex> gather(const ir::Node& node, std::span<const View> x,
                               bool checked, uint8_t* out) {
  const auto& a = ir::attrs<ir::IndexAttrs>(node);
  const Indexed array(x[0].type, a.axes);
  const auto size = static_cast<size_t>(byte_size(node.type.dtype));
  const size_t part_bytes = static_cast<size_t>(array.part.count()) * size;
  const bool lies_together = array.part_lies_together();
  return for_each_part(
      array, x.subspan(1), checked && a.checked,
      [&](int64_t offset) {
        if (lies_together) {
          std::memcpy(out, x[0].data + offset * size, part_bytes);
          out += part_bytes;
          return;
        }
        for_each_run(
            array.part, offset, [&](int64_t start, int64_t n, int64_t stride) {
              if (stride == 1) {
                std::memcpy(out, x[0].data + start * size, n * size);
                out += n * size;
                return;
              }
              for (int64_t i = 0; i < n; ++i, out += size)
                std::memcpy(out, x[0].data + (start + i * stride) * size, size);
            });
      },
      [&] {
        std::memset(out, 0, part_bytes);
        out += part_bytes;
      });
}

std::optional<BadIndex> bad_index_of(const ir::Node& node,
                                     std::span<const View> x) {
  const Indexed array(x[0].type, ir::attrs<ir::IndexAttrs>(node).axes);
  return for_each_part(array, x.subspan(1), true, [](int64_t) {}, [] {});
}

std::optional<BadIndex> scatter(const ir::Node& node, std::span<const View> x,
                                bool checked, uint8_t* out) {
  const auto& a = ir::attrs<ir::IndexAttrs>(node);
  const Indexed array(x[0].type, a.axes);
  const auto size = static_cast<size_t>(byte_size(node.type.dtype));
  const ElementLoop add = node.op == ir::Op::scatter_add
                              ? element_loop(ir::Op::add, node.type.dtype)
                              : nullptr;
  const bool lies_together = array.part_lies_together();
  const int64_t part = array.part.count();
  const uint8_t* update = x[1].data;
  const auto put = [&](uint8_t* to, int64_t n) {
    if (add) {
      const void* operands[] = {to, update};
      const int64_t strides[] = {1, 1};
      add(to, operands, strides, n, nullptr);
    } else {
      std::memcpy(to, update, n * size);
    }
    update += n * size;
  };
  return for_each_part(
      array, x.subspan(2), checked && a.checked,
      [&](int64_t offset) {
        if (lies_together) return put(out + offset * size, part);
        for_each_run(array.part, offset,
                     [&](int64_t start, int64_t n, int64_t stride) {
                       if (stride == 1) return put(out + start * size, n);
                       for (int64_t i = 0; i < n; ++i)
                         put(out + (start + i * stride) * size, 1);
                     });
      },
      [] {});
}

}  // namespace unisono::jit::reference
