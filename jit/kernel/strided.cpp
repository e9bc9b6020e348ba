#include "jit/kernel/strided.h"

#include <utility>

#include "jit/ir/kinds.h"
#include "jit/kernel/affine.h"

namespace unisono::jit {
namespace {

/// Axes of the operand that lie as one do are cut into those of the result,
/// from the last one on.
std::optional<Strided> reshaped(const Strided& array,
                                const std::vector<int64_t>& from,
                                const std::vector<int64_t>& to) {
  struct Run {
    int64_t size, stride;
  };
  std::vector<Run> runs;
  for (size_t a = 0; a < from.size(); ++a) {
    if (from[a] == 0) return dense(to);  // nobody reads an element
    const Run own{from[a], array.strides[a]};
    if (own.size == 1) continue;
    if (!runs.empty() && runs.back().stride == own.size * own.stride)
      runs.back() = {runs.back().size * own.size, own.stride};
    else
      runs.push_back(own);
  }
  Strided out{array.start, std::vector<int64_t>(to.size(), 0)};
  for (size_t a = to.size(); a-- > 0;) {
    if (to[a] == 1) continue;
    Run& run = runs.back();
    if (run.size % to[a] != 0) return std::nullopt;
    out.strides[a] = run.stride;
    run.size /= to[a];
    run.stride *= to[a];
    if (run.size == 1) runs.pop_back();
  }
  return out;
}

}  // namespace

Strided dense(const std::vector<int64_t>& shape) {
  return {0, dense_strides(shape)};
}

std::optional<Strided> moved(const ir::Node& move, const Strided& array,
                             const std::vector<int64_t>& from) {
  const std::vector<int64_t> to = move.type.sizes();
  Strided out{array.start, std::vector<int64_t>(to.size(), 0)};
  switch (ir::move_of(move.op)) {
    case ir::Move::reshape: return reshaped(array, from, to);
    case ir::Move::transpose: {
      const auto& axes = ir::attrs<ir::AxesAttrs>(move).axes;
      for (size_t a = 0; a < axes.size(); ++a)
        out.strides[a] = array.strides[static_cast<size_t>(axes[a])];
      return out;
    }
    case ir::Move::broadcast: {
      const auto& axes = ir::attrs<ir::BroadcastAttrs>(move).axes;
      for (size_t a = 0; a < axes.size(); ++a)
        if (from[a] != 1)
          out.strides[static_cast<size_t>(axes[a])] = array.strides[a];
      return out;
    }
    case ir::Move::slice: {
      const auto& attrs = ir::attrs<ir::SliceAttrs>(move);
      for (size_t a = 0; a < from.size(); ++a) {
        out.start += attrs.start[a].value() * array.strides[a];
        out.strides[a] = attrs.step[a].value() * array.strides[a];
      }
      return out;
    }
    case ir::Move::flip: {
      out.strides = array.strides;
      for (const int axis : ir::attrs<ir::AxesAttrs>(move).axes) {
        const auto a = static_cast<size_t>(axis);
        out.start += (from[a] - 1) * array.strides[a];
        out.strides[a] = -array.strides[a];
      }
      return out;
    }
    case ir::Move::concat:
    case ir::Move::pad: return std::nullopt;
  }
  __builtin_unreachable();
}

}  // namespace unisono::jit
