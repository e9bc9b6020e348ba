#include "runtime/queue_collective.h"

#include <algorithm>

#include "runtime/check.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;
using Queues = std::span<Queue* const>;

/// What is put on any of the queues from now on begins after all that was put
/// on any of them before.
Status meet(Queues queues) {
  for (Queue* queue : queues)
    if (Status done = queue->mark(); !done) return done;
  for (Queue* queue : queues)
    for (Queue* other : queues) {
      if (queue == other) continue;
      if (Status done = queue->wait_for(*other); !done) return done;
    }
  return Unit{};
}

bool all_reach_all(Queues queues) {
  return std::all_of(queues.begin(), queues.end(), [&](Queue* queue) {
    return std::all_of(queues.begin(), queues.end(), [&](Queue* other) {
      return queue == other || queue->reaches(*other);
    });
  });
}

char* at(const void* base, int64_t bytes) {
  return static_cast<char*>(const_cast<void*>(base)) + bytes;
}

/// Devices combine a part each, for all.
Status reduce_parts(Queues queues, const AllReduceStep& step,
                    CollectiveBuffers buffers) {
  const int64_t part = step.grid.part, bytes = part * byte_size(step.dtype);
  const int64_t owners = (step.elements + part - 1) / part;
  for (int64_t owner = 0; owner < owners; ++owner) {
    std::vector<void*> arguments;
    for (const void* from : buffers.from)
      arguments.push_back(at(from, owner * bytes));
    for (void* to : buffers.to) arguments.push_back(at(to, owner * bytes));
    const auto& launch = owner == owners - 1 ? step.grid.last : step.grid.full;
    Status done = queues[owner]->launch(*launch, {.arguments = arguments});
    if (!done) return done;
  }
  return Unit{};
}

/// Operands go to memory of the host, which all kernels read.
Status reduce_staged(Queues queues, const AllReduceStep& step,
                     CollectiveBuffers buffers) {
  const int64_t bytes = step.elements * byte_size(step.dtype);
  std::vector<void*> staged;
  for (size_t d = 0; d < queues.size(); ++d) {
    Result<void*> place = queues[d]->staging(bytes);
    if (!place) return place.error();
    staged.push_back(*place);
    Status done = queues[d]->copy_to_staging(*place, buffers.from[d], bytes);
    if (!done) return done;
  }
  if (Status met = meet(queues); !met) return met;
  for (size_t d = 0; d < queues.size(); ++d) {
    std::vector<void*> arguments = staged;
    arguments.push_back(buffers.to[d]);
    Status done = queues[d]->launch(*step.grid.own, {.arguments = arguments});
    if (!done) return done;
  }
  return Unit{};
}

}  // namespace

Status prepare_collectives(Queues queues, const FlatProgram& program) {
  const bool direct = all_reach_all(queues);
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind != Kind::all_reduce) continue;
    const auto& step = instruction.as<AllReduceStep>();
    if (step.elements == 0) continue;
    for (Queue* queue : queues) {
      const auto& grid = step.grid;
      CHECK(grid.full && grid.last && grid.own);
      for (const auto& launch : {grid.full, grid.last, grid.own}) {
        if (direct == (launch == grid.own)) continue;
        if (Status ready = queue->prepare(*launch); !ready) return ready;
      }
      if (direct) continue;
      auto place = queue->staging(step.elements * byte_size(step.dtype));
      if (!place) return place.error();
    }
  }
  return Unit{};
}

Status all_reduce(Queues queues, const AllReduceStep& step,
                  CollectiveBuffers buffers) {
  if (step.elements == 0) return Unit{};
  if (Status met = meet(queues); !met) return met;
  Status done = all_reach_all(queues) ? reduce_parts(queues, step, buffers)
                                      : reduce_staged(queues, step, buffers);
  return done ? meet(queues) : done;
}

namespace {

/// Each device takes `bytes` from every device, and stacks them in order; they
/// begin at `offset(taker)` of what the other gives.
template <class Offset>
Status take_from_all(Queues queues, int64_t bytes, CollectiveBuffers buffers,
                     Offset&& offset) {
  if (bytes == 0) return Unit{};
  if (Status met = meet(queues); !met) return met;
  for (size_t d = 0; d < queues.size(); ++d)
    for (size_t i = 0; i < queues.size(); ++i) {
      // Each begins with its own, so that they do not all read the same one.
      const size_t from = (d + i) % queues.size();
      Status done = queues[d]->copy(
          at(buffers.to[d], static_cast<int64_t>(from) * bytes), *queues[from],
          at(buffers.from[from], offset(static_cast<int64_t>(d))), bytes);
      if (!done) return done;
    }
  return meet(queues);
}

}  // namespace

Status all_gather(Queues queues, const AllGatherStep& step,
                  CollectiveBuffers buffers) {
  return take_from_all(queues, step.bytes, buffers,
                       [](int64_t) -> int64_t { return 0; });
}

Status all_to_all(Queues queues, const AllToAllStep& step,
                  CollectiveBuffers buffers) {
  return take_from_all(queues, step.bytes, buffers,
                       [&](int64_t taker) { return taker * step.bytes; });
}

Status permute(Queues queues, const PermuteStep& step,
               CollectiveBuffers buffers) {
  if (step.bytes == 0) return Unit{};
  if (Status met = meet(queues); !met) return met;
  std::vector<int> source(queues.size(), -1);
  for (auto [from, to] : step.pairs) source[to] = from;
  for (size_t d = 0; d < queues.size(); ++d) {
    const int from = source[d];
    Status done = from < 0 ? queues[d]->zero(buffers.to[d], step.bytes)
                           : queues[d]->copy(buffers.to[d], *queues[from],
                                             buffers.from[from], step.bytes);
    if (!done) return done;
  }
  return meet(queues);
}

}  // namespace unisono
