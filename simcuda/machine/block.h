#pragma once
// A block of threads while it runs: its warps, its shared memory, its barriers.
// A block can stop anywhere and go on later on another thread of the host, so
// that blocks which wait for each other can be resident together.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simcuda/machine/races.h"
#include "simcuda/machine/warp.h"
#include "simcuda/ptx/code.h"

namespace simcuda {

struct Dimensions {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// What the blocks of a launch have in common.
struct LaunchShape {
  const Kernel* kernel = nullptr;
  Dimensions grid, block;
  uint32_t dynamic_shared = 0;
  std::vector<uint8_t> parameters;
  uint64_t seed = 0;  // of the order of warps, and of what memory holds
  uint64_t number = 0;
  int multiprocessors = 1;
  bool track_shared = true;  // reads of shared memory that nobody wrote
  enum class Races : uint8_t { off, report, fault };
  Races look_for_races = Races::off;
  LaunchRaces* races = nullptr;  // when they are looked for
};

class Block {
 public:
  explicit Block(const LaunchShape& launch);
  Block(const Block&) = delete;

  /// Begins with block `index` of the grid.
  void begin(uint64_t index);

  enum class End : uint8_t { finished, slice, fault };
  /// Executes until all warps have ended, one has failed, or about `budget`
  /// instructions of warps are done.
  End run(Worker& worker, int64_t budget);

  Code fault() const { return fault_; }
  const std::string& fault_text() const { return fault_text_; }
  int64_t instructions() const { return instructions_; }

  // For the handlers.
  const LaunchShape& launch;
  std::vector<uint8_t> shared;
  std::vector<uint8_t> shared_written;  // empty: not tracked
  /// 1 + the warp whose write matrix units may not see yet; of kernels that
  /// have wgmma, else empty.
  std::vector<uint8_t> shared_hidden;
  std::unique_ptr<BlockRaces> races;  // null: not looked for
  uint32_t index[3] = {0, 0, 0};

 private:
  friend struct Warp;
  struct Barrier {
    uint32_t expected = 0;  // lanes; 0: nobody waits
    uint32_t arrived = 0;
    uint32_t count = 0;  // of true predicates, for bar.red
    uint32_t lanes = 0;  // that brought a predicate
  };
  void set_specials(Warp& warp);
  /// Opens the barriers at which all have arrived; false: a fault.
  bool open_barriers();
  uint32_t alive() const;
  std::string why_stuck() const;

  std::vector<Warp> warps_;
  std::vector<uint32_t> registers_;
  std::vector<uint8_t> local_;
  std::vector<int> order_;
  std::array<Barrier, 16> barriers_;
  Code fault_ = unisono::cuda::success;
  std::string fault_text_;
  int64_t instructions_ = 0;
};

}  // namespace simcuda
