#pragma once
// Steps that would do the same on all devices, done by one of them.
#include <vector>

#include "jit/plan/fuse.h"

namespace unisono::jit {

/// For devices that see each other's memory: launches and copies that read what
/// is the same on all devices are done once (PlanStep::once), and what they
/// write is shared (PlanBuffer::shared), as are results of all_reduce and
/// all_gather over all devices. Such steps move to where devices meet anyway:
/// behind the collective whose result they need, or to the beginning; in a loop
/// they stay with each device unless they can. What may fail stays, and no
/// meeting comes between it, or calls of the host, and what follows: which
/// error is reported, and the order of calls, do not change. `same`, by input:
/// whether all devices have the same array there.
void do_once(Plan& plan, const std::vector<bool>& same);

}  // namespace unisono::jit
