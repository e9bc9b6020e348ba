#pragma once
// How a view of an array lies in the array's memory.
#include <cstdint>
#include <optional>
#include <vector>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// Element i of an array is that with number start + sum of i[a] * strides[a]
/// in the memory of the array that it is a view of.
struct Strided {
  int64_t start = 0;
  std::vector<int64_t> strides;  // one per axis
};

/// A dense, row-major array of this shape, which begins where its memory does.
Strided dense(const std::vector<int64_t>& shape);

/// The result of a move of one operand, which has the shape `from` and lies as
/// `array` says. Nothing where the result is no view: of a pad, of a concat,
/// and of reshapes whose axes do not lie evenly. Sizes are constants.
std::optional<Strided> moved(const ir::Node& move, const Strided& array,
                             const std::vector<int64_t>& from);

}  // namespace unisono::jit
