// How devices of a run meet those of other processes, at once or under way, and
// what a recorder is told of meetings.
#include <algorithm>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/execute/collective.h"
#include "runtime/execute/execution.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Kind = Instruction::Kind;

}  // namespace

Status Execution::meet_others(const Instruction& instruction) {
  const auto& step = instruction.as<CollectiveStep>();
  const auto at =
      static_cast<uint64_t>(&instruction - flat_.instructions.data());
  const uint64_t fingerprint = at << 32 | static_cast<uint64_t>(step.bytes());
  if (instruction.meanwhile >= tuning().worth_overlapping ||
      (instruction.meanwhile > 0 && cluster_->is_eager())) {
    auto exchange = TRY(executor_->begin_meeting(*meeting_, step, fingerprint));
    if (exchange) {
      begin_exchange(step, *std::move(exchange));
      return Unit{};
    }
  }
  TRY(await(cluster_->background().last()));
  const auto meet = [&] {
    return executor_->meet_others(*meeting_, step, fingerprint);
  };
  return recorder_ ? meet_recorded(step, meet) : meet();
}

void Execution::begin_exchange(const CollectiveStep& step,
                               Executor::Exchange exchange) {
  auto work = [this, &step, exchange = std::move(exchange)]() -> Status {
    if (exchange.await) TRY(exchange.await());
    const Clock::time_point start = Clock::now();
    TRY(exchange.meet());
    if (!recorder_) return Unit{};
    // Of a device with a queue when its copies are done.
    for (const int d : own_)
      if (Moment end = TRY(executor_->moment(d, executor_->lane_of(step))))
        (void)end->time();
    record_collective(step, start);
    return Unit{};
  };
  const auto ticket = cluster_->background().begin(
      std::move(work), [pool = run_.pool] { pool->notify(); });
  begun_.emplace_back(&step, ticket);
}

bool Execution::is_under_way(const Instruction& end) const {
  return end.kind == Kind::collective_end &&
         std::ranges::any_of(
             begun_, [&](const auto& each) { return each.first == end.step; });
}

/// It is under way.
Status Execution::end_collective(const CollectiveStep& step) {
  const auto begun = std::ranges::find_if(
      begun_, [&](const auto& each) { return each.first == &step; });
  const Background::Ticket ticket = begun->second;
  begun_.erase(begun);
  TRY(await(ticket));
  executor_->end_meeting(step);
  if (!recorder_) return Unit{};
  // Of devices with queues it is the thread that waits.
  const Clock::time_point now = Clock::now();
  for (const int d : own_)
    if (run_.devices[d].device->queue()) devices_[d].arrived = now;
  record_wait(step, now);
  return Unit{};
}

void Execution::find_arrivals() {
  arrival_ = 0;
  if (!cluster_) return;
  std::vector<bool> arrives(run_.program.slots.size());
  for (const SlotId slot : run_.program.inputs)
    for (const int d : own_) {
      const auto ticket = cluster_->arrival(run_.devices[d].slots[slot]);
      if (ticket != 0) arrives[slot] = true;
      arrival_ = std::max(arrival_, ticket);
    }
  if (arrival_ == 0) return;
  for (const int d : own_) devices_[d].has_inputs = false;
  reads_arrivals_ = first_reader(flat_, arrives);
}

/// Others are led on meanwhile, here or by idle workers.
Status Execution::await_inputs(int d, int pc) {
  if (devices_[d].has_inputs || pc < reads_arrivals_) return Unit{};
  if (!shared_.load(std::memory_order_relaxed) &&
      ready_.load(std::memory_order_relaxed) != 0)
    share();
  TRY(await(arrival_));
  devices_[d].has_inputs = true;
  return Unit{};
}

/// The waiting threads combine, too.
Status Execution::await(Background::Ticket ticket) {
  if (ticket == 0) return Unit{};
  Background& background = cluster_->background();
  const auto done = [&] { return background.is_done(ticket); };
  if (!done()) run_.pool->help_until(run_.group(), done);
  return background.status();
}

Status Execution::meet_recorded(const CollectiveStep& step,
                                const std::function<Status()>& meet) {
  std::vector<Moment> arrived;
  for (const int d : own_) arrived.push_back(TRY(executor_->moment(d)));
  const Clock::time_point start = Clock::now();
  TRY(meet());
  if (!arrived[0]) {
    record_wait(step, start);
    record_collective(step, start);
    return Unit{};
  }
  const Lane lane = executor_->lane_of(step);
  for (size_t i = 0; i < own_.size(); ++i) {
    const int d = own_[i];
    Moment end = TRY(executor_->moment(d, lane));
    Recorder::Event event{.kind = Recorder::Kind::wait,
                          .device = devices_[d].row,
                          .source = step.source,
                          .name = name(step.kind)};
    note_timed({event, {arrived[i]}, arrived});
    event.kind = Recorder::Kind::collective;
    event.bytes = step.bytes();
    note_timed({std::move(event), arrived, {std::move(end)}});
  }
  return Unit{};
}

/// Each device since it came there.
void Execution::record_wait(const CollectiveStep& step,
                            Clock::time_point end) const {
  for (const int d : own_)
    recorder_->record({.kind = Recorder::Kind::wait,
                       .device = devices_[d].row,
                       .source = step.source,
                       .name = name(step.kind),
                       .start = devices_[d].arrived,
                       .end = end});
}

void Execution::record_collective(const CollectiveStep& step,
                                  Clock::time_point start) const {
  const Clock::time_point end = Clock::now();
  for (const int d : own_)
    recorder_->record({.kind = Recorder::Kind::collective,
                       .device = devices_[d].row,
                       .bytes = step.bytes(),
                       .source = step.source,
                       .name = name(step.kind),
                       .start = start,
                       .end = end});
}

}  // namespace unisono
