#pragma once
// One run of a program: where each device stands, and how devices meet.
//
// A device is no thread but a number, its place in the instructions. Whoever
// takes a device that is ready (the caller of run(), or an idle worker) leads
// it on until it must wait: at a collective for the others, at a host call for
// its turn. Nobody blocks for a device; it is left where it stands. Who brings
// the last device to a collective performs it, and all are ready again.
//
// What happens between two collectives is a phase. A phase with little work in
// it is done by one thread, the phase's owner, device after device: to involve
// another would take longer. Once more work than `worth_sharing` is met, the
// devices that are ready are offered to the pool.
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/execute/collective.h"
#include "runtime/execute/flat_program.h"
#include "runtime/execute/program.h"
#include "runtime/execute/replay.h"
#include "runtime/execute/watchdog.h"
#include "runtime/pool.h"
#include "runtime/queue.h"
#include "runtime/recorder.h"

namespace unisono {

/// Used for one run at a time; may be used again afterwards.
class Execution final : public Work, public Watched {
 public:
  Execution(const Program& program, const FlatProgram& flat);

  /// Where a device's slot is. All slots must be bound before run().
  void bind(int device, SlotId slot, void* data) {
    devices_[device].slots[slot] = data;
  }
  /// The device that the run is on, where it has a queue. All devices have one,
  /// or none has.
  void use(int device, Device* where) { devices_[device].device = where; }
  /// Tells `recorder`, if there is one, what the devices do in the next run.
  void record(Recorder* recorder, const std::vector<Device*>& devices);
  /// Runs all devices to the end, or gives the error of the first that failed.
  std::optional<Error> run(Pool& pool, const RunOptions& options);
  /// What a call of the host threw, if that was the error that `run` gave.
  std::exception_ptr take_exception() { return std::exchange(thrown_, {}); }

  /// Whether devices wait for one another.
  bool meets() const { return flat_.has_collectives; }

  void look(Clock::time_point now) override;
  bool has_work() const override;
  void help() override;

 private:
  using Mask = uint64_t;  // a set of devices

  struct alignas(64) DeviceState {
    int pc = 0;
    float work = 0;  // done in this phase, in grains
    KernelContext context;
    ErrorWord error;
    std::atomic<bool> cancel{false};
    std::vector<void*> slots;
    std::vector<void*> arguments;
    std::optional<Error> failure;
    std::exception_ptr thrown;  // by a call of the host: the failure
    Device* device = nullptr;   // with a queue, or null
    Queue* queue = nullptr;
    Buffer grid_error;  // a GridError
    uint64_t launches = 0;
    std::vector<int64_t> turns;  // that are left, by loop
    void* staging = nullptr;     // of this run, if collectives need it
    CopiesBeside copies;
    std::vector<Replay> replays;  // by loop, of this device alone
    std::unique_ptr<Queue> capturing;
    /// When the watchdog saw it compute first while others waited.
    std::optional<Clock::time_point> awaited_since;
    int row = 0;                // its index, for the recorder
    Clock::time_point arrived;  // likewise: before a collective
  };

  void reset(Pool& pool, const RunOptions& options);
  /// Leads devices on while there are any that this thread may take.
  /// `owned_phase`: the phase that this thread owns, or -1.
  void drive(int owned_phase);
  int take(int owned_phase);
  /// Leads one device on until it must wait or has ended.
  void advance(int device, int& owned_phase);

  void launch(int device, const LaunchStep& step, float work);
  void copy(DeviceState& device, const CopyStep& step);
  void launch_split(DeviceState& device, const LaunchStep& step);
  Status host_call(int device, const HostCallStep& step);
  /// May throw std::bad_alloc, as what it calls may.
  Status call_host(int device, const HostCallStep& step);

  /// False: the device has been left waiting.
  bool have_turn(int device);
  /// The device stands before a collective. True: it was the last, all have
  /// met, and this thread owns the phase that begins.
  bool meet(int device, int& owned_phase);
  Status perform(const Instruction& collective);
  void record_collective(const Instruction& collective,
                         Clock::time_point start) const;
  /// meet(devices, buffers) for each group of devices; without groups for all
  /// together, and no list of them.
  template <class Meet>
  Status for_each_group(const CollectiveStep& step, Meet&& meet) {
    const auto put = [&](size_t place, int device) {
      from_[place] = devices_[device].slots[step.from];
      to_[place] = devices_[device].slots[step.to];
    };
    if (step.groups.empty()) {
      for (int d = 0; d < count_; ++d) put(static_cast<size_t>(d), d);
      return meet(nullptr, CollectiveBuffers{from_, to_});
    }
    for (const auto& group : step.groups) {
      for (size_t i = 0; i < group.size(); ++i) put(i, group[i]);
      const CollectiveBuffers buffers{std::span(from_).first(group.size()),
                                      std::span(to_).first(group.size())};
      if (Status done = meet(&group, buffers); !done) return done;
    }
    return Unit{};
  }
  void begin_phase(int device, int& owned_phase);

  // Devices with queues (execution_queue.cpp): launches and copies are put
  // there, and failed checks are found out when something waits.
  Status open_queues();
  Status borrow_staging();
  void return_staging();
  /// A recorder is told how long it took, and so it is waited for.
  Status put(int device, const Instruction& instruction);
  Status put_unseen(int device, const Instruction& instruction);
  Status wait_for_queue(int device);
  /// Whatever of a device's slots copies are under way for is waited for.
  Status join_copies(int device, std::span<const SlotId> slots);
  Status join_all_copies(int device);
  void note_copies(SlotId from, SlotId to);
  /// Turns of a loop, as many as work captured once does at little cost; the
  /// rest is left to be counted down (execution_replay.cpp).
  Status prepare_replays();
  bool is_replayed(const FlatLoop& loop) const;
  Status replay(std::span<const int> devices, int loop);
  Replay& find_replay(std::span<const int> devices, int loop);
  Status capture(std::span<const int> devices, const FlatLoop& loop,
                 Replay& replay);
  Status put_turns(std::span<const int> devices, const FlatLoop& loop,
                   int64_t turns);
  Status seal_errors(std::span<const int> devices, bool count);
  Result<bool> any_failed(std::span<const int> devices);
  Result<bool> read_flag(int device, SlotId flag);
  Status read_arguments(int device, const HostCallStep& step,
                        std::vector<std::vector<uint8_t>>& arguments);
  Status perform_on_queues(const Instruction& collective);
  Status perform_unseen_on_queues(const Instruction& collective);
  void finish_queues();
  void release_queues();
  void abandon(Error error);

  void end(int device);
  void fail(int device, Error error);
  void stop_all(int device);

  // With the lock held:
  void cancel_from(int device);
  /// Draws the conclusions after a device has come to a halt. True: all stand
  /// before a collective, and it can be performed.
  bool settle();
  void check_stuck();
  /// The collective before which devices wait, or will.
  const Instruction* awaited() const;
  void give_up(Mask missing);
  void set_stalled(Mask missing, const Instruction& collective);
  void finish();
  void make_ready(Mask devices);
  /// Offers ready devices to the pool from now to the end of the phase.
  void share();

  const Program& program_;
  const FlatProgram& flat_;
  const int count_;
  const Mask all_;
  std::unique_ptr<DeviceState[]> devices_;
  std::exception_ptr thrown_;
  Pool* pool_ = nullptr;
  const std::atomic<bool>* stop_ = nullptr;
  const std::function<bool(int)>* lose_device_ = nullptr;
  std::chrono::milliseconds watchdog_{0};
  Recorder* recorder_ = nullptr;
  bool published_ = false;  // the caller's: whether added to the pool

  // Each device is in one of these sets, or is being led on by some thread.
  std::atomic<Mask> ready_{0};
  std::mutex mutex_;
  Mask arrived_ = 0;       // before a collective
  Mask waiting_turn_ = 0;  // before a host call
  Mask ended_ = 0;
  bool failed_ = false;
  bool stopped_ = false;
  bool stalled_ = false;
  int seen_phase_ = 0;  // when the watchdog looked last

  std::atomic<int> phase_{0};
  std::atomic<bool> shared_{false};
  std::atomic<float> phase_work_{0};  // of devices that came to a halt
  std::atomic<bool> done_{false};
  std::vector<const void*> from_;  // while a collective is performed
  std::vector<void*> to_;
  std::vector<Replay> replays_;  // by loop, of all devices together
  int captured_phases_ = 0;      // since a capture began
};

}  // namespace unisono
