#pragma once
#include <cstdint>
#include <optional>

#include "jit/ir/graph.h"

namespace unisono::jit {

/// A loop with a carry that starts at a constant, goes up or down by a
/// constant, and is compared with a constant, without overflow: how often it
/// turns, which carry that is, and between what values it is in the body.
struct KnownTurns {
  int64_t count = 0;
  int counter = 0;
  int64_t first = 0, last = 0;
};
/// Nothing if that is not what the loop does.
std::optional<KnownTurns> known_turns(const ir::Graph& graph,
                                      const ir::Node& loop);

}  // namespace unisono::jit
