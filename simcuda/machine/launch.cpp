#include "simcuda/machine/launch.h"

#include <algorithm>
#include <numeric>

namespace simcuda {

using namespace unisono::cuda;

namespace {
// Instructions of warps that a block executes before another has its turn.
constexpr int64_t block_slice = 200'000;
}  // namespace

Launch::Launch(LaunchShape shape, std::shared_ptr<const Kernel> kernel,
               MemoryView& memory, uint64_t resident, int64_t fuel)
    : shape_(std::move(shape)),
      kernel_(std::move(kernel)),
      memory_(memory),
      resident_(std::max<uint64_t>(resident, 1)),
      fuel_(fuel),
      blocks_(shape_.grid.count()) {
  shape_.kernel = kernel_.get();
  if (shape_.look_for_races != LaunchShape::Races::off) {
    races_ = std::make_unique<LaunchRaces>(
        *kernel_, shape_.look_for_races == LaunchShape::Races::fault);
    shape_.races = races_.get();
  }
  // All blocks once, in an order of the seed's.
  offset_ = shape_.seed % blocks_;
  stride_ = 1 + (shape_.seed >> 20) % std::max<uint64_t>(blocks_ - 1, 1);
  while (std::gcd(stride_, blocks_) != 1) ++stride_;
  memory_.memory().kernel_begins();
}

Launch::~Launch() { memory_.memory().kernel_ends(); }

std::vector<MemoryUse> Launch::uses() const {
  return races_ ? races_->uses() : std::vector<MemoryUse>();
}

std::unique_ptr<Block> Launch::take(bool& none) {
  std::unique_ptr<Block> block;
  none = false;
  if (next_ < blocks_ && under_way_ + parked_.size() < resident_) {
    if (idle_.empty()) {
      block = std::make_unique<Block>(shape_);
    } else {
      block = std::move(idle_.back());
      idle_.pop_back();
    }
    const auto place = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(next_) * stride_ + offset_) % blocks_);
    ++next_;
    block->begin(place);
  } else if (!parked_.empty()) {
    block = std::move(parked_.front());
    parked_.pop_front();
  } else {
    none = true;
    return nullptr;
  }
  ++under_way_;
  return block;
}

void Launch::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (!stop_ && !interrupted()) {
    bool none = false;
    std::unique_ptr<Block> block = take(none);
    if (none) return;  // what is left, others have
    lock.unlock();
    worker.polled = worker.changed = false;
    const int64_t before = block->instructions();
    Block::End end = block->run(worker, block_slice);
    lock.lock();
    --under_way_;
    const int64_t used = block->instructions() - before;
    instructions_ += used;
    budget_ -= used;
    switch (end) {
      case Block::End::fault:
        if (fault_ == success) {
          fault_ = block->fault();
          fault_text_ = block->fault_text();
        }
        stop_ = true;
        break;
      case Block::End::finished:
        ++finished_;
        stalled_ = 0;
        idle_.push_back(std::move(block));
        break;
      case Block::End::slice:
        stalled_ = worker.polled && !worker.changed ? stalled_ + 1 : 0;
        parked_.push_back(std::move(block));
        break;
    }
    if (fault_ == success && instructions_ > fuel_) {
      fault_ = launch_timeout;
      fault_text_ = "kernel `" + kernel_->name + "` was stopped after " +
                    std::to_string(instructions_) +
                    " instructions of warps; it waits for something that "
                    "does not come, or needs more fuel";
      stop_ = true;
    }
    const bool all_stalled =
        stalled_ > 2 * (parked_.size() + under_way_) &&
        (next_ == blocks_ || parked_.size() + under_way_ >= resident_);
    if (budget_ <= 0 || all_stalled) stop_ = true;
  }
}

bool Launch::interrupted() const {
  return interrupt_ && __atomic_load_n(interrupt_, __ATOMIC_RELAXED);
}

Launch::Step Launch::step(Workers& workers, int64_t budget,
                          const bool* interrupt) {
  interrupt_ = interrupt;
  if (workers_.empty()) workers_.resize(static_cast<size_t>(workers.count()));
  for (Worker& worker : workers_) {
    worker.memory = &memory_;
    worker.allocations = &memory_.memory();
    worker.ranges.resize(kernel_->memory_instructions);
  }
  budget_ = budget;
  stalled_ = 0;
  stop_ = false;
  // A small launch is done sooner than another thread is woken.
  const uint64_t size =
      (blocks_ - finished_) * shape_.block.count() * kernel_->code.size();
  const int threads =
      size < 200'000 || races_
          ? 1
          : static_cast<int>(std::min<uint64_t>(
                static_cast<uint64_t>(workers.count()), blocks_ - finished_));
  workers.run(threads, [&](int w) { work(workers_[static_cast<size_t>(w)]); });
  if (fault_ != success) return Step::fault;
  if (finished_ == blocks_ || interrupted()) return Step::done;
  return stalled_ > 0 ? Step::stalled : Step::more;
}

}  // namespace simcuda
