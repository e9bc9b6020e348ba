#pragma once
// Steps of which it is seen when they are done.
#include "jit/plan/fuse.h"

namespace unisono::jit {

bool can_fail(const Kernel& kernel);

/// Calls of the host, in loops and branches too, and what may fail: whom they
/// come before is seen, so no meeting may come between those of one phase.
bool is_seen(const PlanStep& step);

}  // namespace unisono::jit
