#pragma once
// Devices that do by themselves what is put on their queues (GPUs). Launches,
// copies and collectives are put there, and return; what fails a check is
// noticed when something waits: a flag of a loop, a call of the host, the end.
// One thread leads all devices, as nothing that it does takes long.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/execute/executor.h"
#include "runtime/execute/queue_meeting.h"
#include "runtime/execute/replay.h"
#include "runtime/queue.h"

namespace unisono {

/// For one thread.
class QueueExecutor final : public Executor {
 public:
  explicit QueueExecutor(const RunState& run);

  Status begin() override;
  Status launch(int device, const Instruction& launch, bool spread) override;
  Status copy(int device, const CopyStep& step) override;
  Status meet(const CollectiveStep& step) override;
  Status meet_others(ClusterMeeting& meeting, const CollectiveStep& step,
                     uint64_t fingerprint) override;
  Result<std::optional<Exchange>> begin_meeting(ClusterMeeting& meeting,
                                                const CollectiveStep& step,
                                                uint64_t fingerprint) override;
  void end_meeting(const CollectiveStep& step) override;
  Result<std::unique_ptr<Queue::Moment>> moment(int device, Lane lane) override;
  Lane lane_of(const CollectiveStep& step) const override;
  Result<bool> read_flag(int device, SlotId flag) override;
  Status read_arguments(int device, const HostCallStep& step,
                        std::vector<std::vector<uint8_t>>& arguments) override;
  Status write_results(
      int device, const HostCallStep& step,
      const std::vector<std::vector<uint8_t>>& results) override;
  bool replays(const FlatLoop& loop) const override;
  Result<int64_t> replay(std::span<const int> devices,
                         const Instruction& at) override;
  std::optional<Failure> finish() override;
  std::unique_ptr<RunUnderWay> leave() override;
  bool keeps_device_memory() const override { return true; }

 private:
  struct DeviceState {
    Queue* queue = nullptr;  // of the run; null: another process's device
    Buffer grid_error;       // a GridError, and one without an error
    uint64_t launches = 0;
    std::vector<void*> arguments;
    void* staging = nullptr;  // of this run, if collectives need it
    CopiesBeside copies;
    std::vector<Replay> replays;  // by loop, of this device alone
    std::unique_ptr<Queue> capturing;
    const Queue* capturing_for = nullptr;
  };

  bool is_here(int device) const { return devices_[device].queue != nullptr; }
  Status open();
  Status open(int device);
  Status prepare(Queue& queue);
  Status borrow_staging();
  void return_staging();
  /// The stop flag may go when the run is over.
  void release();

  Status read_error(int device, GridError& word);
  void read_first_error(int device, GridError& word);
  uint64_t sequence_of(const GridError& word) const;
  /// Puts a word without an error in the place of whatever is there.
  void clear_error(int device);
  /// Whatever of a device's slots copies are under way for is waited for.
  Status join_copies(int device, std::span<const SlotId> slots);
  Status join_all_copies(int device);
  void note_copies(SlotId from, SlotId to);
  /// A meeting, but for counting it.
  Status perform(const CollectiveStep& step);
  /// What comes before a meeting of processes, on the thread that leads.
  Result<const std::vector<QueueMeeting::Team>*> prepare_meeting(
      ClusterMeeting& meeting, const CollectiveStep& step);
  void note_sequence();

  // Loops that are replayed (queue_executor_replay.cpp).
  Status prepare_replays(Queue& queue) const;
  /// `loop`: an index into FlatProgram::loops.
  Replay& find_replay(std::span<const int> devices, int loop);
  Status capture(std::span<const int> devices, const FlatLoop& loop,
                 Replay& replay);
  Status put_together(std::span<const int> devices, const FlatLoop& loop,
                      int64_t turns);
  Status put_replays(std::span<const int> devices, const Replay& replay,
                     int64_t times);
  Status put_turns(std::span<const int> devices, const FlatLoop& loop,
                   int64_t turns);
  Status seal_errors(std::span<const int> devices, bool count);
  Result<bool> any_failed(std::span<const int> devices);

  const RunState& run_;
  const std::unique_ptr<DeviceState[]> devices_;
  const bool can_fail_;  // some launch has a check
  GroupBuffers buffers_;
  int phase_ = 0;                // meetings so far
  std::vector<Replay> replays_;  // by loop, of all devices together

  // Of a run in which some devices are other processes'.
  Cluster* cluster_ = nullptr;
  std::vector<Queue*> queues_;  // by position
  std::vector<QueueMeeting::Memory> memory_;
  std::optional<QueueMeeting> meeting_;
  std::vector<uint64_t> sequences_;           // of the cluster, by phase
  std::vector<const CollectiveStep*> begun_;  // meetings under way
};

}  // namespace unisono
