#pragma once
// Devices whose work the threads of this process do (CPUs): who leads a device
// to an instruction does it there and then, with the help of idle workers.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/execute/executor.h"

namespace unisono {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(const RunState& run);

  Status begin() override;
  Status launch(int device, const Instruction& launch, bool spread) override;
  Status copy(int device, const CopyStep& step) override;
  Status meet(const CollectiveStep& step) override;
  Status meet_others(ClusterMeeting& meeting, const CollectiveStep& step,
                     uint64_t fingerprint) override;
  Result<std::optional<Exchange>> begin_meeting(ClusterMeeting& meeting,
                                                const CollectiveStep& step,
                                                uint64_t fingerprint) override;
  void end_meeting(const CollectiveStep&) override {}
  Result<std::unique_ptr<Queue::Moment>> moment(int, Lane) override {
    return std::unique_ptr<Queue::Moment>();
  }
  Lane lane_of(const CollectiveStep&) const override { return Lane::kernels; }
  std::unique_ptr<RunUnderWay> leave() override { return nullptr; }
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
  bool keeps_device_memory() const override { return false; }

 private:
  struct alignas(64) DeviceState {
    KernelContext context;
    ErrorWord error;
    std::vector<void*> arguments;
  };

  void launch_spread(int device, const LaunchStep& step);

  const RunState& run_;
  const std::unique_ptr<DeviceState[]> devices_;
  GroupBuffers buffers_;
};

/// Whether a run of the program is no more than a few launches and copies on
/// one CPU, each too little for a second thread, and nobody is told of them:
/// then `run_straight` does what an Execution would, without one.
bool is_straight(const Program& program, Device& device,
                 const RunOptions& options);
/// `place(slot)`: its memory.
using SlotPlace = std::function<void*(const Slot& slot)>;
std::optional<Error> run_straight(const Program& program,
                                  const RunOptions& options,
                                  const SlotPlace& place);

}  // namespace unisono
