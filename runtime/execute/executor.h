#pragma once
// What a program's instructions do on devices. The walk over them, which knows
// where each device stands and when all meet (execution.h), is one; there are
// two executors, for the two ways in which devices work: threads of this
// process do it (thread_executor.h), or the device does by itself what is put
// on its queue (queue_executor.h).
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/execute/cluster_collective.h"
#include "runtime/execute/run_state.h"
#include "runtime/queue.h"

namespace unisono {

/// Used for one run at a time, whose RunState outlives it; may be used again
/// afterwards. Between `begin` and `finish` several threads may call it, each
/// one for another device. Errors are the device's that the call is for.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Before the first instruction of a run. After an error the run is over.
  virtual Status begin() = 0;
  /// `spread`: whether idle workers shall help with what threads do.
  virtual Status launch(int device, const Instruction& launch, bool spread) = 0;
  virtual Status copy(int device, const CopyStep& step) = 0;
  /// What all devices do together: no other call is under way.
  virtual Status meet(const CollectiveStep& step) = 0;
  /// The same where some of them are other processes', as in
  /// `ClusterMeeting::meet`; `meeting` is the same one in a run.
  virtual Status meet_others(ClusterMeeting& meeting,
                             const CollectiveStep& step,
                             uint64_t fingerprint) = 0;
  /// A meeting that is under way while devices go on: what another thread does
  /// of it, after those that were begun before.
  struct Exchange {
    std::function<Status()> await;  // until operands are there; may be null
    std::function<Status()> meet;
  };
  /// What devices are asked for meanwhile neither writes to the operand nor
  /// touches the result. `end_meeting` is called when the thread is done with
  /// it, unless the run ends before that. None where it cannot be: then
  /// `meet_others` is called.
  virtual Result<std::optional<Exchange>> begin_meeting(
      ClusterMeeting& meeting, const CollectiveStep& step,
      uint64_t fingerprint) = 0;
  virtual void end_meeting(const CollectiveStep& step) = 0;
  /// When what has been put in a lane of the device so far is done; null where
  /// calls return when it is.
  virtual Result<std::unique_ptr<Queue::Moment>> moment(
      int device, Lane lane = Lane::kernels) = 0;
  /// Where a collective that has been met for is done.
  virtual Lane lane_of(const CollectiveStep& step) const = 0;

  /// What the host decides by, and what its calls get: known when all is done
  /// before it. Fails if some check on the device has failed by then.
  virtual Result<bool> read_flag(int device, SlotId flag) = 0;
  /// One array of bytes for each argument, appended to `arguments`.
  virtual Status read_arguments(
      int device, const HostCallStep& step,
      std::vector<std::vector<uint8_t>>& arguments) = 0;
  /// What a call gave: before anything that is asked for later.
  virtual Status write_results(
      int device, const HostCallStep& step,
      const std::vector<std::vector<uint8_t>>& results) = 0;

  /// Whether `replay` is to be called for a loop before its first turn: for one
  /// that meets on all devices together, when all have come to it; else on
  /// each.
  virtual bool replays(const FlatLoop& loop) const = 0;
  /// Does turns of the loop that begins at a `repeat`, and says how many it
  /// leaves to be done one by one.
  virtual Result<int64_t> replay(std::span<const int> devices,
                                 const Instruction& at) = 0;

  /// After the last instruction: waits until nothing is under way, and gives
  /// the failure that the run reports, of those that the devices have already
  /// and those that are found now.
  virtual std::optional<Failure> finish() = 0;

  /// Instead of `finish`, after a run in which nothing has failed so far:
  /// returns while devices are at work, and says what is left to wait for. Null
  /// where that cannot be; then `finish` is called.
  virtual std::unique_ptr<RunUnderWay> leave() = 0;

  /// Whether it has memory of the devices from one run to the next.
  virtual bool keeps_device_memory() const = 0;
};

}  // namespace unisono
