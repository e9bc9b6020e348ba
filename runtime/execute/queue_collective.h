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

/// As in collective.h, and with the same bits. All that is put on the queues
/// afterwards sees the results. `staging`: each queue's.
Status all_reduce(std::span<Queue* const> queues, const AllReduceStep& step,
                  CollectiveBuffers buffers, std::span<void* const> staging);

/// These are copies, in the queues' lanes for them, which are marked: what uses
/// the memory afterwards waits for the marks of all of them.
Status all_gather(std::span<Queue* const> queues, const AllGatherStep& step,
                  CollectiveBuffers buffers);
Status all_to_all(std::span<Queue* const> queues, const AllToAllStep& step,
                  CollectiveBuffers buffers);
Status permute(std::span<Queue* const> queues, const PermuteStep& step,
               CollectiveBuffers buffers);

}  // namespace unisono
