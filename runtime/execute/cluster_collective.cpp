#include "runtime/execute/cluster_collective.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/cluster/rounds.h"
#include "runtime/member_tree.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
bool ClusterMeeting::fits(const Cluster& cluster) const {
  if (&cluster != &cluster_) return false;
  for (int d = 0; d < run_.count; ++d)
    if (cluster_device(*run_.devices[d].device)->process() != owners_[d])
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
    team.cut = team.processes.size() > 1 &&
               step.bytes() >= tuning().least_cut_reduction;
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
  permute(teams(step).front(), step);  // groups have their pairs in one list
  return exchange(fingerprint);
}

bool ClusterMeeting::in_rounds(const CollectiveStep& step) {
  size_t most = 0;
  int64_t bytes = 0;  // of an operand
  for (const Team& team : teams(step)) {
    most = std::max(most, team.processes.size());
    bytes = step.bytes() * static_cast<int64_t>(team.owners.size());
  }
  return most > tuning().few_processes && bytes < tuning().least_cut_reduction;
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

}  // namespace unisono
