#pragma once
// Collectives of devices that several processes have.
//
// Every process knows who has which device, so each makes the same list of what
// goes from whom to whom, and takes its own part of it: all of a collective's
// messages between two processes are one. Of a reduction a process combines
// what the members tree combines of its own devices, and sends these partial
// results alone: one, where its devices are an aligned block of the tree, and
// otherwise a few. Who has all of them combines them in the same tree, so the
// bits are those of one process.
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/cluster/cluster.h"
#include "runtime/execute/collective.h"
#include "runtime/execute/run_state.h"

namespace unisono {

/// Between the processes that have devices of one run. Used for one collective
/// at a time.
class ClusterMeeting {
 public:
  /// `run`'s devices are known by then, and this process has some of them.
  ClusterMeeting(const RunState& run, Cluster& cluster);

  /// All own devices have arrived. `fingerprint` is equal where processes do
  /// the same.
  Status meet(CollectiveWorkers workers, const CollectiveStep& step,
              uint64_t fingerprint);

  /// A part of the members tree that one process has.
  struct Partial {
    int64_t begin = 0, end = 0;  // places in the team
    int owner = 0;
  };
  /// Positions in a run of those who meet, and which processes they belong to.
  struct Team {
    std::vector<int> devices;
    std::vector<int> owners;     // by place in the team
    std::vector<int> processes;  // each once, ascending
    std::vector<Partial> partials;
    bool here = false;  // this process has some
  };
  /// Known from the first time on that the step is done.
  const std::vector<Team>& teams(const CollectiveStep& step);
  Cluster& cluster() const { return cluster_; }
  /// The processes of the run but this one, ascending.
  std::vector<int> others() const;

 private:
  /// What is combined, by whom.
  struct Reduction;

  std::vector<Team> make_teams(const CollectiveStep& step) const;
  static std::vector<Partial> partials_of(const std::vector<int>& owners);
  void* from(const Team& team, size_t place, const CollectiveStep& step) const;
  void* to(const Team& team, size_t place, const CollectiveStep& step) const;

  void gather(const Team& team, const CollectiveStep& step);
  void swap_parts(const Team& team, const CollectiveStep& step);
  void permute(const Team& team, const CollectiveStep& step);
  Status reduce(CollectiveWorkers workers, const CollectiveStep& step,
                uint64_t fingerprint);

  /// Adds to the messages of the next exchange.
  void send(int process, const void* data, int64_t bytes);
  void receive(int process, void* data, int64_t bytes);
  Status exchange(uint64_t fingerprint);

  const RunState& run_;
  Cluster& cluster_;
  std::vector<int> owners_;  // by position
  std::vector<std::pair<const CollectiveStep*, std::vector<Team>>> teams_;
  std::vector<Message> sends_;  // to each other process of the run
  std::vector<Message> receives_;
};

}  // namespace unisono
