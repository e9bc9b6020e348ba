#pragma once
// 32 lanes that execute in lockstep. When they diverge, each set of lanes at
// one place is a Path; the path that lies furthest back runs first, so that
// paths meet again as early as they can. Lanes wait for each other at
// instructions with a mask (shfl.sync) and, for the whole block, at barriers.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "simcuda/machine/device_memory.h"
#include "simcuda/ptx/code.h"

namespace simcuda {

class Block;

/// The state of one thread of the host that executes blocks.
struct Worker {
  std::vector<MemoryRange> ranges;  // by Instruction::memory
  uint64_t generation = 0;          // of the memory, when they were found
  MemoryView* memory = nullptr;     // what the kernel's device can see
  const DeviceMemory* allocations = nullptr;  // memory->memory()
  bool polled = false;   // read something that others may change
  bool changed = false;  // wrote to memory that others can see
};

/// Lanes that have diverged from others.
struct Path {
  enum class State : uint8_t {
    ready,
    barrier,  // waits for the block at barrier `which`
    lanes,    // waits at an instruction for the other lanes of `need`
  };
  uint32_t pc = 0;
  uint32_t mask = 0;
  State state = State::ready;
  uint32_t need = 0;
  uint32_t which = 0;
  const Instruction* reduction = nullptr;  // a bar.red, to be completed
};

struct Warp {
  uint32_t* rows[2] = {nullptr, nullptr};
  uint32_t mask = 0;      // lanes that execute the instruction
  uint32_t alive = 0;     // lanes that have not ended
  bool converged = true;  // mask == alive: no other lane's values matter
  alignas(64) uint32_t live[warp_size] = {};  // all bits or none; not converged
  uint32_t pc = 0;

  const Kernel* kernel = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
  uint8_t* local = nullptr;  // local_bytes for each lane
  int index = 0;             // in the block
  std::vector<Path> paths;   // all but the one that runs
  bool running = false;      // a path is loaded into mask and pc
  uint32_t stop_pc = ~0u;    // where another path waits to be joined
  uint32_t turn = 0;         // jumps since a path was chosen
  int at_lane = -1;          // the lane that an error is about, or -1
  bool carry[warp_size] = {};
  struct PendingCopy {  // cp.async
    uint8_t* to = nullptr;
    uint8_t bytes = 0;
    uint8_t data[16] = {};
    uint32_t group = 0;
    uint32_t lanes = 0;
    uint8_t* written = nullptr;  // shadow of the shared memory
    const Instruction* instruction = nullptr;
  };
  std::vector<PendingCopy> copies;
  uint32_t copy_group = 0;
  struct PendingProduct {  // wgmma
    const Instruction* instruction = nullptr;
    uint32_t group = 0;
    std::vector<float> sums;      // [register][lane]
    std::vector<uint32_t> parts;  // of shared memory, which it reads: 16 bytes
    std::vector<uint8_t> read;    // what they held
  };
  std::vector<PendingProduct> products;
  uint32_t product_group = 0;
  bool products_may_begin = false;  // wgmma.fence
  /// Writes to shared memory that no fence.proxy.async has followed.
  struct HiddenWrite {
    uint32_t lane, begin, bytes;
  };
  std::vector<HiddenWrite> hidden;
  void hide(int lane, uint64_t begin, uint32_t bytes);

  Code fault = unisono::cuda::success;
  std::string fault_text;

  template <class Row>
  Row* row(Slot slot) {
    return reinterpret_cast<Row*>(rows[slot >> 31] +
                                  size_t{slot & ~constant_bit} * warp_size);
  }
  Flow fail(Code code, const Instruction& instruction, std::string text);

  void set_mask(uint32_t lanes) {
    mask = lanes;
    converged = mask == alive;
    if (!converged)
      for (int lane = 0; lane < warp_size; ++lane)
        live[lane] = 0 - (mask >> lane & 1);
  }
  int first_lane() const { return std::countr_zero(mask); }

  /// The lanes of `taken` go on at `target`, the others at `rest`.
  Flow branch(uint32_t taken, uint32_t target, uint32_t rest);
  Flow exit_lanes(uint32_t lanes);
  /// The path arrives at a barrier of the block, for `count` threads (0: all),
  /// with the lanes whose predicate is true.
  Flow arrive(const Instruction& instruction, uint32_t which, uint32_t count,
              uint32_t yes);
  /// True when all lanes of `need` that have not ended are here; else the path
  /// waits.
  bool gather(uint32_t need);
  bool done() const { return !running && paths.empty(); }

  enum class End : uint8_t { finished, waits, slice, fault };
  /// Executes until the warp ends, fails, waits for others, or `budget` is used
  /// up.
  End run(int64_t& budget);

 private:
  friend class Block;
  /// Loads the next path that can run; false when there is none.
  bool choose();
  void put_back();
  /// Lets paths go on for which all awaited lanes have come, or have ended.
  void release_lanes();
  uint32_t guard_lanes(const Instruction& instruction);
  /// Splits off the lanes that do not execute a guarded meeting.
  void leave_behind(uint32_t lanes);
};

}  // namespace simcuda
