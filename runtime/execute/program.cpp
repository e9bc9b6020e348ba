#include "runtime/execute/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/execute/execution.h"
#include "runtime/execute/program_cache.h"
#include "runtime/execute/thread_executor.h"
#include "runtime/execute/watchdog.h"
#include "runtime/heap.h"
#include "runtime/host_device.h"
#include "runtime/kept_copies.h"
#include "runtime/pool.h"
#include "runtime/recycling.h"

namespace unisono {
namespace {

using Blocks = std::vector<DeviceBlocks>;
using Inputs = std::span<const DeviceBlocks* const>;

/// All memory that a run needs besides its inputs.
struct RunMemory {
  std::vector<Buffer> arenas;                      // [device]
  Buffer shared_arena;                             // the first device's
  std::vector<ProgramCache::Constants> constants;  // [device]
  Blocks outputs;  // [index of output slot][device]
};

/// A run that the watchdog looks at, if there is one.
class Watch {
 public:
  Watch(Watchdog* watchdog, Execution& execution,
        std::chrono::milliseconds limit)
      : watchdog_(watchdog), execution_(execution) {
    if (watchdog_) watchdog_->add(execution_, limit);
  }
  ~Watch() {
    if (watchdog_) watchdog_->remove(execution_);
  }
  Watch(const Watch&) = delete;

 private:
  Watchdog* const watchdog_;
  Execution& execution_;
};

void check_call(const Program& program, const std::vector<Device*>& devices,
                Inputs inputs) {
  CHECK(program.devices >= 1);
  CHECK(devices.size() == static_cast<size_t>(program.devices));
  CHECK(inputs.size() == program.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    CHECK(inputs[i]->size() == devices.size());
    for (const auto& block : *inputs[i])
      CHECK(block->bytes() >= program.slots[program.inputs[i]].bytes);
  }
}

Error no_memory(Error error, const Program::Contents& contents,
                const char* relation) {
  if (error.kind != Error::Kind::out_of_memory || contents.what.empty())
    return error;
  error.message += fmt::format("{}{}", relation, contents.what);
  error.source = contents.source;
  return error;
}

Result<RunMemory> allocate(Runtime& runtime, const Program& program,
                           const std::vector<Device*>& devices) {
  RunMemory memory;
  if (program.arena_bytes > 0) {
    memory.arenas.reserve(devices.size());
    for (Device* device : devices) {
      Result<Buffer> arena = device->allocate(program.arena_bytes);
      if (!arena)
        return no_memory(arena.error(), program.in_arena,
                         "; the largest array in it is ");
      memory.arenas.push_back(std::move(*arena));
    }
  }
  if (program.shared_arena_bytes > 0) {
    Result<Buffer> arena = devices[0]->allocate(program.shared_arena_bytes);
    if (!arena)
      return no_memory(arena.error(), program.in_arena,
                       "; the largest array in it is ");
    memory.shared_arena = std::move(*arena);
  }
  if (!program.constants.empty()) {
    for (Device* device : devices) {
      memory.constants.push_back(
          TRY(program.cache.get()->constants(runtime, program, *device)));
    }
  }
  int outputs = 0;
  for (const Slot& slot : program.slots)
    if (slot.home == Slot::Home::output)
      outputs = std::max(outputs, slot.index + 1);
  memory.outputs.resize(outputs);
  for (const Slot& slot : program.slots) {
    if (slot.home != Slot::Home::output) continue;
    auto index = static_cast<size_t>(slot.index);
    if (!memory.outputs[index].empty()) continue;  // another slot lies there
    memory.outputs[index].reserve(devices.size());
    for (Device* device : devices) {
      if (slot.shared && !memory.outputs[index].empty()) {
        memory.outputs[index].push_back(memory.outputs[index][0]);
        continue;
      }
      Result<Buffer> output = device->allocate(slot.bytes);
      if (!output)
        return no_memory(output.error(),
                         index < program.in_outputs.size()
                             ? program.in_outputs[index]
                             : Program::Contents(),
                         "; it is for ");
      memory.outputs[index].push_back(
          make_recycled<Buffer>(std::move(*output)));
    }
  }
  return memory;
}

void* place(const Slot& slot, int device, const RunMemory& memory,
            Inputs inputs) {
  switch (slot.home) {
    case Slot::Home::arena:
      if (slot.shared)  // null: of no bytes
        return memory.shared_arena.data()
                   ? static_cast<char*>(memory.shared_arena.data()) +
                         slot.offset
                   : nullptr;
      if (memory.arenas.empty()) return nullptr;
      return static_cast<char*>(memory.arenas[device].data()) + slot.offset;
    case Slot::Home::input:
      return (*inputs[slot.index])[slot.shared ? 0 : device]->data();
    case Slot::Home::output: return memory.outputs[slot.index][device]->data();
    case Slot::Home::constant:
      return (*memory.constants[device])[slot.index]->data();
  }
  __builtin_unreachable();
}

Blocks collect_outputs(const Program& program, RunMemory& memory,
                       Inputs inputs) {
  Blocks outputs(program.outputs.size());
  // Several outputs may be one slot: the first of them gets its blocks, which
  // are collected last.
  std::vector<size_t> first(memory.outputs.size());
  for (size_t i = outputs.size(); i-- > 0;) {
    const Slot& slot = program.slots[program.outputs[i]];
    CHECK(slot.home != Slot::Home::arena);
    if (slot.home == Slot::Home::output) first[slot.index] = i;
  }
  for (size_t i = outputs.size(); i-- > 0;) {
    const Slot& slot = program.slots[program.outputs[i]];
    if (slot.home == Slot::Home::input) {
      outputs[i] = *inputs[slot.index];
      if (slot.shared) std::ranges::fill(outputs[i], outputs[i][0]);
    } else if (slot.home == Slot::Home::output) {
      DeviceBlocks& blocks = memory.outputs[slot.index];
      outputs[i] = first[slot.index] == i ? std::move(blocks) : blocks;
    } else {
      for (const auto& constants : memory.constants)
        outputs[i].push_back((*constants)[slot.index]);
    }
  }
  return outputs;
}

}  // namespace

std::string CodeTarget::to_string() const {
  return fmt::format("{} {}", static_cast<int>(kind),
                     fmt::join(capabilities, "+"));
}

CodeTarget code_target(const std::vector<Device*>& devices) {
  const DeviceKind kind = devices[0]->kind();
  std::set<int> capabilities;
  for (const Device* device : devices) {
    CHECK(device->kind() == kind);
    if (device->capability() > 0) capabilities.insert(device->capability());
  }
  return {kind, {capabilities.begin(), capabilities.end()}};
}

namespace {

/// A run on devices of a cluster, which all processes count.
class ClusterRun {
 public:
  explicit ClusterRun(const std::vector<Device*>& devices) {
    const ClusterDevice* first = cluster_device(*devices[0]);
    if (!first || first->process() == ClusterDevice::all) return;
    cluster_ = &first->cluster();
    cluster_->begin_run();
    here_ = std::ranges::any_of(devices, [](const Device* device) {
      return unisono::is_here(*device);
    });
  }
  ~ClusterRun() {
    if (cluster_) cluster_->end_run();
  }
  ClusterRun(const ClusterRun&) = delete;
  /// Null if all devices are this process's alone.
  Cluster* cluster() const { return cluster_; }
  bool is_here() const { return here_; }
  /// Who fails because another process does has not failed.
  void note(const std::optional<Error>& error) {
    if (!cluster_ || !error) return;
    const bool member = error->kind != Error::Kind::cancelled;
    if (member) cluster_->note_failure(std::max(error->device, 0));
  }

 private:
  Cluster* cluster_ = nullptr;
  bool here_ = true;
};

}  // namespace

bool asks_host(const Program& program) {
  const auto ask = [](const auto& self, const Steps& steps) -> bool {
    return std::ranges::any_of(steps, [&](const Step& step) {
      if (const auto* loop = std::get_if<LoopStep>(&step.what))
        return loop->turns < 0 || self(self, *loop->body);
      return std::holds_alternative<IfStep>(step.what) ||
             std::holds_alternative<HostCallStep>(step.what);
    });
  };
  return ask(ask, program.steps);
}

Result<Blocks> run(Runtime& runtime, const Program& program,
                   const std::vector<Device*>& devices, Inputs inputs,
                   const RunOptions& options) {
  check_call(program, devices, inputs);
  ClusterRun cluster_run(devices);
  Result<RunMemory> memory = allocate(runtime, program, devices);
  if (!memory) {
    Error error = memory.error();
    error.untouched = true;
    cluster_run.note(error);
    return error;
  }
  if (!cluster_run.is_here()) return collect_outputs(program, *memory, inputs);

  if (!cluster_run.cluster() && is_straight(program, *devices[0], options)) {
    if (auto error = run_straight(program, options, [&](const Slot& slot) {
          return place(slot, 0, *memory, inputs);
        }))
      return *std::move(error);
    return collect_outputs(program, *memory, inputs);
  }
  ProgramCache& cache = *program.cache.get();
  std::unique_ptr<Execution> execution =
      cache.take_execution(runtime, program, *devices[0]);
  for (int d = 0; d < program.devices; ++d) {
    execution->use(d, devices[d]);
    for (size_t slot = 0; slot < program.slots.size(); ++slot)
      execution->bind(d, static_cast<SlotId>(slot),
                      place(program.slots[slot], d, *memory, inputs));
  }
  execution->join(cluster_run.cluster());
  const bool watched =
      options.watchdog.count() > 0 && program.devices > 1 && execution->meets();
  execution->record(options.recorder, devices);
  std::optional<Error> error;
  {
    const Watch watch(watched ? &runtime.watchdog() : nullptr, *execution,
                      options.watchdog);
    error = execution->run(runtime.pool(), options);
  }
  const std::exception_ptr thrown = execution->take_exception();
  cache.give_back(std::move(execution));
  if (thrown) std::rethrow_exception(thrown);

  cluster_run.note(error);
  if (error) return std::move(*error);
  return collect_outputs(program, *memory, inputs);
}

Result<Blocks> run(Runtime& runtime, const Program& program,
                   const std::vector<Device*>& devices, const Blocks& blocks,
                   const RunOptions& options) {
  std::vector<const DeviceBlocks*> inputs;
  inputs.reserve(blocks.size());
  for (const DeviceBlocks& input : blocks) inputs.push_back(&input);
  return run(runtime, program, devices, inputs, options);
}

namespace {

/// Code may store to outputs as if they began a cache line, as what a device
/// allocates does.
bool begins_line(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 64 == 0;
}

}  // namespace

Status run_in_place(Runtime& runtime, const Program& program, Device& device,
                    const void* const* inputs, void* const* outputs,
                    const RunOptions& options) {
  CHECK(program.devices == 1 && program.overwritten.empty());
  Buffer arena;
  if (program.arena_bytes > 0) {
    auto made = device.allocate(program.arena_bytes);
    if (!made)
      return no_memory(made.error(), program.in_arena,
                       "; the largest array in it is ");
    arena = std::move(*made);
  }
  ProgramCache& cache = *program.cache.get();
  ProgramCache::Constants constants;
  if (!program.constants.empty())
    constants = TRY(cache.constants(runtime, program, device));
  // Where each output slot is written, by its index: several outputs may be one
  // slot, which is then copied.
  constexpr size_t usual_outputs = 16;
  std::array<void*, usual_outputs> few = {};
  std::vector<void*> many;  // where these are not enough
  int last = 0;
  for (const SlotId output : program.outputs)
    last = std::max(last, program.slots[output].index);
  if (static_cast<size_t>(last) >= usual_outputs)
    many.resize(static_cast<size_t>(last) + 1);
  void** const written = many.empty() ? few.data() : many.data();
  std::vector<Buffer> apart;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const Slot& slot = program.slots[program.outputs[i]];
    if (slot.home != Slot::Home::output) continue;
    const auto index = static_cast<size_t>(slot.index);
    if (written[index]) continue;
    written[index] = outputs[i];
    if (slot.bytes < 64 || begins_line(outputs[i])) continue;
    apart.push_back(TRY(device.allocate(slot.bytes)));
    written[index] = apart.back().data();
  }
  const auto place = [&](const Slot& slot) -> void* {
    switch (slot.home) {
      case Slot::Home::arena:
        return static_cast<char*>(arena.data()) + slot.offset;
      case Slot::Home::input: return const_cast<void*>(inputs[slot.index]);
      case Slot::Home::output: return written[slot.index];
      case Slot::Home::constant: return (*constants)[slot.index]->data();
    }
    __builtin_unreachable();
  };
  if (is_straight(program, device, options)) {
    if (auto error = run_straight(program, options, std::cref(place)))
      return *std::move(error);
  } else {
    std::unique_ptr<Execution> execution =
        cache.take_execution(runtime, program, device);
    execution->use(0, &device);
    execution->join(nullptr);
    for (size_t slot = 0; slot < program.slots.size(); ++slot)
      execution->bind(0, static_cast<SlotId>(slot), place(program.slots[slot]));
    if (options.recorder)
      execution->record(options.recorder, {&device});
    else
      execution->record(nullptr, {});
    std::optional<Error> error = execution->run(runtime.pool(), options);
    const std::exception_ptr thrown = execution->take_exception();
    cache.give_back(std::move(execution));
    if (thrown) std::rethrow_exception(thrown);
    if (error) return std::move(*error);
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const Slot& slot = program.slots[program.outputs[i]];
    const void* from = place(slot);
    if (from != outputs[i])
      TRY(device.copy_to_host(outputs[i], from, slot.bytes));
  }
  return Unit{};
}

Runtime::Runtime(int cpu_devices, int workers, int64_t memory_limit)
    : Runtime(cpu_devices, std::make_shared<Pool>(workers), memory_limit) {}

Runtime::Runtime(int cpu_devices, std::shared_ptr<Pool> pool,
                 int64_t memory_limit)
    : pool_(std::move(pool)),
      budget_(std::make_unique<MemoryBudget>(
          memory_limit > 0 ? memory_limit : MemoryBudget::default_limit())),
      watchdog_(std::make_unique<Watchdog>()),
      copies_(std::make_unique<CopyShelf>()) {
  CHECK(cpu_devices >= 1 && cpu_devices <= 64);
  for (int i = 0; i < cpu_devices; ++i) {
    owned_.push_back(make_host_device(i, *budget_, *pool_));
    device_list_.push_back(owned_.back().get());
    owned_.back()->on_shortage([this] { forget_all(); });
  }
}

Runtime::Runtime(std::vector<std::unique_ptr<Device>> devices, int workers)
    : pool_(std::make_shared<Pool>(workers)),
      watchdog_(std::make_unique<Watchdog>()),
      copies_(std::make_unique<CopyShelf>()),
      owned_(std::move(devices)) {
  CHECK(!owned_.empty());
  for (const auto& device : owned_) {
    device_list_.push_back(device.get());
    device->on_shortage([this] { forget_all(); });
    device->use_workers(pool_);
  }
}

void Runtime::give_back_unused() {
  for (const auto& device : owned_) device->give_back_unused();
}

Runtime::~Runtime() { forget_all(); }

/// Device memory that is kept from one run to the next, of programs and of
/// arrays: what a run uses now stays.
void Runtime::forget_all() {
  copies_->give_back();
  std::vector<std::shared_ptr<ProgramCache>> caches;
  {
    std::lock_guard lock(caches_mutex_);
    for (const auto& weak : caches_)
      if (auto cache = weak.lock()) caches.push_back(std::move(cache));
  }
  for (const auto& cache : caches) {
    for (const auto& device : owned_) cache->forget(*device);
    cache->forget(home_device(device_list_));
  }
}

void Runtime::keep(const std::shared_ptr<ProgramCache>& cache) {
  std::lock_guard lock(caches_mutex_);
  for (const auto& weak : caches_)
    if (!weak.owner_before(cache) && !cache.owner_before(weak)) return;
  std::erase_if(caches_, [](const auto& weak) { return weak.expired(); });
  caches_.push_back(cache);
}

Error checked_error(ErrorWord::Code code, int64_t value, int64_t bound) {
  switch (code) {
    case ErrorWord::integer_division_by_zero:
      return {Error::Kind::integer_division, "integer division by zero"};
    case ErrorWord::index_out_of_bounds:
      return {
          Error::Kind::index_out_of_bounds,
          fmt::format("index {} is out of bounds for size {}", value, bound)};
    case ErrorWord::negative_exponent:
      return {
          Error::Kind::check_failed,
          fmt::format("an integer cannot be raised to the negative power {}",
                      value)};
    case ErrorWord::none: break;
  }
  return {Error::Kind::check_failed,
          fmt::format("check {} failed", static_cast<int>(code))};
}

}  // namespace unisono
