#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// What is known of a loop with a carry that starts at a constant, goes up or
/// down by a constant, and is compared with a constant, without overflow: the
/// number of turns, which carry this is, and the least and the largest value
/// that it has in the body.
struct KnownTurns {
  int64_t count = 0;
  int counter = 0;
  int64_t first = 0, last = 0;
};
/// Nothing if `loop` is not such a loop of `graph`.
std::optional<KnownTurns> known_turns(const ir::Graph& graph,
                                      const ir::Node& loop);

/// The least and the largest value that an integer may have.
using IntegerRange = std::pair<int64_t, int64_t>;

/// The range of add, sub, mul or cast of integers, where the result does not
/// wrap; nothing of others.
std::optional<IntegerRange> range_of_result(ir::Op op, DType dtype,
                                            std::span<const IntegerRange> x);

/// The value of a signed scalar constant.
std::optional<int64_t> constant_of(const ir::Graph& graph, ir::NodeId id);

}  // namespace unisono::jit
