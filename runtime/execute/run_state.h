#pragma once
// One run of a program, as the walk over its instructions (execution.h) and
// what they do on devices (executor.h) both know it.
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/execute/collective.h"
#include "runtime/execute/flat_program.h"
#include "runtime/execute/program.h"
#include "runtime/pool.h"
#include "runtime/result.h"

namespace unisono {

/// Why a device ended before the program's end.
struct Failure {
  Error error;
  std::exception_ptr thrown = nullptr;  // by a call of the host: the error
  /// In several processes, where it is found after others have gone on: the
  /// cluster's number of the exchange before it (Cluster::sequence).
  std::optional<uint64_t> sequence = {};
};

struct alignas(64) RunDevice {
  Device* device = nullptr;
  std::vector<void*> slots;         // where each is, in the device's memory
  std::atomic<bool> cancel{false};  // its work is no longer wanted
  std::optional<Failure> failure;
};

struct RunState {
  RunState(const Program& program, const FlatProgram& flat)
      : program(program),
        flat(flat),
        count(program.devices),
        devices(std::make_unique<RunDevice[]>(count)) {
    for (int d = 0; d < count; ++d)
      devices[d].slots.resize(program.slots.size());
  }

  const Program& program;
  const FlatProgram& flat;
  const int count;
  const std::unique_ptr<RunDevice[]> devices;

  Pool* pool = nullptr;
  const std::atomic<bool>* stop = nullptr;  // set: no work is wanted
  /// Somebody looks at each instruction, so none are done together.
  bool step_by_step = false;

  /// Whose work it is that others help with (Pool): this run's.
  const void* group() const { return this; }
  bool stopped(int device) const {
    return stop->load(std::memory_order_relaxed) ||
           devices[device].cancel.load(std::memory_order_relaxed);
  }
};

/// Operands and results of a collective, group by group. Used for one
/// collective at a time, and again for the next.
class GroupBuffers {
 public:
  explicit GroupBuffers(const RunState& run)
      : run_(run), from_(run.count), to_(run.count) {}

  /// meet(devices, buffers) for each group of devices, to the first error;
  /// without groups for all together, and null for their list.
  template <class Meet>
  Status for_each(const CollectiveStep& step, Meet&& meet) {
    // A shared result is written once.
    const bool shared = run_.program.slots[step.to].shared;
    const auto put = [&](size_t place, int device) {
      from_[place] = run_.devices[device].slots[step.from];
      to_[place] = run_.devices[device].slots[step.to];
    };
    if (step.groups.empty()) {
      for (int d = 0; d < run_.count; ++d) put(static_cast<size_t>(d), d);
      const std::span<void* const> to(to_);
      return meet(nullptr, CollectiveBuffers{from_, shared ? to.first(1) : to});
    }
    for (const auto& group : step.groups) {
      for (size_t i = 0; i < group.size(); ++i) put(i, group[i]);
      const CollectiveBuffers buffers{std::span(from_).first(group.size()),
                                      std::span(to_).first(group.size())};
      TRY(meet(&group, buffers));
    }
    return Unit{};
  }

 private:
  const RunState& run_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
};

}  // namespace unisono
