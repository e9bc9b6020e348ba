// What the host is told by events: that bytes have come, and when work was
// done.
#include <utility>

#include "runtime/cuda/queue.h"

namespace unisono::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// The driver tells times between events in milliseconds as floats: after so
/// long they are still exact to a microsecond.
constexpr auto longest_epoch = std::chrono::seconds(8);

}  // namespace

class StreamQueue::SentParcel final : public Parcel {
 public:
  SentParcel(StreamQueue& queue, size_t berth)
      : queue_(queue), berth_(berth), followed_(queue.followed_.notes()) {}
  ~SentParcel() override {
    if (!waited_) (void)wait();
    std::lock_guard lock(queue_.events_mutex_);
    queue_.berths_[berth_].taken = false;
  }
  Status wait() override {
    waited_ = true;
    TRY(queue_.usable());
    CurrentContext current(*queue_.gpu_);
    TRY(queue_.gpu_->check(
        queue_.gpu_->driver().event_synchronize(queue_.berths_[berth_].sent),
        "waiting for " + queue_.name_));
    return queue_.are_well(followed_);
  }
  const void* bytes() const override { return queue_.berths_[berth_].memory; }

 private:
  StreamQueue& queue_;
  const size_t berth_;
  const std::vector<Followed::Note> followed_;
  bool waited_ = false;
};

Result<std::unique_ptr<Queue::Parcel>> StreamQueue::send(const void* from,
                                                         int64_t bytes) {
  TRY(usable());
  size_t free = 0;
  {
    std::lock_guard lock(events_mutex_);
    while (free < berths_.size() && berths_[free].taken) ++free;
    if (free == berths_.size()) return std::unique_ptr<Parcel>();
    berths_[free].taken = true;
  }
  Berth& berth = berths_[free];
  const Driver& cuda = gpu_->driver();
  const std::string doing = "marking work of " + name_;
  CurrentContext current(*gpu_);
  Status done = Unit{};
  if (!berth.sent)
    done = gpu_->check(cuda.event_create(&berth.sent, event_disable_timing),
                       doing);
  if (done && bytes > 0) done = copy_to_staging(berth.memory, from, bytes);
  if (done) done = gpu_->check(cuda.event_record(berth.sent, kernels()), doing);
  if (done)
    return std::unique_ptr<Parcel>(std::make_unique<SentParcel>(*this, free));
  // The copy may be under way.
  if (bytes > 0) cuda.stream_synchronize(kernels());
  std::lock_guard lock(events_mutex_);
  berth.taken = false;
  return done.error();
}

class StreamQueue::EventMoment final : public Moment {
 public:
  EventMoment(StreamQueue& queue, Event event, std::shared_ptr<Epoch> epoch)
      : queue_(queue), event_(event), epoch_(std::move(epoch)) {}
  ~EventMoment() override {
    std::lock_guard lock(queue_.events_mutex_);
    queue_.idle_.push_back(event_);
  }
  Result<Clock::time_point> time() override {
    TRY(queue_.usable());
    const Driver& cuda = queue_.gpu_->driver();
    const std::string doing = "timing " + queue_.name_;
    CurrentContext current(*queue_.gpu_);
    TRY(queue_.gpu_->check(cuda.event_synchronize(event_), doing));
    float milliseconds = 0;
    TRY(queue_.gpu_->check(
        cuda.event_elapsed_time(&milliseconds, epoch_->event, event_), doing));
    const std::chrono::duration<double, std::milli> since(milliseconds);
    return epoch_->time + std::chrono::duration_cast<Clock::duration>(since);
  }

 private:
  StreamQueue& queue_;
  const Event event_;
  const std::shared_ptr<Epoch> epoch_;
};

Result<Event> StreamQueue::take_event() {
  {
    std::lock_guard lock(events_mutex_);
    if (!idle_.empty()) {
      const Event event = idle_.back();
      idle_.pop_back();
      return event;
    }
  }
  Event event = nullptr;
  TRY(gpu_->check(gpu_->driver().event_create(&event, event_default),
                  "timing " + name_));
  return event;
}

/// The first one, and one that is old, is waited for, so that the host knows
/// when it is.
Result<std::shared_ptr<StreamQueue::Epoch>> StreamQueue::current_epoch() {
  {
    std::lock_guard lock(events_mutex_);
    if (epoch_ && Clock::now() - epoch_->time < longest_epoch) return epoch_;
  }
  const std::string doing = "timing " + name_;
  const Event event = TRY(take_event());
  const Driver& cuda = gpu_->driver();
  Status done = gpu_->check(cuda.event_record(event, kernels()), doing);
  if (done) done = gpu_->check(cuda.event_synchronize(event), doing);
  // Its event is idle again when no moment is told from it any more.
  std::shared_ptr<Epoch> made(new Epoch{event, Clock::now()},
                              [this](const Epoch* old) {
                                std::lock_guard lock(events_mutex_);
                                idle_.push_back(old->event);
                                delete old;
                              });
  if (!done) return done.error();
  std::shared_ptr<Epoch> before;  // which may end here, without the lock
  std::lock_guard lock(events_mutex_);
  before = std::exchange(epoch_, made);
  return made;
}

Result<std::unique_ptr<Queue::Moment>> StreamQueue::moment(Lane lane) {
  TRY(usable());
  CurrentContext current(*gpu_);
  auto epoch = TRY(current_epoch());
  const Event event = TRY(take_event());
  auto moment = std::make_unique<EventMoment>(*this, event, std::move(epoch));
  TRY(gpu_->check(gpu_->driver().event_record(event, track(lane).stream),
                  "timing " + name_));
  return std::unique_ptr<Moment>(std::move(moment));
}

void StreamQueue::close_events() {
  epoch_ = nullptr;
  for (const Berth& berth : berths_)
    if (berth.sent) gpu_->driver().event_destroy(berth.sent);
  for (const Event event : idle_) gpu_->driver().event_destroy(event);
}

}  // namespace unisono::cuda
