#include "lang/context/line_times.h"

namespace unisono::lang {

using std::chrono::nanoseconds;

/// Charges the time since the last call to what is being done.
void LineTimes::charge() {
  const Clock::time_point now = Clock::now();
  const nanoseconds passed = now - charged_;
  charged_ = now;
  if (doing_.empty()) return;
  const Doing& doing = doing_.back();
  if (doing.part == Part::devices) return charge_run(passed);
  times_[{doing.place}].time[static_cast<size_t>(doing.part)] += passed;
}

void LineTimes::charge_run(nanoseconds passed) {
  const KernelTimes before = std::exchange(kernels_, recorder_.kernels());
  std::vector<std::pair<const Places*, double>> shares;
  double all = 0;
  for (const auto& [places, total] : kernels_) {
    const auto known = before.find(places);
    nanoseconds time = total.time;
    if (known != before.end()) time -= known->second.time;
    if (time.count() <= 0) continue;
    shares.emplace_back(&places, static_cast<double>(time.count()));
    all += shares.back().second;
  }
  constexpr auto part = static_cast<size_t>(Part::devices);
  if (shares.empty()) {
    times_[{doing_.back().place}].time[part] += passed;
    return;
  }
  for (const auto& [places, share] : shares)
    times_[*places].time[part] += nanoseconds(static_cast<int64_t>(
        share / all * static_cast<double>(passed.count())));
}

void LineTimes::begin(Part part, uint32_t place) {
  charge();
  if (place == 0 && !doing_.empty()) place = doing_.back().place;
  doing_.push_back({part, place});
}

void LineTimes::end() {
  charge();
  doing_.pop_back();
}

void LineTimes::count_compilation() {
  const uint32_t place = doing_.empty() ? 0 : doing_.back().place;
  ++times_[{place}].compilations;
}

void LineTimes::note(uint32_t place, std::string text) {
  if (place == 0 && !doing_.empty()) place = doing_.back().place;
  notes_.emplace(place, std::move(text));
}

}  // namespace unisono::lang
