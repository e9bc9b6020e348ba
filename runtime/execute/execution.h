#pragma once
// One run of a program: where each device stands, and how devices meet.
//
// A device is no thread but a number, its place in the instructions. Whoever
// takes a device that is ready (the caller of run(), or an idle worker) leads
// it on until it must wait: at a collective for the others, at a host call for
// its turn. Nobody blocks for a device; it is left where it stands. Who brings
// the last device to a collective performs it, and what is done once for all
// devices behind it, and all are ready again.
//
// What happens between two collectives is a phase. A phase with little work in
// it is done by one thread, the phase's owner, device after device: to involve
// another would take longer. Once more work than `worth_sharing` is met, the
// devices that are ready are offered to the pool. Work that devices do by
// themselves takes no thread's time, so there one thread leads all of them.
//
// What the instructions do is the executor's (executor.h).
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/execute/cluster_collective.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/flat_program.h"
#include "runtime/execute/program.h"
#include "runtime/execute/ranges.h"
#include "runtime/execute/run_state.h"
#include "runtime/execute/watchdog.h"
#include "runtime/pool.h"
#include "runtime/queue.h"
#include "runtime/recorder.h"

namespace unisono {

/// Used for one run at a time; may be used again afterwards.
class Execution final : public Work, public Watched {
 public:
  /// For runs on devices that work as `device` does.
  Execution(const Program& program, const FlatProgram& flat, Device& device);

  /// The device that takes the `d`-th part in the next run, and where its slots
  /// are. All must be said before run().
  void use(int d, Device* device) { run_.devices[d].device = device; }
  void bind(int d, SlotId slot, void* data) {
    run_.devices[d].slots[slot] = data;
  }
  /// In the next run some of the devices may be other processes' of a cluster:
  /// what these do is theirs, and collectives are meetings of the processes.
  void join(Cluster* cluster);
  /// Tells `recorder`, if there is one, what the devices do in the next run.
  void record(Recorder* recorder, const std::vector<Device*>& devices);
  /// Runs all devices to the end, or gives the error of the first that failed.
  std::optional<Error> run(Pool& pool, const RunOptions& options);
  /// What a call of the host threw, if that was the error that `run` gave.
  std::exception_ptr take_exception() { return std::exchange(thrown_, {}); }

  /// Whether devices wait for one another.
  bool meets() const { return flat_.meets; }
  /// Whether it has memory of the devices from one run to the next.
  bool keeps_device_memory() const { return executor_->keeps_device_memory(); }

  void look(Clock::time_point now) override;
  bool has_work() const override;
  void help() override;

 private:
  /// A set of devices of this process, each of which has a bit: the next one in
  /// the order of the run. All others' are not in it, however many there are.
  using Mask = uint64_t;
  static constexpr int most_own = 64;
  using HostResults = std::vector<std::vector<uint8_t>>;

  struct alignas(64) DeviceState {
    int pc = 0;
    float work = 0;              // done in this phase, in grains
    std::vector<int64_t> turns;  // that are left, by loop
    /// What calls of another device gave for this one, which comes to them
    /// later.
    std::deque<std::shared_ptr<const HostResults>> given;
    /// When the watchdog saw it compute first while others waited.
    std::optional<Clock::time_point> awaited_since;
    bool has_inputs = true;     // they have arrived
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

  /// Counts the work that a device is about to do, and offers the others to
  /// the pool once that is worth it.
  void count_work(int device, float work);
  Status launch(int device, const Instruction& instruction);
  Status launch_recorded(int device, const Instruction& instruction,
                         bool spread);
  Status copy(int device, const CopyStep& step);
  /// An exception from the host is the failure that it leaves.
  std::optional<Failure> host_call(int device, const HostCallStep& step);
  /// May throw std::bad_alloc, as what it calls may.
  Status call_host(int device, const HostCallStep& step);
  Status take_results(int device, const HostCallStep& step);
  /// Turns of a loop, as many as are done together at little cost.
  Status replay(std::span<const int> devices, const Instruction& at);

  /// False: the device has been left waiting.
  bool have_turn(int device);
  /// The device stands before a collective. True: it was the last, all have
  /// met, and this thread owns the phase that begins.
  bool meet(int device, int& owned_phase);
  /// A collective, a loop that is replayed and has some, or a step that is done
  /// once.
  Status perform(int pc);
  Status perform_once(const Instruction& instruction);
  /// A collective of several processes: it is done then, or under way.
  Status meet_others(const Instruction& instruction);
  void begin_exchange(const CollectiveStep& step, Executor::Exchange exchange);
  Status end_collective(const CollectiveStep& step);
  bool is_under_way(const Instruction& end) const;
  /// Finds out which inputs are on their way here still, and where they are
  /// read first.
  void find_arrivals();
  /// Waits for these before the instruction, if it comes then.
  Status await_inputs(int device, int pc);
  /// Helps with exchanges in the background, until this one is done.
  Status await(Background::Ticket ticket);
  void record_wait(const CollectiveStep& step, Clock::time_point end) const;
  void record_collective(const CollectiveStep& step,
                         Clock::time_point start) const;

  // Of devices that work on after a call has returned, times are known later.
  using Moment = std::shared_ptr<Queue::Moment>;
  /// An event from the last of some moments to the last of others.
  struct Timed {
    Recorder::Event event;
    std::vector<Moment> start, end;
  };
  class UnderWay;
  /// Between two moments of the device's lane of kernels.
  template <class Work>
  Status record_work(int device, Recorder::Event event, Work&& work);
  Status meet_recorded(const CollectiveStep& step,
                       const std::function<Status()>& meet);
  void note_timed(Timed timed);
  static void record_all(Recorder& recorder, std::vector<Timed>& timed);
  /// All devices go on at `pc`.
  void begin_phase(int device, int pc, int& owned_phase);
  /// It could not be performed: all devices end.
  void abandon(Error error);

  void end(int device);
  void fail(int device, Failure failure);
  void stop_all(int device);

  void find_own(bool some);
  bool is_own(int device) const { return slots_[device] >= 0; }
  Mask bit(int device) const { return Mask{1} << slots_[device]; }
  /// The first of some devices, of which there is one.
  int first_of(Mask devices) const;

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

  RunState run_;
  const std::unique_ptr<Executor> executor_;
  const FlatProgram& flat_;
  const int count_;
  std::vector<int8_t> slots_;  // [device] its bit; -1: another process's
  std::vector<int> own_;       // [bit] the device
  Mask all_ = 0;
  std::unique_ptr<DeviceState[]> devices_;
  std::exception_ptr thrown_;
  const std::function<bool(int)>* lose_device_ = nullptr;
  std::chrono::milliseconds watchdog_{0};
  Recorder* recorder_ = nullptr;
  Ranges* ranges_ = nullptr;
  std::vector<Timed> timed_;  // of which times are not known yet
  /// Of a run in several processes, else null.
  Cluster* cluster_ = nullptr;
  std::optional<ClusterMeeting> meeting_;
  /// Collectives under way. Changes only while all devices stand still.
  std::vector<std::pair<const CollectiveStep*, Background::Ticket>> begun_;
  /// Inputs are there with this ticket; no instruction before this one reads
  /// them.
  Background::Ticket arrival_ = 0;
  int reads_arrivals_ = 0;
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
};

}  // namespace unisono
