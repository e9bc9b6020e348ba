#pragma once
// What devices with queues do together. Calls put work on all queues and
// return; all that was put there before is done first, and all that is put
// there afterwards sees the results.
#include <span>

#include "runtime/collective.h"
#include "runtime/flat_program.h"
#include "runtime/queue.h"

namespace unisono {

/// Loads and allocates what the collectives of a program need.
Status prepare_collectives(std::span<Queue* const> queues,
                           const FlatProgram& program);

/// As in collective.h, and with the same bits.
Status all_reduce(std::span<Queue* const> queues, const AllReduceStep& step,
                  CollectiveBuffers buffers);
Status all_gather(std::span<Queue* const> queues, const AllGatherStep& step,
                  CollectiveBuffers buffers);
Status all_to_all(std::span<Queue* const> queues, const AllToAllStep& step,
                  CollectiveBuffers buffers);
Status permute(std::span<Queue* const> queues, const PermuteStep& step,
               CollectiveBuffers buffers);

}  // namespace unisono
