#pragma once
// Loops in which every point depends on itself alone: one kernel, in which each
// thread takes the turns for its points, instead of launches for each turn.
#include <cstdint>
#include <optional>
#include <vector>

#include "jit/fuse.h"

namespace unisono::jit {

/// A loop that counts up by a constant to a constant: how often it turns, which
/// carry is the counter, and between what values it is in the body.
struct KnownTurns {
  int64_t count = 0;
  int counter = 0;
  int64_t first = 0, last = 0;
};
/// Nothing if that is not what it does.
std::optional<KnownTurns> known_turns(const ir::Graph& graph,
                                      const ir::Node& loop);

/// Whether it is worth a try: a body of few operations at points, and few
/// enough turns that a kernel ends soon.
bool may_be_point_loop(const ir::Graph& body, int64_t turns);

struct PointLoop {
  struct Carry {
    BufferId first = -1;  // has the value before the loop
    BufferId place = -1;  // the body reads it there; the last one goes there
    BufferId next = -1;   // the body puts the next one there
    DType dtype = DType::F32;
    int64_t elements = 0;
  };
  KnownTurns turns = {};
  std::vector<Carry> carries;
};

/// The loop whose body these steps are, as a kernel; nothing if points depend
/// on others.
std::optional<Kernel> point_loop(const PlanSteps& body, const PointLoop& loop);

}  // namespace unisono::jit
