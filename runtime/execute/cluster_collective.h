#pragma once
// Collectives of devices that several processes have.
//
// Every process knows who has which device, so each makes the same list of what
// goes from whom to whom, and takes its own part of it. A reduction is combined
// on the way (cluster/reduce_plan.h), and what is gathered is passed on, so a
// process sends about log2 N messages; only what is another one's alone goes
// to that directly.
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/cluster/cluster.h"
#include "runtime/cluster/reduce_plan.h"
#include "runtime/cluster/scratch.h"
#include "runtime/execute/collective.h"
#include "runtime/execute/run_state.h"

namespace unisono {

/// Between the processes that have devices of one run. Used for one collective
/// at a time.
class ClusterMeeting {
 public:
  /// `run`'s devices are known by then, and this process has some of them.
  ClusterMeeting(const RunState& run, Cluster& cluster);
  ~ClusterMeeting();
  ClusterMeeting(const ClusterMeeting&) = delete;
  /// Whether it is for the devices that `run` has now, too.
  bool fits(const Cluster& cluster) const;

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
    std::vector<int> owners;               // by place in the team
    std::vector<int> processes;            // each once, ascending
    std::vector<std::vector<int>> places;  // of each of the processes
    int own = -1;                          // this process's place among them
    std::vector<Partial> partials;
    bool here = false;  // this process has some
    bool cut = false;   // a reduction is
    ReducePlan plan;    // of a reduction that this process takes part in
  };
  /// Known from the first time on that the step is done; they stay where they
  /// are.
  const std::vector<Team>& teams(const CollectiveStep& step);
  Cluster& cluster() const { return cluster_; }
  /// The processes of the run but this one, ascending.
  std::vector<int> others() const;

 private:
  /// What a process combines of a reduce_scatter, or helps to.
  struct Reduction;
  /// An all_reduce of a team.
  class Combined;
  Combined& next_part();
  std::span<Combined> parts();

  std::vector<Team> make_teams(const CollectiveStep& step) const;
  static std::vector<Partial> partials_of(const std::vector<int>& owners);
  void* from(const Team& team, size_t place, const CollectiveStep& step) const;
  void* to(const Team& team, size_t place, const CollectiveStep& step) const;

  Status gather(const CollectiveStep& step, uint64_t fingerprint);
  Status all_to_all(const CollectiveStep& step, uint64_t fingerprint);
  void swap_parts(const Team& team, const CollectiveStep& step);
  void keep_own_parts(const Team& team, const CollectiveStep& step) const;
  const char* part_sent(const Team& team, size_t i, size_t j,
                        const CollectiveStep& step) const;
  char* part_received(const Team& team, size_t i, size_t j,
                      const CollectiveStep& step) const;
  /// What is small goes from hand to hand (Swapped), in rounds.
  class Swapped;
  /// Whether what a device gives others is passed on, for few messages.
  bool in_rounds(const CollectiveStep& step);
  void permute(const Team& team, const CollectiveStep& step);
  Status reduce_scatter(CollectiveWorkers workers, const CollectiveStep& step,
                        uint64_t fingerprint);
  /// By an all_reduce of all parts.
  Status reduce_all_parts(CollectiveWorkers workers, const CollectiveStep& step,
                          uint64_t fingerprint);
  Status all_reduce(CollectiveWorkers workers, const CollectiveStep& step,
                    uint64_t fingerprint);
  /// The rounds in which what all have is combined.
  Status combine_in_rounds(int rounds, uint64_t fingerprint);
  const void* own_partial(const Team& team, int64_t begin, int64_t end,
                          ElementRange range, CollectiveWorkers workers,
                          const CollectiveStep& step);
  /// Where this process's devices of the team want the result.
  void add_own_results(const Team& team, const CollectiveStep& step,
                       std::vector<void*>& results) const;
  void* first_result(const Team& team, const CollectiveStep& step) const;
  /// Adds to the messages of the next exchange.
  void send(int process, const void* data, int64_t bytes);
  void receive(int process, void* data, int64_t bytes);
  void add_piece(std::vector<Message>& messages, int process, void* data,
                 int64_t bytes);
  /// The message of the next exchange from, or to, a process.
  Message& message(std::vector<Message>& messages, int process);
  Status exchange(uint64_t fingerprint);

  const RunState& run_;
  Cluster& cluster_;
  std::vector<int> owners_;  // by position
  std::deque<std::pair<const CollectiveStep*, std::vector<Team>>> teams_;
  std::vector<Message> sends_, receives_;  // of the next exchange
  std::vector<Message> spare_;             // whose memory is used again
  std::vector<Combined> combined_;         // likewise; the first
  size_t parts_ = 0;                       // so many are of this collective
  std::vector<void*> results_;             // of one team
  Scratch scratch_;                        // until the next collective
};

}  // namespace unisono
