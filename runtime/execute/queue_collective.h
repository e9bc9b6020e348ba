#pragma once
// What devices with queues do together. Calls put work on all queues and
// return; all that was put there before is done first.
#include <span>

#include "runtime/execute/collective.h"
#include "runtime/execute/flat_program.h"
#include "runtime/queue.h"

namespace unisono {

/// Loads what the collectives of a program need; gives the bytes of staging
/// that each queue needs for them.
Result<int64_t> prepare_collectives(std::span<Queue* const> queues,
                                    const FlatProgram& program);

/// One group's meeting, as in collective.h, and with the same bits. `staging`:
/// each queue's. All that is put on the queues afterwards sees the results of
/// what combines. What is made of copies is put in the queues' lanes for them,
/// which are marked: what uses the memory afterwards waits for all the marks.
/// Not for reduce_scatter, nor for an all_reduce of groups (CHECK): jit makes
/// them exchanges and sums.
Status meet(std::span<Queue* const> queues, const CollectiveStep& step,
            CollectiveBuffers buffers, std::span<void* const> staging);
bool is_made_of_copies(const CollectiveStep& step);

}  // namespace unisono
