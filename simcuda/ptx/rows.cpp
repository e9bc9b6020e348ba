// Registers that are never needed at the same time share a row. LLVM's PTX has
// a register for each value, thousands in a large kernel; a warp's rows should
// stay in the host's first-level cache.
//
// Liveness by blocks, as in any compiler; an interval is all from the first to
// the last place where a register lives; intervals get rows by linear scan. A
// lane that does not execute an instruction keeps its registers, so a write
// under a guard does not end what was there.
#include <algorithm>

#include "simcuda/ptx/code.h"

namespace simcuda {
namespace {

constexpr uint64_t max_bits = uint64_t{1} << 30;

/// visit(slot&, reads, writes) for each row of an instruction.
template <class Visit>
void each_row(Kernel& kernel, Instruction& i, Visit&& visit) {
  const bool guarded = i.guard != no_slot;
  auto one = [&](Slot& slot, bool reads, bool writes) {
    if (slot != no_slot && (slot & constant_bit) == 0)
      visit(slot, reads, writes);
  };
  one(i.guard, true, false);
  one(i.a, true, false);
  one(i.b, true, false);
  one(i.c, true, false);
  for (uint32_t k = 0; k < i.list_size; ++k) {
    const bool defines = k < i.list_defines;
    one(kernel.slots[i.list + k], !defines || guarded, defines);
  }
  one(i.dst, i.dst_is_source || guarded, !i.dst_is_source);
}

struct BasicBlock {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> next;  // blocks
  std::vector<uint64_t> reads, writes, in, out;
};

class Sharing {
 public:
  Sharing(Kernel& kernel, const std::vector<uint8_t>& widths)
      : kernel_(kernel), widths_(widths), words_((kernel.rows + 63) / 64) {}

  void run() {
    find_blocks();
    if (uint64_t{blocks_.size()} * kernel_.rows > max_bits) return;
    find_local_use();
    flow();
    find_intervals();
    assign();
  }

 private:
  static bool test(const std::vector<uint64_t>& set, Slot slot) {
    return set[slot / 64] >> (slot % 64) & 1;
  }
  static void add(std::vector<uint64_t>& set, Slot slot) {
    set[slot / 64] |= uint64_t{1} << (slot % 64);
  }

  /// The targets of a jump; false when it is none.
  bool targets(const Instruction& i, std::vector<uint32_t>& list) const {
    list.clear();
    if (i.jumps) list.push_back(i.target);
    for (uint32_t k = 0; k < i.table; ++k)
      list.push_back(kernel_.slots[i.list + k]);
    return !list.empty();
  }

  void find_blocks() {
    const auto count = static_cast<uint32_t>(kernel_.code.size());
    std::vector<bool> leader(count + 1, false);
    leader[0] = true;
    std::vector<uint32_t> list;
    for (uint32_t pc = 0; pc < count; ++pc) {
      if (!targets(kernel_.code[pc], list)) continue;
      for (uint32_t target : list) leader[target] = true;
      leader[pc + 1] = true;
    }
    std::vector<uint32_t> block_at(count + 1, 0);
    for (uint32_t pc = 0; pc < count; ++pc) {
      if (leader[pc]) {
        blocks_.emplace_back();
        blocks_.back().begin = pc;
      }
      block_at[pc] = static_cast<uint32_t>(blocks_.size() - 1);
      blocks_.back().end = pc + 1;
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      // That a jump or an end is unconditional is not made use of.
      const Instruction& last = kernel_.code[blocks_[b].end - 1];
      if (targets(last, list)) {
        for (uint32_t target : list)
          if (target < count) blocks_[b].next.push_back(block_at[target]);
      }
      if (b + 1 < blocks_.size())
        blocks_[b].next.push_back(static_cast<uint32_t>(b + 1));
    }
  }

  void find_local_use() {
    for (BasicBlock& block : blocks_) {
      block.reads.assign(words_, 0);
      block.writes.assign(words_, 0);
      block.out.assign(words_, 0);
      for (uint32_t pc = block.begin; pc < block.end; ++pc) {
        Instruction& i = kernel_.code[pc];
        each_row(kernel_, i, [&](Slot& slot, bool reads, bool) {
          if (reads && !test(block.writes, slot)) add(block.reads, slot);
        });
        each_row(kernel_, i, [&](Slot& slot, bool reads, bool writes) {
          if (writes && !reads) add(block.writes, slot);
        });
      }
      block.in = block.reads;
    }
  }

  void flow() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) {
        BasicBlock& block = blocks_[b];
        for (size_t w = 0; w < words_; ++w) {
          uint64_t out = 0;
          for (uint32_t next : block.next) out |= blocks_[next].in[w];
          block.out[w] = out;
          uint64_t in = block.reads[w] | (out & ~block.writes[w]);
          changed |= in != block.in[w];
          block.in[w] = in;
        }
      }
    }
  }

  void find_intervals() {
    first_.assign(kernel_.rows, ~0u);
    last_.assign(kernel_.rows, 0);
    auto lives = [&](Slot slot, uint32_t pc) {
      first_[slot] = std::min(first_[slot], pc);
      last_[slot] = std::max(last_[slot], pc);
    };
    for (BasicBlock& block : blocks_) {
      for (size_t w = 0; w < words_; ++w) {
        for (uint64_t m = block.in[w]; m != 0; m &= m - 1) {
          lives(
              static_cast<Slot>(w * 64) + static_cast<Slot>(__builtin_ctzll(m)),
              block.begin);
        }
        for (uint64_t m = block.out[w]; m != 0; m &= m - 1) {
          lives(
              static_cast<Slot>(w * 64) + static_cast<Slot>(__builtin_ctzll(m)),
              block.end - 1);
        }
      }
      for (uint32_t pc = block.begin; pc < block.end; ++pc) {
        each_row(kernel_, kernel_.code[pc],
                 [&](Slot& slot, bool, bool) { lives(slot, pc); });
      }
    }
    // Special registers have their values from the beginning.
    for (const Kernel::SpecialRow& row : kernel_.specials) lives(row.slot, 0);
  }

  void assign() {
    std::vector<Slot> order;
    for (Slot slot = 0; slot < kernel_.rows; ++slot)
      if (widths_[slot] != 0 && first_[slot] != ~0u) order.push_back(slot);
    std::sort(order.begin(), order.end(), [&](Slot a, Slot b) {
      return first_[a] != first_[b] ? first_[a] < first_[b] : a < b;
    });
    std::vector<Slot> place(kernel_.rows, no_slot);
    std::vector<Slot> free[3];
    auto ends_later = [&](Slot a, Slot b) { return last_[a] > last_[b]; };
    std::vector<Slot> active;  // a heap, the one that ends first on top
    uint32_t rows = 0;
    for (Slot slot : order) {
      // Operands of an instruction are apart from what it writes.
      while (!active.empty() && last_[active.front()] < first_[slot]) {
        std::pop_heap(active.begin(), active.end(), ends_later);
        free[widths_[active.back()]].push_back(place[active.back()]);
        active.pop_back();
      }
      auto& pool = free[widths_[slot]];
      if (pool.empty()) {
        place[slot] = rows;
        rows += widths_[slot];
      } else {
        place[slot] = pool.back();
        pool.pop_back();
      }
      active.push_back(slot);
      std::push_heap(active.begin(), active.end(), ends_later);
    }
    for (Instruction& i : kernel_.code)
      each_row(kernel_, i, [&](Slot& slot, bool, bool) { slot = place[slot]; });
    for (Kernel::SpecialRow& row : kernel_.specials) row.slot = place[row.slot];
    kernel_.rows = rows;
  }

  Kernel& kernel_;
  const std::vector<uint8_t>& widths_;
  const size_t words_;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> first_, last_;
};

}  // namespace

void share_rows(Kernel& kernel, const std::vector<uint8_t>& widths) {
  if (kernel.rows > 0) Sharing(kernel, widths).run();
  // What a compiler would need is about this; where a kernel asks for many
  // threads it would make do with fewer.
  const uint32_t fit = 65536 / std::max(kernel.max_threads, 1u) / 8 * 8;
  kernel.registers = static_cast<int>(
      std::clamp<uint32_t>(kernel.rows + 4, 16, std::min(fit, 255u)));
}

}  // namespace simcuda
