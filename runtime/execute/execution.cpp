#include "runtime/execute/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/execute/collective.h"
#include "runtime/execute/queue_executor.h"
#include "runtime/execute/thread_executor.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;

/// For devices that work as this one does.
std::unique_ptr<Executor> make_executor(const RunState& run, Device& device) {
  if (device.kind() == DeviceKind::gpu)
    return std::make_unique<QueueExecutor>(run);
  return std::make_unique<ThreadExecutor>(run);
}

Error lost(int device) {
  return Error{.kind = Error::Kind::device_lost,
               .message = "the device is lost",
               .device = device};
}

}  // namespace

Execution::Execution(const Program& program, const FlatProgram& flat,
                     Device& device)
    : Work(&run_, false),
      run_(program, flat),
      executor_(make_executor(run_, device)),
      flat_(flat),
      count_(program.devices),
      slots_(static_cast<size_t>(count_)),
      devices_(std::make_unique<DeviceState[]>(count_)) {
  for (int d = 0; d < count_; ++d) devices_[d].turns.resize(flat.loops.size());
  if (count_ <= most_own) find_own(false);
}

// The watchdog may look on already.
void Execution::reset(Pool& pool, const RunOptions& options) {
  std::lock_guard lock(mutex_);
  static constexpr std::atomic<bool> never{false};
  run_.pool = &pool;
  run_.stop = options.stop ? options.stop : &never;
  run_.step_by_step = recorder_ || options.lose_device;
  lose_device_ = options.lose_device;
  watchdog_ = options.watchdog;
  for (int d = 0; d < count_; ++d) {
    DeviceState& device = devices_[d];
    device.pc = 0;
    device.work = 0;
    device.has_inputs = true;
    device.awaited_since.reset();
    device.given.clear();
    run_.devices[d].cancel = false;
    run_.devices[d].failure.reset();
  }
  published_ = false;
  begun_.clear();
  find_arrivals();
  arrived_ = waiting_turn_ = ended_ = 0;
  failed_ = stopped_ = stalled_ = false;
  phase_ = 0;
  phase_work_ = 0;
  shared_ = false;
  done_ = false;
  ready_ = all_;
}

void Execution::join(Cluster* cluster) {
  if (cluster_ || cluster) find_own(cluster != nullptr);
  cluster_ = cluster;
  if (cluster && !(meeting_ && meeting_->fits(*cluster)))
    meeting_.emplace(run_, *cluster);
}

/// Which devices are this process's: all, or those that are here, at least one.
void Execution::find_own(bool some) {
  own_.clear();
  for (int d = 0; d < count_; ++d) {
    const bool own = !some || is_here(*run_.devices[d].device);
    slots_[d] = own ? static_cast<int8_t>(own_.size()) : int8_t{-1};
    if (own) own_.push_back(d);
    CHECK(own_.size() <= most_own);
  }
  all_ = ~Mask{0} >> (most_own - own_.size());
}

int Execution::first_of(Mask devices) const {
  return own_[static_cast<size_t>(std::countr_zero(devices))];
}

void Execution::record(Recorder* recorder,
                       const std::vector<Device*>& devices) {
  recorder_ = recorder;
  if (!recorder) return;
  for (int d = 0; d < count_; ++d) devices_[d].row = devices[d]->index();
}

/// What a recorder is told of a run when that is over.
class Execution::UnderWay final : public RunUnderWay {
 public:
  UnderWay(std::unique_ptr<RunUnderWay> run, Recorder& recorder,
           std::vector<Timed> timed)
      : run_(std::move(run)), recorder_(recorder), timed_(std::move(timed)) {}
  std::optional<Error> wait() override {
    std::optional<Error> error = run_->wait();
    record_all(recorder_, timed_);
    return error;
  }

 private:
  const std::unique_ptr<RunUnderWay> run_;
  Recorder& recorder_;
  std::vector<Timed> timed_;
};

std::optional<Error> Execution::run(Pool& pool, const RunOptions& options) {
  reset(pool, options);
  ranges_ = options.ranges;
  timed_.clear();
  if (Status begun = executor_->begin(); !begun) {
    Error error = begun.error();
    error.untouched = true;
    return error;
  }
  drive(0);
  auto done = [this] { return done_.load(std::memory_order_acquire); };
  if (published_) {
    pool.help_until(run_.group(), done);
    pool.remove(*this);
  }
  CHECK(done());
  // What has begun uses this run's memory. If it fails, that comes before what
  // a device has found meanwhile.
  if (cluster_)
    if (Status left = await(cluster_->background().last()); !left) {
      failed_ = true;
      run_.devices[0].failure = Failure{std::move(left).error()};
    }
  if (options.under_way && !failed_ && !stopped_) {
    if (auto left = executor_->leave()) {
      if (recorder_)
        left = std::make_unique<UnderWay>(std::move(left), *recorder_,
                                          std::exchange(timed_, {}));
      *options.under_way = std::move(left);
      return std::nullopt;
    }
  }
  std::optional<Failure> failure = executor_->finish();
  if (recorder_) record_all(*recorder_, timed_);
  if (failure) {
    thrown_ = std::move(failure->thrown);
    if (cluster_ && failure->sequence)
      cluster_->note_failure(failure->error.device, *failure->sequence);
    return std::move(failure->error);
  }
  if (stopped_)
    return Error{.kind = Error::Kind::cancelled, .message = "stopped"};
  return std::nullopt;
}

bool Execution::has_work() const {
  return shared_.load(std::memory_order_acquire) &&
         ready_.load(std::memory_order_acquire) != 0;
}

void Execution::help() { drive(-1); }

void Execution::drive(int owned_phase) {
  for (int d = take(owned_phase); d >= 0; d = take(owned_phase))
    advance(d, owned_phase);
}

int Execution::take(int owned_phase) {
  Mask ready = ready_.load(std::memory_order_acquire);
  while (ready != 0) {
    if (!shared_.load(std::memory_order_acquire) &&
        owned_phase != phase_.load(std::memory_order_acquire))
      return -1;
    Mask rest = ready & (ready - 1);
    if (ready_.compare_exchange_weak(ready, rest, std::memory_order_acq_rel))
      return first_of(ready);
  }
  return -1;
}

void Execution::advance(int d, int& owned_phase) {
  DeviceState& device = devices_[d];
  const std::atomic<bool>& cancel = run_.devices[d].cancel;
  for (;;) {
    if (cancel.load(std::memory_order_relaxed)) return end(d);
    if (run_.stop->load(std::memory_order_relaxed)) return stop_all(d);
    if (lose_device_ && (*lose_device_)(d)) return fail(d, {lost(d)});
    if (!device.has_inputs)
      if (Status there = await_inputs(d, device.pc); !there)
        return fail(d, {there.error()});
    const Instruction& instruction = flat_.instructions[device.pc];
    if (instruction.once) {
      if (!meet(d, owned_phase)) return;
      continue;  // begin_phase has moved all devices on
    }
    switch (instruction.kind) {
      case Kind::launch:
        if (Status done = launch(d, instruction); !done)
          return fail(d, {done.error()});
        break;
      case Kind::copy:
        if (Status done = copy(d, instruction.as<CopyStep>()); !done)
          return fail(d, {done.error()});
        break;
      case Kind::host_call: {
        const auto& step = instruction.as<HostCallStep>();
        if (step.in_turn && !have_turn(d)) return;
        count_work(d, instruction.work);
        if (auto failure = host_call(d, step))
          return fail(d, *std::move(failure));
        break;
      }
      case Kind::collective_end:
        if (!is_under_way(instruction)) break;
        [[fallthrough]];
      case Kind::collective:
        if (!meet(d, owned_phase)) return;
        continue;  // begin_phase has moved all devices on
      case Kind::repeat: {
        const FlatLoop& loop = flat_.loops[instruction.loop];
        device.turns[instruction.loop] = loop.turns;
        if (!executor_->replays(loop)) break;
        if (Status there = await_inputs(d, loop.end); !there)
          return fail(d, {there.error()});
        if (loop.meets) {
          if (!meet(d, owned_phase)) return;
          continue;
        }
        if (Status done = replay({&d, 1}, instruction); !done)
          return fail(d, {done.error()});
        break;
      }
      case Kind::next_turn: {
        int64_t& turns = device.turns[instruction.loop];
        if (turns == 0) {
          device.pc = instruction.target;
          continue;
        }
        --turns;
        break;
      }
      case Kind::jump: device.pc = instruction.target; continue;
      case Kind::jump_if_false: {
        Result<bool> flag = executor_->read_flag(d, instruction.flag);
        if (!flag) return fail(d, {flag.error()});
        if (!*flag) {
          device.pc = instruction.target;
          continue;
        }
        break;
      }
      case Kind::end: return end(d);
    }
    ++device.pc;
  }
}

void Execution::count_work(int d, float work) {
  DeviceState& device = devices_[d];
  device.work += work;
  if (!shared_.load(std::memory_order_relaxed) &&
      phase_work_.load(std::memory_order_relaxed) + device.work >
          tuning().worth_sharing &&
      ready_.load(std::memory_order_relaxed) != 0)
    share();
}

Status Execution::launch(int d, const Instruction& instruction) {
  count_work(d, instruction.work);
  // While there are devices for all workers, each one does a whole kernel.
  const auto devices_left = [this] {
    return std::popcount(ready_.load(std::memory_order_relaxed));
  };
  const bool spread = instruction.work >= tuning().worth_spreading &&
                      run_.pool->workers() > std::max(devices_left(), 1);
  const Range range(ranges_, instruction.as<LaunchStep>().sources);
  if (recorder_) return launch_recorded(d, instruction, spread);
  return executor_->launch(d, instruction, spread);
}

Status Execution::launch_recorded(int d, const Instruction& instruction,
                                  bool spread) {
  const auto& step = instruction.as<LaunchStep>();
  return record_work(d,
                     {.kind = Recorder::Kind::kernel,
                      .bytes = step.bytes,
                      .flops = step.flops,
                      .name = step.name,
                      .sources = step.sources},
                     [&] { return executor_->launch(d, instruction, spread); });
}

Status Execution::copy(int d, const CopyStep& step) {
  // An array that was given away may be the result's place itself.
  const std::vector<void*>& slots = run_.devices[d].slots;
  if (slots[step.to] == slots[step.from]) return Unit{};
  if (!recorder_) return executor_->copy(d, step);
  return record_work(d,
                     {.kind = Recorder::Kind::copy,
                      .from = devices_[d].row,
                      .bytes = step.bytes},
                     [&] { return executor_->copy(d, step); });
}

template <class Work>
Status Execution::record_work(int d, Recorder::Event event, Work&& work) {
  event.device = devices_[d].row;
  Moment start = TRY(executor_->moment(d));
  if (start) {
    TRY(work());
    Moment end = TRY(executor_->moment(d));
    note_timed({std::move(event), {std::move(start)}, {std::move(end)}});
    return Unit{};
  }
  event.start = Clock::now();
  Status done = work();
  event.end = Clock::now();
  recorder_->record(std::move(event));
  return done;
}

void Execution::note_timed(Timed timed) {
  std::lock_guard lock(mutex_);
  timed_.push_back(std::move(timed));
  if (timed_.size() >= tuning().most_timed_events)
    record_all(*recorder_, timed_);
}

/// Waits for them all. A moment that a device does not come to has no time.
void Execution::record_all(Recorder& recorder, std::vector<Timed>& timed) {
  const auto latest = [](const std::vector<Moment>& moments) {
    std::optional<Clock::time_point> out;
    for (const Moment& moment : moments)
      if (auto time = moment->time())
        out = std::max(out.value_or(*time), *time);
    return out;
  };
  for (Timed& one : timed) {
    const auto start = latest(one.start), end = latest(one.end);
    if (!start || !end) continue;
    one.event.start = *start;
    one.event.end = std::max(*start, *end);
    recorder.record(std::move(one.event));
  }
  timed.clear();
}

std::optional<Failure> Execution::host_call(int d, const HostCallStep& step) {
  try {
    const StopScope stop(run_.stop);
    Status done = unless_stopped([&] { return call_host(d, step); });
    if (done) return std::nullopt;
    Error error = std::move(done).error();
    if (error.kind == Error::Kind::host_function && error.device < 0)
      error.device = d;
    return Failure{std::move(error)};
  } catch (const std::bad_alloc&) {
    return Failure{{.kind = Error::Kind::out_of_memory,
                    .message =
                        "there is not enough memory on the host for what is "
                        "printed, or given to a function of the host"}};
  } catch (...) {
    return Failure{{.kind = Error::Kind::check_failed,
                    .message = "a call of the host threw an exception"},
                   std::current_exception()};
  }
}

Status Execution::call_host(int d, const HostCallStep& step) {
  // What has results in a cluster is pure: there is no host to define more.
  const auto caller_of = [&](int device) {
    if (step.callers.empty()) return device;
    const int caller = step.callers[device];
    return !is_own(caller) && !step.results.empty() ? device : caller;
  };
  if (caller_of(d) != d) return take_results(d, step);
  const Recording recording(recorder_, Recorder::Kind::host, devices_[d].row);
  std::vector<std::vector<uint8_t>> arguments;
  arguments.reserve(step.arguments.size());
  TRY(executor_->read_arguments(d, step, arguments));
  auto results = std::make_shared<HostResults>();
  for (const int64_t bytes : step.result_bytes)
    resize_in_pieces(results->emplace_back(), bytes);
  if (cluster_) cluster_->begin_member(d);
  const PoolScope workers(*run_.pool);
  const Status called =
      run_.program.host_calls[step.call](d, arguments, *results);
  if (cluster_) cluster_->end_member();
  TRY(called);
  if (results->empty()) return Unit{};
  TRY(executor_->write_results(d, step, *results));
  for (int other = d + 1; other < count_; ++other)
    if (caller_of(other) == d) devices_[other].given.push_back(results);
  return Unit{};
}

/// Devices have their turns in order, so the one that calls has called.
Status Execution::take_results(int d, const HostCallStep& step) {
  if (step.results.empty()) return Unit{};
  auto& given = devices_[d].given;
  CHECK(!given.empty());
  const auto results = std::move(given.front());
  given.pop_front();
  return executor_->write_results(d, step, *results);
}

Status Execution::replay(std::span<const int> devices, const Instruction& at) {
  const int64_t left = TRY(executor_->replay(devices, at));
  for (int d : devices) devices_[d].turns[at.loop] = left;
  return Unit{};
}

bool Execution::have_turn(int device) {
  std::lock_guard lock(mutex_);
  if (std::countr_one(arrived_ | ended_) == slots_[device]) return true;
  waiting_turn_ |= bit(device);
  return false;
}

bool Execution::meet(int device, int& owned_phase) {
  if (recorder_) devices_[device].arrived = Clock::now();
  {
    std::lock_guard lock(mutex_);
    arrived_ |= bit(device);
    phase_work_.store(phase_work_ + devices_[device].work,
                      std::memory_order_relaxed);
    devices_[device].work = 0;
    if (!settle()) return false;
  }
  // All other devices stand still until this returns.
  int pc = devices_[device].pc;
  do {
    if (Status done = perform(pc); !done) {
      abandon(done.error());
      return false;
    }
  } while (flat_.instructions[++pc].once);
  begin_phase(device, pc, owned_phase);
  return true;
}

Status Execution::perform(int pc) {
  const Instruction& instruction = flat_.instructions[pc];
  if (instruction.once) return perform_once(instruction);
  if (instruction.kind == Kind::repeat) {
    std::vector<int> all(static_cast<size_t>(count_));
    std::iota(all.begin(), all.end(), 0);
    return replay(all, instruction);
  }
  const auto& step = instruction.as<CollectiveStep>();
  if (instruction.kind == Kind::collective_end) return end_collective(step);
  if (cluster_) return meet_others(instruction);
  const auto meet = [&] { return executor_->meet(step); };
  return recorder_ ? meet_recorded(step, meet) : meet();
}

/// As device 0: what it reads is the same on all, and what it writes is shared.
Status Execution::perform_once(const Instruction& instruction) {
  if (instruction.kind == Kind::copy)
    return copy(0, instruction.as<CopyStep>());
  const bool spread =
      instruction.work >= tuning().worth_spreading && run_.pool->workers() > 1;
  if (recorder_) return launch_recorded(0, instruction, spread);
  return executor_->launch(0, instruction, spread);
}

void Execution::begin_phase(int device, int pc, int& owned_phase) {
  std::lock_guard lock(mutex_);
  for (int d = 0; d < count_; ++d) devices_[d].pc = pc;
  arrived_ = 0;
  owned_phase = phase_.load(std::memory_order_relaxed) + 1;
  // What comes is likely to be like what was, above all in a loop.
  bool sharing =
      phase_work_.load(std::memory_order_relaxed) > tuning().worth_sharing;
  phase_work_.store(0, std::memory_order_relaxed);
  shared_.store(false, std::memory_order_release);
  phase_.store(owned_phase, std::memory_order_release);
  ready_.store(all_ & ~bit(device), std::memory_order_release);
  if (sharing && count_ > 1) share();
}

void Execution::share() {
  shared_.store(true, std::memory_order_release);
  if (published_) return run_.pool->notify();
  // Before it is published, only the thread that called run() comes here.
  published_ = true;
  run_.pool->add(*this);
}

void Execution::end(int device) {
  std::lock_guard lock(mutex_);
  ended_ |= bit(device);
  settle();
}

void Execution::fail(int device, Failure failure) {
  std::lock_guard lock(mutex_);
  failed_ = true;
  if (!stalled_) run_.devices[device].failure = std::move(failure);
  ended_ |= bit(device);
  // Those before it go on to where they meet: they may have an error, too, and
  // the first one's is reported, whoever is faster.
  cancel_from(device + 1);
  settle();
}

void Execution::abandon(Error error) {
  std::lock_guard lock(mutex_);
  failed_ = true;
  run_.devices[0].failure = Failure{std::move(error)};
  ended_ = all_;
  arrived_ = 0;
  finish();
}

void Execution::stop_all(int device) {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  ended_ |= bit(device);
  cancel_from(0);
  settle();
}

void Execution::cancel_from(int device) {
  Mask later = 0;
  for (size_t i = 0; i < own_.size(); ++i)
    if (own_[i] >= device) later |= Mask{1} << i;
  for (int d = device; d < count_; ++d)
    run_.devices[d].cancel.store(true, std::memory_order_relaxed);
  // Those that a thread leads on end by themselves.
  Mask standing = arrived_ | waiting_turn_ |
                  ready_.fetch_and(~later, std::memory_order_acq_rel);
  ended_ |= standing & later;
  arrived_ &= ~later;
  waiting_turn_ &= ~later;
}

bool Execution::settle() {
  Mask halted = arrived_ | ended_;
  if (halted != all_) {
    Mask next = Mask{1} << std::countr_one(halted) & waiting_turn_;
    if (next) make_ready(next);
    return false;
  }
  if (ended_ == 0) check_stuck();
  if (ended_ == 0) return true;
  if (ended_ != all_ && !failed_ && !stopped_) check_stuck();
  finish();
  return false;
}

// All devices stand where they meet, or have ended. If they cannot meet,
// this is an error, and not a wait for ever.
void Execution::check_stuck() {
  int first = first_of(arrived_);
  int pc = devices_[first].pc;
  std::string message;
  if (ended_ != 0) {
    message =
        fmt::format("a collective waits for device {}, which has already ended",
                    first_of(ended_));
  } else {
    for (int d = 0; d < count_ && message.empty(); ++d)
      if (is_own(d) && (arrived_ & bit(d)) && devices_[d].pc != pc)
        message = fmt::format("devices {} and {} wait in different collectives",
                              first, d);
  }
  if (message.empty()) return;
  failed_ = true;
  run_.devices[first].failure =
      Failure{{.kind = Error::Kind::check_failed,
               .message = std::move(message),
               .source = source_of(flat_.instructions[pc]),
               .device = first}};
  ended_ = all_;
  arrived_ = 0;
}

// A device that has been led on for all of the limit, in one phase, while
// others wait. One that no thread has taken yet is not waited for.
void Execution::look(Clock::time_point now) {
  std::lock_guard lock(mutex_);
  const Mask waiting = arrived_ | waiting_turn_;
  const int phase = phase_.load(std::memory_order_relaxed);
  const Mask computing =
      (waiting == 0 && !failed_) || stopped_
          ? 0
          : all_ & ~(waiting | ended_ | ready_.load(std::memory_order_acquire));
  Mask missing = 0;
  for (const int d : own_) {
    auto& since = devices_[d].awaited_since;
    if (!(computing & bit(d)) || phase != seen_phase_) since.reset();
    if (!(computing & bit(d))) continue;
    if (!since) since = now;
    if (now - *since >= watchdog_) missing |= bit(d);
  }
  seen_phase_ = phase;
  if (missing != 0) give_up(missing);
}

const Instruction* Execution::awaited() const {
  if ((arrived_ | waiting_turn_) == 0) return nullptr;
  const Mask waiting = arrived_ ? arrived_ : waiting_turn_;
  for (int pc = devices_[first_of(waiting)].pc;; ++pc) {
    const Instruction& instruction = flat_.instructions[pc];
    if (instruction.kind == Kind::collective || instruction.once ||
        is_under_way(instruction))
      return &instruction;
    if (instruction.kind == Kind::end) return nullptr;
  }
}

void Execution::give_up(Mask missing) {
  const Instruction* collective = awaited();
  if (!collective && !failed_) return;
  if (!failed_) set_stalled(missing, *collective);
  cancel_from(0);
  settle();
}

void Execution::set_stalled(Mask missing, const Instruction& collective) {
  const int first = first_of(missing);
  Error error{.kind = Error::Kind::stalled,
              .message = "a collective waits for a device",
              .source = source_of(collective),
              .device = first};
  for (const int d : own_)
    if (missing & bit(d)) error.missing.push_back(d);
  run_.devices[first].failure = Failure{std::move(error)};
  failed_ = stalled_ = true;
}

void Execution::finish() {
  done_.store(true, std::memory_order_release);
  if (published_) run_.pool->notify();
}

void Execution::make_ready(Mask devices) {
  waiting_turn_ &= ~devices;
  ready_.fetch_or(devices, std::memory_order_acq_rel);
  if (published_) run_.pool->notify();
}

}  // namespace unisono
