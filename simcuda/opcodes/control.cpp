// Jumps, ends, barriers of the block, and what needs no work here.
#include "simcuda/machine/block.h"
#include "simcuda/machine/lanes.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"

namespace simcuda {
namespace {

using namespace unisono::cuda;

/// The guard is what decides, so the warp's loop leaves it to this handler.
uint32_t taken_lanes(Warp& warp, const Instruction& i) {
  if (i.a == no_slot) return warp.mask;
  const auto* p = warp.row<uint32_t>(i.a);
  const uint32_t negate = i.mode2;
  uint32_t lanes = 0;
  for (int k = 0; k < warp_size; ++k) lanes |= ((p[k] ^ negate) & 1) << k;
  return lanes & warp.mask;
}

Flow branch(Warp& warp, const Instruction& i) {
  uint32_t taken = taken_lanes(warp, i);
  if (taken == 0) return Flow::next;
  return warp.branch(taken, i.target, warp.pc + 1);
}

Flow branch_table(Warp& warp, const Instruction& i) {
  // Lanes with the same index jump together; what remains executes again.
  const auto* index = warp.row<uint32_t>(i.b);
  const uint32_t which = index[warp.first_lane()];
  if (which >= static_cast<uint32_t>(i.offset))
    return warp.fail(invalid_pc, i, "a branch table has no such entry");
  uint32_t taken = 0;
  each_lane(warp, [&](int k) {
    if (index[k] == which) taken |= 1u << k;
  });
  const uint32_t target = warp.kernel->slots[i.list + which];
  return warp.branch(taken, target, warp.pc);
}

Flow end_lanes(Warp& warp, const Instruction& i) {
  uint32_t lanes = taken_lanes(warp, i);
  if (lanes == 0) return Flow::next;
  return warp.exit_lanes(lanes);
}

Flow trap(Warp& warp, const Instruction& i) {
  return warp.fail(launch_failed, i, "executes a trap");
}

Flow nothing(Warp&, const Instruction&) { return Flow::next; }

/// All is in order here; who looks for races wants to know.
Flow fence(Warp& warp, const Instruction& i) {
  if (warp.block->races) warp.block->races->fence(warp, i.block_scope);
  return Flow::next;
}

Flow pause(Warp& warp, const Instruction&) {
  // Somebody waits for others: they should run.
  warp.worker->polled = true;
  warp.turn += 1000;
  return Flow::next;
}

Flow barrier(Warp& warp, const Instruction& i) {
  const int first = warp.first_lane();
  const uint32_t which = warp.row<uint32_t>(i.a)[first];
  if (which >= 16)
    return warp.fail(illegal_instruction, i, "there are only 16 barriers");
  const uint32_t count = i.b == no_slot ? 0 : warp.row<uint32_t>(i.b)[first];
  if (count % warp_size != 0) {
    return warp.fail(illegal_instruction, i,
                     "a barrier's threads are no multiple of 32");
  }
  uint32_t yes = 0;
  if (i.c != no_slot) {
    const auto* p = warp.row<uint32_t>(i.c);
    for (int k = 0; k < warp_size; ++k) yes |= ((p[k] ^ i.mode2) & 1) << k;
    yes &= warp.mask;
  }
  return warp.arrive(i, which, count, yes);
}

Flow warp_barrier(Warp& warp, const Instruction& i) {
  const uint32_t members = warp.row<uint32_t>(i.a)[warp.first_lane()];
  if (warp.block->races &&
      warp.block->races->check_members(warp, i, i.a) != Flow::next) {
    return Flow::fault;
  }
  if (!warp.gather(members)) return Flow::moved;
  if (warp.block->races) warp.block->races->warp_sync(warp);
  return Flow::next;
}

}  // namespace

bool decode_bra(Decoding& d) {
  if (d.count() != 1) return d.fail("`bra` takes a label");
  d.out.target = d.label(d.operand(0).name);
  d.out.jumps = true;
  // The guard becomes an operand.
  d.out.a = d.out.guard;
  d.out.mode2 = d.out.guard_negated;
  d.out.guard = no_slot;
  return d.handler(branch);
}

bool decode_brx(Decoding& d) {
  if (!d.op.has("idx") || d.count() != 2) return d.unsupported();
  const std::vector<std::string>* targets = d.table(d.operand(1).name);
  if (targets == nullptr) return d.fail("no such branch table");
  d.out.b = d.read(d.operand(0), Type::u32, false);
  std::vector<Slot> places;
  for (const std::string& name : *targets) places.push_back(d.label(name));
  d.out.offset = static_cast<int64_t>(places.size());
  d.add_labels(places);
  d.out.table = static_cast<uint32_t>(places.size());
  return d.handler(branch_table);
}

bool decode_exit(Decoding& d) {
  d.out.a = d.out.guard;
  d.out.mode2 = d.out.guard_negated;
  d.out.guard = no_slot;
  return d.handler(end_lanes);
}

bool decode_ret(Decoding& d) {
  const std::string* end = d.end_of_call();
  if (end == nullptr) return decode_exit(d);
  d.out.target = d.label(*end);
  d.out.jumps = true;
  d.out.a = d.out.guard;
  d.out.mode2 = d.out.guard_negated;
  d.out.guard = no_slot;
  return d.handler(branch);
}

bool decode_trap(Decoding& d) { return d.handler(trap); }
bool decode_nothing(Decoding& d) { return d.handler(nothing); }
bool decode_fence(Decoding& d) {
  if (d.op.has("proxy") && d.op.has("async") && !d.op.has("global"))
    return d.handler(show_writes);
  if (d.op.has("proxy") || d.op.has("mbarrier_init")) return d.handler(nothing);
  d.out.block_scope = d.op.has("cta");
  return d.handler(fence);
}
bool decode_nanosleep(Decoding& d) { return d.handler(pause); }

bool decode_bar(Decoding& d) {
  if (d.op.has("warp")) {
    d.out.meets = true;
    d.out.a = d.read(d.operand(0), Type::u32, false);
    return d.handler(warp_barrier);
  }
  if (d.op.has("cluster")) return d.unsupported();
  if (d.count() == 0) return d.fail("`bar` takes a barrier");
  d.out.meets = true;
  d.out.aligned = d.op.base == "bar" || d.op.has("aligned");
  size_t next = 0;
  if (d.op.has("red")) {
    int how = d.op.which({"popc", "and", "or"});
    if (how < 0 || d.count() < 3) return d.unsupported();
    d.out.mode = static_cast<uint8_t>(barrier_popc + how);
    d.out.dst =
        d.write(d.operand(next++), how == 0 ? Type::u32 : Type::pred, false);
    const Operand& value = d.statement.operands.back();
    d.out.mode2 = value.kind == Operand::Kind::negated;
    d.out.c = d.read(d.out.mode2 ? value.parts[0] : value, Type::pred, false);
  } else if (d.op.has("arrive")) {
    d.out.mode = barrier_arrive;
  } else if (!d.op.has("sync")) {
    return d.unsupported();
  }
  d.out.a = d.read(d.operand(next++), Type::u32, false);
  size_t rest = d.count() - next - (d.out.c != no_slot ? 1 : 0);
  if (rest > 0) d.out.b = d.read(d.operand(next), Type::u32, false);
  return d.handler(barrier);
}

}  // namespace simcuda
