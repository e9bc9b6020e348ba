#include "simcuda/machine/warp.h"

#include <algorithm>

#include "simcuda/machine/block.h"
#include "simcuda/machine/lanes.h"

namespace simcuda {

namespace {
// After so many jumps another path has a turn, so that a path that waits in a
// loop for another one does not wait for ever.
constexpr uint32_t patience = 2000;
}  // namespace

Flow Warp::fail(Code code, const Instruction& instruction, std::string text) {
  const int lane = at_lane >= 0 ? at_lane : first_lane();
  const Dimensions& d = block->launch.block;
  const uint64_t thread = uint64_t(index) * warp_size + uint64_t(lane);
  auto place = [](uint64_t x, uint64_t y, uint64_t z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " +
           std::to_string(z) + ")";
  };
  fault = code;
  fault_text =
      "kernel `" + kernel->name + "`, PTX line " +
      std::to_string(instruction.line) + ", block " +
      place(block->index[0], block->index[1], block->index[2]) + ", thread " +
      place(thread % d.x, thread / d.x % d.y, thread / d.x / d.y) + ": " + text;
  return Flow::fault;
}

void Warp::put_back() {
  paths.push_back({.pc = pc, .mask = mask});
  running = false;
}

void Warp::release_lanes() {
  for (Path& path : paths) {
    if (path.state != Path::State::lanes) continue;
    uint32_t present = 0;
    for (const Path& other : paths)
      if (other.state == Path::State::lanes && other.pc == path.pc)
        present |= other.mask;
    if ((path.need & alive & ~present) != 0) continue;
    for (Path& other : paths)
      if (other.state == Path::State::lanes && other.pc == path.pc)
        other.state = Path::State::ready;
  }
}

bool Warp::choose() {
  release_lanes();
  // The one that is furthest back, or, for a change, furthest ahead.
  const bool ahead = turn >= patience;
  turn = 0;
  const Path* best = nullptr;
  for (const Path& path : paths) {
    if (path.state != Path::State::ready) continue;
    if (best == nullptr || (ahead ? path.pc > best->pc : path.pc < best->pc))
      best = &path;
  }
  if (best == nullptr) return false;
  pc = best->pc;
  uint32_t lanes = 0;
  stop_pc = ~0u;
  std::erase_if(paths, [&](const Path& path) {
    if (path.state != Path::State::ready) return false;
    if (path.pc == pc) {
      lanes |= path.mask;
      return true;
    }
    if (path.pc > pc) stop_pc = std::min(stop_pc, path.pc);
    return false;
  });
  set_mask(lanes);
  running = true;
  return true;
}

Flow Warp::branch(uint32_t taken, uint32_t target, uint32_t rest) {
  const uint32_t others = mask & ~taken;
  if (others == 0) {
    pc = target;
    // Alone, or still the one that is furthest back.
    if (!paths.empty() && (++turn >= patience || target >= stop_pc)) put_back();
    return Flow::moved;
  }
  paths.push_back({.pc = rest, .mask = others});
  paths.push_back({.pc = target, .mask = taken});
  running = false;
  ++turn;
  return Flow::moved;
}

Flow Warp::exit_lanes(uint32_t lanes) {
  const uint32_t rest = mask & ~lanes;
  alive &= ~lanes;
  if (rest == 0) {
    running = false;
  } else {
    set_mask(rest);
    ++pc;
  }
  return Flow::moved;
}

bool Warp::gather(uint32_t need) {
  uint32_t present = mask;
  for (const Path& path : paths)
    if (path.state == Path::State::lanes && path.pc == pc) present |= path.mask;
  if ((need & alive & ~present) != 0) {
    paths.push_back(
        {.pc = pc, .mask = mask, .state = Path::State::lanes, .need = need});
    running = false;
    return false;
  }
  if (present != mask) {
    std::erase_if(paths, [&](const Path& path) {
      return path.state == Path::State::lanes && path.pc == pc;
    });
    set_mask(present);
  }
  return true;
}

Flow Warp::arrive(const Instruction& instruction, uint32_t which,
                  uint32_t count, uint32_t yes) {
  Block::Barrier& barrier = block->barriers_[which];
  const auto lanes = static_cast<uint32_t>(std::popcount(mask));
  if (block->races) block->races->arrive(*this, which, count == 0);
  barrier.expected = count;
  barrier.arrived += lanes;
  barrier.lanes += lanes;
  barrier.count += static_cast<uint32_t>(std::popcount(yes));
  if (instruction.mode == barrier_arrive) return Flow::next;
  paths.push_back(
      {.pc = pc + 1,
       .mask = mask,
       .state = Path::State::barrier,
       .which = which,
       .reduction = instruction.mode >= barrier_popc ? &instruction : nullptr});
  running = false;
  return Flow::moved;
}

uint32_t Warp::guard_lanes(const Instruction& instruction) {
  const auto* p = row<uint32_t>(instruction.guard);
  const uint32_t negate = instruction.guard_negated;
  uint32_t lanes = 0;
  for (int k = 0; k < warp_size; ++k) lanes |= ((p[k] ^ negate) & 1) << k;
  return lanes & mask;
}

void Warp::leave_behind(uint32_t lanes) {
  paths.push_back({.pc = pc + 1, .mask = lanes});
  set_mask(mask & ~lanes);
  stop_pc = std::min(stop_pc, pc + 1);
}

Warp::End Warp::run(int64_t& budget) {
  const Instruction* code = kernel->code.data();
  while (true) {
    if (!running) {
      if (paths.empty()) return End::finished;
      if (!choose()) return End::waits;
    } else if (pc == stop_pc) {
      put_back();
      continue;
    }
    if (--budget < 0) return End::slice;
    const Instruction& i = code[pc];
    if (i.guard == no_slot) [[likely]] {
      Flow flow = i.run(*this, i);
      if (flow == Flow::next) [[likely]]
        ++pc;
      else if (flow == Flow::fault)
        return End::fault;
      continue;
    }
    const uint32_t lanes = guard_lanes(i);
    if (lanes == 0) {
      ++pc;
      continue;
    }
    const uint32_t before = mask;
    const bool some = lanes != before;
    if (some && i.meets)
      leave_behind(before & ~lanes);
    else if (some)
      set_mask(lanes);
    Flow flow = i.run(*this, i);
    if (flow == Flow::fault) return End::fault;
    if (some && !i.meets) set_mask(before);
    if (flow == Flow::next) ++pc;
  }
}

}  // namespace simcuda
