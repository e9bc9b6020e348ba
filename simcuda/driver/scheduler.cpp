// Operations form a graph; which of those that are ready is executed next is
// chosen by the seed, to the disadvantage of programs that forgot an event.
#include <algorithm>

#include "simcuda/driver/simulator.h"

namespace simcuda {
namespace {

// As many instructions of warps as a launch has before others may be chosen.
constexpr int64_t launch_slice = 20'000'000;
// A host that queues more than this waits, as on hardware.
constexpr uint64_t longest_queue = 8192;
constexpr auto deadlock_patience = std::chrono::milliseconds(1500);

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
  return x ^ x >> 29;
}

}  // namespace

void Simulator::make_ready(const OperationPtr& operation) {
  operation->state = Operation::State::ready;
  ready_.push_back(operation);
  if (configuration.goes_on) changed_.notify_all();
}

OperationPtr Simulator::add(std::shared_ptr<const Work> work,
                            StreamObject& stream,
                            const std::vector<OperationPtr>& after,
                            bool alone) {
  auto operation = std::make_shared<Operation>();
  operation->number = next_operation_++;
  operation->stream = stream.number;
  operation->work = std::move(work);
  operation->interrupt = stream.interrupt;
  if (races) {
    std::vector<const OperationTrace*> before;
    for (const OperationPtr& one : after)
      if (one) before.push_back(one->trace.get());
    const auto device = static_cast<uint64_t>(stream.device->number);
    operation->trace = races->queue(
        alone ? operation->number << 1 | 1 : (stream.number << 8 | device) << 1,
        operation->number,
        operation->work->what + " on device " + std::to_string(device) +
            ", stream " + std::to_string(stream.number),
        before);
  }
  for (const OperationPtr& before : after) {
    if (!before) continue;
    operation->dropped |= before->dropped && !before->host_waited;
    if (before->state == Operation::State::done) continue;
    operation->before.push_back(before.get());
    before->dependents.push_back(operation);
  }
  ++pending_;
  if (operation->before.empty()) make_ready(operation);
  return operation;
}

std::vector<OperationPtr> Simulator::tails(DeviceState& device,
                                           bool blocking_only) {
  std::vector<OperationPtr> list = {device.legacy.last};
  for (auto& [handle, stream] : streams)
    if (stream->device == &device && (stream->blocking || !blocking_only))
      list.push_back(stream->last);
  // What is done says in which order it was, to who looks for races.
  std::erase_if(list, [&](const OperationPtr& operation) {
    return !operation || (!races && operation->state == Operation::State::done);
  });
  return list;
}

Code Simulator::enqueue(Lock& lock, StreamObject& stream,
                        std::shared_ptr<const Work> work) {
  if (stream.capture) {
    Capture& capture = *stream.capture;
    if (capture.invalidated) return stream_capture_invalidated;
    capture.graph.nodes.push_back({std::move(work), stream.frontier});
    stream.frontier = {capture.graph.nodes.size() - 1};
    return success;
  }
  DeviceState& device = *stream.device;
  std::vector<OperationPtr> after;
  const bool legacy = &stream == &device.legacy;
  if (legacy) {
    for (auto& [handle, other] : streams) {
      if (other->device == &device && other->blocking && other->capture) {
        other->capture->invalidated = true;
        return stream_capture_implicit;
      }
    }
    after = tails(device, true);
  } else {
    after.push_back(stream.last);
    if (stream.blocking) after.push_back(device.legacy.last);
  }
  stream.last = add(std::move(work), stream, after);
  while (pending_ > longest_queue && run_one(lock, nullptr)) {
  }
  // Some work is done at once, as a device that is idle would.
  if (configuration.schedule == Configuration::Schedule::random &&
      random_() % 4 == 0) {
    run_one(lock, nullptr);
  }
  return success;
}

size_t Simulator::needed_first(const Operation& wanted) {
  const Operation* at = &wanted;
  while (!at->before.empty()) at = at->before[random_() % at->before.size()];
  const auto found = std::find_if(
      ready_.begin(), ready_.end(),
      [&](const OperationPtr& ready) { return ready.get() == at; });
  return static_cast<size_t>(found - ready_.begin());
}

OperationPtr Simulator::choose(const Operation* wanted) {
  if (ready_.empty()) return nullptr;
  std::vector<size_t> candidates;
  using Schedule = Configuration::Schedule;
  const Schedule schedule = configuration.schedule;
  if (schedule == Schedule::lazy && wanted != nullptr) {
    const size_t place = needed_first(*wanted);
    if (place < ready_.size()) candidates.push_back(place);
  }
  if (schedule == Schedule::starve) {
    for (size_t i = 0; i < ready_.size(); ++i)
      if (mix(configuration.seed ^ mix(ready_[i]->stream)) & 1)
        candidates.push_back(i);
  }
  if (candidates.empty())
    for (size_t i = 0; i < ready_.size(); ++i) candidates.push_back(i);
  auto by_number = [&](size_t a, size_t b) {
    return ready_[a]->number < ready_[b]->number;
  };
  size_t chosen = 0;
  // A launch that has begun and only waits must not be the only one chosen.
  if (schedule == Schedule::fifo && stalled_ == 0) {
    chosen = *std::min_element(candidates.begin(), candidates.end(), by_number);
  } else if (schedule == Schedule::newest && stalled_ == 0) {
    chosen = *std::max_element(candidates.begin(), candidates.end(), by_number);
  } else {
    if (stalled_ != 0) {
      candidates.resize(ready_.size());
      for (size_t i = 0; i < ready_.size(); ++i) candidates[i] = i;
    }
    for (int tries = 0; tries < 8; ++tries) {
      chosen = candidates[random_() % candidates.size()];
      const Work* work = ready_[chosen]->work.get();
      const int slow = work && work->device ? work->device->model.slow : 1;
      if (slow == 1 || random_() % static_cast<uint64_t>(slow) == 0) break;
    }
  }
  OperationPtr operation = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  return operation;
}

void Simulator::finish(const OperationPtr& operation) {
  operation->state = Operation::State::done;
  operation->end = std::chrono::steady_clock::now();
  operation->launch.reset();
  operation->work.reset();
  --pending_;
  stalled_ = 0;
  progress_ = operation->end;
  std::vector<OperationPtr> dependents;
  dependents.swap(operation->dependents);
  for (const OperationPtr& next : dependents) {
    next->dropped |= operation->dropped;
    auto& before = next->before;
    before.erase(std::find(before.begin(), before.end(), operation.get()));
    if (before.empty()) make_ready(next);
  }
}

void Simulator::lose(DeviceState& device, const Failure& failure) {
  if (device.sticky != success) return;
  device.sticky = failure.code;
  device.sticky_text = failure.text;
  report("device " + std::to_string(device.number) + ": error " +
         std::to_string(failure.code) + " (" +
         (code_text(failure.code) ? code_text(failure.code) : "?") +
         "): " + failure.text);
}

bool Simulator::touches_lost(const Work& work) const {
  return std::ranges::any_of(work.memory_of, [&](int device) {
    return device != host_device &&
           devices[static_cast<size_t>(device)]->sticky != success;
  });
}

void Simulator::execute(Lock& lock, const OperationPtr& operation) {
  std::shared_ptr<const Work> work = operation->work;
  // A lost device does nothing any more; all waits end. Nor do others run
  // kernels that wait for it, or copy its memory: they would read what nobody
  // wrote.
  DeviceState* device = work ? work->device : nullptr;
  operation->dropped |= device && device->sticky != success;
  if (!work || (!work->run && !work->launch) ||
      (device && device->sticky != success) ||
      (operation->dropped &&
       (work->launch ? !operation->launch : touches_lost(*work)))) {
    finish(operation);
    changed_.notify_all();
    return;
  }
  if (work->may_run && !work->may_run()) {
    ++stalled_;
    make_ready(operation);
    changed_.notify_all();
    return;
  }
  if (!operation->launch) {
    if (Code code = planned_operation_fault(*device); code != success) {
      lose(*device, {code, "planned fault in " + work->what});
      operation->dropped = true;
      finish(operation);
      changed_.notify_all();
      return;
    }
  }
  operation->state = Operation::State::running;
  ++executing_;
  lock.unlock();
  Failure failure;
  bool done = true;
  Launch::Step step = Launch::Step::done;
  if (work->run) {
    failure = work->run();
  } else {
    if (!operation->launch) operation->launch = work->launch();
    step = operation->launch->step(workers, launch_slice, operation->interrupt);
    if (step == Launch::Step::fault)
      failure = {operation->launch->fault(), operation->launch->fault_text()};
    done = step == Launch::Step::done || step == Launch::Step::fault;
  }
  lock.lock();
  --executing_;
  if (races && done && failure.code == success) {
    const std::string found = races->done(
        operation->trace,
        operation->launch ? operation->launch->uses() : work->uses, memory);
    if (!found.empty() && configuration.races == LaunchShape::Races::fault)
      failure = {launch_failed, found};
  }
  if (failure.code != success) {
    lose(*device, failure);
    operation->dropped = true;
  }
  if (done) {
    finish(operation);
  } else {
    if (step == Launch::Step::stalled) {
      ++stalled_;
    } else {
      stalled_ = 0;
      progress_ = std::chrono::steady_clock::now();
    }
    make_ready(operation);
  }
  changed_.notify_all();
}

/// All that could run only waits for something to change: for how long?
bool Simulator::deadlocked(Lock& lock) {
  if (stalled_ < 8 * (ready_.size() + 1) || executing_ > 0) return false;
  // What another process is to do may come at any time.
  const bool others = std::ranges::any_of(ready_, [](const OperationPtr& one) {
    return one->work && one->work->may_run;
  });
  if (others) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
    return false;
  }
  if (std::chrono::steady_clock::now() - progress_ > deadlock_patience) {
    std::string text =
        "deadlock: all that could run waits for something that "
        "does not come:";
    for (const OperationPtr& operation : ready_) {
      if (operation->work) {
        text += " " + operation->work->what + " on device " +
                std::to_string(operation->work->device->number) + ";";
      }
    }
    for (const OperationPtr& operation : ready_)
      if (operation->launch)
        lose(*operation->work->device, {launch_timeout, text});
    stalled_ = 0;
    return true;
  }
  // Another thread of the host may be what is waited for.
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
  return false;
}

bool Simulator::run_one(Lock& lock, const Operation* wanted) {
  OperationPtr operation = choose(wanted);
  if (!operation) return false;
  execute(lock, operation);
  deadlocked(lock);
  return true;
}

void Simulator::go_on() {
  Lock lock(mutex);
  while (!ends_)
    if (!run_one(lock, nullptr)) changed_.wait(lock);
}

// A copy: where it comes from may change while the lock is open.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Simulator::wait_for(Lock& lock, OperationPtr operation) {
  while (operation && operation->state != Operation::State::done) {
    if (run_one(lock, operation.get())) continue;
    if (executing_ == 0) {
      // Cannot be: operations only depend on earlier ones.
      report("internal error: nothing to run, but operation " +
             std::to_string(operation->number) + " is not done");
      return;
    }
    changed_.wait(lock);
  }
}

void Simulator::host_waited(const OperationPtr& operation) {
  if (operation) operation->host_waited = true;
  if (races && operation && operation->trace)
    races->host_waited(*operation->trace);
}

void Simulator::wait_device(Lock& lock, DeviceState& device) {
  for (const OperationPtr& last : tails(device, false)) {
    wait_for(lock, last);
    host_waited(last);
  }
  for (const OperationPtr& last : device.orphans) host_waited(last);
  device.orphans.clear();
}

void Simulator::wait_all(Lock& lock) {
  while (pending_ > 0) {
    if (run_one(lock, nullptr)) continue;
    if (executing_ == 0) return;
    changed_.wait(lock);
  }
  if (!races) return;
  for (const auto& device : devices) wait_device(lock, *device);
}

}  // namespace simcuda
