#include "runtime/execute/cluster_collective.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/execute/reduce_tree.h"

namespace unisono {
namespace {

/// Reductions of fewer bytes are combined by everybody; of more, each process
/// combines a part, and tells the others.
constexpr int64_t small_reduction = 16 << 10;
/// Less than this is not worth another worker.
constexpr int64_t grain = 16 * reduce_block;

/// out (C) = the combination of all of `from`, elements first ... last - 1.
template <ReduceOp op, class S, class C>
void combine_own(std::span<const void* const> from, int64_t first, int64_t last,
                 int64_t offset, C* out) {
  for (int64_t i = first; i < last; i += reduce_block) {
    const int64_t count = std::min(reduce_block, last - i);
    BlockTree<op, S, C>{from, offset + i, count}.reduce(
        0, static_cast<int64_t>(from.size()), out + i);
  }
}

/// The members tree over partial results: partial p is of places begins[p] ...
/// begins[p + 1] - 1.
template <ReduceOp op, class C>
struct PartialTree {
  std::span<const void* const> from;
  std::span<const int64_t> begins;
  int64_t offset;
  int64_t count;

  void reduce(int64_t begin, int64_t end, C* out) const {
    const auto at = std::ranges::lower_bound(begins, begin) - begins.begin();
    if (begins[at] == begin && begins[at + 1] == end) {
      std::memcpy(out, static_cast<const C*>(from[at]) + offset,
                  static_cast<size_t>(count) * sizeof(C));
      return;
    }
    const int64_t middle = begin + member_tree_left(end - begin);
    std::array<C, reduce_block> right;
    reduce(begin, middle, out);
    reduce(middle, end, right.data());
    for (int64_t i = 0; i < count; ++i) out[i] = combine<op>(out[i], right[i]);
  }
};

/// Elements first ... last - 1 of all partial results, to each of `to`.
template <ReduceOp op, class S, class C>
void combine_partials(std::span<const void* const> from,
                      std::span<const int64_t> begins, int64_t first,
                      int64_t last, std::span<void* const> to) {
  std::array<C, reduce_block> result;
  std::array<S, reduce_block> rounded;
  for (int64_t i = first; i < last; i += reduce_block) {
    const int64_t count = std::min(reduce_block, last - i);
    PartialTree<op, C>{from, begins, i, count}.reduce(0, begins.back(),
                                                      result.data());
    for (int64_t k = 0; k < count; ++k) rounded[k] = static_cast<S>(result[k]);
    for (void* target : to)
      std::memcpy(static_cast<S*>(target) + i, rounded.data(),
                  static_cast<size_t>(count) * sizeof(S));
  }
}

/// body.operator()<op, S, C>()
template <class Body>
void with_reduction(DType dtype, ReduceOp op, Body&& body) {
  with_dtype(dtype, [&]<DType D>() {
    using S = typename StorageOf<D>::type;
    using C = CombinedIn<D>;
    switch (op) {
      case ReduceOp::sum:
        return body.template operator()<ReduceOp::sum, S, C>();
      case ReduceOp::max:
        return body.template operator()<ReduceOp::max, S, C>();
      case ReduceOp::min:
        return body.template operator()<ReduceOp::min, S, C>();
    }
  });
}

int64_t combined_size(DType dtype) {
  return with_dtype(dtype, []<DType D>() -> int64_t {
    return static_cast<int64_t>(sizeof(CombinedIn<D>));
  });
}

}  // namespace

ClusterMeeting::ClusterMeeting(const RunState& run, Cluster& cluster)
    : run_(run), cluster_(cluster) {
  std::set<int> others;
  for (int d = 0; d < run.count; ++d) {
    owners_.push_back(cluster_device(*run.devices[d].device)->process());
    others.insert(owners_.back());
  }
  others.erase(cluster.process());
  for (const int p : others) {
    sends_.push_back({p});
    receives_.push_back({p});
  }
}

std::vector<int> ClusterMeeting::others() const {
  std::vector<int> out;
  for (const Message& message : sends_) out.push_back(message.process);
  return out;
}

const std::vector<ClusterMeeting::Team>& ClusterMeeting::teams(
    const CollectiveStep& step) {
  for (const auto& [known, teams] : teams_)
    if (known == &step) return teams;
  return teams_.emplace_back(&step, make_teams(step)).second;
}

std::vector<ClusterMeeting::Team> ClusterMeeting::make_teams(
    const CollectiveStep& step) const {
  std::vector<Team> out;
  const auto add = [&](const auto& devices) {
    Team& team = out.emplace_back();
    for (const int d : devices) {
      team.devices.push_back(d);
      team.owners.push_back(owners_[d]);
    }
    const std::set<int> each(team.owners.begin(), team.owners.end());
    team.processes.assign(each.begin(), each.end());
    team.here = each.contains(cluster_.process());
    team.partials = partials_of(team.owners);
  };
  for (const auto& group : step.groups) add(group);
  if (!step.groups.empty()) return out;
  std::vector<int> all;
  for (int d = 0; d < run_.count; ++d) all.push_back(d);
  add(all);
  return out;
}

void* ClusterMeeting::from(const Team& team, size_t place,
                           const CollectiveStep& step) const {
  return run_.devices[team.devices[place]].slots[step.from];
}

void* ClusterMeeting::to(const Team& team, size_t place,
                         const CollectiveStep& step) const {
  return run_.devices[team.devices[place]].slots[step.to];
}

void ClusterMeeting::send(int process, const void* data, int64_t bytes) {
  const auto message = std::ranges::find(sends_, process, &Message::process);
  message->pieces.push_back({const_cast<void*>(data), bytes});
}

void ClusterMeeting::receive(int process, void* data, int64_t bytes) {
  const auto message = std::ranges::find(receives_, process, &Message::process);
  message->pieces.push_back({data, bytes});
}

/// All processes of the run take part, even those for which there is nothing:
/// no device begins what comes next before all have arrived.
Status ClusterMeeting::exchange(uint64_t fingerprint) {
  Status done = cluster_.exchange(sends_, receives_, fingerprint);
  for (Message& message : sends_) message.pieces.clear();
  for (Message& message : receives_) message.pieces.clear();
  return done;
}

Status ClusterMeeting::meet(CollectiveWorkers workers,
                            const CollectiveStep& step, uint64_t fingerprint) {
  using Kind = CollectiveStep::Kind;
  if (step.kind == Kind::all_reduce || step.kind == Kind::reduce_scatter)
    return reduce(workers, step, fingerprint);
  const std::vector<Team>& all = teams(step);
  for (const Team& team : all) {
    if (!team.here) continue;
    if (step.kind == Kind::all_gather)
      gather(team, step);
    else if (step.kind == Kind::all_to_all)
      swap_parts(team, step);
    else
      permute(team, step);
  }
  TRY(exchange(fingerprint));
  if (step.kind != Kind::all_gather) return Unit{};
  // What came for the first of the own members is the others', too.
  const int own = cluster_.process();
  for (const Team& team : all) {
    if (!team.here) continue;
    const auto first = static_cast<size_t>(std::ranges::find(team.owners, own) -
                                           team.owners.begin());
    const auto* result = static_cast<const char*>(to(team, first, step));
    for (size_t j = first + 1; j < team.owners.size(); ++j)
      if (team.owners[j] == own)
        std::memcpy(to(team, j, step), result,
                    static_cast<size_t>(step.bytes()) * team.owners.size());
  }
  return Unit{};
}

void ClusterMeeting::gather(const Team& team, const CollectiveStep& step) {
  const int own = cluster_.process();
  const int64_t bytes = step.bytes();
  const auto first = static_cast<size_t>(std::ranges::find(team.owners, own) -
                                         team.owners.begin());
  auto* result = static_cast<char*>(to(team, first, step));
  for (size_t i = 0; i < team.owners.size(); ++i) {
    char* place = result + static_cast<int64_t>(i) * bytes;
    if (team.owners[i] != own) {
      receive(team.owners[i], place, bytes);
      continue;
    }
    std::memcpy(place, from(team, i, step), static_cast<size_t>(bytes));
    for (const int p : team.processes)
      if (p != own) send(p, from(team, i, step), bytes);
  }
}

void ClusterMeeting::swap_parts(const Team& team, const CollectiveStep& step) {
  const int own = cluster_.process();
  const int64_t bytes = step.bytes();
  for (size_t i = 0; i < team.owners.size(); ++i) {
    for (size_t j = 0; j < team.owners.size(); ++j) {
      const bool sends = team.owners[i] == own, gets = team.owners[j] == own;
      const auto* part = static_cast<const char*>(from(team, i, step)) +
                         static_cast<int64_t>(j) * bytes;
      char* place = static_cast<char*>(to(team, j, step)) +
                    static_cast<int64_t>(i) * bytes;
      if (sends && gets)
        std::memcpy(place, part, static_cast<size_t>(bytes));
      else if (sends)
        send(team.owners[j], part, bytes);
      else if (gets)
        receive(team.owners[i], place, bytes);
    }
  }
}

void ClusterMeeting::permute(const Team& team, const CollectiveStep& step) {
  const int own = cluster_.process();
  const int64_t bytes = step.bytes();
  std::vector<bool> reached(team.owners.size(), false);
  for (const auto& [i, j] : step.pairs) {
    const bool sends = team.owners[i] == own, gets = team.owners[j] == own;
    reached[j] = true;
    if (sends && gets)
      std::memcpy(to(team, j, step), from(team, i, step),
                  static_cast<size_t>(bytes));
    else if (sends)
      send(team.owners[j], from(team, i, step), bytes);
    else if (gets)
      receive(team.owners[i], to(team, j, step), bytes);
  }
  for (size_t j = 0; j < team.owners.size(); ++j)
    if (team.owners[j] == own && !reached[j])
      std::memset(to(team, j, step), 0, static_cast<size_t>(bytes));
}

/// The largest parts of the tree that one process has, in order.
std::vector<ClusterMeeting::Partial> ClusterMeeting::partials_of(
    const std::vector<int>& owners) {
  std::vector<Partial> out;
  const auto add = [&](auto& self, int64_t begin, int64_t end) -> void {
    const int owner = owners[begin];
    const bool one = std::all_of(owners.begin() + begin, owners.begin() + end,
                                 [&](int other) { return other == owner; });
    if (one) {
      out.push_back({begin, end, owner});
      return;
    }
    const int64_t middle = begin + member_tree_left(end - begin);
    self(self, begin, middle);
    self(self, middle, end);
  };
  add(add, 0, static_cast<int64_t>(owners.size()));
  return out;
}

/// A range of elements that this process combines, or helps to.
struct ClusterMeeting::Reduction {
  int64_t first = 0, last = 0;  // of each operand
  const std::vector<Partial>& partials;
  /// By partial result, as it is combined: elements first ... last - 1.
  std::vector<const void*> data;
  std::vector<std::unique_ptr<char[]>> memory = {};
  /// Where the result goes; the first element of `to` is `first`. Empty:
  /// another process combines.
  std::vector<void*> to = {};
};

Status ClusterMeeting::reduce(CollectiveWorkers workers,
                              const CollectiveStep& step,
                              uint64_t fingerprint) {
  CHECK(!(is_bool(step.dtype) && step.op == ReduceOp::sum));
  const bool scatters = step.kind == CollectiveStep::Kind::reduce_scatter;
  const int own = cluster_.process();
  const int64_t size = byte_size(step.dtype);
  const int64_t combined = combined_size(step.dtype);
  const std::vector<Team>& all = teams(step);

  // Adds the range `first` ... `last`, which `combiners` combine.
  std::vector<Reduction> reductions;
  const auto add = [&](const Team& team, int64_t first, int64_t last,
                       const std::vector<int>& combiners,
                       std::vector<void*> to) {
    Reduction part{first, last, team.partials, {}};
    const int64_t bytes = (last - first) * combined;
    const bool combines = std::ranges::find(combiners, own) != combiners.end();
    for (const Partial& partial : part.partials) {
      if (partial.owner != own) {
        part.data.push_back(nullptr);
        if (!combines) continue;
        part.memory.push_back(std::make_unique_for_overwrite<char[]>(bytes));
        part.data.back() = part.memory.back().get();
        receive(partial.owner, part.memory.back().get(), bytes);
        continue;
      }
      std::vector<const void*> operands;
      for (int64_t i = partial.begin; i < partial.end; ++i)
        operands.push_back(from(team, static_cast<size_t>(i), step));
      if (operands.size() == 1 && combined == size) {
        part.data.push_back(static_cast<const char*>(operands[0]) +
                            first * size);
      } else {
        part.memory.push_back(std::make_unique_for_overwrite<char[]>(bytes));
        char* out = part.memory.back().get();
        part.data.push_back(out);
        with_reduction(
            step.dtype, step.op, [&]<ReduceOp op, class S, class C>() {
              workers.pool.parallel_for(last - first, grain, workers.group,
                                        [&](int64_t begin, int64_t end) {
                                          combine_own<op, S, C>(
                                              operands, begin, end, first,
                                              reinterpret_cast<C*>(out));
                                        });
            });
      }
      for (const int p : combiners)
        if (p != own) send(p, part.data.back(), bytes);
    }
    if (combines) part.to = std::move(to);
    reductions.push_back(std::move(part));
  };
  const auto own_results = [&](const Team& team, int64_t offset) {
    std::vector<void*> to_all;
    for (size_t j = 0; j < team.owners.size(); ++j)
      if (team.owners[j] == own)
        to_all.push_back(static_cast<char*>(to(team, j, step)) + offset);
    return to_all;
  };
  // Of a large reduction each process of the team combines such a range.
  const auto range_of = [&](const Team& team, size_t p) {
    const auto count = static_cast<int64_t>(team.processes.size());
    const int64_t blocks = (step.elements + reduce_block - 1) / reduce_block;
    const auto at = [&](int64_t k) {
      return std::min(step.elements, blocks * k / count * reduce_block);
    };
    return std::pair(at(static_cast<int64_t>(p)),
                     at(static_cast<int64_t>(p) + 1));
  };
  const auto is_cut = [&](const Team& team) {
    return !scatters && team.processes.size() > 1 &&
           step.bytes() >= small_reduction;
  };

  bool cut = false;
  for (const Team& team : all) {
    cut |= is_cut(team);  // in all processes alike
    if (!team.here) continue;
    if (scatters) {
      for (size_t j = 0; j < team.owners.size(); ++j) {
        const int64_t first = static_cast<int64_t>(j) * step.elements;
        add(team, first, first + step.elements, {team.owners[j]},
            {to(team, j, step)});
      }
    } else if (is_cut(team)) {
      for (size_t p = 0; p < team.processes.size(); ++p) {
        const auto [first, last] = range_of(team, p);
        add(team, first, last, {team.processes[p]},
            own_results(team, first * size));
      }
    } else {
      add(team, 0, step.elements, team.processes, own_results(team, 0));
    }
  }
  TRY(exchange(fingerprint));

  for (const Reduction& part : reductions) {
    if (part.to.empty()) continue;
    std::vector<int64_t> begins;
    for (const Partial& partial : part.partials)
      begins.push_back(partial.begin);
    begins.push_back(part.partials.back().end);
    with_reduction(step.dtype, step.op, [&]<ReduceOp op, class S, class C>() {
      workers.pool.parallel_for(part.last - part.first, grain, workers.group,
                                [&](int64_t begin, int64_t end) {
                                  combine_partials<op, S, C>(
                                      part.data, begins, begin, end, part.to);
                                });
    });
  }
  if (!cut) return Unit{};

  for (const Team& team : all) {
    if (!team.here || !is_cut(team)) continue;
    char* result = static_cast<char*>(own_results(team, 0)[0]);
    for (size_t p = 0; p < team.processes.size(); ++p) {
      const auto [first, last] = range_of(team, p);
      const int64_t bytes = (last - first) * size;
      if (team.processes[p] != own) {
        receive(team.processes[p], result + first * size, bytes);
        continue;
      }
      for (const int other : team.processes)
        if (other != own) send(other, result + first * size, bytes);
    }
  }
  TRY(exchange(fingerprint));
  for (const Team& team : all) {
    if (!team.here || !is_cut(team)) continue;
    const std::vector<void*> results = own_results(team, 0);
    for (size_t i = 1; i < results.size(); ++i)
      std::memcpy(results[i], results[0], static_cast<size_t>(step.bytes()));
  }
  return Unit{};
}

}  // namespace unisono
