#include "runtime/execute/thread_executor.h"

#include <cstring>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/check.h"

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
  if (to == from) return Unit{};
  const auto stopped = [&] { return run_.stopped(d); };
  run_.pool->parallel_pieces(step.bytes, copy_grain, run_.group(), stopped,
                             [&](int64_t begin, int64_t end) {
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
    arguments.emplace_back(data, data + step.bytes[i]);
  }
  return Unit{};
}

Status ThreadExecutor::write_results(
    int d, const HostCallStep& step,
    const std::vector<std::vector<uint8_t>>& results) {
  for (size_t i = 0; i < step.results.size(); ++i)
    if (step.result_bytes[i] > 0)
      std::memcpy(run_.devices[d].slots[step.results[i]], results[i].data(),
                  static_cast<size_t>(step.result_bytes[i]));
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
