#pragma once
// How devices with queues meet where some of them are other processes'. What
// devices of one process can do among themselves they do; between processes a
// Mover moves bytes, and nothing but bytes: kernels combine, in the members
// tree, so the bits are those of one process.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cluster/mover.h"
#include "runtime/execute/cluster_collective.h"
#include "runtime/execute/run_state.h"

namespace unisono {

/// Used for one collective at a time.
class QueueMeeting {
 public:
  using Team = ClusterMeeting::Team;
  /// Memory of one device that meetings need, used again by the next.
  struct Memory {
    std::vector<Buffer> buffers;
    size_t used = 0;  // of them, in this collective
  };
  /// `run`'s devices are known by then, and this process has some of them, but
  /// not all. All that is given outlives it; `memory` and what `queues` views
  /// are by position, and queues null for devices of other processes.
  QueueMeeting(const RunState& run, ClusterMeeting& meeting,
               std::span<Queue* const> queues, std::vector<Memory>& memory);

  /// Has memory for a collective, so that `meet` allocates none, and may be
  /// called from another thread while this one goes on. Where there is not
  /// enough it waits for meetings that are under way.
  /// Gives the step's teams.
  Result<const std::vector<Team>*> reserve(const CollectiveStep& step);
  /// A meeting begins after all kernels that have been put so far.
  Status follow_kernels();
  /// Puts a collective on the own devices' queues, in their lanes of copies,
  /// and exchanges with the other processes: operands are there, or lanes wait
  /// for them. What uses the memory afterwards waits for all own queues' marks
  /// there. Not for what jit makes others on GPUs (CHECK), as in
  /// queue_collective.h.
  Status meet(const CollectiveStep& step, const std::vector<Team>& teams,
              uint64_t fingerprint);
  /// Whether it returns when all has been exchanged (Mover::waits).
  bool waits() const { return mover_->waits(); }

 private:
  using Partial = ClusterMeeting::Partial;
  /// Memory of the device at a place of a team.
  struct At {
    size_t place = 0;
    char* data = nullptr;  // not used where the device is another process's
  };
  /// What is combined: elements of 16 bits are combined in 32.
  struct Operand {
    At at;
    bool small = false;
  };
  /// A range of elements, which one device of each process combines.
  struct Range {
    int64_t first = 0, last = 0;
    size_t lane = 0;   // of these devices among their process's
    int combiner = 0;  // the process that gets all partial results; -1: each
    std::vector<Operand> partials = {};
  };
  struct Reduction {
    const Team& team;
    const CollectiveStep& step;
    std::vector<std::vector<size_t>> places;  // by process of the team
    size_t lanes = 1;
    bool cut = false;
    std::vector<Range> ranges = {};
  };

  At from(const Team& team, size_t place, const CollectiveStep& step,
          int64_t offset = 0) const;
  At to(const Team& team, size_t place, const CollectiveStep& step,
        int64_t offset = 0) const;
  bool is_own(const Team& team, size_t place) const;
  Queue& queue(const Team& team, size_t place) const;

  /// A copy within this process, or a transfer.
  Status copy(const Team& team, At from, At to, int64_t bytes);
  /// To or from another process; nothing if this process has neither end.
  void transfer(const Team& team, At from, At to, int64_t bytes);
  Status move(uint64_t fingerprint);
  /// What is put on any own queue from now on begins after all that is there.
  Status join();
  /// Memory of an own device until the next collective.
  At scratch(const Team& team, size_t place, int64_t bytes);
  /// By position: how many bytes a collective asks for, one after the other.
  using Needs = std::vector<std::vector<int64_t>>;
  Needs needs_of(const CollectiveStep& step);
  bool has(const Needs& needs) const;
  Status provide(int position, size_t number, int64_t bytes);
  /// Whether nothing is put, as it is only asked what would be needed.
  bool only_asks() const { return needs_ != nullptr; }

  /// What `copies` of the following lists for each team that is here, moved.
  Status exchange(Status (QueueMeeting::*copies)(const Team&,
                                                 const CollectiveStep&),
                  const CollectiveStep& step, const std::vector<Team>& teams,
                  uint64_t fingerprint);
  Status gather(const Team& team, const CollectiveStep& step);
  Status spread_gathered(const Team& team, const CollectiveStep& step);
  Status swap_parts(const Team& team, const CollectiveStep& step);
  Status permute(const Team& team, const CollectiveStep& step);

  Status reduce(const Team& team, const CollectiveStep& step,
                uint64_t fingerprint);
  void divide(Reduction& all) const;
  Status share_partials(Reduction& all, Range& range);
  Result<Operand> own_partial(const Reduction& all, const Range& range,
                              int64_t begin, int64_t end);
  /// The result lies at `at` if that is given, else in scratch memory.
  Result<Operand> combined(const Reduction& all, const Range& range,
                           int64_t begin, int64_t end, const At* at);
  Result<Operand> combine(const Reduction& all, const Range& range, Operand a,
                          Operand b, const At* at);
  Status spread_results(const Reduction& all);

  const RunState& run_;
  ClusterMeeting& meeting_;
  const std::span<Queue* const> queues_;
  const int own_;
  const std::vector<int> others_;
  std::vector<Queue*> own_queues_;
  Mover* mover_ = nullptr;
  std::vector<Memory>& memory_;
  std::vector<Transfer> transfers_;
  std::vector<std::pair<const CollectiveStep*, Needs>> known_;
  Needs* needs_ = nullptr;
};

}  // namespace unisono
