#include "runtime/execute/queue_collective.h"

#include <algorithm>

#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Kind = CollectiveStep::Kind;
using Queues = std::span<Queue* const>;

Status mark_all(Queues queues, Lane lane) {
  for (Queue* queue : queues) TRY(queue->mark(lane));
  return Unit{};
}

/// What is put in lane `after` of any of the queues from now on begins after
/// all that was put in lane `before` of any of them.
Status join(Queues queues, Lane before = Lane::kernels,
            Lane after = Lane::kernels) {
  TRY(mark_all(queues, before));
  Queue* hub = queues[0];
  const bool directly = queues.size() <= tuning().gpu_most_direct_meeting;
  for (Queue* queue : directly ? queues : queues.first(1))
    for (Queue* other : queues) {
      const Lane own = directly ? after : Lane::kernels;
      if (queue == other && own == before) continue;
      TRY(queue->wait_for(*other, own, before));
    }
  if (directly) return Unit{};
  TRY(hub->mark(Lane::kernels));
  for (Queue* queue : queues) {
    if (queue == hub && after == Lane::kernels) continue;
    TRY(queue->wait_for(*hub, after, Lane::kernels));
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

// ---- all_reduce ------------------------------------------------------------
//
//   way       who combines what                              for
//   one       one device all, for all                        few elements
//   parts     each device a part, written to all             more
//   pieces    each device pieces in turn, which the others'  most; fewer where
//             copy engines fetch while it combines the next  devices do not
//                                                            reach one another
//   staged    each device all, from copies in host memory    few, likewise
//
// Where devices do not reach one another operands are first copied to the
// host's memory, and pieces are fetched as the driver can.

enum class Way : uint8_t { one, parts, pieces, staged };

struct Plan {
  int64_t bytes = 0;       // of the operand
  int64_t part_bytes = 0;  // of a part or piece
  int64_t parts = 0;
  bool direct = false;
  Way way = Way::one;
};

Plan plan_for(Queues queues, const CollectiveStep& step) {
  const int64_t element = byte_size(step.dtype), part = step.kernels.part;
  Plan plan{.bytes = step.elements * element,
            .part_bytes = part * element,
            .parts = (step.elements + part - 1) / part,
            .direct = all_reach_all(queues)};
  if (plan.direct && plan.parts == 1)
    plan.way = Way::one;
  else if (plan.bytes > (plan.direct ? tuning().gpu_most_parts_bytes
                                     : tuning().gpu_most_staged_bytes))
    plan.way = Way::pieces;
  else
    plan.way = plan.direct ? Way::parts : Way::staged;
  return plan;
}

/// Combines part `number` of the sources on `owner`, to those places.
Status launch_part(Queue& owner, const CollectiveStep& step, const Plan& plan,
                   int64_t number, std::span<const void* const> sources,
                   std::span<void* const> targets) {
  std::vector<void*> arguments;
  for (const void* from : sources)
    arguments.push_back(at(from, number * plan.part_bytes));
  for (void* to : targets)
    arguments.push_back(at(to, number * plan.part_bytes));
  const auto& launch =
      number == plan.parts - 1 ? step.kernels.last : step.kernels.full;
  return owner.launch(*launch, {.arguments = arguments});
}

/// Two messages' time rather than that of two meetings.
Status reduce_on_one(Queues queues, const CollectiveStep& step,
                     const Plan& plan, CollectiveBuffers buffers) {
  Queue& owner = *queues[0];
  for (Queue* queue : queues.subspan(1)) {
    TRY(queue->mark());
    TRY(owner.wait_for(*queue));
  }
  TRY(launch_part(owner, step, plan, 0, buffers.from, buffers.to));
  TRY(owner.mark());
  for (Queue* queue : queues.subspan(1)) TRY(queue->wait_for(owner));
  return Unit{};
}

Status reduce_parts(Queues queues, const CollectiveStep& step, const Plan& plan,
                    CollectiveBuffers buffers) {
  TRY(join(queues));
  for (int64_t part = 0; part < plan.parts; ++part) {
    Queue& owner = *queues[static_cast<size_t>(part) % queues.size()];
    TRY(launch_part(owner, step, plan, part, buffers.from, buffers.to));
  }
  return join(queues);
}

Status reduce_pieces(Queues queues, const CollectiveStep& step,
                     const Plan& plan, std::span<const void* const> sources,
                     std::span<void* const> to) {
  TRY(join(queues));
  for (int64_t piece = 0; piece < plan.parts; ++piece) {
    const size_t owner = static_cast<size_t>(piece) % queues.size();
    const int64_t begin = piece * plan.part_bytes;
    const int64_t bytes = std::min(plan.part_bytes, plan.bytes - begin);
    // The kernel stores for each device: here all for the owner.
    const std::vector<void*> targets(queues.size(), to[owner]);
    TRY(launch_part(*queues[owner], step, plan, piece, sources, targets));
    TRY(queues[owner]->mark());
    for (size_t i = 1; i < queues.size(); ++i) {
      const size_t d = (owner + i) % queues.size();
      TRY(queues[d]->wait_for(*queues[owner], Lane::copies, Lane::kernels));
      TRY(queues[d]->copy(at(to[d], begin), *queues[owner],
                          at(to[owner], begin), bytes, Lane::copies));
    }
  }
  return join(queues, Lane::copies);
}

Status reduce_staged(Queues queues, const CollectiveStep& step,
                     const Plan& plan, CollectiveBuffers buffers,
                     std::span<void* const> staging) {
  for (size_t d = 0; d < queues.size(); ++d)
    TRY(queues[d]->copy_to_staging(staging[d], buffers.from[d], plan.bytes));
  if (plan.way == Way::pieces) {
    const std::vector<const void*> sources(staging.begin(), staging.end());
    return reduce_pieces(queues, step, plan, sources, buffers.to);
  }
  TRY(join(queues));
  for (size_t d = 0; d < queues.size(); ++d) {
    std::vector<void*> arguments(staging.begin(), staging.end());
    arguments.push_back(buffers.to[d]);
    TRY(queues[d]->launch(*step.kernels.own, {.arguments = arguments}));
  }
  return join(queues);  // what was staged is read
}

Status all_reduce(Queues queues, const CollectiveStep& step,
                  CollectiveBuffers buffers, std::span<void* const> staging) {
  if (step.elements == 0) return Unit{};
  const Plan plan = plan_for(queues, step);
  if (!plan.direct) return reduce_staged(queues, step, plan, buffers, staging);
  if (plan.way == Way::one) return reduce_on_one(queues, step, plan, buffers);
  if (plan.way == Way::parts) return reduce_parts(queues, step, plan, buffers);
  return reduce_pieces(queues, step, plan, buffers.from, buffers.to);
}

// ---- exchanges -------------------------------------------------------------

/// Each device takes `bytes` from every device, and stacks them in order; they
/// begin at `offset(taker)` of what the other gives.
template <class Offset>
Status take_from_all(Queues queues, int64_t bytes, CollectiveBuffers buffers,
                     Offset&& offset) {
  if (bytes == 0) return Unit{};
  TRY(join(queues, Lane::kernels, Lane::copies));
  for (size_t d = 0; d < queues.size(); ++d)
    for (size_t i = 0; i < queues.size(); ++i) {
      // Each begins with its own, so that they do not all read the same one.
      const size_t from = (d + i) % queues.size();
      TRY(queues[d]->copy(
          at(buffers.to[d], static_cast<int64_t>(from) * bytes), *queues[from],
          at(buffers.from[from], offset(static_cast<int64_t>(d))), bytes,
          Lane::copies));
    }
  return mark_all(queues, Lane::copies);
}

Status all_gather(Queues queues, const CollectiveStep& step,
                  CollectiveBuffers buffers) {
  return take_from_all(queues, step.bytes(), buffers,
                       [](int64_t) -> int64_t { return 0; });
}

Status all_to_all(Queues queues, const CollectiveStep& step,
                  CollectiveBuffers buffers) {
  return take_from_all(queues, step.bytes(), buffers,
                       [&](int64_t taker) { return taker * step.bytes(); });
}

Status permute(Queues queues, const CollectiveStep& step,
               CollectiveBuffers buffers) {
  if (step.bytes() == 0) return Unit{};
  TRY(mark_all(queues, Lane::kernels));
  std::vector<int> source(queues.size(), -1);
  for (auto [from, to] : step.pairs) source[to] = from;
  for (size_t d = 0; d < queues.size(); ++d) {
    Queue& queue = *queues[d];
    TRY(queue.wait_for(queue, Lane::copies, Lane::kernels));
    if (source[d] < 0) {
      TRY(queue.zero(buffers.to[d], step.bytes(), Lane::copies));
      continue;
    }
    const auto from = static_cast<size_t>(source[d]);
    if (from != d)
      TRY(queue.wait_for(*queues[from], Lane::copies, Lane::kernels));
    TRY(queue.copy(buffers.to[d], *queues[from], buffers.from[from],
                   step.bytes(), Lane::copies));
  }
  return mark_all(queues, Lane::copies);
}

}  // namespace

Result<int64_t> prepare_collectives(Queues queues, const FlatProgram& program) {
  int64_t staged = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind != Instruction::Kind::collective) continue;
    const auto& step = instruction.as<CollectiveStep>();
    if (step.kind != Kind::all_reduce) continue;
    if (step.elements == 0) continue;
    const auto& kernels = step.kernels;
    CHECK(kernels.full && kernels.last && kernels.own);
    const Plan plan = plan_for(queues, step);
    if (!plan.direct) staged = std::max(staged, plan.bytes);
    for (Queue* queue : queues)
      for (const auto& launch : {kernels.full, kernels.last, kernels.own}) {
        if ((plan.way == Way::staged) != (launch == kernels.own)) continue;
        TRY(queue->prepare(*launch));
      }
  }
  return staged;
}

bool is_made_of_copies(const CollectiveStep& step) {
  return step.kind != Kind::all_reduce;
}

Status meet(Queues queues, const CollectiveStep& step,
            CollectiveBuffers buffers, std::span<void* const> staging) {
  switch (step.kind) {
    case Kind::all_reduce:
      CHECK(step.groups.empty());
      return all_reduce(queues, step, buffers, staging);
    case Kind::all_gather: return all_gather(queues, step, buffers);
    case Kind::all_to_all: return all_to_all(queues, step, buffers);
    case Kind::permute: return permute(queues, step, buffers);
    case Kind::reduce_scatter: break;
  }
  check_failed("a collective on queues", __FILE__, __LINE__);
}

}  // namespace unisono
