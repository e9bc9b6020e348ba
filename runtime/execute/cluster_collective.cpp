#include "runtime/execute/cluster_collective.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/cluster/rounds.h"
#include "runtime/execute/reduce_tree.h"

namespace unisono {
namespace {

/// Reductions of fewer bytes are combined by everybody; of more, each process
/// combines a part, and tells the others.
constexpr int64_t small_reduction = 16 << 10;
/// Up to so many processes tell each other directly what is for one alone.
constexpr size_t few_processes = 3;
/// Less than this is not worth another worker.
constexpr int64_t grain = 16 * reduce_block;
/// Of large parts so many bytes come and are combined while they are in a
/// cache.
constexpr int64_t window = 128 << 10;

}  // namespace

bool ClusterMeeting::fits(const RunState& run, const Cluster& cluster) const {
  if (&cluster != &cluster_ || &run != &run_) return false;
  for (int d = 0; d < run.count; ++d)
    if (cluster_device(*run.devices[d].device)->process() != owners_[d])
      return false;
  return true;
}

std::vector<int> ClusterMeeting::others() const {
  std::vector<int> out = owners_;
  std::ranges::sort(out);
  const auto [first, last] = std::ranges::unique(out);
  out.erase(first, last);
  std::erase(out, cluster_.process());
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
    team.places.resize(each.size());
    const auto index_of = [&](int process) {
      return std::ranges::lower_bound(team.processes, process) -
             team.processes.begin();
    };
    for (size_t i = 0; i < team.owners.size(); ++i)
      team.places[index_of(team.owners[i])].push_back(static_cast<int>(i));
    team.here = each.contains(cluster_.process());
    if (team.here) team.own = static_cast<int>(index_of(cluster_.process()));
    team.partials = partials_of(team.owners);
    team.cut = team.processes.size() > 1 && step.bytes() >= small_reduction;
    const bool whole =
        step.kind == CollectiveStep::Kind::all_reduce ||
        (step.kind == CollectiveStep::Kind::reduce_scatter && !team.cut);
    if (team.here && whole)
      team.plan = plan_reduction(team.owners, cluster_.process(), team.cut);
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

Message& ClusterMeeting::message(std::vector<Message>& messages, int process) {
  const auto known = std::ranges::find(messages, process, &Message::process);
  if (known != messages.end()) return *known;
  Message added;
  if (!spare_.empty()) {
    added = std::move(spare_.back());
    spare_.pop_back();
  }
  added.process = process;
  return messages.emplace_back(std::move(added));
}

void ClusterMeeting::add_piece(std::vector<Message>& messages, int process,
                               void* data, int64_t bytes) {
  std::vector<Piece>& pieces = message(messages, process).pieces;
  if (!pieces.empty() &&
      static_cast<char*>(pieces.back().data) + pieces.back().bytes == data)
    pieces.back().bytes += bytes;
  else
    pieces.push_back({data, bytes});
}

void ClusterMeeting::send(int process, const void* data, int64_t bytes) {
  add_piece(sends_, process, const_cast<void*>(data), bytes);
}

void ClusterMeeting::receive(int process, void* data, int64_t bytes) {
  add_piece(receives_, process, data, bytes);
}

/// All processes of the run count it, whether or not there is something for
/// them.
Status ClusterMeeting::exchange(uint64_t fingerprint) {
  Status done = cluster_.exchange(sends_, receives_, fingerprint);
  for (auto* messages : {&sends_, &receives_}) {
    for (Message& message : *messages) {
      message.pieces.clear();
      message.taker = nullptr;
      spare_.push_back(std::move(message));
    }
    messages->clear();
  }
  return done;
}

Status ClusterMeeting::meet(CollectiveWorkers workers,
                            const CollectiveStep& step, uint64_t fingerprint) {
  using Kind = CollectiveStep::Kind;
  switch (step.kind) {
    case Kind::all_reduce: return all_reduce(workers, step, fingerprint);
    case Kind::reduce_scatter:
      return reduce_scatter(workers, step, fingerprint);
    case Kind::all_gather: return gather(step, fingerprint);
    case Kind::all_to_all: return all_to_all(step, fingerprint);
    case Kind::permute: break;
  }
  for (const Team& team : teams(step))
    if (team.here) permute(team, step);
  return exchange(fingerprint);
}

bool ClusterMeeting::in_rounds(const CollectiveStep& step) {
  size_t most = 0;
  int64_t bytes = 0;  // of an operand
  for (const Team& team : teams(step)) {
    most = std::max(most, team.processes.size());
    bytes = step.bytes() * static_cast<int64_t>(team.owners.size());
  }
  return most > few_processes && bytes < small_reduction;
}

void ClusterMeeting::add_own_results(const Team& team,
                                     const CollectiveStep& step,
                                     std::vector<void*>& results) const {
  for (const int place : team.places[team.own])
    results.push_back(to(team, static_cast<size_t>(place), step));
}

void* ClusterMeeting::first_result(const Team& team,
                                   const CollectiveStep& step) const {
  return to(team, static_cast<size_t>(team.places[team.own].front()), step);
}

Status ClusterMeeting::gather(const CollectiveStep& step,
                              uint64_t fingerprint) {
  const std::vector<Team>& all = teams(step);
  const int64_t bytes = step.bytes();
  int rounds = 0;
  for (const Team& team : all) {
    rounds =
        std::max(rounds, count_rounds(static_cast<int>(team.processes.size())));
    if (!team.here) continue;
    char* result = static_cast<char*>(first_result(team, step));
    for (const int place : team.places[team.own])
      std::memcpy(result + place * bytes,
                  from(team, static_cast<size_t>(place), step),
                  static_cast<size_t>(bytes));
  }
  for (int k = 0; k < rounds; ++k) {
    for (const Team& team : all) {
      const auto count = static_cast<int>(team.processes.size());
      if (!team.here || k >= count_rounds(count)) continue;
      char* result = static_cast<char*>(first_result(team, step));
      const GatherRound round = gather_rounds(count, team.own)[k];
      const auto each = [&](int first, auto&& body) {
        for (int i = 0; i < round.count; ++i)
          for (const int place : team.places[(first + i) % count])
            body(result + place * bytes);
      };
      each(round.sends, [&](const char* part) {
        send(team.processes[round.to], part, bytes);
      });
      each(round.receives, [&](char* part) {
        receive(team.processes[round.from], part, bytes);
      });
    }
    TRY(exchange(fingerprint));
  }
  for (const Team& team : all) {
    if (!team.here) continue;
    results_.clear();
    add_own_results(team, step, results_);
    for (size_t i = 1; i < results_.size(); ++i)
      std::memcpy(results_[i], results_[0],
                  static_cast<size_t>(bytes) * team.owners.size());
  }
  return Unit{};
}

void ClusterMeeting::swap_parts(const Team& team, const CollectiveStep& step) {
  const int own = cluster_.process();
  for (size_t i = 0; i < team.owners.size(); ++i) {
    for (size_t j = 0; j < team.owners.size(); ++j) {
      const bool sends = team.owners[i] == own, gets = team.owners[j] == own;
      if (sends && !gets)
        send(team.owners[j], part_sent(team, i, j, step), step.bytes());
      else if (gets && !sends)
        receive(team.owners[i], part_received(team, i, j, step), step.bytes());
    }
  }
}

/// What is for this process's own devices.
void ClusterMeeting::keep_own_parts(const Team& team,
                                    const CollectiveStep& step) const {
  for (const int i : team.places[team.own])
    for (const int j : team.places[team.own])
      std::memcpy(
          part_received(team, static_cast<size_t>(i), static_cast<size_t>(j),
                        step),
          part_sent(team, static_cast<size_t>(i), static_cast<size_t>(j), step),
          static_cast<size_t>(step.bytes()));
}

/// What the device at place i has for that at place j, and where it goes there.
const char* ClusterMeeting::part_sent(const Team& team, size_t i, size_t j,
                                      const CollectiveStep& step) const {
  return static_cast<const char*>(from(team, i, step)) +
         static_cast<int64_t>(j) * step.bytes();
}
char* ClusterMeeting::part_received(const Team& team, size_t i, size_t j,
                                    const CollectiveStep& step) const {
  return static_cast<char*>(to(team, j, step)) +
         static_cast<int64_t>(i) * step.bytes();
}

/// An all_to_all of a team (Bruck, 1997). What process p has for the one that
/// is j places behind it is a parcel, which in round k goes 2^k places further
/// if j has that bit.
class ClusterMeeting::Swapped {
 public:
  Swapped(ClusterMeeting& meeting, const CollectiveStep& step, const Team& team)
      : meeting_(meeting),
        step_(step),
        team_(team),
        count_(static_cast<int>(team.processes.size())),
        held_(team.processes.size(), nullptr) {}

  bool has_round(int k) const { return 1 << k < count_; }

  void round(int k) {
    const int step = 1 << k;
    const int to = place(team_.own + step), from = place(team_.own - step);
    for (int j = step; j < count_; ++j)
      if (j & step) send(team_.processes[to], j, team_.own - j % step);
    for (int j = step; j < count_; ++j)
      if (j & step)
        receive(team_.processes[from], j, from - j % step, 2 * step);
  }

  /// What has come may be sent on.
  void next() {
    for (const auto& [j, memory] : received_) held_[j] = memory;
    received_.clear();
  }

 private:
  int place(int p) const { return (p + count_) % count_; }

  /// Each part of the parcel from one process to another, in order: the sending
  /// place of the team, and the receiving one.
  template <class F>
  void for_each_part(int from, int to, F&& f) const {
    for (const int i : team_.places[from])
      for (const int j : team_.places[to])
        f(static_cast<size_t>(i), static_cast<size_t>(j));
  }

  void send(int process, int j, int origin) {
    origin = place(origin);
    if (origin == team_.own)
      for_each_part(origin, place(origin + j), [&](size_t from, size_t to) {
        meeting_.send(process, meeting_.part_sent(team_, from, to, step_),
                      step_.bytes());
      });
    else
      meeting_.send(process, held_[j], bytes(origin, place(origin + j)));
  }

  /// It has arrived if no higher bit is left.
  void receive(int process, int j, int origin, int next) {
    origin = place(origin);
    if (j < next) {
      for_each_part(origin, team_.own, [&](size_t from, size_t to) {
        meeting_.receive(process,
                         meeting_.part_received(team_, from, to, step_),
                         step_.bytes());
      });
      return;
    }
    const int64_t size = bytes(origin, place(origin + j));
    char* memory = meeting_.scratch_.take(size);
    received_.emplace_back(j, memory);
    meeting_.receive(process, memory, size);
  }

  int64_t bytes(int from, int to) const {
    return static_cast<int64_t>(team_.places[from].size() *
                                team_.places[to].size()) *
           step_.bytes();
  }

  ClusterMeeting& meeting_;
  const CollectiveStep& step_;
  const Team& team_;
  const int count_;
  std::vector<const char*> held_;  // by j: a parcel on its way
  std::vector<std::pair<int, const char*>> received_;
};

Status ClusterMeeting::all_to_all(const CollectiveStep& step,
                                  uint64_t fingerprint) {
  for (const Team& team : teams(step))
    if (team.here) keep_own_parts(team, step);
  if (!in_rounds(step)) {
    for (const Team& team : teams(step))
      if (team.here) swap_parts(team, step);
    return exchange(fingerprint);
  }
  scratch_.reuse();
  int rounds = 0;
  std::vector<Swapped> own;
  for (const Team& team : teams(step)) {
    rounds =
        std::max(rounds, count_rounds(static_cast<int>(team.processes.size())));
    if (team.here) own.emplace_back(*this, step, team);
  }
  for (int k = 0; k < rounds; ++k) {
    for (Swapped& parcels : own)
      if (parcels.has_round(k)) parcels.round(k);
    TRY(exchange(fingerprint));
    for (Swapped& parcels : own) parcels.next();
  }
  return Unit{};
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
      workers.pool.parallel_for(
          step.elements, grain, workers.group, [&](int64_t begin, int64_t end) {
            combine_partials<op, S, C>(part.data, begins, begin, end,
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
    workers.pool.parallel_for(
        count, grain, workers.group, [&](int64_t first, int64_t last) {
          combine_own<op, S, C>(operands, first, last, range.first,
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
    const int64_t elements = window / combined_;
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
        body(node, at, std::min(window, bytes - at));
      at += window;
    } while (at < bytes);
  }

  void begin_receiving(const ReducePlan::Round& round, bool alone) {
    const int64_t all = bytes(range_);
    passing_ = alone && round.passing && all > window ? &round : nullptr;
    windows_.clear();
    combined_windows_ = arrived_ = 0;
    for (const ReducePlan::Transfer& transfer : round.receives) {
      for (const int node : transfer.nodes) {
        char* memory = meeting_->scratch_.take(passing_ ? window : all);
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
              last - first, grain, workers_->group,
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
