#include "runtime/execute/collective.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/check.h"
#include "runtime/execute/reduce_tree.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

template <ReduceOp op, class S, class C>
void reduce_range(int64_t begin, int64_t end, CollectiveBuffers buffers) {
  auto devices = static_cast<int64_t>(buffers.from.size());
  std::array<C, reduce_block> result;
  // One result, which is none of the operands.
  const bool alone =
      buffers.to.size() == 1 &&
      std::ranges::find(buffers.from, buffers.to[0]) == buffers.from.end();
  for (int64_t offset = begin; offset < end; offset += reduce_block) {
    int64_t count = std::min(reduce_block, end - offset);
    const BlockTree<op, S, C> tree{buffers.from, offset, count};
    if constexpr (std::is_same_v<S, C>) {
      if (alone) {
        tree.reduce(0, devices, static_cast<S*>(buffers.to[0]) + offset);
        continue;
      }
    }
    tree.reduce(0, devices, result.data());
    if constexpr (std::is_same_v<S, C>) {
      for (void* to : buffers.to)
        std::memcpy(static_cast<S*>(to) + offset, result.data(),
                    count * sizeof(S));
    } else {
      std::array<S, reduce_block> rounded;
      for (int64_t i = 0; i < count; ++i)
        rounded[i] = static_cast<S>(result[i]);
      for (void* to : buffers.to)
        std::memcpy(static_cast<S*>(to) + offset, rounded.data(),
                    count * sizeof(S));
    }
  }
}

template <DType dtype>
void reduce_elements(ReduceOp op, int64_t begin, int64_t end,
                     CollectiveBuffers buffers) {
  using S = typename StorageOf<dtype>::type;
  using C = CombinedIn<dtype>;
  switch (op) {
    case ReduceOp::sum:
      return reduce_range<ReduceOp::sum, S, C>(begin, end, buffers);
    case ReduceOp::max:
      return reduce_range<ReduceOp::max, S, C>(begin, end, buffers);
    case ReduceOp::min:
      return reduce_range<ReduceOp::min, S, C>(begin, end, buffers);
  }
}

/// Calls body(block, begin, end) for pieces of each block's `bytes` bytes.
template <class Body>
void for_each_piece(CollectiveWorkers workers, int64_t blocks, int64_t bytes,
                    Body&& body) {
  int64_t pieces = (bytes + tuning().collective_piece_bytes - 1) /
                   tuning().collective_piece_bytes;
  workers.pool.parallel_for(
      blocks * pieces, 1, workers.group, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end && !workers.stopped(); ++unit) {
          int64_t first = unit % pieces * tuning().collective_piece_bytes;
          int64_t last =
              std::min(first + tuning().collective_piece_bytes, bytes);
          body(static_cast<int>(unit / pieces), first, last);
        }
      });
}

void all_reduce(CollectiveWorkers workers, ReduceOp op, DType dtype,
                int64_t elements, CollectiveBuffers buffers) {
  CHECK(!(is_bool(dtype) && op == ReduceOp::sum));
  int64_t touched =
      byte_size(dtype) *
      static_cast<int64_t>(buffers.from.size() + buffers.to.size());
  int64_t grain = std::max<int64_t>(tuning().collective_reduced_bytes / touched,
                                    reduce_block);
  grain = grain / reduce_block * reduce_block;
  workers.pool.parallel_for(
      elements, grain, workers.group, [&](int64_t begin, int64_t end) {
        for (; begin < end && !workers.stopped(); begin += grain)
          with_dtype(dtype, [&]<DType D>() {
            reduce_elements<D>(op, begin, std::min(begin + grain, end),
                               buffers);
          });
      });
}

void all_gather(CollectiveWorkers workers, int64_t bytes,
                CollectiveBuffers buffers) {
  auto devices = static_cast<int64_t>(buffers.from.size());
  for_each_piece(
      workers, devices, bytes, [&](int source, int64_t begin, int64_t end) {
        const char* from =
            static_cast<const char*>(buffers.from[source]) + begin;
        for (void* to : buffers.to)
          std::memcpy(static_cast<char*>(to) + source * bytes + begin, from,
                      end - begin);
      });
}

void reduce_scatter(CollectiveWorkers workers, ReduceOp op, DType dtype,
                    int64_t elements, CollectiveBuffers buffers) {
  CHECK(!(is_bool(dtype) && op == ReduceOp::sum));
  const auto devices = static_cast<int64_t>(buffers.to.size());
  const int64_t touched = byte_size(dtype) * (devices + 1);
  int64_t grain = std::max<int64_t>(tuning().collective_piece_bytes / touched,
                                    reduce_block);
  grain = grain / reduce_block * reduce_block;
  // Whole pieces of one device's part, so that none has two results.
  const int64_t pieces = (elements + grain - 1) / grain;
  workers.pool.parallel_for(
      devices * pieces, 1, workers.group, [&](int64_t begin, int64_t end) {
        std::vector<const void*> parts(buffers.from.size());
        for (int64_t unit = begin; unit < end && !workers.stopped(); ++unit) {
          const int64_t device = unit / pieces;
          const int64_t first = unit % pieces * grain;
          const int64_t last = std::min(first + grain, elements);
          for (size_t d = 0; d < parts.size(); ++d)
            parts[d] = static_cast<const char*>(buffers.from[d]) +
                       device * elements * byte_size(dtype);
          const CollectiveBuffers part{parts, buffers.to.subspan(device, 1)};
          with_dtype(dtype, [&]<DType D>() {
            reduce_elements<D>(op, first, last, part);
          });
        }
      });
}

void all_to_all(CollectiveWorkers workers, int64_t bytes,
                CollectiveBuffers buffers) {
  const auto devices = static_cast<int64_t>(buffers.from.size());
  for_each_piece(
      workers, devices * devices, bytes,
      [&](int64_t pair, int64_t begin, int64_t end) {
        const int64_t to = pair / devices, from = pair % devices;
        std::memcpy(
            static_cast<char*>(buffers.to[to]) + from * bytes + begin,
            static_cast<const char*>(buffers.from[from]) + to * bytes + begin,
            end - begin);
      });
}

void permute(CollectiveWorkers workers, int64_t bytes,
             const std::vector<std::pair<int, int>>& pairs,
             CollectiveBuffers buffers) {
  std::vector<const void*> sent(buffers.to.size(), nullptr);
  for (auto [source, destination] : pairs)
    sent[destination] = buffers.from[source];
  for_each_piece(workers, static_cast<int64_t>(sent.size()), bytes,
                 [&](int device, int64_t begin, int64_t end) {
                   char* to = static_cast<char*>(buffers.to[device]) + begin;
                   if (const void* from = sent[device])
                     std::memcpy(to, static_cast<const char*>(from) + begin,
                                 end - begin);
                   else
                     std::memset(to, 0, end - begin);
                 });
}

}  // namespace

using Kind = CollectiveStep::Kind;

const char* name(Kind kind) {
  switch (kind) {
    case Kind::all_reduce: return "all_reduce";
    case Kind::all_gather: return "all_gather";
    case Kind::reduce_scatter: return "reduce_scatter";
    case Kind::all_to_all: return "all_to_all";
    case Kind::permute: return "permute";
  }
  __builtin_unreachable();
}

CollectiveBytes bytes_of(const CollectiveStep& step, int64_t team) {
  const int64_t own = step.bytes(), all = own * team;
  switch (step.kind) {
    case Kind::all_reduce:
    case Kind::permute: return {own, own};
    case Kind::all_gather: return {own, all};
    case Kind::reduce_scatter: return {all, own};
    case Kind::all_to_all: return {all, all};
  }
  __builtin_unreachable();
}

void meet(CollectiveWorkers workers, const CollectiveStep& step,
          CollectiveBuffers buffers) {
  switch (step.kind) {
    case Kind::all_reduce:
      return all_reduce(workers, step.op, step.dtype, step.elements, buffers);
    case Kind::all_gather: return all_gather(workers, step.bytes(), buffers);
    case Kind::reduce_scatter:
      return reduce_scatter(workers, step.op, step.dtype, step.elements,
                            buffers);
    case Kind::all_to_all: return all_to_all(workers, step.bytes(), buffers);
    case Kind::permute:
      return permute(workers, step.bytes(), step.pairs, buffers);
  }
}

}  // namespace unisono
