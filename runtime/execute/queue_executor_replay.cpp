// Loops of which it is known how many turns they take.
// Some turns are captured once, and put again and again: that costs little
// more than one launch. Launches have the same numbers each time, so after each
// time the word for errors is sealed (runtime/kernel_library/seal.cc).
#include <algorithm>
#include <chrono>

#include "runtime/execute/queue_executor.h"
#include "runtime/kernel_library/kernel_library.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;
using Clock = std::chrono::steady_clock;

/// Between looks at errors and at the stop flag.
constexpr auto unwatched = std::chrono::milliseconds(2);

GridLaunch seal(bool count) {
  GridLaunch launch{.code = kernel_library("seal"),
                    .entry = "seal",
                    .threads = 32,
                    .reports = false};
  launch.constants.resize(sizeof(int64_t));
  launch.constants[0] = count ? 1 : 0;
  return launch;
}

}  // namespace

bool QueueExecutor::replays(const FlatLoop& loop) const {
  if (cluster_ && loop.meets) return false;  // processes exchange in each turn
  return loop.straight && !run_.step_by_step &&
         loop.turns >= tuning().gpu_least_replayed_turns &&
         loop.turns * loop.work >= tuning().gpu_least_replayed_work;
}

Status QueueExecutor::prepare_replays(Queue& queue) const {
  for (const FlatLoop& loop : run_.flat.loops)
    if (replays(loop)) TRY(queue.prepare(seal(loop.meets)));
  return Unit{};
}

/// Turns, put one after the other on whatever queues the devices have now.
Status QueueExecutor::put_turns(std::span<const int> devices,
                                const FlatLoop& loop, int64_t turns) {
  for (int64_t turn = 0; turn < turns; ++turn)
    for (int pc = loop.begin; pc < loop.end; ++pc) {
      const Instruction& instruction = run_.flat.instructions[pc];
      if (instruction.kind == Kind::collective) {
        TRY(meet(instruction.as<CollectiveStep>()));
        continue;
      }
      for (int d : devices) {
        TRY(instruction.kind == Kind::copy ? copy(d, instruction.as<CopyStep>())
                                           : launch(d, instruction, false));
      }
    }
  return Unit{};
}

Status QueueExecutor::seal_errors(std::span<const int> devices, bool count) {
  const GridLaunch launch = seal(count);
  for (int d : devices) {
    void* const word[] = {devices_[d].grid_error.data()};
    TRY(devices_[d].queue->launch(launch, {.arguments = word}));
  }
  return Unit{};
}

/// Turns between a mark of the first device's queue, for which the others wait,
/// and one of each of them, for which the first one waits.
Status QueueExecutor::put_together(std::span<const int> devices,
                                   const FlatLoop& loop, int64_t turns) {
  Queue& first = *devices_[devices[0]].queue;
  const auto rest = devices.subspan(1);
  TRY(first.mark());
  for (int d : rest) TRY(devices_[d].queue->wait_for(first));
  TRY(put_turns(devices, loop, turns));
  for (int d : devices) TRY(join_all_copies(d));
  TRY(seal_errors(devices, loop.meets));
  for (int d : rest) {
    TRY(devices_[d].queue->mark());
    TRY(first.wait_for(*devices_[d].queue));
  }
  return Unit{};
}

/// The devices' queues are those that capture meanwhile.
Status QueueExecutor::capture(std::span<const int> devices,
                              const FlatLoop& loop, Replay& replay) {
  for (int d : devices) {
    DeviceState& device = devices_[d];
    if (!device.capturing) device.capturing = TRY(device.queue->capturing());
  }
  std::vector<Queue*> queues;
  for (int d : devices)
    queues.push_back(
        std::exchange(devices_[d].queue, devices_[d].capturing.get()));
  const int phase = phase_;
  Queue& first = *devices_[devices[0]].queue;
  Status done = first.begin_capture();
  if (done) {
    done = put_together(devices, loop, replay.turns);
    auto work = first.end_capture();  // also ends one that failed
    if (done && work) replay.work = std::move(*work);
    if (done && !work) done = work.error();
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    DeviceState& device = devices_[devices[i]];
    device.queue = queues[i];
    device.copies.clear();
    if (!done) device.capturing.reset();
  }
  phase_ = phase;  // nothing has been done yet
  return done;
}

/// Captured work with this run's addresses, if the devices can do that. It is
/// captured when that pays at once, or the second time.
Replay& QueueExecutor::find_replay(std::span<const int> devices, int id) {
  const FlatLoop& loop = run_.flat.loops[id];
  Replay& replay = loop.meets ? replays_[id] : devices_[devices[0]].replays[id];
  std::vector<const void*> addresses;
  for (int d : devices) {
    const DeviceState& device = devices_[d];
    const std::vector<void*>& slots = run_.devices[d].slots;
    addresses.push_back(device.queue);
    addresses.push_back(device.grid_error.data());
    addresses.push_back(device.staging);
    addresses.insert(addresses.end(), slots.begin(), slots.end());
  }
  const bool known = replay.addresses == addresses;
  if (!known) {
    replay = Replay();
    replay.addresses = std::move(addresses);
  } else if (replay.state != Replay::State::seen) {
    return replay;
  }
  replay.state = Replay::State::seen;
  if (!known && loop.turns * loop.work < tuning().gpu_much_work_at_once)
    return replay;
  const int64_t most = std::clamp<int64_t>(
      tuning().gpu_most_captured_work / loop.work, 1, loop.turns / 4);
  const int64_t times = (loop.turns + most - 1) / most;
  replay.turns = loop.turns / times;
  replay.state = capture(devices, loop, replay) ? Replay::State::ready
                                                : Replay::State::impossible;
  return replay;
}

Result<bool> QueueExecutor::any_failed(std::span<const int> devices) {
  bool failed = false;
  for (int d : devices) {
    GridError word;
    TRY(read_error(d, word));
    failed |= word.launch != 0;
  }
  return failed;
}

Status QueueExecutor::put_replays(std::span<const int> devices,
                                  const Replay& replay, int64_t times) {
  Queue& first = *devices_[devices[0]].queue;
  const auto rest = devices.subspan(1);
  for (int d : rest) {
    TRY(devices_[d].queue->mark());
    TRY(first.wait_for(*devices_[d].queue));
  }
  for (int64_t i = 0; i < times; ++i) TRY(first.replay(*replay.work));
  TRY(first.mark());
  for (int d : rest) TRY(devices_[d].queue->wait_for(first));
  return Unit{};
}

Result<int64_t> QueueExecutor::replay(std::span<const int> devices,
                                      const Instruction& at) {
  for (int d : devices) TRY(join_all_copies(d));
  const Replay& replay = find_replay(devices, at.loop);
  int64_t left = run_.flat.loops[at.loop].turns;
  for (int64_t burst = 1; replay.state == Replay::State::ready &&
                          left >= replay.turns && !run_.stopped(devices[0]);) {
    const auto begin = Clock::now();
    const int64_t times = std::min(burst, left / replay.turns);
    TRY(put_replays(devices, replay, times));
    left -= times * replay.turns;
    if (TRY(any_failed(devices))) left = 0;
    if (Clock::now() - begin < unwatched) burst *= 2;
  }
  if (run_.flat.loops[at.loop].meets) ++phase_;
  return left;
}

}  // namespace unisono
