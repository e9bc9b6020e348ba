#include "runtime/recorder.h"

namespace unisono {
namespace {

void add(Recorder::Total& total, const Recorder::Event& event) {
  ++total.count;
  total.bytes += event.bytes;
  total.turns += event.turns;
  total.flops += event.flops;
  total.time += event.end - event.start;
}

}  // namespace

void Recorder::record(Event event) {
  std::lock_guard lock(mutex_);
  add(totals_[event.device][static_cast<size_t>(event.kind)], event);
  if (event.kind == Kind::copy) add(copies_[{event.from, event.device}], event);
  if (event.kind == Kind::kernel) add(kernels_[event.sources], event);
  if (event.kind == Kind::loop) add(loops_[event.source], event);
  if (!keep_events_) return;
  if (events_.size() < most_events)
    events_.push_back(std::move(event));
  else
    ++dropped_;
}

void Recorder::count_cache_hit() {
  std::lock_guard lock(mutex_);
  ++cache_hits_;
}

std::vector<Recorder::Event> Recorder::events() const {
  std::lock_guard lock(mutex_);
  return events_;
}

int64_t Recorder::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

Recorder::Total Recorder::total(Kind kind, int device) const {
  std::lock_guard lock(mutex_);
  const auto found = totals_.find(device);
  return found == totals_.end() ? Total()
                                : found->second[static_cast<size_t>(kind)];
}

std::map<std::vector<uint32_t>, Recorder::Total> Recorder::kernels() const {
  std::lock_guard lock(mutex_);
  return kernels_;
}

std::map<uint32_t, Recorder::Total> Recorder::loops() const {
  std::lock_guard lock(mutex_);
  return loops_;
}

std::map<std::pair<int, int>, Recorder::Total> Recorder::copies() const {
  std::lock_guard lock(mutex_);
  return copies_;
}

int64_t Recorder::cache_hits() const {
  std::lock_guard lock(mutex_);
  return cache_hits_;
}

}  // namespace unisono
