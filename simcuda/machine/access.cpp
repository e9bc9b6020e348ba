#include "simcuda/machine/access.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace simcuda {

using namespace unisono::cuda;

namespace {

struct Addresses {
  alignas(64) uint64_t lane[warp_size];
  uint64_t low = ~uint64_t{0}, high = 0;  // of the lanes that execute
};

/// Lanes that do not execute may have any offset; theirs is not used.
uint8_t* moved(uint8_t* base, uint64_t offset) {
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(base) + offset);
}

const char* verb(Access access) {
  return access == Access::read ? "reads" : "writes";
}

std::string hexadecimal(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

Flow misaligned(Warp& warp, const Instruction& i, uint64_t address,
                uint32_t bytes, Access access) {
  return warp.fail(misaligned_address, i,
                   std::string(verb(access)) + " " + std::to_string(bytes) +
                       " bytes at " + hexadecimal(address) +
                       ", which is not aligned to as many");
}

Flow beyond(Warp& warp, const Instruction& i, const char* what,
            uint64_t address, uint64_t size, uint32_t bytes, Access access) {
  return warp.fail(illegal_address, i,
                   std::string(verb(access)) + " " + std::to_string(bytes) +
                       " bytes at " + hexadecimal(address) + " of " + what +
                       ", which has " + std::to_string(size));
}

Flow shared_lane(Warp& warp, const Instruction& i, uint64_t address,
                 uint32_t bytes, Access access, uint8_t*& at) {
  Block& block = *warp.block;
  if (address + bytes > block.shared.size() || address + bytes < address) {
    return beyond(warp, i, "shared memory", address, block.shared.size(), bytes,
                  access);
  }
  at = block.shared.data() + address;
  if (!block.shared_written.empty()) {
    uint8_t* written = block.shared_written.data() + address;
    if (access != Access::write &&
        std::find(written, written + bytes, 0) != written + bytes) {
      std::string text = "kernel `" + warp.kernel->name + "`, PTX line " +
                         std::to_string(i.line) +
                         ": reads shared memory that no thread wrote";
      warp.worker->memory->report(text);
      if (warp.worker->memory->strict_reads())
        return warp.fail(launch_failed, i, "reads unwritten shared memory");
    }
    if (access != Access::read) std::fill_n(written, bytes, uint8_t{1});
  }
  return Flow::next;
}

/// Whether all bytes of all lanes were written, or notes that they are; W has
/// as many bytes as a lane accesses.
template <class W>
bool follow_shadow(const Warp& warp, const Addresses& addresses,
                   uint8_t* written, Access access) {
  W ones, all;
  std::memset(&ones, 1, sizeof(W));
  all = ones;
  if (access != Access::write) {
    each_lane(warp, [&](int k) {
      W here;
      std::memcpy(&here, written + addresses.lane[k], sizeof(W));
      all &= here;
    });
    if (all != ones) return false;
  }
  if (access != Access::read) {
    each_lane(warp, [&](int k) {
      std::memcpy(written + addresses.lane[k], &ones, sizeof(W));
    });
  }
  return true;
}

/// The usual case: all within bounds, and nothing unwritten is read.
bool shared_lanes(Warp& warp, const Addresses& addresses, uint32_t bytes,
                  Access access, LaneAddresses& lanes) {
  Block& block = *warp.block;
  if (addresses.high >= block.shared.size() ||
      addresses.high + bytes > block.shared.size()) {
    return false;
  }
  for (int k = 0; k < warp_size; ++k)
    lanes.at[k] = moved(block.shared.data(), addresses.lane[k]);
  if (block.shared_written.empty()) return true;
  uint8_t* written = block.shared_written.data();
  switch (bytes) {
    case 1: return follow_shadow<uint8_t>(warp, addresses, written, access);
    case 2: return follow_shadow<uint16_t>(warp, addresses, written, access);
    case 4: return follow_shadow<uint32_t>(warp, addresses, written, access);
    case 8: return follow_shadow<uint64_t>(warp, addresses, written, access);
    case 16:
      return follow_shadow<unsigned __int128>(warp, addresses, written, access);
  }
  return false;
}

Flow local_lane(Warp& warp, const Instruction& i, int lane, uint64_t address,
                uint32_t bytes, Access access, uint8_t*& at) {
  const uint32_t size = warp.kernel->local_bytes;
  if (address + bytes > size || address + bytes < address)
    return beyond(warp, i, "local memory", address, size, bytes, access);
  at = warp.local + size_t{static_cast<uint32_t>(lane)} * size + address;
  return Flow::next;
}

Flow parameter_lane(Warp& warp, const Instruction& i, uint64_t address,
                    uint32_t bytes, Access access, uint8_t*& at) {
  const auto& parameters = warp.block->launch.parameters;
  if (address + bytes > parameters.size() || address + bytes < address) {
    return beyond(warp, i, "the parameters", address, parameters.size(), bytes,
                  access);
  }
  if (access != Access::read)
    return warp.fail(illegal_address, i, "writes to its parameters");
  at = const_cast<uint8_t*>(parameters.data()) + address;
  return Flow::next;
}

/// The allocation behind [first, last), remembered for the next time.
Flow find_range(Warp& warp, const Instruction& i, uint64_t first, uint64_t last,
                Access access, MemoryRange*& range) {
  Worker& worker = *warp.worker;
  MemoryView& view = *worker.memory;
  const DeviceMemory& memory = *worker.allocations;
  if (worker.generation != memory.generation()) {
    std::fill(worker.ranges.begin(), worker.ranges.end(), MemoryRange());
    worker.generation = memory.generation();
  }
  range = &worker.ranges[i.memory];
  const bool writes = access != Access::read;
  if (range->contains(first, last) && (range->writable || !writes))
    return Flow::next;
  auto complain = [&](const std::string& why) {
    return warp.fail(illegal_address, i,
                     std::string(verb(access)) + " " +
                         std::to_string(last - first) + " bytes at " +
                         hexadecimal(first) + ", " + why);
  };
  std::shared_ptr<Allocation> found = memory.find(first);
  if (!found || last > found->end()) return complain(memory.describe(first));
  switch (found->state.load()) {
    case Allocation::State::freed:
      return complain("which was freed: " + memory.describe(first));
    case Allocation::State::pending:
      return complain("whose stream-ordered allocation has not happened yet: " +
                      memory.describe(first));
    case Allocation::State::live: break;
  }
  if (!view.may_read(*found) || (writes && !view.may_write(*found))) {
    return complain("which device " + std::to_string(view.device()) +
                    " has no access to: " + memory.describe(first));
  }
  *range = {found->begin, found->end(), found->data, found.get(),
            view.may_write(*found)};
  return Flow::next;
}

Flow check_written(Warp& warp, const Instruction& i, Allocation& allocation,
                   uint64_t offset, uint64_t bytes) {
  int64_t missing = allocation.first_unwritten(offset, bytes);
  if (missing < 0) return Flow::next;
  MemoryView& view = *warp.worker->memory;
  view.report("kernel `" + warp.kernel->name + "`, PTX line " +
              std::to_string(i.line) + ": reads byte " +
              std::to_string(missing) + " that was never written, of " +
              view.memory().describe(allocation.begin + offset));
  if (!view.strict_reads()) return Flow::next;
  return warp.fail(launch_failed, i, "reads memory that was never written");
}

/// Notes for the part of an allocation that was accessed.
Flow note(Warp& warp, const Instruction& i, const MemoryRange& range,
          uint64_t address, uint64_t bytes, Access access) {
  Allocation& allocation = *range.allocation;
  if (!allocation.tracks()) return Flow::next;
  uint64_t offset = address - range.begin;
  if (access != Access::write &&
      check_written(warp, i, allocation, offset, bytes) != Flow::next) {
    return Flow::fault;
  }
  if (access != Access::read) allocation.mark_written(offset, bytes);
  return Flow::next;
}

constexpr uint64_t near = 4096;  // bytes: 64 words of bits

/// All lanes, each beginning where the one before ends.
bool in_sequence(const Addresses& addresses, uint32_t bytes) {
  uint64_t differs = 0;
  for (uint64_t k = 0; k < warp_size; ++k)
    differs |= addresses.lane[k] ^ (addresses.low + k * bytes);
  return differs == 0;
}

Flow global_lanes(Warp& warp, const Instruction& i, const Addresses& addresses,
                  uint32_t bytes, Access access, LaneAddresses& lanes) {
  if (i.ordered || access == Access::read_write) warp.worker->polled = true;
  if (access != Access::read) warp.worker->changed = true;
  MemoryRange* range = nullptr;
  Worker& worker = *warp.worker;
  uint64_t high = addresses.high + bytes;
  // One allocation for all lanes is the rule.
  const MemoryRange& known = worker.ranges[i.memory];
  bool together = worker.generation == worker.allocations->generation() &&
                  known.contains(addresses.low, high) &&
                  (known.writable || access == Access::read);
  if (!together) {
    int first = warp.first_lane();
    warp.at_lane = first;
    if (find_range(warp, i, addresses.lane[first],
                   addresses.lane[first] + bytes, access,
                   range) != Flow::next) {
      return Flow::fault;
    }
    together = range->contains(addresses.low, high);
  }
  if (together) {
    range = &worker.ranges[i.memory];
    for (int lane = 0; lane < warp_size; ++lane)
      lanes.at[lane] = moved(range->data, addresses.lane[lane] - range->begin);
    lanes.contiguous = warp.mask == ~0u &&
                       high - addresses.low == uint64_t{bytes} * warp_size &&
                       in_sequence(addresses, bytes);
    if (!range->allocation->tracks()) return Flow::next;
    if (lanes.contiguous)
      return note(warp, i, *range, addresses.low, high - addresses.low, access);
    // Lanes that lie near each other in memory that has been written.
    if (high - addresses.low <= near &&
        range->allocation->first_unwritten(addresses.low - range->begin,
                                           high - addresses.low) < 0) {
      return Flow::next;
    }
  }
  Flow flow = Flow::next;
  each_lane(warp, [&](int lane) {
    if (flow != Flow::next) return;
    warp.at_lane = lane;
    uint64_t address = addresses.lane[lane];
    flow = find_range(warp, i, address, address + bytes, access, range);
    if (flow != Flow::next) return;
    lanes.at[lane] = range->data + (address - range->begin);
    flow = note(warp, i, *range, address, bytes, access);
  });
  return flow;
}

Flow generic_lanes(Warp& warp, const Instruction& i, Addresses& addresses,
                   uint32_t bytes, Access access, LaneAddresses& lanes) {
  auto inside = [](uint64_t address, uint64_t window) {
    return address >= window && address < window + window_size;
  };
  bool any_window = false;
  each_lane(warp, [&](int lane) {
    uint64_t a = addresses.lane[lane];
    any_window |= inside(a, shared_window) || inside(a, local_window) ||
                  inside(a, parameter_window);
  });
  if (!any_window)
    return global_lanes(warp, i, addresses, bytes, access, lanes);
  Flow flow = Flow::next;
  each_lane(warp, [&](int lane) {
    if (flow != Flow::next) return;
    warp.at_lane = lane;
    uint64_t a = addresses.lane[lane];
    uint8_t*& at = lanes.at[lane];
    if (inside(a, shared_window)) {
      flow = shared_lane(warp, i, a - shared_window, bytes, access, at);
    } else if (inside(a, local_window)) {
      flow = local_lane(warp, i, lane, a - local_window, bytes, access, at);
    } else if (inside(a, parameter_window)) {
      flow = parameter_lane(warp, i, a - parameter_window, bytes, access, at);
    } else {
      MemoryRange* range = nullptr;
      flow = find_range(warp, i, a, a + bytes, access, range);
      if (flow != Flow::next) return;
      at = range->data + (a - range->begin);
      if (access != Access::read) warp.worker->changed = true;
      flow = note(warp, i, *range, a, bytes, access);
    }
  });
  if (i.ordered || access == Access::read_write) warp.worker->polled = true;
  return flow;
}

void compute(Warp& warp, Slot base, bool narrow, int64_t offset,
             Addresses& addresses) {
  const uint64_t add = static_cast<uint64_t>(offset);
  if (base == no_slot) {
    std::fill_n(addresses.lane, warp_size, add);
  } else if (narrow) {
    const auto* row = warp.row<uint32_t>(base);
    for (int k = 0; k < warp_size; ++k) addresses.lane[k] = row[k] + add;
  } else {
    const auto* row = warp.row<uint64_t>(base);
    for (int k = 0; k < warp_size; ++k) addresses.lane[k] = row[k] + add;
  }
  if (warp.mask == ~0u) {
    for (int k = 0; k < warp_size; ++k) {
      addresses.low = std::min(addresses.low, addresses.lane[k]);
      addresses.high = std::max(addresses.high, addresses.lane[k]);
    }
    return;
  }
  each_lane(warp, [&](int k) {
    addresses.low = std::min(addresses.low, addresses.lane[k]);
    addresses.high = std::max(addresses.high, addresses.lane[k]);
  });
}

/// Tells who looks for races.
Flow watch(Warp& warp, const Instruction& i, const Addresses& addresses,
           Space space, uint32_t bytes, Access access) {
  BlockRaces& races = *warp.block->races;
  const bool shared = space == Space::shared;
  if (space == Space::global || shared)
    return races.access(warp, i, addresses.lane, bytes, access, shared);
  if (space != Space::generic) return Flow::next;
  Flow flow = Flow::next;
  each_lane(warp, [&](int lane) {
    const uint64_t a = addresses.lane[lane];
    const bool in_shared = a - shared_window < window_size;
    if (flow != Flow::next || a - local_window < window_size ||
        a - parameter_window < window_size) {
      return;
    }
    flow = races.lane_access(warp, i, lane, in_shared ? a - shared_window : a,
                             bytes, access, in_shared);
  });
  return flow;
}

/// Of kernels with wgmma: notes writes to shared memory.
void hide(Warp& warp, const Addresses& addresses, Space space, uint32_t bytes) {
  if (space != Space::shared && space != Space::generic) return;
  const uint64_t window = space == Space::shared ? 0 : shared_window;
  each_lane(warp, [&](int lane) {
    const uint64_t at = addresses.lane[lane] - window;
    if (at < warp.block->shared_hidden.size()) warp.hide(lane, at, bytes);
  });
}

Flow resolve_checked(Warp& warp, const Instruction& i, Addresses& addresses,
                     Space space, uint32_t bytes, Access access,
                     LaneAddresses& lanes) {
  uint64_t odd = 0;
  if (warp.mask == ~0u)
    for (int k = 0; k < warp_size; ++k) odd |= addresses.lane[k];
  else
    each_lane(warp, [&](int k) { odd |= addresses.lane[k]; });
  if ((odd & (bytes - 1)) != 0) {
    uint64_t culprit = 0;
    each_lane(warp, [&](int k) {
      if (addresses.lane[k] & (bytes - 1)) {
        culprit = addresses.lane[k];
        warp.at_lane = k;
      }
    });
    return misaligned(warp, i, culprit, bytes, access);
  }
  Flow flow = Flow::next;
  switch (space) {
    case Space::global:
    case Space::constant:
      return global_lanes(warp, i, addresses, bytes, access, lanes);
    case Space::generic:
      return generic_lanes(warp, i, addresses, bytes, access, lanes);
    case Space::shared:
      if (shared_lanes(warp, addresses, bytes, access, lanes))
        return Flow::next;
      each_lane(warp, [&](int k) {
        if (flow != Flow::next) return;
        warp.at_lane = k;
        flow =
            shared_lane(warp, i, addresses.lane[k], bytes, access, lanes.at[k]);
      });
      return flow;
    case Space::local:
      each_lane(warp, [&](int k) {
        if (flow != Flow::next) return;
        warp.at_lane = k;
        flow = local_lane(warp, i, k, addresses.lane[k], bytes, access,
                          lanes.at[k]);
      });
      return flow;
    case Space::parameter:
      each_lane(warp, [&](int k) {
        if (flow != Flow::next) return;
        warp.at_lane = k;
        flow = parameter_lane(warp, i, addresses.lane[k], bytes, access,
                              lanes.at[k]);
      });
      return flow;
  }
  return flow;
}

}  // namespace

void Warp::hide(int lane, uint64_t begin, uint32_t bytes) {
  hidden.push_back(
      {static_cast<uint32_t>(lane), static_cast<uint32_t>(begin), bytes});
  std::fill_n(block->shared_hidden.begin() + static_cast<int64_t>(begin), bytes,
              static_cast<uint8_t>(index + 1));
}

Flow resolve_at(Warp& warp, const Instruction& i, Slot base, bool narrow,
                int64_t offset, Space space, uint32_t bytes, Access access,
                LaneAddresses& lanes) {
  Addresses addresses;
  compute(warp, base, narrow, offset, addresses);
  Flow flow = resolve_checked(warp, i, addresses, space, bytes, access, lanes);
  if (!warp.block->shared_hidden.empty() && flow == Flow::next &&
      access != Access::read)
    hide(warp, addresses, space, bytes);
  if (warp.block->races == nullptr || flow != Flow::next) [[likely]]
    return flow;
  return watch(warp, i, addresses, space, bytes, access);
}

Flow resolve(Warp& warp, const Instruction& i, uint32_t bytes, Access access,
             LaneAddresses& lanes) {
  return resolve_at(warp, i, i.a, i.narrow_address, i.offset, i.space, bytes,
                    access, lanes);
}

}  // namespace simcuda
