#pragma once
// A kernel while it runs: all its blocks, on threads of the host, in an order
// that depends on the seed. A launch can be left and taken up again, so that
// kernels which wait for each other run in turns.
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simcuda/machine/block.h"
#include "simcuda/machine/operation_races.h"
#include "simcuda/machine/workers.h"

namespace simcuda {

class Launch {
 public:
  /// `resident`: how many blocks may be under way at once.
  /// `fuel`: instructions of warps after which the launch fails.
  Launch(LaunchShape shape, std::shared_ptr<const Kernel> kernel,
         MemoryView& memory, uint64_t resident, int64_t fuel);
  ~Launch();
  Launch(const Launch&) = delete;

  enum class Step : uint8_t {
    done,
    more,     // the budget is used up
    stalled,  // all blocks only look whether something has changed
    fault,
  };
  /// Executes about `budget` instructions of warps. While *interrupt, unless
  /// null, is set, the launch is done at once.
  Step step(Workers& workers, int64_t budget, const bool* interrupt = nullptr);

  Code fault() const { return fault_; }
  const std::string& fault_text() const { return fault_text_; }
  const LaunchShape& shape() const { return shape_; }
  int64_t instructions() const { return instructions_; }
  /// The bytes that were touched; none unless races are looked for.
  std::vector<MemoryUse> uses() const;

 private:
  void work(Worker& worker);
  bool interrupted() const;
  std::unique_ptr<Block> take(bool& none);

  LaunchShape shape_;
  std::shared_ptr<const Kernel> kernel_;
  std::unique_ptr<LaunchRaces> races_;
  MemoryView& memory_;
  const uint64_t resident_;
  const int64_t fuel_;
  uint64_t blocks_, stride_, offset_;

  std::mutex mutex_;
  uint64_t next_ = 0;  // block to begin
  uint64_t finished_ = 0;
  uint64_t under_way_ = 0;
  std::deque<std::unique_ptr<Block>> parked_;
  std::vector<std::unique_ptr<Block>> idle_;
  std::vector<Worker> workers_;
  int64_t budget_ = 0;
  int64_t instructions_ = 0;
  uint64_t stalled_ = 0;  // blocks in a row that only looked
  bool stop_ = false;
  const bool* interrupt_ = nullptr;
  Code fault_ = unisono::cuda::success;
  std::string fault_text_;
};

}  // namespace simcuda
