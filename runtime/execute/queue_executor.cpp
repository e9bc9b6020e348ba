// Devices with queues in a run. Threads put their work there and go on; what
// fails a check is noticed when something waits: a flag of a loop, a call of
// the host, the end.
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/check.h"
#include "runtime/execute/execution.h"
#include "runtime/execute/queue_collective.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;

// A launch's number: one more than the collectives before it, so that it is not
// 0 and errors have an order; a count, so that it is another one than those
// before; and its place in the program, which says what failed. A count that
// starts again is harmless: at worst two failures of a run are taken for one.
constexpr int place_bits = 20, count_bits = 20;
constexpr uint64_t most_phases = (uint64_t{1} << 23) - 1;  // and grid_sealed

uint64_t launch_number(int phase, uint64_t count, int pc) {
  const uint64_t first =
      std::min<uint64_t>(static_cast<uint64_t>(phase) + 1, most_phases);
  return first << (place_bits + count_bits) |
         (count & ((uint64_t{1} << count_bits) - 1)) << place_bits |
         static_cast<uint64_t>(pc);
}
/// An order of failures on several devices.
std::pair<uint64_t, uint64_t> phase_of(const GridError& word) {
  return {word.stretches,
          (word.launch & ~grid_sealed) >> (place_bits + count_bits)};
}
size_t place_of(uint64_t number) {
  return number & ((uint64_t{1} << place_bits) - 1);
}

Error decode(const GridError& word, const FlatProgram& flat, int device) {
  const size_t place = place_of(word.launch);
  CHECK(place < flat.instructions.size());
  CHECK(flat.instructions[place].kind == Kind::launch);
  const GridLaunch& launch = *flat.instructions[place].as<LaunchStep>().grid;
  const uint64_t key = word.parts[0] >> 8 >> launch.element_bits;
  const size_t number = key & ((uint64_t{1} << grid_check_bits) - 1);
  CHECK(number < launch.checks.size());
  const GridCheck& check = launch.checks[number];
  uint64_t value = 0;
  for (size_t i = 0; i < std::size(word.parts); ++i)
    value |= (word.parts[i] & 0xff) << 8 * i;
  Error error = checked_error(static_cast<ErrorWord::Code>(check.code),
                              static_cast<int64_t>(value), check.bound);
  error.source = check.source;
  error.device = device;
  error.member = static_cast<int64_t>(key >> grid_check_bits);
  return error;
}

}  // namespace

Status Execution::open_queues() {
  for (int d = 0; d < count_; ++d) {
    DeviceState& device = devices_[d];
    Queue* queue = device.device ? device.device->queue() : nullptr;
    CHECK(d == 0 || (queue != nullptr) == (devices_[0].queue != nullptr));
    if (queue != device.queue) device.capturing.reset();
    device.queue = queue;
    device.launches = 0;
    device.copies.clear();
    if (!queue) continue;
    queue->stop_when(stop_);
    CHECK(flat_.instructions.size() < size_t{1} << place_bits);
    if (device.grid_error.device() != device.device) {
      Result<Buffer> word = device.device->allocate(sizeof(GridError));
      if (!word) return word.error();
      const GridError none;
      Status written = queue->write(word->data(), &none, sizeof none);
      if (!written) return written;
      device.grid_error = std::move(*word);
    }
    for (const Instruction& instruction : flat_.instructions) {
      if (instruction.kind != Kind::launch) continue;
      const auto& step = instruction.as<LaunchStep>();
      CHECK(step.grid);
      if (Status ready = queue->prepare(*step.grid); !ready) return ready;
    }
  }
  if (!devices_[0].queue) return Unit{};
  if (Status ready = prepare_replays(); !ready) return ready;
  Status staged = borrow_staging();
  if (!staged) return_staging();
  return staged;
}

/// The stop flag may go when the run is over.
void Execution::release_queues() {
  for (int d = 0; d < count_; ++d)
    if (devices_[d].queue) devices_[d].queue->stop_when(nullptr);
}

Status Execution::borrow_staging() {
  std::vector<Queue*> queues;
  for (int d = 0; d < count_; ++d) queues.push_back(devices_[d].queue);
  Result<int64_t> bytes = prepare_collectives(queues, flat_);
  if (!bytes) return bytes.error();
  for (int d = 0; *bytes > 0 && d < count_; ++d) {
    auto memory = queues[d]->borrow_staging(*bytes);
    if (!memory) return memory.error();
    devices_[d].staging = *memory;
  }
  return Unit{};
}

void Execution::return_staging() {
  for (int d = 0; d < count_; ++d)
    if (void* memory = std::exchange(devices_[d].staging, nullptr))
      devices_[d].queue->return_staging(memory);
}

Status Execution::put(int d, const Instruction& instruction) {
  if (!recorder_) return put_unseen(d, instruction);
  const DeviceState& device = devices_[d];
  const bool copies = instruction.kind == Kind::copy;
  Recording recording(recorder_,
                      copies ? Recorder::Kind::copy : Recorder::Kind::kernel,
                      device.row);
  if (copies) {
    recording.event().from = device.row;
    recording.event().bytes = instruction.as<CopyStep>().bytes;
  } else {
    const auto& launch = instruction.as<LaunchStep>();
    recording.event().name = launch.name;
    recording.event().sources = launch.sources;
  }
  if (Status done = put_unseen(d, instruction); !done) return done;
  return wait_for_queue(d);
}

Status Execution::wait_for_queue(int d) {
  const DeviceState& device = devices_[d];
  GridError word;  // any read waits for what was put there
  const Queue::Read read{&word, device.grid_error.data(), sizeof word};
  return device.queue->read({&read, 1});
}

Status Execution::put_unseen(int d, const Instruction& instruction) {
  DeviceState& device = devices_[d];
  if (instruction.kind == Kind::copy) {
    const auto& copy = instruction.as<CopyStep>();
    if (copy.bytes == 0 || device.slots[copy.to] == device.slots[copy.from])
      return Unit{};
    const SlotId slots[] = {copy.from, copy.to};
    if (Status joined = join_copies(d, slots); !joined) return joined;
    return device.queue->copy(device.slots[copy.to], *device.queue,
                              device.slots[copy.from], copy.bytes);
  }
  const auto& step = instruction.as<LaunchStep>();
  if (Status joined = join_copies(d, step.arguments); !joined) return joined;
  for (size_t i = 0; i < step.arguments.size(); ++i)
    device.arguments[i] = device.slots[step.arguments[i]];
  const int phase = phase_.load(std::memory_order_relaxed) + captured_phases_;
  return device.queue->launch(
      *step.grid,
      {.arguments = std::span(device.arguments).first(step.arguments.size()),
       .error = device.grid_error.data(),
       .number = launch_number(phase, device.launches++, device.pc),
       .position = d});
}

Status Execution::join_copies(int d, std::span<const SlotId> slots) {
  const CopiesBeside& copies = devices_[d].copies;
  if (copies.empty()) return Unit{};
  for (SlotId slot : slots)
    if (copies.touch(devices_[d].slots[slot], program_.slots[slot].bytes))
      return join_all_copies(d);
  return Unit{};
}

/// Copies that read the device's memory are in the lanes of others.
Status Execution::join_all_copies(int d) {
  DeviceState& device = devices_[d];
  if (device.copies.empty()) return Unit{};
  device.copies.clear();
  for (int other = 0; other < count_; ++other) {
    Status done = device.queue->wait_for(*devices_[other].queue, Lane::kernels,
                                         Lane::copies);
    if (!done) return done;
  }
  return Unit{};
}

void Execution::note_copies(SlotId from, SlotId to) {
  for (int d = 0; d < count_; ++d)
    for (SlotId slot : {from, to})
      devices_[d].copies.add(devices_[d].slots[slot],
                             program_.slots[slot].bytes);
}

Result<bool> Execution::read_flag(int d, SlotId flag) {
  DeviceState& device = devices_[d];
  if (!device.queue)
    return *static_cast<const uint8_t*>(device.slots[flag]) != 0;
  if (Status joined = join_copies(d, {&flag, 1}); !joined)
    return joined.error();
  uint8_t value = 0;
  GridError word;
  const Queue::Read reads[] = {{&value, device.slots[flag], 1},
                               {&word, device.grid_error.data(), sizeof word}};
  if (Status read = device.queue->read(reads); !read) return read.error();
  if (word.launch) return decode(word, flat_, d);
  return value != 0;
}

Status Execution::read_arguments(int d, const HostCallStep& step,
                                 std::vector<std::vector<uint8_t>>& arguments) {
  DeviceState& device = devices_[d];
  if (Status joined = join_copies(d, step.arguments); !joined) return joined;
  GridError word;
  std::vector<Queue::Read> reads = {
      {&word, device.grid_error.data(), sizeof word}};
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    arguments.emplace_back(step.bytes[i]);
    if (step.bytes[i])
      reads.push_back({arguments.back().data(), device.slots[step.arguments[i]],
                       step.bytes[i]});
  }
  if (Status read = device.queue->read(reads); !read) return read;
  if (word.launch) return decode(word, flat_, d);
  return Unit{};
}

Status Execution::perform_on_queues(const Instruction& collective) {
  if (recorder_) {
    Status done = perform_unseen_on_queues(collective);
    for (int d = 0; done && d < count_; ++d) done = join_all_copies(d);
    for (int d = 0; done && d < count_; ++d) done = wait_for_queue(d);
    return done;
  }
  return perform_unseen_on_queues(collective);
}

Status Execution::perform_unseen_on_queues(const Instruction& instruction) {
  if (instruction.kind == Kind::repeat) {
    std::vector<int> all(static_cast<size_t>(count_));
    std::iota(all.begin(), all.end(), 0);
    return replay(all, instruction.loop);
  }
  CHECK(instruction.kind == Kind::collective);
  const auto& step = instruction.as<CollectiveStep>();
  const SlotId slots[] = {step.from, step.to};
  for (int d = 0; d < count_; ++d)
    if (Status joined = join_copies(d, slots); !joined) return joined;
  std::vector<Queue*> queues;
  std::vector<void*> staging;
  Status done = for_each_group(step, [&](const std::vector<int>* group,
                                         CollectiveBuffers buffers) {
    queues.clear();
    staging.clear();
    for (size_t i = 0; i < buffers.to.size(); ++i) {
      DeviceState& device = devices_[group ? (*group)[i] : static_cast<int>(i)];
      queues.push_back(device.queue);
      staging.push_back(device.staging);
    }
    return unisono::meet(queues, step, buffers, staging);
  });
  if (is_made_of_copies(step)) note_copies(step.from, step.to);
  return done;
}

/// Waits for all, and keeps the one error that is reported: of those of the
/// first phase that has any, the first device's.
void Execution::finish_queues() {
  if (!devices_[0].queue) return;
  std::pair<uint64_t, uint64_t> first_phase = {~uint64_t{0}, 0};
  int first = -1;
  std::optional<Error> checked, other;
  for (int d = 0; d < count_; ++d) {
    DeviceState& device = devices_[d];
    GridError word;
    const Queue::Read read{&word, device.grid_error.data(), sizeof word};
    Status done = join_all_copies(d);
    if (done) done = device.queue->read({&read, 1});
    if (!done || !word.launch) {
      if (device.failure) done = *device.failure;
      if (!done && !other) other = done.error();
      if (word.stretches == 0) continue;
    }
    if (word.launch && phase_of(word) < first_phase) {
      first_phase = phase_of(word);
      first = d;
      checked = decode(word, flat_, d);
    }
    const GridError none;
    done = device.queue->write(device.grid_error.data(), &none, sizeof none);
    if (!done) device.grid_error = Buffer();  // a new one for the next run
    if (!done && !other) other = done.error();
  }
  if (other)
    for (int d = 0; d < count_; ++d) devices_[d].queue->settle();
  return_staging();
  if (!checked && !other) return;
  if (!checked) checked = std::move(other), first = 0;
  for (int d = 0; d < count_; ++d) devices_[d].failure.reset();
  devices_[first].failure = std::move(checked);
}

/// A collective could not be performed: all devices end.
void Execution::abandon(Error error) {
  std::lock_guard lock(mutex_);
  failed_ = true;
  devices_[0].failure = std::move(error);
  ended_ = all_;
  arrived_ = 0;
  finish();
}

}  // namespace unisono
