#include "simcuda/machine/races.h"

#include <algorithm>
#include <bit>

#include "simcuda/machine/access.h"
#include "simcuda/machine/block.h"
#include "simcuda/machine/lanes.h"

namespace simcuda {

using namespace unisono::cuda;

namespace {

constexpr size_t most_told = 12;  // by a launch
constexpr uint32_t all_blocks = ~0u;

bool covers(const Knowledge& knowledge, const RaceSlot& slot) {
  return knowledge.covers(slot.block, slot.thread(), slot.time);
}

std::string place_of(const LaunchShape& launch, const RaceSlot& slot) {
  auto triple = [](uint64_t at, const Dimensions& d) {
    return "(" + std::to_string(at % d.x) + ", " +
           std::to_string(at / d.x % d.y) + ", " +
           std::to_string(at / d.x / d.y) + ")";
  };
  return "block " + triple(slot.block, launch.grid) + ", thread " +
         triple(slot.thread(), launch.block);
}

const char* what_does(const RaceSlot& slot) {
  switch (slot.kind()) {
    case RaceSlot::none: return "";
    case RaceSlot::read: return "reads";
    case RaceSlot::write: return "writes";
    case RaceSlot::strong_read: return "atomically reads";
    case RaceSlot::strong_write: return "atomically writes";
  }
  return "";
}

MemoryUse::Kind use_of(const RaceCell& cell) {
  bool strong = true;
  for (const RaceSlot& slot : {cell.last, cell.a, cell.b, cell.stale})
    strong &= slot.empty() || slot.strong();
  return cell.last.empty() ? MemoryUse::Kind::read
         : strong          ? MemoryUse::Kind::atomic
                           : MemoryUse::Kind::write;
}

}  // namespace

bool LaunchRaces::is_new(uint32_t pc, uint32_t other, int kind) {
  if (told_.size() >= most_told) return false;
  return told_.emplace(pc, other, kind).second;
}

std::vector<MemoryUse> LaunchRaces::uses() const {
  std::vector<MemoryUse> joined;
  global.each([&](uint64_t address, uint64_t bytes, const RaceCell& cell) {
    const MemoryUse::Kind kind = use_of(cell);
    if (!joined.empty() && joined.back().end == address &&
        joined.back().kind == kind) {
      joined.back().end = address + bytes;
    } else {
      joined.push_back({address, address + bytes, kind});
    }
  });
  return joined;
}

void BlockRaces::begin(uint64_t block) {
  number_ = static_cast<uint32_t>(block);
  now_ = 1;
  base_ = 0;
  if (shared_used_) shared_.clear();
  shared_used_ = false;
  warps_.assign((block_.launch.block.count() + warp_size - 1) / warp_size, {});
  threads_.clear();
  everyone_knows_.clear();
  arrivals_.clear();
}

BlockRaces::ThreadKnowledge& BlockRaces::knowledge(uint32_t thread) {
  if (threads_.empty()) threads_.resize(warps_.size() * warp_size);
  return threads_[thread];
}

bool BlockRaces::ordered(const RaceSlot& before, uint32_t thread) const {
  if (before.block == number_) {
    const uint32_t other = before.thread();
    if (other == thread || before.time <= base_) return true;
    if (other / warp_size == thread / warp_size) {
      const WarpTimes& warp = warps_[thread / warp_size];
      if (before.time <= warp.all) return true;
      if (!warp.known.empty() &&
          before.time <=
              warp.known[thread % warp_size * warp_size + other % warp_size]) {
        return true;
      }
    }
  }
  return covers(everyone_knows_, before) ||
         (!threads_.empty() && covers(threads_[thread].extra, before));
}

const Knowledge& BlockRaces::Told::all() {
  if (whole) return everyone;
  whole = true;
  BlockTimes own{.everyone = base, .threads = {}};
  for (uint32_t lane = 0; lane < warp_size; ++lane) {
    const uint32_t other = thread / warp_size * warp_size + lane;
    const uint32_t met = lanes.empty() ? warp : std::max(warp, lanes[lane]);
    const uint32_t time = other == thread ? now : met;
    if (time > base) own.threads.emplace_back(other, time);
  }
  everyone.join(extra);
  everyone.join(Knowledge(block, std::move(own)));
  return everyone;
}

BlockRaces::Told BlockRaces::all_known(uint32_t thread, uint32_t now) const {
  const WarpTimes& warp = warps_[thread / warp_size];
  Told told{.everyone = everyone_knows_,
            .extra = {},
            .block = number_,
            .thread = thread,
            .base = base_,
            .warp = warp.all,
            .now = now,
            .lanes = {}};
  if (!threads_.empty()) told.extra = threads_[thread].extra;
  if (!warp.known.empty()) {
    auto lanes = warp.known.begin() + thread % warp_size * warp_size;
    told.lanes.assign(lanes, lanes + warp_size);
  }
  return told;
}

void BlockRaces::warp_sync(const Warp& warp) {
  const uint32_t mask = warp.mask;
  const auto first = static_cast<uint32_t>(warp.index * warp_size);
  WarpTimes& times = warps_[static_cast<size_t>(warp.index)];
  auto each = [&](auto&& body) {
    for (uint32_t m = mask; m != 0; m &= m - 1)
      body(static_cast<uint32_t>(std::countr_zero(m)));
  };
  if (!threads_.empty()) {
    Knowledge joined;
    each([&](uint32_t lane) { joined.join(threads_[first + lane].extra); });
    each([&](uint32_t lane) { threads_[first + lane].extra = joined; });
  }
  if (mask == warp.alive) {
    times.all = now_++;
    return;
  }
  if (times.known.empty()) times.known.resize(warp_size * warp_size);
  uint32_t joined[warp_size] = {};
  each([&](uint32_t lane) {
    for (uint32_t other = 0; other < warp_size; ++other) {
      joined[other] =
          std::max(joined[other], times.known[lane * warp_size + other]);
    }
  });
  each([&](uint32_t lane) { joined[lane] = now_; });
  each([&](uint32_t lane) {
    std::copy_n(joined, warp_size, &times.known[lane * warp_size]);
  });
  ++now_;
}

void BlockRaces::fence(const Warp& warp, bool block_only) {
  for (uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const auto thread = static_cast<uint32_t>(warp.index * warp_size) +
                        static_cast<uint32_t>(std::countr_zero(m));
    ThreadKnowledge& mine = knowledge(thread);
    mine.extra.join(mine.heard_here);
    // What others than this block gave needs a fence of all the device.
    mine.extra.join(block_only ? mine.heard.only(number_) : mine.heard);
    mine.released_here = std::make_shared<Told>(all_known(thread, now_));
    if (!block_only) mine.released = mine.released_here;
  }
  ++now_;
}

void BlockRaces::synchronise(const Instruction& i, uint32_t thread,
                             uint64_t address, Access access, bool shared) {
  const bool active = !threads_.empty() || !all_.released.empty();
  if (!active && !i.acquires && !i.releases) return;
  if (shared) address |= shared_window;
  ThreadKnowledge& mine = knowledge(thread);
  if (i.releases) {
    mine.released_here = std::make_shared<Told>(all_known(thread, now_));
    if (!i.block_scope) mine.released = mine.released_here;
    ++now_;
  }
  const std::pair<uint64_t, uint32_t> out = {address, all_blocks},
                                      here = {address, number_};
  if (access != Access::write) {
    auto hear = [&](const auto& key, Knowledge& heard) {
      auto it = all_.released.find(key);
      if (it != all_.released.end()) heard.join(it->second);
    };
    hear(out, mine.heard);
    hear(here, mine.heard_here);
    if (i.acquires) {
      mine.extra.join(mine.heard_here);
      if (!i.block_scope) mine.extra.join(mine.heard);
    }
  }
  if (access == Access::read) return;
  // A plain atomic store ends what was released here; others add to it.
  if (access == Access::write) {
    all_.released.erase(out);
    all_.released.erase(here);
  }
  if (mine.released) all_.released[out].join(mine.released->all());
  if (mine.released_here) all_.released[here].join(mine.released_here->all());
}

void BlockRaces::arrive(const Warp& warp, uint32_t which, bool whole) {
  if (whole) return;
  for (uint32_t m = warp.mask; m != 0; m &= m - 1) {
    arrivals_[which].push_back({static_cast<uint32_t>(warp.index * warp_size) +
                                    static_cast<uint32_t>(std::countr_zero(m)),
                                now_});
  }
  ++now_;
}

void BlockRaces::open(uint32_t which, bool whole) {
  std::vector<Arrival> came;
  came.swap(arrivals_[which]);
  if (whole) {
    base_ = now_++;
    const Knowledge* before = nullptr;
    for (ThreadKnowledge& thread : threads_) {
      if (before == nullptr || !thread.extra.same(*before))
        everyone_knows_.join(thread.extra);
      before = &thread.extra;
    }
    for (ThreadKnowledge& thread : threads_) thread.extra.clear();
    return;
  }
  Knowledge joined;
  for (const Arrival& arrival : came)
    joined.join(all_known(arrival.thread, arrival.time).all());
  for (const Arrival& arrival : came)
    knowledge(arrival.thread).extra.join(joined);
}

Flow BlockRaces::check_members(Warp& warp, const Instruction& i, Slot slot) {
  const auto* masks = warp.row<uint32_t>(slot);
  const uint32_t members = masks[warp.first_lane()];
  bool alike = true;
  each_lane(warp, [&](int lane) { alike &= masks[lane] == members; });
  const std::string where = " in PTX line " + std::to_string(i.line);
  if (!alike)
    return finding(warp, i, 0, 4, "lanes meet with masks that differ" + where);
  const uint64_t threads =
      block_.launch.block.count() - uint64_t(warp.index) * warp_size;
  const uint32_t began =
      threads >= warp_size ? ~0u : (1u << static_cast<uint32_t>(threads)) - 1;
  if ((members & began & ~warp.alive) != 0)
    return finding(warp, i, 0, 5, "a mask names lanes that have ended" + where);
  return Flow::next;
}

Flow BlockRaces::check_barrier(std::vector<Warp>& warps, uint32_t which,
                               Warp*& culprit) {
  const auto& code = block_.launch.kernel->code;
  const Instruction* first = nullptr;
  for (Warp& warp : warps) {
    for (const Path& path : warp.paths) {
      if (path.state != Path::State::barrier || path.which != which) continue;
      const Instruction& here = code[path.pc - 1];
      if (first == nullptr) first = &here;
      if (&here == first || !(here.aligned && first->aligned)) continue;
      culprit = &warp;
      const auto pc = static_cast<uint32_t>(first - code.data());
      return finding(warp, here, pc, 6,
                     "threads of a block wait at different barriers, in PTX "
                     "lines " +
                         std::to_string(first->line) + " and " +
                         std::to_string(here.line));
    }
  }
  return Flow::next;
}

void BlockRaces::keep(RaceCell& cell, const RaceSlot& slot) {
  // What is ordered before this access says no more than it does.
  auto replaces = [&](const RaceSlot& old) {
    if (old.empty()) return true;
    if (old.strong() != slot.strong() || old.writes() != slot.writes())
      return false;
    return ordered(old, slot.thread());
  };
  if (replaces(cell.a))
    cell.a = slot;
  else if (replaces(cell.b))
    cell.b = slot;
  else if (cell.a.block == cell.b.block && slot.block != cell.a.block)
    cell.b = slot;
  else if (cell.a.same_warp(cell.b) && !slot.same_warp(cell.a))
    cell.b = slot;
  else if (cell.a.same_thread(cell.b))
    cell.b = slot;
}

void BlockRaces::visit(Warp& warp, const Instruction& i, RaceCell& cell,
                       const RaceSlot& mine, uint64_t address, bool shared) {
  const uint32_t thread = mine.thread();
  auto check = [&](const RaceSlot& before) {
    if (before.conflicts(mine) && !ordered(before, thread))
      race(warp, i, before, mine, address, shared, false);
  };
  check(cell.last);
  check(cell.a);
  check(cell.b);
  if (i.stale) {
    if (!cell.last.empty())
      race(warp, i, cell.last, mine, address, shared, true);
    cell.stale = mine;
  }
  if (!mine.writes()) return keep(cell, mine);
  if (!cell.stale.empty())
    race(warp, i, cell.stale, mine, address, shared, true);
  if (mine.strong()) {
    if (!cell.last.empty() && !ordered(cell.last, thread))
      keep(cell, cell.last);
  } else {
    cell.a = cell.b = {};
  }
  cell.last = mine;
}

/// The usual cases, by which nothing is found: what the cell knows is over
/// since a barrier of the block, or other reads say as much as this one.
inline bool BlockRaces::is_plain(RaceCell& cell, const RaceSlot& mine) const {
  auto over = [&](const RaceSlot& slot) {
    return slot.empty() || (slot.block == number_ &&
                            (slot.time <= base_ || slot.same_thread(mine)));
  };
  if (!over(cell.last) || !cell.stale.empty()) return false;
  RaceSlot& a = cell.a;
  RaceSlot& b = cell.b;
  if (over(a) && over(b)) {
    if (mine.writes()) {
      cell.last = mine;
      a = b = {};
    } else {
      // Atomics of this thread may still meet another one's reads.
      if (a.strong() || b.strong() || mine.strong()) return false;
      a = mine;
      b = {};
    }
    return true;
  }
  if (mine.kind() != RaceSlot::read || a.kind() != RaceSlot::read ||
      b.kind() != RaceSlot::read || !threads_.empty() ||
      !everyone_knows_.empty()) {
    return false;
  }
  if (a.block != b.block) return true;
  if (a.block != number_ || b.block != number_ || a.same_thread(b))
    return false;
  const WarpTimes& warp = warps_[mine.thread() / warp_size];
  const uint32_t floor = std::max(base_, warp.all);
  return a.time > floor && b.time > floor && warp.known.empty() &&
         (!a.same_warp(b) || mine.same_warp(a));
}

inline Flow BlockRaces::lane_cells(Warp& warp, const Instruction& i,
                                   const RaceSlot& mine, uint64_t address,
                                   uint32_t bytes, bool shared) {
  RaceShadow& shadow = shared ? shared_ : all_.global;
  RaceShadow::Page* page = shadow.page(address / RaceShadow::page_bytes);
  if (page == nullptr) return Flow::next;
  if (bytes < 4) page->split();
  flow_ = Flow::next;
  const uint32_t cells = std::max(1u, bytes >> page->shift);
  RaceCell* cell =
      &page->cells[address % RaceShadow::page_bytes >> page->shift];
  for (uint32_t c = 0; c < cells; ++c) {
    if (!i.stale && is_plain(cell[c], mine)) continue;
    visit(warp, i, cell[c], mine, address + (uint64_t{c} << page->shift),
          shared);
  }
  return flow_;
}

Flow BlockRaces::lane_access(Warp& warp, const Instruction& i, int lane,
                             uint64_t address, uint32_t bytes, Access access,
                             bool shared) {
  uint64_t addresses[warp_size] = {};
  addresses[lane] = address;
  return lanes_access(warp, i, 1u << lane, addresses, bytes, access, shared);
}

Flow BlockRaces::lanes_access(Warp& warp, const Instruction& i, uint32_t lanes,
                              const uint64_t* addresses, uint32_t bytes,
                              Access access, bool shared) {
  shared_used_ |= shared;
  const bool strong = i.ordered || access == Access::read_write;
  const RaceSlot::Kind kind =
      access == Access::read
          ? (strong ? RaceSlot::strong_read : RaceSlot::read)
          : (strong ? RaceSlot::strong_write : RaceSlot::write);
  const bool repeats = kind == RaceSlot::read && !i.stale;
  const auto first = static_cast<uint32_t>(warp.index * warp_size);
  const auto pc = static_cast<uint32_t>(&i - warp.kernel->code.data());
  uint64_t before = ~uint64_t{0}, earlier = 0;
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    const uint64_t address = addresses[lane];
    // Two lanes that read a place say as much as all that do.
    if (repeats && address == before && address == earlier) continue;
    earlier = before;
    before = address;
    const RaceSlot mine = RaceSlot::make(number_, now_, kind, first + lane, pc);
    const Flow flow = lane_cells(warp, i, mine, address, bytes, shared);
    if (strong) synchronise(i, first + lane, address, access, shared);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Flow BlockRaces::access(Warp& warp, const Instruction& i,
                        const uint64_t* addresses, uint32_t bytes,
                        Access access, bool shared) {
  return lanes_access(warp, i, warp.mask, addresses, bytes, access, shared);
}

Flow BlockRaces::finding(Warp& warp, const Instruction& i, uint32_t other_pc,
                         int kind, const std::string& text) {
  const auto pc = static_cast<uint32_t>(&i - warp.kernel->code.data());
  if (all_.is_new(pc, other_pc, kind))
    warp.worker->memory->report("kernel `" + warp.kernel->name + "`: " + text);
  if (!all_.fatal) return Flow::next;
  return warp.fail(launch_failed, i, text);
}

void BlockRaces::race(Warp& warp, const Instruction& i, const RaceSlot& before,
                      const RaceSlot& mine, uint64_t address, bool shared,
                      bool stale) {
  const auto& code = warp.kernel->code;
  auto who = [&](const RaceSlot& slot) {
    return place_of(block_.launch, slot) + " " + what_does(slot) +
           " in PTX line " + std::to_string(code[slot.pc()].line);
  };
  const int kind = stale                     ? 3
                   : before.block != number_ ? 2
                   : before.same_warp(mine)  ? 1
                                             : 0;
  constexpr const char* reasons[] = {
      "no barrier of the block lies between",
      "lanes of one warp, and no bar.warp.sync of both lies between",
      "nothing orders these blocks",
      "`ld.global.nc` is only for what the kernel does not write"};
  std::string where =
      shared ? "byte " + std::to_string(address) + " of shared memory"
             : warp.worker->memory->memory().describe(address);
  const Flow flow = finding(warp, i, before.pc(), kind,
                            "race at " + where + ": " + who(before) + ", " +
                                who(mine) + ": " + reasons[kind]);
  if (flow != Flow::next) flow_ = flow;
}

}  // namespace simcuda
