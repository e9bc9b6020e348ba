#include "runtime/execute/queue_meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/kernel_library/kernel_library.h"
#include "runtime/member_tree.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

using Kind = CollectiveStep::Kind;

/// Parts begin at multiples of so many elements.
constexpr int64_t alignment = 64;

constexpr Lane beside = Mover::lane;

bool is_small(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}

int64_t size_of(DType dtype, bool small) {
  return is_small(dtype) && !small ? 4 : byte_size(dtype);
}

GridLaunch combining(const CollectiveStep& step, const CombineCall& call) {
  GridLaunch launch{.code = kernel_library("combine"),
                    .entry = fmt::format("combine_{}", name(step.dtype)),
                    .reports = false};
  launch.blocks =
      std::clamp<int64_t>((call.elements + tuning().gpu_elements_a_block - 1) /
                              tuning().gpu_elements_a_block,
                          1, tuning().gpu_most_meeting_blocks);
  launch.constants.resize(sizeof call);
  std::memcpy(launch.constants.data(), &call, sizeof call);
  return launch;
}

}  // namespace

QueueMeeting::QueueMeeting(const RunState& run, ClusterMeeting& meeting,
                           std::span<Queue* const> queues,
                           std::vector<Memory>& memory)
    : run_(run),
      meeting_(meeting),
      queues_(queues),
      own_(meeting.cluster().process()),
      others_(meeting.others()),
      memory_(memory) {
  memory_.resize(static_cast<size_t>(run.count));
  for (int d = 0; d < run.count; ++d) {
    if (!queues[d]) continue;
    own_queues_.push_back(queues[d]);
    mover_ = &cluster_device(*run.devices[d].device)->mover();
  }
  CHECK(mover_);
}

QueueMeeting::At QueueMeeting::from(const Team& team, size_t place,
                                    const CollectiveStep& step,
                                    int64_t offset) const {
  void* slot = run_.devices[team.devices[place]].slots[step.from];
  return {place, static_cast<char*>(slot) + offset};
}

QueueMeeting::At QueueMeeting::to(const Team& team, size_t place,
                                  const CollectiveStep& step,
                                  int64_t offset) const {
  void* slot = run_.devices[team.devices[place]].slots[step.to];
  return {place, static_cast<char*>(slot) + offset};
}

bool QueueMeeting::is_own(const Team& team, size_t place) const {
  return team.owners[place] == own_;
}

Queue& QueueMeeting::queue(const Team& team, size_t place) const {
  return *queues_[team.devices[place]];
}

Status QueueMeeting::copy(const Team& team, At from, At to, int64_t bytes) {
  if (!is_own(team, from.place) || !is_own(team, to.place)) {
    transfer(team, from, to, bytes);
    return Unit{};
  }
  const bool there = from.place == to.place && from.data == to.data;
  if (only_asks() || bytes == 0 || there) return Unit{};
  return queue(team, to.place)
      .copy(to.data, queue(team, from.place), from.data, bytes, beside);
}

void QueueMeeting::transfer(const Team& team, At from, At to, int64_t bytes) {
  const bool here = is_own(team, from.place) || is_own(team, to.place);
  if (only_asks() || bytes == 0 || !here) return;
  const auto end = [&](At at) -> Transfer::End {
    const int position = team.devices[at.place];
    return {team.owners[at.place], run_.devices[position].device->index(),
            queues_[position], at.data};
  };
  transfers_.push_back({end(from), end(to), bytes});
}

Status QueueMeeting::move(uint64_t fingerprint) {
  if (only_asks()) return Unit{};
  Status done = mover_->move(transfers_, others_, fingerprint);
  transfers_.clear();
  return done;
}

Status QueueMeeting::join() {
  if (only_asks()) return Unit{};
  for (Queue* queue : own_queues_) TRY(queue->mark(beside));
  for (Queue* queue : own_queues_)
    for (Queue* other : own_queues_)
      if (queue != other) TRY(queue->wait_for(*other, beside, beside));
  return Unit{};
}

Status QueueMeeting::follow_kernels() {
  for (Queue* queue : own_queues_) {
    TRY(queue->mark());
    TRY(queue->wait_for(*queue, beside));
  }
  return Unit{};
}

QueueMeeting::At QueueMeeting::scratch(const Team& team, size_t place,
                                       int64_t bytes) {
  const int position = team.devices[place];
  if (needs_) {
    static char nowhere;
    (*needs_)[position].push_back(bytes);
    return {place, &nowhere};
  }
  Memory& memory = memory_[position];
  CHECK(memory.used < memory.buffers.size());
  Buffer& buffer = memory.buffers[memory.used++];
  CHECK(buffer.bytes() >= bytes);
  return {place, static_cast<char*>(buffer.data())};
}

QueueMeeting::Needs QueueMeeting::needs_of(const CollectiveStep& step) {
  Needs needs(static_cast<size_t>(run_.count));
  QueueMeeting asks(run_, meeting_, queues_, memory_);
  asks.needs_ = &needs;
  (void)asks.meet(step, meeting_.teams(step), 0);  // puts nothing: cannot fail
  return needs;
}

bool QueueMeeting::has(const Needs& needs) const {
  for (size_t position = 0; position < needs.size(); ++position) {
    const std::vector<Buffer>& buffers = memory_[position].buffers;
    if (buffers.size() < needs[position].size()) return false;
    for (size_t i = 0; i < needs[position].size(); ++i)
      if (buffers[i].device() != run_.devices[position].device ||
          buffers[i].bytes() < needs[position][i])
        return false;
  }
  return true;
}

Result<const std::vector<ClusterMeeting::Team>*> QueueMeeting::reserve(
    const CollectiveStep& step) {
  auto known = std::ranges::find_if(
      known_, [&](const auto& each) { return each.first == &step; });
  if (known == known_.end())
    known = known_.insert(known_.end(), {&step, needs_of(step)});
  const Needs& needs = known->second;
  const std::vector<Team>* const teams = &meeting_.teams(step);
  if (has(needs)) return teams;
  meeting_.cluster().background().wait();
  for (size_t position = 0; position < needs.size(); ++position)
    for (size_t i = 0; i < needs[position].size(); ++i)
      TRY(provide(static_cast<int>(position), i, needs[position][i]));
  return teams;
}

/// Memory comes and goes in the order of kernels; of earlier meetings some may
/// still be under way.
Status QueueMeeting::provide(int position, size_t number, int64_t bytes) {
  std::vector<Buffer>& buffers = memory_[position].buffers;
  if (number == buffers.size()) buffers.emplace_back();
  Buffer& buffer = buffers[number];
  Device& device = *run_.devices[position].device;
  if (buffer.device() == &device && buffer.bytes() >= bytes) return Unit{};
  Queue& here = *queues_[position];
  if (buffer.data())
    for (Queue* other : own_queues_)
      TRY(here.wait_for(*other, Lane::kernels, beside));
  buffer = Buffer();
  buffer = TRY(device.allocate(bytes));
  TRY(here.mark());
  return here.wait_for(here, beside);
}

Status QueueMeeting::meet(const CollectiveStep& step,
                          const std::vector<Team>& teams,
                          uint64_t fingerprint) {
  if (!only_asks())
    for (Memory& memory : memory_) memory.used = 0;
  TRY(join());
  switch (step.kind) {
    case Kind::all_reduce:
      CHECK(step.groups.empty());
      TRY(reduce(teams[0], step, fingerprint));
      return join();
    case Kind::all_gather:
      TRY(exchange(&QueueMeeting::gather, step, teams, fingerprint));
      for (const Team& team : teams)
        if (team.here) TRY(spread_gathered(team, step));
      return join();
    case Kind::all_to_all:
      return exchange(&QueueMeeting::swap_parts, step, teams, fingerprint);
    case Kind::permute:
      return exchange(&QueueMeeting::permute, step, teams, fingerprint);
    case Kind::reduce_scatter: break;
  }
  check_failed("a collective on queues", __FILE__, __LINE__);
}

// ---- exchanges -------------------------------------------------------------

namespace {

/// The places of a process's devices in a team.
std::vector<size_t> places_of(const ClusterMeeting::Team& team, int process) {
  std::vector<size_t> out;
  for (size_t place = 0; place < team.owners.size(); ++place)
    if (team.owners[place] == process) out.push_back(place);
  return out;
}

/// By place: the device of a process to which what the place gives comes first,
/// so that each of a process's devices has a part of what travels.
std::vector<size_t> first_takers(const ClusterMeeting::Team& team,
                                 int process) {
  const std::vector<size_t> takers = places_of(team, process);
  std::vector<size_t> out(team.owners.size());
  for (const int giver : team.processes) {
    size_t number = 0;
    for (const size_t place : places_of(team, giver))
      out[place] = takers[number++ % takers.size()];
  }
  return out;
}

}  // namespace

Status QueueMeeting::exchange(
    Status (QueueMeeting::*copies)(const Team&, const CollectiveStep&),
    const CollectiveStep& step, const std::vector<Team>& teams,
    uint64_t fingerprint) {
  for (const Team& team : teams)
    if (team.here) TRY((this->*copies)(team, step));
  TRY(move(fingerprint));
  return join();
}

Status QueueMeeting::gather(const Team& team, const CollectiveStep& step) {
  const int64_t bytes = step.bytes();
  const auto place = [&](size_t i, size_t j) {
    return to(team, j, step, static_cast<int64_t>(i) * bytes);
  };
  for (const int process : team.processes) {
    const std::vector<size_t> first = first_takers(team, process);
    const std::vector<size_t> all = places_of(team, process);
    for (size_t i = 0; i < team.owners.size(); ++i) {
      const At given = from(team, i, step);
      if (team.owners[i] != process) {
        transfer(team, given, place(i, first[i]), bytes);
        continue;
      }
      for (const size_t j : all) TRY(copy(team, given, place(i, j), bytes));
    }
  }
  return Unit{};
}

/// What came for one of the own devices is the others', too.
Status QueueMeeting::spread_gathered(const Team& team,
                                     const CollectiveStep& step) {
  const std::vector<size_t> first = first_takers(team, own_);
  for (size_t i = 0; i < team.owners.size(); ++i) {
    if (is_own(team, i)) continue;
    const int64_t offset = static_cast<int64_t>(i) * step.bytes();
    for (const size_t j : places_of(team, own_))
      TRY(copy(team, to(team, first[i], step, offset),
               to(team, j, step, offset), step.bytes()));
  }
  return Unit{};
}

Status QueueMeeting::swap_parts(const Team& team, const CollectiveStep& step) {
  const int64_t bytes = step.bytes();
  for (size_t i = 0; i < team.owners.size(); ++i)
    for (size_t j = 0; j < team.owners.size(); ++j)
      TRY(copy(team, from(team, i, step, static_cast<int64_t>(j) * bytes),
               to(team, j, step, static_cast<int64_t>(i) * bytes), bytes));
  return Unit{};
}

Status QueueMeeting::permute(const Team& team, const CollectiveStep& step) {
  const int64_t bytes = step.bytes();
  std::vector<bool> reached(team.owners.size(), false);
  for (const auto& [i, j] : step.pairs) {
    reached[j] = true;
    TRY(copy(team, from(team, static_cast<size_t>(i), step),
             to(team, static_cast<size_t>(j), step), bytes));
  }
  for (size_t j = 0; j < team.owners.size(); ++j)
    if (is_own(team, j) && !reached[j] && bytes > 0 && !only_asks())
      TRY(queue(team, j).zero(to(team, j, step).data, bytes, beside));
  return Unit{};
}

// ---- all_reduce ------------------------------------------------------------
//
// A process combines the parts of the tree that lie in it, and tells these
// partial results to those who combine them all: of few elements to each
// process, of many each process gets a range, and then tells the others of its
// result. Within a process the ranges are shared out among its devices (lanes),
// and lanes of different processes exchange with one another.

void QueueMeeting::divide(Reduction& all) const {
  const Team& team = all.team;
  all.cut = all.step.bytes() >= tuning().gpu_least_cut_reduction;
  for (const int process : team.processes)
    all.places.push_back(places_of(team, process));
  if (!all.cut) {
    all.ranges.push_back({0, all.step.elements, 0, -1});
    return;
  }
  all.lanes = all.places[0].size();
  for (const auto& places : all.places)
    all.lanes = std::min(all.lanes, places.size());
  const auto parts = static_cast<int64_t>(all.lanes * team.processes.size());
  const int64_t blocks = (all.step.elements + alignment - 1) / alignment;
  const auto at = [&](int64_t part) {
    return std::min(all.step.elements, blocks * part / parts * alignment);
  };
  int64_t part = 0;
  for (size_t lane = 0; lane < all.lanes; ++lane)
    for (const int process : team.processes) {
      all.ranges.push_back({at(part), at(part + 1), lane, process});
      ++part;
    }
}

/// One step of the tree, on the range's device of this process.
Result<QueueMeeting::Operand> QueueMeeting::combine(const Reduction& all,
                                                    const Range& range,
                                                    Operand a, Operand b,
                                                    const At* at) {
  const Team& team = all.team;
  const DType dtype = all.step.dtype;
  const size_t place = places_of(team, own_)[range.lane];
  Queue& here = queue(team, place);
  const int64_t elements = range.last - range.first;
  for (Operand* operand : {&a, &b}) {
    Queue& there = queue(team, operand->at.place);
    if (here.reaches(there)) continue;
    const int64_t bytes = elements * size_of(dtype, operand->small);
    const At near = scratch(team, place, bytes);
    if (!only_asks())
      TRY(here.copy(near.data, there, operand->at.data, bytes, beside));
    operand->at = near;
  }
  Operand result{at ? *at : At{}, at != nullptr && is_small(dtype)};
  if (!at)
    result.at = scratch(team, place, elements * size_of(dtype, result.small));
  const CombineCall call{
      elements, static_cast<int32_t>(all.step.op),
      (a.small ? 1 : 0) | (b.small ? 2 : 0) | (result.small ? 4 : 0)};
  void* const arguments[] = {result.at.data, a.at.data, b.at.data};
  if (!only_asks())
    TRY(here.launch(combining(all.step, call),
                    {.arguments = arguments, .lane = beside}));
  return result;
}

Result<QueueMeeting::Operand> QueueMeeting::own_partial(const Reduction& all,
                                                        const Range& range,
                                                        int64_t begin,
                                                        int64_t end) {
  if (end - begin == 1)
    return Operand{from(all.team, static_cast<size_t>(begin), all.step,
                        range.first * byte_size(all.step.dtype)),
                   is_small(all.step.dtype)};
  const int64_t middle = begin + member_tree_left(end - begin);
  const Operand left = TRY(own_partial(all, range, begin, middle));
  const Operand right = TRY(own_partial(all, range, middle, end));
  return combine(all, range, left, right, nullptr);
}

/// Combines the own partial results of a range, and exchanges them.
Status QueueMeeting::share_partials(Reduction& all, Range& range) {
  const Team& team = all.team;
  const int64_t elements = range.last - range.first;
  if (elements == 0) return Unit{};
  const bool combines = range.combiner < 0 || range.combiner == own_;
  for (const Partial& partial : team.partials) {
    const bool one = partial.end - partial.begin == 1;
    Operand operand{{}, one && is_small(all.step.dtype)};
    const int64_t bytes = elements * size_of(all.step.dtype, operand.small);
    if (partial.owner == own_) {
      operand = TRY(own_partial(all, range, partial.begin, partial.end));
    } else {
      // Where it comes from; only its process knows the address.
      operand.at.place = one ? static_cast<size_t>(partial.begin)
                             : places_of(team, partial.owner)[range.lane];
    }
    const At source = operand.at;
    for (size_t p = 0; p < team.processes.size(); ++p) {
      const int process = team.processes[p];
      if (process == partial.owner) continue;
      if (range.combiner >= 0 && range.combiner != process) continue;
      At target{all.places[p][range.lane]};
      if (process == own_) target = scratch(team, target.place, bytes);
      transfer(team, source, target, bytes);
      if (process == own_) operand.at = target;
    }
    if (combines) range.partials.push_back(operand);
  }
  return Unit{};
}

/// The members tree over partial results, of places begin ... end - 1.
Result<QueueMeeting::Operand> QueueMeeting::combined(const Reduction& all,
                                                     const Range& range,
                                                     int64_t begin, int64_t end,
                                                     const At* at) {
  for (size_t i = 0; i < range.partials.size(); ++i)
    if (const Partial& partial = all.team.partials[i];
        partial.begin == begin && partial.end == end)
      return range.partials[i];
  const int64_t middle = begin + member_tree_left(end - begin);
  const Operand left = TRY(combined(all, range, begin, middle, nullptr));
  const Operand right = TRY(combined(all, range, middle, end, nullptr));
  return combine(all, range, left, right, at);
}

Status QueueMeeting::reduce(const Team& team, const CollectiveStep& step,
                            uint64_t fingerprint) {
  CHECK(!(is_bool(step.dtype) && step.op == ReduceOp::sum));
  const int64_t size = byte_size(step.dtype);
  Reduction all{.team = team, .step = step, .places = {}};
  divide(all);
  for (Range& range : all.ranges) TRY(share_partials(all, range));
  TRY(move(fingerprint));
  for (const Range& range : all.ranges) {
    if (range.partials.empty()) continue;
    const size_t place = places_of(team, own_)[range.lane];
    const At target = to(team, place, step, range.first * size);
    TRY(combined(all, range, 0, static_cast<int64_t>(team.devices.size()),
                 &target));
  }
  if (all.cut) {
    for (const Range& range : all.ranges)
      for (size_t p = 0; p < team.processes.size(); ++p) {
        if (team.processes[p] == range.combiner) continue;
        const size_t from = places_of(team, range.combiner)[range.lane];
        const int64_t offset = range.first * size;
        transfer(team, to(team, from, step, offset),
                 to(team, all.places[p][range.lane], step, offset),
                 (range.last - range.first) * size);
      }
    TRY(move(fingerprint));
  }
  TRY(join());
  return spread_results(all);
}

/// A lane's ranges lie one after the other.
Status QueueMeeting::spread_results(const Reduction& all) {
  const Team& team = all.team;
  const int64_t size = byte_size(all.step.dtype);
  const std::vector<size_t> places = places_of(team, own_);
  const size_t ranges = all.ranges.size() / all.lanes;
  for (size_t lane = 0; lane < all.lanes; ++lane) {
    const int64_t first = all.ranges[lane * ranges].first * size;
    const int64_t last = all.ranges[(lane + 1) * ranges - 1].last * size;
    for (const size_t place : places)
      TRY(copy(team, to(team, places[lane], all.step, first),
               to(team, place, all.step, first), last - first));
  }
  return Unit{};
}

}  // namespace unisono
