// Reductions of devices that several processes have: all_reduce and
// reduce_scatter.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/execute/cluster_collective.h"
#include "runtime/execute/reduce_tree.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
/// An operand's part for one device, which its process combines.
struct ClusterMeeting::Reduction {
  const std::vector<Partial>& partials;
  std::vector<const void*> data = {};  // by partial result, as it is combined
  void* to = nullptr;                  // null: another process combines
};

Status ClusterMeeting::reduce_scatter(CollectiveWorkers workers,
                                      const CollectiveStep& step,
                                      uint64_t fingerprint) {
  CHECK(!(is_bool(step.dtype) && step.op == ReduceOp::sum));
  if (in_rounds(step)) return reduce_all_parts(workers, step, fingerprint);
  scratch_.reuse();
  const int own = cluster_.process();
  const int64_t combined = combined_size(step.dtype);
  const int64_t bytes = step.elements * combined;

  std::vector<Reduction> reductions;
  const auto add = [&](const Team& team, size_t j) {
    const int64_t first = static_cast<int64_t>(j) * step.elements;
    const int combiner = team.owners[j];
    Reduction part{team.partials};
    for (const Partial& partial : part.partials) {
      if (partial.owner != own) {
        part.data.push_back(nullptr);
        if (combiner != own) continue;
        char* memory = scratch_.take(bytes);
        part.data.back() = memory;
        receive(partial.owner, memory, bytes);
        continue;
      }
      part.data.push_back(own_partial(team, partial.begin, partial.end,
                                      {first, first + step.elements}, workers,
                                      step));
      if (combiner != own) send(combiner, part.data.back(), bytes);
    }
    if (combiner == own) part.to = to(team, j, step);
    reductions.push_back(std::move(part));
  };
  for (const Team& team : teams(step))
    if (team.here)
      for (size_t j = 0; j < team.owners.size(); ++j) add(team, j);
  TRY(exchange(fingerprint));

  for (const Reduction& part : reductions) {
    if (!part.to) continue;
    std::vector<int64_t> begins;
    for (const Partial& partial : part.partials)
      begins.push_back(partial.begin);
    begins.push_back(part.partials.back().end);
    with_reduction(step.dtype, step.op, [&]<ReduceOp op, class S, class C>() {
      workers.pool.parallel_for(step.elements, tuning().cluster_reduce_grain,
                                workers.group, [&](int64_t begin, int64_t end) {
                                  combine_partials<op, S, C>(part.data, begins,
                                                             begin, end,
                                                             {&part.to, 1});
                                });
    });
  }
  return Unit{};
}

/// Places begin ... end - 1, which are this process's, combined: elements of
/// `range`, from the first one on.
const void* ClusterMeeting::own_partial(const Team& team, int64_t begin,
                                        int64_t end, ElementRange range,
                                        CollectiveWorkers workers,
                                        const CollectiveStep& step) {
  const int64_t size = byte_size(step.dtype);
  const int64_t combined = combined_size(step.dtype);
  if (end - begin == 1 && combined == size)
    return static_cast<const char*>(
               from(team, static_cast<size_t>(begin), step)) +
           range.first * size;
  std::vector<const void*> operands;
  for (int64_t i = begin; i < end; ++i)
    operands.push_back(from(team, static_cast<size_t>(i), step));
  const int64_t count = range.last - range.first;
  char* out = scratch_.take(count * combined);
  with_reduction(step.dtype, step.op, [&]<ReduceOp op, class S, class C>() {
    workers.pool.parallel_for(count, tuning().cluster_reduce_grain,
                              workers.group, [&](int64_t first, int64_t last) {
                                combine_own<op, S, C>(
                                    operands, first, last, range.first,
                                    reinterpret_cast<C*>(out));
                              });
  });
  return out;
}

/// What a process has of a team's reduction. Small ones are frequent: their
/// memory is used again. What comes of large ones is combined as it comes.
class ClusterMeeting::Combined final : public Taker {
 public:
  /// Of one collective after the other; what is given outlives each. The result
  /// goes to all of `results`.
  void begin(ClusterMeeting& meeting, const CollectiveWorkers& workers,
             const CollectiveStep& step, const Team& team,
             std::span<void* const> results) {
    meeting_ = &meeting;
    workers_ = &workers;
    step_ = &step;
    team_ = &team;
    size_ = byte_size(step.dtype);
    combined_ = combined_size(step.dtype);
    results_.assign(results.begin(), results.end());
    data_.assign(plan().nodes.size(), nullptr);
    range_ = {0, step.elements};
    ranges_.clear();
    for (int i = 0; i < plan().own_nodes; ++i) {
      const ReducePlan::Node& node = plan().nodes[i];
      data_[i] = static_cast<const char*>(meeting.own_partial(
          team, node.begin, node.end, range_, workers, step));
    }
    if (plan().rounds.empty())
      merge({plan().result, {plan().result}}, 0, step.elements);
  }

  bool has_round(int k) const {
    return k < static_cast<int>(plan().rounds.size());
  }

  /// `alone`: messages of this round have nothing of other teams.
  void send(int k, bool alone) {
    const ReducePlan::Round& round = plan().rounds[k];
    for (const ReducePlan::Transfer& transfer : round.sends) {
      const ElementRange part = part_of(range_, transfer.part, round.parts);
      const int64_t first = (part.first - range_.first) * combined_;
      each_piece(transfer, bytes(part), [&](int node, int64_t at, int64_t n) {
        meeting_->send(transfer.process, data_[node] + first + at, n);
      });
    }
    if (round.parts > 1) ranges_.push_back(range_);
    const ElementRange kept = part_of(range_, round.own, round.parts);
    for (const char*& data : data_)
      if (data) data += (kept.first - range_.first) * combined_;
    range_ = kept;
    for (const ReducePlan::Merge& merge : round.merges)
      if (merge.node != plan().result)
        data_[merge.node] = meeting_->scratch_.take(bytes(range_));
    begin_receiving(round, alone);
  }

  void merge_round(int k) {
    if (passing_) return;
    for (const ReducePlan::Merge& merge : plan().rounds[k].merges)
      this->merge(merge, 0, range_.last - range_.first);
  }

  bool may_come(int process, size_t piece) override {
    return piece / nodes_from(process) == combined_windows_;
  }
  void take(int process, size_t piece) override {
    if ((piece + 1) % nodes_from(process) != 0 ||
        ++arrived_ < passing_->receives.size())
      return;
    arrived_ = 0;
    const int64_t elements = tuning().cluster_window_bytes / combined_;
    const int64_t first = static_cast<int64_t>(combined_windows_++) * elements;
    const int64_t last = std::min(first + elements, range_.last - range_.first);
    for (const auto& [node, memory] : windows_)
      data_[node] = memory - first * combined_;
    for (const ReducePlan::Merge& merge : passing_->merges)
      this->merge(merge, first, last);
  }

  bool is_cut() const { return team_->cut; }

  /// What others have combined comes back, the last round's first.
  void spread(int k) {
    const ReducePlan::Round& round = plan().rounds[k];
    auto* result = static_cast<char*>(results_[0]);
    for (const ReducePlan::Transfer& transfer : round.sends) {
      const ElementRange own = part_of(ranges_[k], round.own, round.parts);
      const ElementRange other =
          part_of(ranges_[k], transfer.part, round.parts);
      meeting_->send(transfer.process, result + own.first * size_,
                     (own.last - own.first) * size_);
      meeting_->receive(transfer.process, result + other.first * size_,
                        (other.last - other.first) * size_);
    }
  }

  /// To the other own devices, where it is not yet.
  void copy() const {
    for (size_t i = 1; i < results_.size(); ++i)
      std::memcpy(results_[i], results_[0],
                  static_cast<size_t>(step_->bytes()));
  }

 private:
  int64_t bytes(ElementRange range) const {
    return (range.last - range.first) * combined_;
  }

  /// What a transfer has of each node, window after window, in the order in
  /// which it goes.
  template <class Body>
  static void each_piece(const ReducePlan::Transfer& transfer, int64_t bytes,
                         Body&& body) {
    int64_t at = 0;
    do {
      for (const int node : transfer.nodes)
        body(node, at, std::min(tuning().cluster_window_bytes, bytes - at));
      at += tuning().cluster_window_bytes;
    } while (at < bytes);
  }

  void begin_receiving(const ReducePlan::Round& round, bool alone) {
    const int64_t all = bytes(range_);
    passing_ = alone && round.passing && all > tuning().cluster_window_bytes
                   ? &round
                   : nullptr;
    windows_.clear();
    combined_windows_ = arrived_ = 0;
    for (const ReducePlan::Transfer& transfer : round.receives) {
      for (const int node : transfer.nodes) {
        char* memory = meeting_->scratch_.take(
            passing_ ? tuning().cluster_window_bytes : all);
        data_[node] = memory;
        if (passing_) windows_.emplace_back(node, memory);
      }
      Message& message =
          meeting_->message(meeting_->receives_, transfer.process);
      if (passing_) message.taker = this;
      each_piece(transfer, all, [&](int node, int64_t at, int64_t n) {
        char* memory = const_cast<char*>(data_[node]);
        if (passing_)
          message.pieces.push_back({memory, n});
        else
          meeting_->receive(transfer.process, memory + at, n);
      });
    }
  }

  size_t nodes_from(int process) const {
    return std::ranges::find(passing_->receives, process,
                             &ReducePlan::Transfer::process)
        ->nodes.size();
  }

  /// Elements first ... last - 1 of the range.
  void merge(const ReducePlan::Merge& merge, int64_t first, int64_t last) {
    from_.clear();
    begins_.clear();
    to_.clear();
    for (const int node : merge.from) {
      from_.push_back(data_[node]);
      begins_.push_back(plan().nodes[node].begin);
    }
    begins_.push_back(plan().nodes[merge.node].end);
    const bool is_result = merge.node == plan().result;
    if (is_result) {
      to_.assign(results_.begin(),
                 team_->cut ? results_.begin() + 1 : results_.end());
      for (void*& result : to_)
        result = static_cast<char*>(result) + range_.first * size_;
    } else {
      to_.push_back(const_cast<char*>(data_[merge.node]));
    }
    with_reduction(
        step_->dtype, step_->op, [&]<ReduceOp op, class S, class C>() {
          workers_->pool.parallel_for(
              last - first, tuning().cluster_reduce_grain, workers_->group,
              [&](int64_t begin, int64_t end) {
                begin += first;
                end += first;
                if (is_result)
                  combine_partials<op, S, C>(from_, begins_, begin, end, to_);
                else
                  merge_partials<op, C>(from_, begins_, begin, end,
                                        static_cast<C*>(to_[0]));
              });
        });
  }

  const ReducePlan& plan() const { return team_->plan; }

  ClusterMeeting* meeting_ = nullptr;
  const CollectiveWorkers* workers_ = nullptr;
  const CollectiveStep* step_ = nullptr;
  const Team* team_ = nullptr;
  int64_t size_ = 0, combined_ = 0;
  std::vector<void*> results_;
  /// By node: where it has the first element of the range.
  std::vector<const char*> data_;
  ElementRange range_;                // what this process combines
  std::vector<ElementRange> ranges_;  // before each round
  /// The round whose parts are combined as they come; null: when all are here.
  const ReducePlan::Round* passing_ = nullptr;
  std::vector<std::pair<int, const char*>> windows_;  // where nodes come
  size_t combined_windows_ = 0;
  size_t arrived_ = 0;  // messages of which the next window is there
  // Of one merge.
  std::vector<const void*> from_;
  std::vector<int64_t> begins_;
  std::vector<void*> to_;
};

ClusterMeeting::ClusterMeeting(const RunState& run, Cluster& cluster)
    : run_(run), cluster_(cluster) {
  for (int d = 0; d < run.count; ++d)
    owners_.push_back(cluster_device(*run.devices[d].device)->process());
}

ClusterMeeting::~ClusterMeeting() = default;

/// Of a collective, whose parts follow one another.
ClusterMeeting::Combined& ClusterMeeting::next_part() {
  if (parts_ == combined_.size()) combined_.emplace_back();
  return combined_[parts_++];
}

std::span<ClusterMeeting::Combined> ClusterMeeting::parts() {
  return std::span(combined_).first(parts_);
}

Status ClusterMeeting::combine_in_rounds(int rounds, uint64_t fingerprint) {
  for (int k = 0; k < rounds; ++k) {
    for (Combined& part : parts())
      if (part.has_round(k)) part.send(k, parts_ == 1);
    TRY(exchange(fingerprint));
    for (Combined& part : parts())
      if (part.has_round(k)) part.merge_round(k);
  }
  return Unit{};
}

Status ClusterMeeting::reduce_all_parts(CollectiveWorkers workers,
                                        const CollectiveStep& step,
                                        uint64_t fingerprint) {
  scratch_.reuse();
  // Teams are of one size.
  const auto team_size =
      static_cast<int64_t>(teams(step).front().owners.size());
  const CollectiveStep all{.from = step.from,
                           .to = step.to,
                           .dtype = step.dtype,
                           .elements = step.elements * team_size,
                           .op = step.op};
  int rounds = 0;
  parts_ = 0;
  std::vector<std::pair<const Team*, const char*>> results;
  for (const Team& team : teams(step)) {
    rounds = std::max(
        rounds,
        count_reduce_rounds(static_cast<int>(team.processes.size()), false));
    if (!team.here) continue;
    void* const result = scratch_.take(all.bytes());
    results.emplace_back(&team, static_cast<const char*>(result));
    next_part().begin(*this, workers, all, team, {&result, 1});
  }
  TRY(combine_in_rounds(rounds, fingerprint));
  for (const auto& [team, result] : results)
    for (const int place : team->places[team->own])
      std::memcpy(to(*team, static_cast<size_t>(place), step),
                  result + place * step.bytes(),
                  static_cast<size_t>(step.bytes()));
  return Unit{};
}

Status ClusterMeeting::all_reduce(CollectiveWorkers workers,
                                  const CollectiveStep& step,
                                  uint64_t fingerprint) {
  CHECK(!(is_bool(step.dtype) && step.op == ReduceOp::sum));
  scratch_.reuse();
  int rounds = 0, cut_rounds = 0;
  parts_ = 0;
  for (const Team& team : teams(step)) {
    const int count =
        count_reduce_rounds(static_cast<int>(team.processes.size()), team.cut);
    rounds = std::max(rounds, count);
    if (team.cut) cut_rounds = std::max(cut_rounds, count);
    if (!team.here) continue;
    results_.clear();
    add_own_results(team, step, results_);
    next_part().begin(*this, workers, step, team, results_);
  }
  TRY(combine_in_rounds(rounds, fingerprint));
  for (int k = cut_rounds; k-- > 0;) {
    for (Combined& part : parts())
      if (part.is_cut() && part.has_round(k)) part.spread(k);
    TRY(exchange(fingerprint));
  }
  for (Combined& part : parts())
    if (part.is_cut()) part.copy();
  return Unit{};
}

}  // namespace unisono
