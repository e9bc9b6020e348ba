#include "simcuda/machine/block.h"

#include <algorithm>
#include <random>

#include "simcuda/machine/lanes.h"

namespace simcuda {

using namespace unisono::cuda;

namespace {
// A warp gives way to the others after so many instructions.
constexpr int64_t warp_slice = 20'000;

uint32_t mixed(uint64_t seed, uint64_t number) {
  uint64_t x = seed ^ (number + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  return static_cast<uint32_t>(x >> 32);
}
}  // namespace

Block::Block(const LaunchShape& launch) : launch(launch) {
  const Kernel& kernel = *launch.kernel;
  const auto threads = static_cast<uint32_t>(launch.block.count());
  const uint32_t count = (threads + warp_size - 1) / warp_size;
  const size_t row_words = size_t{kernel.rows} * warp_size;
  // A register that is read before it is written holds this.
  registers_.assign(row_words * count,
                    0xc0de0000u | static_cast<uint32_t>(launch.seed & 0xffff));
  local_.assign(size_t{kernel.local_bytes} * count * warp_size, 0xcd);
  shared.assign(kernel.shared_bytes + launch.dynamic_shared, 0xcd);
  if (launch.track_shared) shared_written.assign(shared.size(), 0);
  if (kernel.multiplies_shared) shared_hidden.assign(shared.size(), 0);
  if (launch.races) races = std::make_unique<BlockRaces>(*this, *launch.races);
  warps_.resize(count);
  order_.resize(count);
  for (uint32_t w = 0; w < count; ++w) {
    Warp& warp = warps_[w];
    warp.rows[0] = registers_.data() + row_words * w;
    warp.rows[1] = const_cast<uint32_t*>(kernel.constants.data());
    warp.kernel = &kernel;
    warp.block = this;
    warp.local = local_.data() + size_t{kernel.local_bytes} * warp_size * w;
    warp.index = static_cast<int>(w);
    order_[w] = static_cast<int>(w);
  }
}

void Block::begin(uint64_t number) {
  const Dimensions& grid = launch.grid;
  index[0] = static_cast<uint32_t>(number % grid.x);
  index[1] = static_cast<uint32_t>(number / grid.x % grid.y);
  index[2] = static_cast<uint32_t>(number / grid.x / grid.y);
  std::minstd_rand random(mixed(launch.seed, number));  // cheap to begin
  std::fill(shared.begin(), shared.end(), static_cast<uint8_t>(random()));
  std::fill(shared_written.begin(), shared_written.end(), uint8_t{0});
  std::fill(shared_hidden.begin(), shared_hidden.end(), uint8_t{0});
  std::shuffle(order_.begin(), order_.end(), random);
  barriers_ = {};
  if (races) races->begin(number);
  fault_ = success;
  uint64_t threads = launch.block.count();
  for (Warp& warp : warps_) {
    const uint64_t first = uint64_t(warp.index) * warp_size;
    const uint64_t lanes = std::min<uint64_t>(warp_size, threads - first);
    warp.alive = lanes == warp_size ? ~0u : (1u << lanes) - 1;
    warp.set_mask(warp.alive);
    warp.pc = 0;
    warp.stop_pc = ~0u;
    warp.turn = 0;
    warp.paths.clear();
    warp.copies.clear();
    warp.copy_group = 0;
    warp.products.clear();
    warp.product_group = 0;
    warp.products_may_begin = false;
    warp.hidden.clear();
    warp.at_lane = -1;
    warp.running = true;
    set_specials(warp);
  }
}

void Block::set_specials(Warp& warp) {
  const Dimensions& block = launch.block;
  const Dimensions& grid = launch.grid;
  const auto threads = static_cast<uint32_t>(warps_.size()) * warp_size;
  for (const Kernel::SpecialRow& row : launch.kernel->specials) {
    auto each = [&](auto&& value) {
      auto* to = warp.row<uint32_t>(row.slot);
      for (uint32_t lane = 0; lane < warp_size; ++lane) to[lane] = value(lane);
    };
    const auto thread = [&](uint32_t lane) {
      return static_cast<uint32_t>(warp.index) * warp_size + lane;
    };
    auto same = [&](uint64_t value) {
      each([=](uint32_t) { return static_cast<uint32_t>(value); });
    };
    switch (row.special) {
      case Special::tid_x:
        if (block.x >= threads)
          each(thread);
        else
          each([&](uint32_t l) { return thread(l) % block.x; });
        break;
      case Special::tid_y:
        each([&](uint32_t l) { return thread(l) / block.x % block.y; });
        break;
      case Special::tid_z:
        each([&](uint32_t l) { return thread(l) / block.x / block.y; });
        break;
      case Special::ntid_x: same(block.x); break;
      case Special::ntid_y: same(block.y); break;
      case Special::ntid_z: same(block.z); break;
      case Special::ctaid_x: same(index[0]); break;
      case Special::ctaid_y: same(index[1]); break;
      case Special::ctaid_z: same(index[2]); break;
      case Special::nctaid_x: same(grid.x); break;
      case Special::nctaid_y: same(grid.y); break;
      case Special::nctaid_z: same(grid.z); break;
      case Special::laneid: each([](uint32_t l) { return l; }); break;
      case Special::warpid: same(static_cast<uint64_t>(warp.index)); break;
      case Special::nwarpid: same(warps_.size()); break;
      case Special::smid:
        same(index[0] % static_cast<uint32_t>(launch.multiprocessors));
        break;
      case Special::nsmid:
        same(static_cast<uint64_t>(launch.multiprocessors));
        break;
      case Special::lanemask_eq:
        each([](uint32_t l) { return 1u << l; });
        break;
      case Special::lanemask_le:
        each([](uint32_t l) { return 2u << l ? (2u << l) - 1 : ~0u; });
        break;
      case Special::lanemask_lt:
        each([](uint32_t l) { return (1u << l) - 1; });
        break;
      case Special::lanemask_ge:
        each([](uint32_t l) { return ~0u << l; });
        break;
      case Special::lanemask_gt:
        each([](uint32_t l) { return l == 31 ? 0 : ~0u << (l + 1); });
        break;
      case Special::dynamic_smem_size: same(launch.dynamic_shared); break;
      case Special::total_smem_size: same(shared.size()); break;
      case Special::gridid: {
        auto* to = warp.row<uint64_t>(row.slot);
        std::fill(to, to + warp_size, launch.number);
        break;
      }
      case Special::clock:  // set where they are read
      case Special::clock64:
      case Special::globaltimer:
      case Special::none: break;
    }
  }
}

uint32_t Block::alive() const {
  uint32_t lanes = 0;
  for (const Warp& warp : warps_)
    lanes += static_cast<uint32_t>(std::popcount(warp.alive));
  return lanes;
}

bool Block::open_barriers() {
  for (uint32_t which = 0; which < barriers_.size(); ++which) {
    Barrier& barrier = barriers_[which];
    if (barrier.arrived == 0) continue;
    uint32_t expected = barrier.expected != 0 ? barrier.expected : alive();
    if (barrier.arrived < expected) continue;
    if (races) {
      Warp* culprit = nullptr;
      if (races->check_barrier(warps_, which, culprit) != Flow::next) {
        fault_ = culprit->fault;
        fault_text_ = culprit->fault_text;
        return false;
      }
      races->open(which, barrier.expected == 0);
    }
    for (Warp& warp : warps_) {
      for (Path& path : warp.paths) {
        if (path.state != Path::State::barrier || path.which != which) continue;
        path.state = Path::State::ready;
        const Instruction* i = path.reduction;
        if (i == nullptr) continue;
        uint32_t value = i->mode == barrier_popc ? barrier.count
                         : i->mode == barrier_and
                             ? barrier.count == barrier.lanes
                             : barrier.count != 0;
        auto* d = warp.row<uint32_t>(i->dst);
        for (int k = 0; k < warp_size; ++k)
          if (path.mask >> k & 1) d[k] = value;
        path.reduction = nullptr;
      }
    }
    barrier = {};
  }
  return true;
}

std::string Block::why_stuck() const {
  std::string text = "deadlock in kernel `" + launch.kernel->name +
                     "`, block (" + std::to_string(index[0]) + ", " +
                     std::to_string(index[1]) + ", " +
                     std::to_string(index[2]) + "):";
  int told = 0;
  for (const Warp& warp : warps_) {
    for (const Path& path : warp.paths) {
      if (++told > 4) continue;
      uint32_t pc = path.pc;
      if (path.state == Path::State::barrier && pc > 0) --pc;
      text += " " + std::to_string(std::popcount(path.mask)) +
              " lanes of warp " + std::to_string(warp.index) + " wait at " +
              (path.state == Path::State::barrier
                   ? "barrier " + std::to_string(path.which)
                   : std::string("an instruction for the other lanes of "
                                 "their mask")) +
              " in PTX line " + std::to_string(launch.kernel->code[pc].line) +
              ";";
    }
  }
  if (told > 4) text += " and " + std::to_string(told - 4) + " more;";
  text += " " + std::to_string(alive()) + " threads have not ended";
  return text;
}

Block::End Block::run(Worker& worker, int64_t budget) {
  while (true) {
    bool progress = false, all_done = true;
    for (int w : order_) {
      Warp& warp = warps_[w];
      if (warp.done()) continue;
      all_done = false;
      warp.worker = &worker;
      int64_t slice = warp_slice;
      Warp::End end = warp.run(slice);
      const int64_t used = warp_slice - std::max<int64_t>(slice, 0);
      progress |= used > 0;
      instructions_ += used;
      budget -= used;
      if (end == Warp::End::fault) {
        fault_ = warp.fault;
        fault_text_ = warp.fault_text;
        return End::fault;
      }
    }
    if (all_done) return End::finished;
    if (!open_barriers()) return End::fault;
    if (!progress) {
      fault_ = launch_timeout;
      fault_text_ = why_stuck();
      return End::fault;
    }
    if (budget <= 0) return End::slice;
  }
}

}  // namespace simcuda
