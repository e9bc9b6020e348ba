// How exchanges are counted: in runs, between them, and aside of the program.
#include <algorithm>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster.h"

namespace unisono {

void Cluster::count_exchange() {
  Context& now = context();
  if (now.in_run)
    ++now.sequence;
  else
    now.sequence = ((now.sequence >> 32) + 1) << 32;
}

void Cluster::begin_run() {
  count_exchange();
  ++own_.runs;
  own_.in_run = true;
}

void Cluster::end_run() {
  own_.in_run = false;
  if (!finish_asides()) return;  // the next exchange tells of it
}

void Cluster::begin_aside(std::function<Status()> work,
                          std::vector<const void*> places,
                          std::function<void()> done) {
  CHECK(!own_.in_run);
  count_exchange();
  Context aside = own_;
  aside.in_run = true;  // counts by itself
  const auto ticket = background_.begin(
      [this, aside, work = std::move(work)]() mutable {
        aside_ = &aside;
        Status worked = work();
        aside_ = nullptr;
        return worked;
      },
      std::move(done));
  asides_.push_back({ticket, std::move(places)});
}

Background::Ticket Cluster::arrival(const void* place) const {
  Background::Ticket last = 0;
  for (const Aside& aside : asides_)
    if (std::ranges::find(aside.places, place) != aside.places.end())
      last = std::max(last, aside.ticket);
  return last;
}

Status Cluster::finish_asides() {
  if (background_.is_here() || asides_.empty()) return Unit{};
  background_.wait();
  TRY(background_.status());
  asides_.clear();
  return Unit{};
}

}  // namespace unisono
