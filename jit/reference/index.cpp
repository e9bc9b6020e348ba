// gather and scatter: for each position of the index arrays, in row-major
// order, the part of the array that lies there.
#include <algorithm>
#include <cstring>

#include "jit/reference/kernels.h"
#include "jit/reference/walk.h"
#include "jit/scalar/element.h"
#include "jit/scalar/scalar.h"
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

/// Calls at(offset) likewise, where one array of indices selects elements.
template <class Index, class At>
std::optional<BadIndex> for_each_element(const Indexed& array,
                                         const Index* indices,
                                         int64_t positions, bool checked,
                                         At&& at) {
  const int64_t size = array.sizes[0], stride = array.strides[0];
  std::optional<BadIndex> bad;
  in_pieces(positions, tuning().moved_between_looks,
            [&](int64_t begin, int64_t end) {
              for (int64_t p = begin; p < end && !bad; ++p) {
                int64_t i = indices[p];
                if (i < 0) i += size;
                if (i < 0 || i >= size) {
                  if (checked) bad = BadIndex{indices[p], size, array.axes[0]};
                  i = i < 0 ? 0 : size - 1;
                }
                if (!bad) at(i * stride);
              }
            });
  return bad;
}

/// Calls f with an unsigned integer of `bytes` bytes.
template <class F>
void with_word(int64_t bytes, F&& f) {
  if (bytes == 1) return f(uint8_t{});
  if (bytes == 2) return f(uint16_t{});
  if (bytes == 4) return f(uint32_t{});
  f(uint64_t{});
}

/// Calls each(indices) with the one array of indices that selects elements, by
/// its type. False if others select, or there is nothing to select from.
template <class Each>
bool with_element_indices(const Indexed& array, std::span<const View> indices,
                          Each&& each) {
  if (indices.size() != 1 || array.part.count() != 1 || array.sizes[0] == 0)
    return false;
  if (indices[0].type.dtype == DType::I32)
    each(reinterpret_cast<const int32_t*>(indices[0].data));
  else
    each(reinterpret_cast<const int64_t*>(indices[0].data));
  return true;
}

}  // namespace

std::optional<BadIndex> gather(const ir::Node& node, std::span<const View> x,
                               bool checked, uint8_t* out) {
  const auto& a = ir::attrs<ir::IndexAttrs>(node);
  const Indexed array(x[0].type, a.axes);
  const auto size = static_cast<size_t>(byte_size(node.type.dtype));
  const size_t part_bytes = static_cast<size_t>(array.part.count()) * size;
  std::optional<BadIndex> bad;
  if (with_element_indices(array, x.subspan(1), [&](const auto* indices) {
        with_word(byte_size(node.type.dtype), [&]<class Word>(Word) {
          bad = for_each_element(
              array, indices, x[1].type.elements(), checked && a.checked,
              [&](int64_t i) {
                std::memcpy(out, x[0].data + i * sizeof(Word), sizeof(Word));
                out += sizeof(Word);
              });
        });
      }))
    return bad;
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

namespace {

/// Adds updates to single elements.
template <class Index>
std::optional<BadIndex> add_elements(const Indexed& array, DType dtype,
                                     const Index* indices, View updates,
                                     bool checked, uint8_t* out) {
  std::optional<BadIndex> bad;
  with_dtype(dtype, [&]<DType D>() {
    using Stored = typename StorageOf<D>::type;
    using T = typename ComputeOf<D>::type;
    if constexpr (!std::is_same_v<T, bool>) {  // the type rule admits numbers
      const auto* update = reinterpret_cast<const Stored*>(updates.data);
      auto* elements = reinterpret_cast<Stored*>(out);
      bad = for_each_element(
          array, indices, updates.type.elements(), checked, [&](int64_t i) {
            using S = scalar::Scalar<T>;
            elements[i] = static_cast<Stored>(
                (S(static_cast<T>(elements[i])) + S(static_cast<T>(*update++)))
                    .value());
          });
    }
  });
  return bad;
}

}  // namespace

std::optional<BadIndex> scatter(const ir::Node& node, std::span<const View> x,
                                bool checked, uint8_t* out) {
  const auto& a = ir::attrs<ir::IndexAttrs>(node);
  const Indexed array(x[0].type, a.axes);
  const auto size = static_cast<size_t>(byte_size(node.type.dtype));
  const ElementLoop add = node.op == ir::Op::scatter_add
                              ? element_loop(ir::Op::add, node.type.dtype)
                              : nullptr;
  std::optional<BadIndex> bad;
  if (add &&
      with_element_indices(array, x.subspan(2), [&](const auto* indices) {
        bad = add_elements(array, node.type.dtype, indices, x[1],
                           checked && a.checked, out);
      }))
    return bad;
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
