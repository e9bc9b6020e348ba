#include "runtime/execute/queue_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
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

uint64_t launch_number(int phase, uint64_t count, ptrdiff_t place) {
  const uint64_t first =
      std::min<uint64_t>(static_cast<uint64_t>(phase) + 1, most_phases);
  return first << (place_bits + count_bits) |
         (count & ((uint64_t{1} << count_bits) - 1)) << place_bits |
         static_cast<uint64_t>(place);
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

bool has_checks(const FlatProgram& flat) {
  return std::ranges::any_of(flat.instructions, [](const Instruction& each) {
    if (each.kind != Kind::launch) return false;
    const auto& step = each.as<LaunchStep>();
    CHECK(step.grid);
    return !step.grid->checks.empty();
  });
}

/// Of the failed checks of the first phase that has any the first device's is
/// reported; without one what went wrong otherwise.
class Verdict {
 public:
  explicit Verdict(const FlatProgram& flat) : flat_(flat) {}
  void add(Failure failure) {
    if (!other_) other_ = std::move(failure);
  }
  /// Devices in their order. `sequence`: a cluster's, see `Failure`.
  void add(const GridError& word, int device,
           std::optional<uint64_t> sequence = {}) {
    if (!word.launch || phase_of(word) >= first_phase_) return;
    first_phase_ = phase_of(word);
    checked_ = Failure{decode(word, flat_, device)};
    checked_->sequence = sequence;
  }
  /// Whether something else than a check has failed.
  bool is_broken() const { return other_.has_value(); }
  std::optional<Failure> take() {
    return checked_ ? std::move(checked_) : std::move(other_);
  }

 private:
  const FlatProgram& flat_;
  std::pair<uint64_t, uint64_t> first_phase_ = {~uint64_t{0}, 0};
  std::optional<Failure> checked_, other_;
};

/// What is left of a run: each device's word for errors is on its way.
class LeftRun final : public RunUnderWay {
 public:
  struct Part {
    Queue* queue;
    std::unique_ptr<Queue::Parcel> word;
  };
  /// `sent`: whether the parcels have the words, which else have no errors.
  LeftRun(const FlatProgram& flat, std::vector<Part> parts, bool sent)
      : flat_(flat), parts_(std::move(parts)), sent_(sent) {}

  std::optional<Error> wait() override {
    Verdict verdict(flat_);
    for (size_t d = 0; d < parts_.size(); ++d) {
      Queue::Parcel& parcel = *parts_[d].word;
      if (Status done = parcel.wait(); !done) {
        verdict.add({done.error()});
        continue;
      }
      if (!sent_) continue;
      GridError word;
      std::memcpy(&word, parcel.bytes(), sizeof word);
      verdict.add(word, static_cast<int>(d));
    }
    if (verdict.is_broken())
      for (const Part& part : parts_) part.queue->settle();
    auto failure = verdict.take();
    if (!failure) return std::nullopt;
    return std::move(failure->error);
  }

 private:
  const FlatProgram& flat_;
  const std::vector<Part> parts_;
  const bool sent_;
};

}  // namespace

QueueExecutor::QueueExecutor(const RunState& run)
    : run_(run),
      devices_(std::make_unique<DeviceState[]>(run.count)),
      can_fail_(has_checks(run.flat)),
      buffers_(run),
      replays_(run.flat.loops.size()) {
  CHECK(run.flat.instructions.size() < size_t{1} << place_bits);
  for (int d = 0; d < run.count; ++d) {
    devices_[d].arguments.resize(run.flat.most_arguments);
    devices_[d].replays.resize(run.flat.loops.size());
  }
}

Status QueueExecutor::begin() {
  phase_ = 0;
  Status opened = open();
  if (!opened) {
    return_staging();
    release();
  }
  return opened;
}

Status QueueExecutor::open() {
  meeting_.reset();
  begun_.clear();
  cluster_ = nullptr;
  for (int d = 0; d < run_.count; ++d) {
    const Device& device = *run_.devices[d].device;
    devices_[d].queue = nullptr;
    if (!unisono::is_here(device))
      cluster_ = &cluster_device(device)->cluster();
  }
  for (int d = 0; d < run_.count; ++d)
    if (unisono::is_here(*run_.devices[d].device)) TRY(open(d));
  if (!cluster_) return borrow_staging();
  queues_.clear();
  for (int d = 0; d < run_.count; ++d) queues_.push_back(devices_[d].queue);
  sequences_.assign(1, cluster_->sequence());
  return Unit{};
}

Status QueueExecutor::open(int d) {
  DeviceState& device = devices_[d];
  Device& where = *run_.devices[d].device;
  Queue* queue = where.queue();
  CHECK(queue);
  if (queue != device.capturing_for) device.capturing.reset();
  device.capturing_for = device.queue = queue;
  device.launches = 0;
  device.copies.clear();
  queue->stop_when(run_.stop);
  if (device.grid_error.device() != &where) {
    const GridError none[2];
    Buffer word = TRY(where.allocate(sizeof none));
    TRY(queue->write(word.data(), none, sizeof none));
    device.grid_error = std::move(word);
  }
  return prepare(*queue);
}

Status QueueExecutor::prepare(Queue& queue) {
  for (const Instruction& instruction : run_.flat.instructions)
    if (instruction.kind == Kind::launch)
      TRY(queue.prepare(*instruction.as<LaunchStep>().grid));
  return prepare_replays(queue);
}

void QueueExecutor::release() {
  for (int d = 0; d < run_.count; ++d)
    if (devices_[d].queue) devices_[d].queue->stop_when(nullptr);
}

Status QueueExecutor::borrow_staging() {
  std::vector<Queue*> queues;
  for (int d = 0; d < run_.count; ++d) queues.push_back(devices_[d].queue);
  const int64_t bytes = TRY(prepare_collectives(queues, run_.flat));
  for (int d = 0; bytes > 0 && d < run_.count; ++d)
    devices_[d].staging = TRY(queues[d]->borrow_staging(bytes));
  return Unit{};
}

void QueueExecutor::return_staging() {
  for (int d = 0; d < run_.count; ++d)
    if (void* memory = std::exchange(devices_[d].staging, nullptr))
      devices_[d].queue->return_staging(memory);
}

Status QueueExecutor::launch(int d, const Instruction& launch, bool) {
  DeviceState& device = devices_[d];
  const auto& step = launch.as<LaunchStep>();
  TRY(join_copies(d, step.arguments));
  for (size_t i = 0; i < step.arguments.size(); ++i)
    device.arguments[i] = run_.devices[d].slots[step.arguments[i]];
  const auto place = &launch - run_.flat.instructions.data();
  return device.queue->launch(
      *step.grid,
      {.arguments = std::span(device.arguments).first(step.arguments.size()),
       .error = device.grid_error.data(),
       .number = launch_number(phase_, device.launches++, place),
       .position = d});
}

Status QueueExecutor::copy(int d, const CopyStep& step) {
  const std::vector<void*>& slots = run_.devices[d].slots;
  if (step.bytes == 0 || slots[step.to] == slots[step.from]) return Unit{};
  const SlotId used[] = {step.from, step.to};
  TRY(join_copies(d, used));
  Queue& queue = *devices_[d].queue;
  return queue.copy(slots[step.to], queue, slots[step.from], step.bytes);
}

Result<std::unique_ptr<Queue::Moment>> QueueExecutor::moment(int d, Lane lane) {
  return devices_[d].queue->moment(lane);
}

Lane QueueExecutor::lane_of(const CollectiveStep& step) const {
  if (cluster_) return Mover::lane;
  return is_made_of_copies(step) ? Lane::copies : Lane::kernels;
}

Status QueueExecutor::read_error(int d, GridError& word) {
  const Queue::Read read{&word, devices_[d].grid_error.data(), sizeof word};
  return devices_[d].queue->read({&read, 1});
}

Status QueueExecutor::join_copies(int d, std::span<const SlotId> slots) {
  const CopiesBeside& copies = devices_[d].copies;
  if (copies.empty()) return Unit{};
  for (SlotId slot : slots)
    if (copies.touch(run_.devices[d].slots[slot],
                     run_.program.slots[slot].bytes))
      return join_all_copies(d);
  return Unit{};
}

/// Copies that read the device's memory are in the lanes of others.
Status QueueExecutor::join_all_copies(int d) {
  DeviceState& device = devices_[d];
  if (device.copies.empty()) return Unit{};
  device.copies.clear();
  for (int other = 0; other < run_.count; ++other)
    if (is_here(other))
      TRY(device.queue->wait_for(*devices_[other].queue, Lane::kernels,
                                 Lane::copies));
  return Unit{};
}

void QueueExecutor::note_copies(SlotId from, SlotId to) {
  for (int d = 0; d < run_.count; ++d) {
    if (!is_here(d)) continue;
    for (SlotId slot : {from, to})
      devices_[d].copies.add(run_.devices[d].slots[slot],
                             run_.program.slots[slot].bytes);
  }
}

Result<bool> QueueExecutor::read_flag(int d, SlotId flag) {
  DeviceState& device = devices_[d];
  TRY(join_copies(d, {&flag, 1}));
  uint8_t value = 0;
  GridError word;
  const Queue::Read reads[] = {{&value, run_.devices[d].slots[flag], 1},
                               {&word, device.grid_error.data(), sizeof word}};
  TRY(device.queue->read(reads));
  if (word.launch) return decode(word, run_.flat, d);
  return value != 0;
}

Status QueueExecutor::read_arguments(
    int d, const HostCallStep& step,
    std::vector<std::vector<uint8_t>>& arguments) {
  DeviceState& device = devices_[d];
  TRY(join_copies(d, step.arguments));
  GridError word;
  std::vector<Queue::Read> reads = {
      {&word, device.grid_error.data(), sizeof word}};
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    arguments.emplace_back(step.bytes[i]);
    if (step.bytes[i])
      reads.push_back({arguments.back().data(),
                       run_.devices[d].slots[step.arguments[i]],
                       step.bytes[i]});
  }
  TRY(device.queue->read(reads));
  if (word.launch) return decode(word, run_.flat, d);
  return Unit{};
}

Status QueueExecutor::write_results(
    int d, const HostCallStep& step,
    const std::vector<std::vector<uint8_t>>& results) {
  TRY(join_copies(d, step.results));
  for (size_t i = 0; i < step.results.size(); ++i)
    if (step.result_bytes[i] > 0)
      TRY(devices_[d].queue->write(run_.devices[d].slots[step.results[i]],
                                   results[i].data(), step.result_bytes[i]));
  return Unit{};
}

Status QueueExecutor::meet(const CollectiveStep& step) {
  Status done = perform(step);
  ++phase_;
  return done;
}

/// The queues' copies beside are those of meetings within a process.
Status QueueExecutor::meet_others(ClusterMeeting& meeting,
                                  const CollectiveStep& step,
                                  uint64_t fingerprint) {
  if (!cluster_) return meet(step);
  const auto* teams = TRY(prepare_meeting(meeting, step));
  TRY(meeting_->follow_kernels());
  Status done = meeting_->meet(step, *teams, fingerprint);
  note_copies(step.from, step.to);
  ++phase_;
  note_sequence();
  return done;
}

/// The thread waits for the kernels before, so lanes of copies need not: they
/// have what was begun before, which would wait for these kernels, too.
Result<std::optional<Executor::Exchange>> QueueExecutor::begin_meeting(
    ClusterMeeting& meeting, const CollectiveStep& step, uint64_t fingerprint) {
  if (!cluster_) return std::optional<Exchange>();
  const auto* teams = TRY(prepare_meeting(meeting, step));
  if (!meeting_->waits()) return std::optional<Exchange>();
  std::vector<std::shared_ptr<Queue::Parcel>> before;
  for (int d = 0; d < run_.count; ++d) {
    if (!is_here(d)) continue;
    before.emplace_back(TRY(devices_[d].queue->send(nullptr, 0)));
    if (!before.back()) return std::optional<Exchange>();
  }
  begun_.push_back(&step);
  ++phase_;
  return std::optional(
      Exchange{[before = std::move(before)]() mutable -> Status {
                 for (const auto& parcel : before) TRY(parcel->wait());
                 before.clear();
                 return Unit{};
               },
               [this, &step, teams, fingerprint] {
                 Status done = meeting_->meet(step, *teams, fingerprint);
                 note_sequence();
                 return done;
               }});
}

/// What follows waits for what it put in the lanes of copies.
void QueueExecutor::end_meeting(const CollectiveStep& step) {
  begun_.erase(std::ranges::find(begun_, &step));
  note_copies(step.from, step.to);
}

Result<const std::vector<QueueMeeting::Team>*> QueueExecutor::prepare_meeting(
    ClusterMeeting& meeting, const CollectiveStep& step) {
  if (!meeting_) meeting_.emplace(run_, meeting, queues_, memory_);
  // Results that another one brings, and operands that it may still read.
  const SlotId slots[] = {step.from, step.to};
  for (int d = 0; d < run_.count; ++d)
    if (is_here(d)) TRY(join_copies(d, slots));
  return meeting_->reserve(step);
}

/// Of the phase that a meeting begins. No launch that may fail comes while one
/// is under way.
void QueueExecutor::note_sequence() {
  if (sequences_.size() <= most_phases)
    sequences_.push_back(cluster_->sequence());
}

Status QueueExecutor::perform(const CollectiveStep& step) {
  const SlotId slots[] = {step.from, step.to};
  for (int d = 0; d < run_.count; ++d) TRY(join_copies(d, slots));
  std::vector<Queue*> queues;
  std::vector<void*> staging;
  Status done = buffers_.for_each(step, [&](const std::vector<int>* group,
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

/// Of the phase of a failed check.
uint64_t QueueExecutor::sequence_of(const GridError& word) const {
  const uint64_t phase = phase_of(word).second - 1;
  return sequences_[std::min<uint64_t>(phase, sequences_.size() - 1)];
}

std::optional<Failure> QueueExecutor::finish() {
  Verdict verdict(run_.flat);
  while (!begun_.empty()) end_meeting(*begun_.back());
  for (int d = 0; d < run_.count; ++d) {
    std::optional<Failure>& failure = run_.devices[d].failure;
    if (!is_here(d)) {  // as device 0 it may have failed for all
      if (failure) verdict.add(*std::move(failure));
      continue;
    }
    GridError word;
    Status done = join_all_copies(d);
    if (done) done = read_error(d, word);
    if (!done && cluster_) read_first_error(d, word);
    if (!done || !word.launch) {
      if (failure)
        verdict.add(*std::move(failure));
      else if (!done)
        verdict.add({done.error()});
    }
    // A word that could not be read may have an error of this run.
    if (done && !word.launch && word.stretches == 0) continue;
    if (word.launch && cluster_)
      verdict.add(word, d, sequence_of(word));
    else
      verdict.add(word, d);
    clear_error(d);
  }
  if (verdict.is_broken())
    for (int d = 0; d < run_.count; ++d)
      if (is_here(d)) devices_[d].queue->settle();
  return_staging();
  release();
  return verdict.take();
}

/// Who waits for others may hear first that one of them has failed: what this
/// device has found by itself, before it met any, comes before that.
void QueueExecutor::read_first_error(int d, GridError& word) {
  if (run_.stop->load()) return;  // kernels may have been cut short
  Queue& queue = *devices_[d].queue;
  queue.settle();
  GridError found;
  const auto sent = queue.send(devices_[d].grid_error.data(), sizeof found);
  if (!sent || !*sent || !(*sent)->wait()) return;
  std::memcpy(&found, (*sent)->bytes(), sizeof found);
  if (phase_of(found) == std::pair<uint64_t, uint64_t>(0, 1)) word = found;
}

/// If that fails there is a new word for the next run.
void QueueExecutor::clear_error(int d) {
  DeviceState& device = devices_[d];
  auto* word = static_cast<char*>(device.grid_error.data());
  if (!device.queue->copy(word, *device.queue, word + sizeof(GridError),
                          sizeof(GridError)))
    device.grid_error = Buffer();
}

/// Staging is the run's own as long as devices may read it, and what other
/// processes are told of a run's end they are told in it.
std::unique_ptr<RunUnderWay> QueueExecutor::leave() {
  if (cluster_) return nullptr;
  std::vector<LeftRun::Part> parts;
  for (int d = 0; d < run_.count; ++d) {
    DeviceState& device = devices_[d];
    if (device.staging || !join_all_copies(d)) return nullptr;
    auto word = device.queue->send(
        device.grid_error.data(),
        can_fail_ ? static_cast<int64_t>(sizeof(GridError)) : 0);
    if (!word || !*word) return nullptr;
    parts.push_back({device.queue, std::move(*word)});
  }
  for (int d = 0; can_fail_ && d < run_.count; ++d) clear_error(d);
  release();
  return std::make_unique<LeftRun>(run_.flat, std::move(parts), can_fail_);
}

}  // namespace unisono
