#pragma once
// Finds races inside a kernel, whatever the order in which its warps ran: two
// accesses to a byte by different threads, at least one of them a write, not
// both atomic, that nothing orders. The key `races` turns it on.
//
// Each access is stamped with its block's clock, which goes on whenever
// threads of the block meet or a fence is passed. Thread t knows what thread u
// did up to some time; an access of u is before t's when its stamp is not
// later. What threads know:
//  * `bar.sync`: all of the block, up to then (`base_`);
//  * `bar.warp.sync`: the lanes of the mask know all that each other knew.
//    Lanes of a warp have no other order: since sm_70 each is scheduled on
//    its own, and shuffles, votes and matches are no fences (CUDA C++
//    Programming Guide, "Warp Shuffle Functions"; PTX ISA, "shfl.sync");
//  * barriers of some warps: those that came, up to when each arrived;
//  * a write of an atomic, volatile or relaxed operation gives what its thread
//    knew at its last fence to threads that read it by such an operation and
//    pass a fence then; acquire and release are both at once. A fence of scope
//    `cta` counts in its block only. Only kernels that use fences pay for this
//    (`Knowledge`).
// Blocks are ordered by the last of these alone.
//
// A read by `ld.global.nc` conflicts with every write of the same launch, as
// it may see what a cache had before. Per cell the last write and two reads
// are kept, by different blocks or warps where there are such. That is enough
// for the patterns of real kernels; a third unordered reader may go unnoticed.
// `cp.async` writes when it is issued and once more when it is waited for.
//
// A launch is executed by one thread of the host when races are looked for, so
// findings are the same in each run.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "simcuda/machine/knowledge.h"
#include "simcuda/machine/operation_races.h"
#include "simcuda/machine/race_shadow.h"
#include "simcuda/ptx/code.h"

namespace simcuda {

class Block;
struct Warp;
enum class Access : uint8_t;

/// The part of the detector that the blocks of a launch share.
class LaunchRaces {
 public:
  LaunchRaces(const Kernel& kernel, bool fatal)
      : kernel(kernel), fatal(fatal) {}

  const Kernel& kernel;
  const bool fatal;  // a finding ends the kernel
  RaceShadow global;
  /// The knowledge that was released through a variable: to one block, or to
  /// all.
  std::map<std::pair<uint64_t, uint32_t>, Knowledge> released;

  /// False if this pair of instructions was reported before, or enough were.
  bool is_new(uint32_t pc, uint32_t other, int kind);
  /// Which bytes the launch has touched, and how; sorted, neighbours joined.
  std::vector<MemoryUse> uses() const;

 private:
  std::set<std::tuple<uint32_t, uint32_t, int>> told_;
};

/// The part of the detector for one block. A Flow is `fault` where findings end
/// the kernel, else `next`.
class BlockRaces {
 public:
  BlockRaces(Block& block, LaunchRaces& launch) : block_(block), all_(launch) {}

  void begin(uint64_t block);
  /// An access by all lanes that execute; `shared`: addresses are offsets of
  /// shared memory.
  Flow access(Warp& warp, const Instruction& i, const uint64_t* addresses,
              uint32_t bytes, Access access, bool shared);
  /// The same for one lane.
  Flow lane_access(Warp& warp, const Instruction& i, int lane, uint64_t address,
                   uint32_t bytes, Access access, bool shared);
  /// `warp.mask` has met at a bar.warp.sync.
  void warp_sync(const Warp& warp);
  void fence(const Warp& warp, bool block_only);
  /// Lanes come to a barrier; later the barrier opens. `everyone`: for all of
  /// the block, else for those that came.
  void arrive(const Warp& warp, uint32_t which, bool everyone);
  void open(uint32_t which, bool everyone);

  /// Checks the masks of lanes that meet: they are equal, and name no lane that
  /// has ended.
  Flow check_members(Warp& warp, const Instruction& i, Slot mask);
  /// Checks that the warps which wait at barrier `which` do so at one place of
  /// the code.
  Flow check_barrier(std::vector<Warp>& warps, uint32_t which, Warp*& culprit);

  /// Reports a finding, a race or another misuse.
  Flow finding(Warp& warp, const Instruction& i, uint32_t other_pc, int kind,
               const std::string& text);

 private:
  struct WarpTimes {
    uint32_t all = 0;             // what all lanes know of all
    std::vector<uint32_t> known;  // [lane][lane], once lanes meet in parts
  };
  /// All that a thread knew at a fence. It is put together where the thread
  /// tells it, as few threads do.
  struct Told {
    Knowledge everyone, extra;
    uint32_t block = 0, thread = 0;
    // Of the block, of the warp, and of the thread itself.
    uint32_t base = 0, warp = 0, now = 0;
    std::vector<uint32_t> lanes;  // of the warp, once lanes meet in parts
    bool whole = false;           // `everyone` has it all

    const Knowledge& all();
  };
  struct ThreadKnowledge {
    Knowledge extra;              // beyond the block's and the warp's
    Knowledge heard, heard_here;  // read, but no fence passed yet
    // At the last fence of the device, and of any scope; null: none.
    std::shared_ptr<Told> released, released_here;
  };
  struct Arrival {
    uint32_t thread = 0, time = 0;
  };

  Flow lanes_access(Warp& warp, const Instruction& i, uint32_t lanes,
                    const uint64_t* addresses, uint32_t bytes, Access access,
                    bool shared);
  Flow lane_cells(Warp& warp, const Instruction& i, const RaceSlot& mine,
                  uint64_t address, uint32_t bytes, bool shared);
  bool is_plain(RaceCell& cell, const RaceSlot& mine) const;
  void visit(Warp& warp, const Instruction& i, RaceCell& cell,
             const RaceSlot& mine, uint64_t address, bool shared);
  bool ordered(const RaceSlot& before, uint32_t thread) const;
  void keep(RaceCell& cell, const RaceSlot& slot);
  void synchronise(const Instruction& i, uint32_t thread, uint64_t address,
                   Access access, bool shared);
  ThreadKnowledge& knowledge(uint32_t thread);
  /// What a thread knows when its own clock is `now`.
  Told all_known(uint32_t thread, uint32_t now) const;
  void race(Warp& warp, const Instruction& i, const RaceSlot& before,
            const RaceSlot& mine, uint64_t address, bool shared, bool stale);

  Block& block_;
  LaunchRaces& all_;
  RaceShadow shared_;
  bool shared_used_ = false;
  Flow flow_ = Flow::next;
  uint32_t number_ = 0;  // of the block
  uint32_t now_ = 1, base_ = 0;
  std::vector<WarpTimes> warps_;
  std::vector<ThreadKnowledge> threads_;  // empty until a fence is passed
  Knowledge everyone_knows_;              // since a barrier of the block
  std::map<uint32_t, std::vector<Arrival>> arrivals_;
};

}  // namespace simcuda
