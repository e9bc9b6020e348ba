#include "simcuda/machine/operation_races.h"

#include <algorithm>

namespace simcuda {
namespace {

constexpr size_t many_histories = 4096;

uint64_t known(const OperationClock& clock, uint64_t chain) {
  auto it = std::lower_bound(clock.begin(), clock.end(),
                             std::pair<uint64_t, uint64_t>(chain, 0));
  return it != clock.end() && it->first == chain ? it->second : 0;
}

void join(OperationClock& clock, const OperationClock& other) {
  if (other.empty()) return;
  OperationClock both;
  both.reserve(clock.size() + other.size());
  auto a = clock.begin();
  for (const auto& entry : other) {
    while (a != clock.end() && a->first < entry.first) both.push_back(*a++);
    both.push_back(entry);
    if (a != clock.end() && a->first == entry.first) {
      both.back().second = std::max(both.back().second, a->second);
      ++a;
    }
  }
  both.insert(both.end(), a, clock.end());
  clock.swap(both);
}

/// What one that comes after this operation knows.
OperationClock after(const OperationTrace& trace) {
  OperationClock clock = trace.known;
  join(clock, {{trace.chain, trace.number}});
  return clock;
}

bool knows(const OperationTrace& now, uint64_t chain, uint64_t number) {
  return known(now.known, chain) >= number || known(*now.host, chain) >= number;
}

bool ordered(const OperationTrace& before, const OperationTrace& now) {
  return &before == &now || knows(now, before.chain, before.number) ||
         (before.closed_chain != 0 &&
          knows(now, before.closed_chain, before.closed_number));
}

}  // namespace

OperationTracePtr OperationRaces::queue(
    uint64_t chain, uint64_t number, std::string what,
    const std::vector<const OperationTrace*>& before) {
  auto trace = std::make_shared<OperationTrace>();
  trace->chain = chain;
  trace->number = number;
  trace->what = std::move(what);
  trace->host = host_;
  for (const OperationTrace* one : before) {
    if (one == nullptr) continue;
    join(trace->known, after(*one));
    if (one->host != host_) join(trace->known, *one->host);
  }
  std::erase_if(trace->known, [&](const auto& entry) {
    return known(*host_, entry.first) >= entry.second;
  });
  return trace;
}

void OperationRaces::close(const std::vector<OperationTracePtr>& nodes,
                           OperationTrace& end) {
  std::set<uint64_t> chains;
  for (const OperationTracePtr& node : nodes) {
    node->closed_chain = end.chain;
    node->closed_number = end.number;
    chains.insert(node->chain);
  }
  std::erase_if(end.known, [&](const auto& entry) {
    return chains.count(entry.first) != 0;
  });
}

void OperationRaces::host_waited(const OperationTrace& trace) {
  if (known(*host_, trace.chain) >= trace.number) return;
  auto now = std::make_shared<OperationClock>(*host_);
  join(*now, after(trace));
  join(*now, *trace.host);
  host_ = std::move(now);
}

OperationRaces::History& OperationRaces::history_of(
    const std::shared_ptr<Allocation>& allocation) {
  if (histories_.size() > many_histories) {
    std::erase_if(histories_, [](const auto& entry) {
      auto of = entry.second.allocation.lock();
      return !of || of->state.load() == Allocation::State::freed;
    });
  }
  History& history = histories_[allocation->number];
  if (history.segments.empty()) {
    history.allocation = allocation;
    history.segments[allocation->begin].end = allocation->end();
  }
  return history;
}

OperationRaces::Place OperationRaces::cut(History& history, uint64_t at) {
  auto& segments = history.segments;
  auto place = segments.lower_bound(at);
  if (place != segments.end() && place->first == at) return place;
  if (place == segments.begin()) return place;
  auto before = std::prev(place);
  if (before->second.end <= at) return place;
  Segment rest = before->second;
  before->second.end = at;
  return segments.emplace_hint(place, at, std::move(rest));
}

void OperationRaces::conflict(const OperationTrace& before,
                              const OperationTrace& now, bool writes_before,
                              bool writes_now, uint64_t address,
                              const Allocation& allocation) {
  found_ = "nothing orders two operations on allocation #" +
           std::to_string(allocation.number) + " (" +
           std::to_string(allocation.bytes) + " bytes), byte " +
           std::to_string(address - allocation.begin) + ": " + before.what +
           (writes_before ? " writes, " : " reads, ") + now.what +
           (writes_now ? " writes" : " reads");
  if (told_.emplace(before.what, now.what).second) report_(found_);
}

void OperationRaces::touch(const OperationTracePtr& trace, const MemoryUse& use,
                           const Allocation& allocation, History& history) {
  const uint64_t begin = std::max(use.begin, allocation.begin);
  const uint64_t end = std::min(use.end, allocation.end());
  if (begin >= end) return;
  const bool writes = use.kind != MemoryUse::Kind::read;
  const bool atomic = use.kind == MemoryUse::Kind::atomic;
  auto last = cut(history, end);
  auto first = cut(history, begin);
  for (auto at = first; at != last; ++at) {
    Segment& segment = at->second;
    auto check = [&](const OperationTracePtr& other, bool other_writes) {
      if (other && !ordered(*other, *trace))
        conflict(*other, *trace, other_writes, writes, at->first, allocation);
    };
    if (!(atomic && segment.write_atomic)) check(segment.write, true);
    if (writes) {
      for (const OperationTracePtr& read : segment.reads) check(read, false);
    } else {
      // Reads that this one follows say no more than it does.
      std::erase_if(segment.reads, [&](const OperationTracePtr& read) {
        return ordered(*read, *trace);
      });
      segment.reads.push_back(trace);
    }
  }
  if (!writes) return;
  Segment now;
  now.end = end;
  now.write = trace;
  now.write_atomic = atomic;
  first = history.segments.erase(first, last);
  history.segments.emplace_hint(first, begin, std::move(now));
}

bool OperationRaces::written_since(uint64_t operations_done, uint64_t begin,
                                   uint64_t end, const DeviceMemory& memory) {
  if (host_function_ > operations_done) return true;
  const std::shared_ptr<Allocation> allocation = memory.find(begin);
  if (!allocation) return false;
  const auto& segments = history_of(allocation).segments;
  return std::any_of(segments.begin(), segments.end(), [&](const auto& entry) {
    const auto& [first, segment] = entry;
    return first < end && segment.end > begin && segment.write &&
           segment.write->done > operations_done;
  });
}

std::string OperationRaces::done(const OperationTracePtr& trace,
                                 const std::vector<MemoryUse>& uses,
                                 const DeviceMemory& memory) {
  found_.clear();
  trace->done = ++done_;
  if (trace->what.starts_with("function of the host")) host_function_ = done_;
  std::shared_ptr<Allocation> allocation;
  for (const MemoryUse& use : uses) {
    for (uint64_t at = use.begin; at < use.end;) {
      if (!allocation || at < allocation->begin || at >= allocation->end())
        allocation = memory.find(at);
      if (!allocation) break;  // plain memory of the host
      touch(trace, {at, use.end, use.kind}, *allocation,
            history_of(allocation));
      at = allocation->end();
    }
  }
  return found_;
}

}  // namespace simcuda
