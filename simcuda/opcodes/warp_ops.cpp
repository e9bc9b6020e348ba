// Instructions in which lanes of a warp meet: shfl, vote, match, redux. They
// wait until all lanes of their mask are there.
#include <algorithm>

#include "simcuda/machine/block.h"
#include "simcuda/machine/lanes.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"

namespace simcuda {
namespace {

using unisono::cuda::illegal_instruction;

/// The members, from the mask in row `slot`; false: the path waits, or lanes
/// execute that the mask does not name.
bool meet(Warp& warp, const Instruction& i, Slot slot, Flow& flow) {
  const uint32_t members = warp.row<uint32_t>(slot)[warp.first_lane()];
  if ((warp.mask & ~members) != 0) {
    flow = warp.fail(illegal_instruction, i,
                     "a lane takes part that its own mask does not name");
    return false;
  }
  BlockRaces* races = warp.block->races.get();
  if (races && races->check_members(warp, i, slot) != Flow::next) {
    flow = Flow::fault;
    return false;
  }
  flow = Flow::moved;
  return warp.gather(members);
}

enum Shuffle : uint8_t { shuffle_up, shuffle_down, shuffle_bfly, shuffle_idx };

/// dst | slots[0]: the value and whether its source was in range.
Flow shuffle(Warp& warp, const Instruction& i) {
  const Slot* slots = &warp.kernel->slots[i.list];
  Flow flow;
  if (!meet(warp, i, slots[1], flow)) return flow;
  uint32_t value[warp_size], inside[warp_size];
  const auto* a = warp.row<uint32_t>(i.a);
  const auto* b = warp.row<uint32_t>(i.b);
  const auto* c = warp.row<uint32_t>(i.c);
  for (int lane = 0; lane < warp_size; ++lane) {
    const int by = static_cast<int>(b[lane] & 31);
    const int clamp = static_cast<int>(c[lane] & 31);
    const int segment = static_cast<int>(c[lane] >> 8 & 31);
    const int last = (lane & segment) | (clamp & ~segment);
    const int first = lane & segment;
    int from = lane;
    bool in = false;
    switch (static_cast<Shuffle>(i.mode)) {
      case shuffle_up:
        from = lane - by;
        in = from >= last;
        break;
      case shuffle_down:
        from = lane + by;
        in = from <= last;
        break;
      case shuffle_bfly:
        from = lane ^ by;
        in = from <= last;
        break;
      case shuffle_idx:
        from = first | (by & ~segment);
        in = from <= last;
        break;
    }
    if (!in) from = lane;
    inside[lane] = in;
    // From a lane that does not take part comes anything but its value.
    bool present = warp.mask >> from & 1;
    value[lane] = present ? a[from] : 0xdeadbeef;
  }
  if (i.dst != no_slot) {
    map_lanes(warp, warp.row<uint32_t>(i.dst),
              [&](int lane) { return value[lane]; });
  }
  if (slots[0] != no_slot) {
    map_lanes(warp, warp.row<uint32_t>(slots[0]),
              [&](int lane) { return inside[lane]; });
  }
  return Flow::next;
}

uint32_t lanes_where(const Warp& warp, const uint32_t* row, uint32_t negate) {
  uint32_t lanes = 0;
  for (int k = 0; k < warp_size; ++k)
    lanes |= ((row[k] ^ negate) != 0 ? 1u : 0u) << k;
  return lanes & warp.mask;
}

enum Vote : uint8_t { vote_all, vote_any, vote_uni, vote_ballot };

Flow vote(Warp& warp, const Instruction& i) {
  Flow flow;
  if (!meet(warp, i, i.b, flow)) return flow;
  uint32_t yes = lanes_where(warp, warp.row<uint32_t>(i.a), i.mode2);
  uint32_t result = 0;
  switch (static_cast<Vote>(i.mode)) {
    case vote_all: result = yes == warp.mask; break;
    case vote_any: result = yes != 0; break;
    case vote_uni: result = yes == 0 || yes == warp.mask; break;
    case vote_ballot: result = yes; break;
  }
  map_lanes(warp, warp.row<uint32_t>(i.dst), [=](int) { return result; });
  return Flow::next;
}

template <class T, bool All>
Flow match(Warp& warp, const Instruction& i) {
  Flow flow;
  if (!meet(warp, i, i.b, flow)) return flow;
  const auto* a = warp.row<T>(i.a);
  uint32_t same[warp_size] = {};
  each_lane(warp, [&](int k) {
    each_lane(warp, [&](int j) { same[k] |= (a[j] == a[k] ? 1u : 0u) << j; });
  });
  const bool all = same[warp.first_lane()] == warp.mask;
  if (All && i.c != no_slot) {
    map_lanes(warp, warp.row<uint32_t>(i.c),
              [=](int) -> uint32_t { return all; });
  }
  map_lanes(warp, warp.row<uint32_t>(i.dst), [&](int k) -> uint32_t {
    return All ? (all ? warp.mask : 0) : same[k];
  });
  return Flow::next;
}

enum Redux : uint8_t {
  redux_add,
  redux_min,
  redux_max,
  redux_and,
  redux_or,
  redux_xor,
};

template <class T>
Flow redux(Warp& warp, const Instruction& i) {
  Flow flow;
  if (!meet(warp, i, i.b, flow)) return flow;
  const auto* a = warp.row<uint32_t>(i.a);
  uint32_t total = a[warp.first_lane()];
  for (uint32_t m = warp.mask & (warp.mask - 1); m != 0; m &= m - 1) {
    uint32_t x = a[std::countr_zero(m)];
    T s = static_cast<T>(total), t = static_cast<T>(x);
    switch (static_cast<Redux>(i.mode)) {
      case redux_add: total += x; break;
      case redux_min: total = static_cast<uint32_t>(std::min(s, t)); break;
      case redux_max: total = static_cast<uint32_t>(std::max(s, t)); break;
      case redux_and: total &= x; break;
      case redux_or: total |= x; break;
      case redux_xor: total ^= x; break;
    }
  }
  map_lanes(warp, warp.row<uint32_t>(i.dst), [=](int) { return total; });
  return Flow::next;
}

Flow active_mask(Warp& warp, const Instruction& i) {
  const uint32_t mask = warp.mask;
  map_lanes(warp, warp.row<uint32_t>(i.dst), [=](int) { return mask; });
  return Flow::next;
}

Flow elect(Warp& warp, const Instruction& i) {
  Flow flow;
  if (!meet(warp, i, i.b, flow)) return flow;
  const int leader = warp.first_lane();
  if (i.dst != no_slot) {
    map_lanes(warp, warp.row<uint32_t>(i.dst),
              [=](int) { return static_cast<uint32_t>(leader); });
  }
  if (i.c != no_slot) {
    map_lanes(warp, warp.row<uint32_t>(i.c),
              [=](int k) -> uint32_t { return k == leader; });
  }
  return Flow::next;
}

Slot optional(Decoding& d, const Operand& operand, Type type) {
  return operand.kind == Operand::Kind::sink ? no_slot
                                             : d.write(operand, type, false);
}

}  // namespace

bool decode_shfl(Decoding& d) {
  d.out.meets = true;
  if (!d.op.has("sync") || d.count() != 5) return d.unsupported();
  int mode = d.op.which({"up", "down", "bfly", "idx"});
  if (mode < 0) return d.unsupported();
  const Operand& result = d.operand(0);
  bool pair = result.kind == Operand::Kind::pair;
  d.out.mode = static_cast<uint8_t>(mode);
  d.out.dst = optional(d, pair ? result.parts[0] : result, Type::b32);
  d.out.a = d.read(d.operand(1), Type::b32, false);
  d.out.b = d.read(d.operand(2), Type::u32, false);
  d.out.c = d.read(d.operand(3), Type::u32, false);
  Slot members = d.read(d.operand(4), Type::u32, false);
  d.add_slots(
      d.out,
      {pair ? optional(d, result.parts[1], Type::pred) : no_slot, members}, 1);
  return d.handler(shuffle);
}

bool decode_vote(Decoding& d) {
  d.out.meets = true;
  if (!d.op.has("sync") || d.count() != 3) return d.unsupported();
  int mode = d.op.which({"all", "any", "uni", "ballot"});
  if (mode < 0) return d.unsupported();
  d.out.mode = static_cast<uint8_t>(mode);
  const Operand& value = d.operand(1);
  d.out.mode2 = value.kind == Operand::Kind::negated;
  d.out.dst = d.write(d.operand(0),
                      mode == vote_ballot ? Type::b32 : Type::pred, false);
  d.out.a = d.read(d.out.mode2 ? value.parts[0] : value, Type::pred, false);
  d.out.b = d.read(d.operand(2), Type::u32, false);
  return d.handler(vote);
}

bool decode_match(Decoding& d) {
  d.out.meets = true;
  if (!d.op.has("sync") || d.count() != 3 || !d.needs(70))
    return d.unsupported();
  const Operand& result = d.operand(0);
  bool pair = result.kind == Operand::Kind::pair, all = d.op.has("all");
  d.out.dst = d.write(pair ? result.parts[0] : result, Type::b32, false);
  if (pair) d.out.c = optional(d, result.parts[1], Type::pred);
  d.out.a = d.read(d.operand(1), d.op.type(), false);
  d.out.b = d.read(d.operand(2), Type::u32, false);
  bool wide = type_bytes(d.op.type()) == 8;
  return d.handler(
      all ? (wide ? match<uint64_t, true> : match<uint32_t, true>)
          : (wide ? match<uint64_t, false> : match<uint32_t, false>));
}

bool decode_redux(Decoding& d) {
  d.out.meets = true;
  if (!d.needs(80)) return false;
  int mode = d.op.which({"add", "min", "max", "and", "or", "xor"});
  if (!d.op.has("sync") || mode < 0 || type_bytes(d.op.type()) != 4 ||
      is_float(d.op.type())) {
    return d.unsupported();
  }
  d.out.mode = static_cast<uint8_t>(mode);
  return d.operands("t:tu") &&
         d.handler(is_signed(d.op.type()) ? redux<int32_t> : redux<uint32_t>);
}

bool decode_activemask(Decoding& d) {
  d.out.dst = d.write(d.operand(0), Type::b32, false);
  return d.handler(active_mask);
}

bool decode_elect(Decoding& d) {
  d.out.meets = true;
  if (!d.needs(90)) return false;
  const Operand& result = d.operand(0);
  if (result.kind != Operand::Kind::pair || d.count() != 2)
    return d.unsupported();
  d.out.dst = optional(d, result.parts[0], Type::b32);
  d.out.c = optional(d, result.parts[1], Type::pred);
  d.out.b = d.read(d.operand(1), Type::u32, false);
  return d.handler(elect);
}

}  // namespace simcuda
