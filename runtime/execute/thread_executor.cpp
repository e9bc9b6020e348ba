#include "runtime/execute/thread_executor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/check.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;

void set_error(ErrorWord& to, const ErrorWord& from) {
  to.source = from.source;
  to.value = from.value;
  to.bound = from.bound;
  to.member = from.member;
  to.rank = from.rank;
  to.code.store(from.code.load());
}

Error decode(const ErrorWord& word, int device) {
  Error error = checked_error(static_cast<ErrorWord::Code>(word.code.load()),
                              word.value, word.bound);
  error.source = word.source;
  error.device = device;
  error.member = word.member;
  return error;
}

}  // namespace

namespace {
constexpr size_t most_straight_arguments = 256;

/// As Execution counts it: from twice its grain on, others may help.
bool is_alone(const LaunchStep& launch) {
  const auto work = static_cast<float>(launch.units) /
                    static_cast<float>(std::max<int64_t>(launch.grain, 1));
  return work < tuning().worth_spreading;
}
}  // namespace

bool is_straight(const Program& program, Device& device,
                 const RunOptions& options) {
  if (program.devices != 1 ||
      program.steps.size() > tuning().most_straight_steps || options.recorder ||
      options.ranges || options.lose_device || device.kind() != DeviceKind::cpu)
    return false;
  return std::ranges::all_of(program.steps, [](const Step& step) {
    if (const auto* launch = std::get_if<LaunchStep>(&step.what))
      return launch->function && is_alone(*launch) &&
             launch->arguments.size() <= most_straight_arguments;
    const auto* copy = std::get_if<CopyStep>(&step.what);
    return copy && copy->bytes <= tuning().copy_grain;
  });
}

std::optional<Error> run_straight(const Program& program,
                                  const RunOptions& options,
                                  const SlotPlace& place) {
  static constexpr std::atomic<bool> never{false};
  ErrorWord error;
  KernelContext context{};
  context.error = &error;
  context.stop = options.stop ? options.stop : &never;
  context.cancel = &never;
  std::array<void*, most_straight_arguments> arguments;
  const auto stopped = [&] {
    return context.stop->load(std::memory_order_relaxed);
  };
  for (const Step& step : program.steps) {
    if (stopped()) break;
    if (const auto* copy = std::get_if<CopyStep>(&step.what)) {
      void* to = place(program.slots[copy->to]);
      const void* from = place(program.slots[copy->from]);
      if (to != from) std::memcpy(to, from, static_cast<size_t>(copy->bytes));
      continue;
    }
    const auto& launch = std::get<LaunchStep>(step.what);
    for (size_t i = 0; i < launch.arguments.size(); ++i)
      arguments[i] = place(program.slots[launch.arguments[i]]);
    if (launch.units > 0)
      launch.function(arguments.data(), 0, launch.units, &context);
    if (error.code.load(std::memory_order_relaxed)) return decode(error, 0);
  }
  // A kernel that has stopped has left its results unfinished.
  if (stopped())
    return Error{.kind = Error::Kind::cancelled, .message = "stopped"};
  return std::nullopt;
}

ThreadExecutor::ThreadExecutor(const RunState& run)
    : run_(run),
      devices_(std::make_unique<DeviceState[]>(run.count)),
      buffers_(run) {
  for (const Instruction& instruction : run.flat.instructions)
    if (instruction.kind == Kind::launch)
      CHECK(instruction.as<LaunchStep>().function);
  for (int d = 0; d < run.count; ++d) {
    DeviceState& device = devices_[d];
    device.arguments.resize(run.flat.most_arguments);
    device.context.error = &device.error;
    device.context.device_position = d;
    device.context.cancel = &run.devices[d].cancel;
  }
}

Status ThreadExecutor::begin() {
  for (int d = 0; d < run_.count; ++d) {
    CHECK(!run_.devices[d].device->queue());
    devices_[d].context.stop = run_.stop;
    devices_[d].error.code = ErrorWord::none;
  }
  return Unit{};
}

Status ThreadExecutor::launch(int d, const Instruction& launch, bool spread) {
  DeviceState& device = devices_[d];
  const auto& step = launch.as<LaunchStep>();
  const std::vector<void*>& slots = run_.devices[d].slots;
  for (size_t i = 0; i < step.arguments.size(); ++i)
    device.arguments[i] = slots[step.arguments[i]];
  if (spread)
    launch_spread(d, step);
  else if (step.units > 0)
    step.function(device.arguments.data(), 0, step.units, &device.context);
  if (device.error.code.load(std::memory_order_relaxed))
    return decode(device.error, d);
  return Unit{};
}

// The error that is reported is the first in the order of ErrorWord, so no
// piece is left out because another has failed; of equal ones the first
// piece's.
void ThreadExecutor::launch_spread(int d, const LaunchStep& step) {
  DeviceState& device = devices_[d];
  std::mutex mutex;
  std::optional<int64_t> failed_at;  // the piece of device.error
  auto order = [](const ErrorWord& error, int64_t begin) {
    return std::tuple(error.member, error.rank, begin);
  };
  run_.pool->parallel_for(
      step.units, step.grain, run_.group(), [&](int64_t begin, int64_t end) {
        if (run_.stopped(d)) return;
        ErrorWord error;
        KernelContext context = device.context;
        context.error = &error;
        step.function(device.arguments.data(), begin, end, &context);
        if (error.code.load(std::memory_order_relaxed) == 0) return;
        std::lock_guard lock(mutex);
        if (failed_at && order(device.error, *failed_at) <= order(error, begin))
          return;
        failed_at = begin;
        set_error(device.error, error);
      });
}

Status ThreadExecutor::copy(int d, const CopyStep& step) {
  const std::vector<void*>& slots = run_.devices[d].slots;
  auto* to = static_cast<char*>(slots[step.to]);
  const auto* from = static_cast<const char*>(slots[step.from]);
  const auto stopped = [&] { return run_.stopped(d); };
  run_.pool->parallel_pieces(step.bytes, tuning().copy_grain, run_.group(),
                             stopped, [&](int64_t begin, int64_t end) {
                               std::memcpy(to + begin, from + begin,
                                           end - begin);
                             });
  return Unit{};
}

Status ThreadExecutor::meet(const CollectiveStep& step) {
  const CollectiveWorkers workers{*run_.pool, run_.group(), run_.stop};
  return buffers_.for_each(
      step, [&](const std::vector<int>*, CollectiveBuffers buffers) -> Status {
        unisono::meet(workers, step, buffers);
        return Unit{};
      });
}

Status ThreadExecutor::meet_others(ClusterMeeting& meeting,
                                   const CollectiveStep& step,
                                   uint64_t fingerprint) {
  return meeting.meet({*run_.pool, run_.group(), run_.stop}, step, fingerprint);
}

Result<std::optional<Executor::Exchange>> ThreadExecutor::begin_meeting(
    ClusterMeeting& meeting, const CollectiveStep& step, uint64_t fingerprint) {
  return std::optional(Exchange{{}, [this, &meeting, &step, fingerprint] {
                                  return meet_others(meeting, step,
                                                     fingerprint);
                                }});
}

/// All is done when it is asked for.
Result<bool> ThreadExecutor::read_flag(int d, SlotId flag) {
  return *static_cast<const uint8_t*>(run_.devices[d].slots[flag]) != 0;
}

Status ThreadExecutor::read_arguments(
    int d, const HostCallStep& step,
    std::vector<std::vector<uint8_t>>& arguments) {
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    const auto* data =
        static_cast<const uint8_t*>(run_.devices[d].slots[step.arguments[i]]);
    std::vector<uint8_t>& to = arguments.emplace_back();
    to.reserve(static_cast<size_t>(step.bytes[i]));
    in_pieces(step.bytes[i], tuning().copy_grain,
              [&](int64_t begin, int64_t end) {
                to.insert(to.end(), data + begin, data + end);
              });
  }
  return Unit{};
}

Status ThreadExecutor::write_results(
    int d, const HostCallStep& step,
    const std::vector<std::vector<uint8_t>>& results) {
  for (size_t i = 0; i < step.results.size(); ++i) {
    auto* to = static_cast<uint8_t*>(run_.devices[d].slots[step.results[i]]);
    in_pieces(step.result_bytes[i], tuning().copy_grain,
              [&](int64_t begin, int64_t end) {
                std::copy(results[i].begin() + begin, results[i].begin() + end,
                          to + begin);
              });
  }
  return Unit{};
}

/// A turn costs no more alone than together with others.
bool ThreadExecutor::replays(const FlatLoop&) const { return false; }

Result<int64_t> ThreadExecutor::replay(std::span<const int>,
                                       const Instruction& at) {
  return run_.flat.loops[at.loop].turns;
}

std::optional<Failure> ThreadExecutor::finish() {
  for (int d = 0; d < run_.count; ++d)
    if (run_.devices[d].failure) return std::move(run_.devices[d].failure);
  return std::nullopt;
}

}  // namespace unisono
