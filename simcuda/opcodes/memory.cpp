// ld, st, cp.async, isspacep. Parameters and calls' arguments are memory too.
#include <cstring>

#include "simcuda/machine/access.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"

namespace simcuda {
namespace {

template <class M>
M load_at(const uint8_t* at) {
  M value;
  std::memcpy(&value, at, sizeof(M));
  return value;
}

/// M: what lies in memory (its sign says how it is extended); Row: the
/// register's lanes.
template <class M, class Row>
Flow load(Warp& warp, const Instruction& i) {
  LaneAddresses lanes;
  const uint32_t step = sizeof(M);
  if (resolve(warp, i, step * i.elements, Access::read, lanes) != Flow::next)
    return Flow::fault;
  const Row keep = i.mode == 2 ? static_cast<Row>(0xffff) : ~Row{0};
  if (i.elements == 1) {
    Row* d = warp.row<Row>(i.dst);
    if (lanes.contiguous) {
      const uint8_t* from = lanes.at[0];
      for (int k = 0; k < warp_size; ++k)
        d[k] = static_cast<Row>(load_at<M>(from + k * sizeof(M))) & keep;
    } else {
      each_lane(warp, [&](int k) {
        d[k] = static_cast<Row>(load_at<M>(lanes.at[k])) & keep;
      });
    }
    return Flow::next;
  }
  for (uint32_t e = 0; e < i.elements; ++e) {
    Slot slot = warp.kernel->slots[i.list + e];
    if (slot == no_slot) continue;
    Row* d = warp.row<Row>(slot);
    auto every = [&](size_t stride) {
      const uint8_t* from = lanes.at[0] + e * step;
      for (size_t k = 0; k < warp_size; ++k)
        d[k] = static_cast<Row>(load_at<M>(from + k * stride)) & keep;
    };
    if (lanes.contiguous && i.elements == 4) {
      every(4 * sizeof(M));
    } else if (lanes.contiguous && i.elements == 2) {
      every(2 * sizeof(M));
    } else {
      each_lane(warp, [&](int k) {
        d[k] = static_cast<Row>(load_at<M>(lanes.at[k] + e * step)) & keep;
      });
    }
  }
  return Flow::next;
}

template <class M, class Row>
Flow store(Warp& warp, const Instruction& i) {
  LaneAddresses lanes;
  const uint32_t step = sizeof(M);
  if (resolve(warp, i, step * i.elements, Access::write, lanes) != Flow::next)
    return Flow::fault;
  for (uint32_t e = 0; e < i.elements; ++e) {
    const Row* s =
        warp.row<Row>(i.elements == 1 ? i.dst : warp.kernel->slots[i.list + e]);
    if (lanes.contiguous && i.elements == 1) {
      uint8_t* to = lanes.at[0];
      for (int k = 0; k < warp_size; ++k) {
        M value = static_cast<M>(s[k]);
        std::memcpy(to + k * sizeof(M), &value, sizeof(M));
      }
      continue;
    }
    each_lane(warp, [&](int k) {
      M value = static_cast<M>(s[k]);
      std::memcpy(lanes.at[k] + e * step, &value, sizeof(M));
    });
  }
  return Flow::next;
}

/// A parameter of the kernel: the same for all lanes.
template <class M, class Row>
Flow load_parameter(Warp& warp, const Instruction& i) {
  const auto& parameters = warp.block->launch.parameters;
  const Row keep = i.mode == 2 ? static_cast<Row>(0xffff) : ~Row{0};
  for (uint32_t e = 0; e < i.elements; ++e) {
    Slot slot = i.elements == 1 ? i.dst : warp.kernel->slots[i.list + e];
    if (slot == no_slot) continue;
    Row value = static_cast<Row>(
                    load_at<M>(parameters.data() + i.offset + e * sizeof(M))) &
                keep;
    map_lanes(warp, warp.row<Row>(slot), [=](int) { return value; });
  }
  return Flow::next;
}

enum class Direction : uint8_t { in, out, parameter };

template <class M, class Row>
Handler pick_direction(Direction direction) {
  switch (direction) {
    case Direction::in: return load<M, Row>;
    case Direction::out: return store<M, Row>;
    case Direction::parameter: return load_parameter<M, Row>;
  }
  return nullptr;
}
template <class M>
Handler pick_row(Direction direction, bool wide) {
  return wide ? pick_direction<M, uint64_t>(direction)
              : pick_direction<M, uint32_t>(direction);
}
Handler pick_access(Type type, Direction direction, bool wide) {
  switch (type) {
    case Type::pred: return nullptr;
    case Type::b8:
    case Type::u8: return pick_row<uint8_t>(direction, wide);
    case Type::s8: return pick_row<int8_t>(direction, wide);
    case Type::b16:
    case Type::u16:
    case Type::f16:
    case Type::bf16: return pick_row<uint16_t>(direction, wide);
    case Type::s16: return pick_row<int16_t>(direction, wide);
    case Type::b32:
    case Type::u32:
    case Type::f32:
    case Type::tf32:
    case Type::f16x2:
    case Type::bf16x2: return pick_row<uint32_t>(direction, wide);
    case Type::s32: return pick_row<int32_t>(direction, wide);
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
      return wide ? pick_direction<uint64_t, uint64_t>(direction) : nullptr;
    case Type::none: return nullptr;
  }
  return nullptr;
}

Space space_of(const Opcode& op) {
  switch (op.which({"global", "shared", "shared::cta", "local", "const",
                    "param", "param::entry", "param::func"})) {
    case 0: return Space::global;
    case 1:
    case 2: return Space::shared;
    case 3: return Space::local;
    case 4: return Space::constant;
    case 5:
    case 6:
    case 7: return Space::parameter;
  }
  return Space::generic;
}

bool decode_access(Decoding& d, bool store) {
  if (d.count() != 2) return d.fail("`ld` and `st` take two operands");
  const Operand& memory = d.operand(store ? 0 : 1);
  const Operand& value = d.operand(store ? 1 : 0);
  const Type type = d.op.type();
  if (d.op.types.size() != 1) return d.unsupported();
  d.out.space = space_of(d.op);
  d.out.ordered =
      d.op.which({"volatile", "acquire", "release", "relaxed", "mmio"}) >= 0;
  d.out.acquires = d.op.has("acquire");
  d.out.releases = d.op.has("release");
  d.out.block_scope = d.op.has("cta");
  d.out.stale = d.op.has("nc");
  if (!d.address(memory, d.out.space)) return false;
  const int elements = d.op.has("v2") ? 2 : d.op.has("v4") ? 4 : 1;
  if (elements > 1 && (value.kind != Operand::Kind::vector ||
                       value.parts.size() != static_cast<size_t>(elements))) {
    return d.fail("the vector has another number of elements");
  }
  d.out.elements = static_cast<uint8_t>(elements);
  if (elements * type_bytes(type) > 16) return d.fail("the vector is too long");
  auto slot = [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::sink && !store) return no_slot;
    return store ? d.read(operand, type, true) : d.write(operand, type, true);
  };
  const Operand& first = elements == 1 ? value : value.parts[0];
  int room = d.register_bytes(first);
  if (room == 0) room = type_bytes(type);  // a constant, or a sink
  const bool wide = room == 8;
  d.out.mode = static_cast<uint8_t>(room);
  std::vector<Slot> slots;
  for (int e = 0; e < elements; ++e) {
    const Operand& part = elements == 1 ? value : value.parts[e];
    slots.push_back(slot(part));
    int bytes = d.register_bytes(part);
    if (bytes != 0 && (bytes == 8) != wide)
      return d.fail("the vector's registers differ in size");
  }
  d.out.dst_is_source = store;
  if (elements == 1)
    d.out.dst = slots[0];
  else
    d.add_slots(d.out, slots, store ? 0 : slots.size());
  Direction direction = store ? Direction::out : Direction::in;
  if (d.out.space == Space::parameter && d.out.a == no_slot) {
    if (store) return d.fail("a parameter cannot be written");
    const int64_t bytes = elements * type_bytes(type);
    if (d.out.offset < 0 || d.out.offset % bytes != 0 ||
        d.out.offset + bytes > int64_t{d.parameter_bytes()}) {
      return d.fail("no parameter lies there");
    }
    direction = Direction::parameter;
    d.out.mode2 = 1;
  }
  return d.handler(pick_access(type, direction, wide));
}

/// Reads what cp.async copies: `sizes` bytes of each lane (null: i.mode), in
/// accesses of 16, 8, ... bytes. Where there are none the address may be any.
Flow read_copied(Warp& warp, const Instruction& i, const uint32_t* sizes,
                 uint8_t (*data)[16]) {
  const uint32_t before = warp.mask;
  Flow flow = Flow::next;
  for (uint32_t bytes = i.mode; bytes > 0 && flow == Flow::next; bytes /= 2) {
    // Lanes whose sizes agree in the bits above have read as many bytes.
    for (uint32_t done = 0; done + bytes <= i.mode && flow == Flow::next;
         done += bytes) {
      uint32_t lanes = 0;
      for (int k = 0; k < warp_size; ++k) {
        const uint32_t size =
            sizes ? std::min<uint32_t>(sizes[k], i.mode) : i.mode;
        if ((before >> k & 1) && (size & bytes) &&
            (size & ~(2 * bytes - 1)) == done)
          lanes |= 1u << k;
      }
      if (lanes == 0) continue;
      warp.set_mask(lanes);
      LaneAddresses from;
      flow = resolve_at(warp, i, i.a, i.narrow_address, i.offset + done,
                        i.space, bytes, Access::read, from);
      if (flow == Flow::next)
        each_lane(warp, [&](int k) {
          std::memcpy(data[k] + done, from.at[k], bytes);
        });
    }
  }
  warp.set_mask(before);
  return flow;
}

/// cp.async of i.mode bytes, of which the row i.c says how many come from
/// memory; the rest are zeros. The bytes arrive when they are waited for.
Flow copy_async(Warp& warp, const Instruction& i) {
  LaneAddresses to;
  const Slot base = warp.kernel->slots[i.list];
  const bool narrow = i.mode2 != 0;
  const auto offset = static_cast<int32_t>(
      warp.row<uint32_t>(warp.kernel->slots[i.list + 1])[0]);
  const auto* sizes = i.c == no_slot ? nullptr : warp.row<uint32_t>(i.c);
  uint8_t data[warp_size][16] = {};
  if (resolve_at(warp, i, base, narrow, offset, Space::shared, i.mode,
                 Access::write, to) != Flow::next ||
      read_copied(warp, i, sizes, data) != Flow::next) {
    return Flow::fault;
  }
  each_lane(warp, [&](int k) {
    Warp::PendingCopy copy;
    copy.to = to.at[k];
    copy.bytes = i.mode;
    copy.group = warp.copy_group;
    copy.lanes = 1u << k;
    copy.instruction = &i;
    std::memcpy(copy.data, data[k], copy.bytes);
    // Until it is waited for, the place holds nothing of use.
    std::memset(copy.to, 0xdd, copy.bytes);
    if (!warp.block->shared_written.empty()) {
      copy.written = warp.block->shared_written.data() +
                     (copy.to - warp.block->shared.data());
      std::memset(copy.written, 0, copy.bytes);
    }
    warp.copies.push_back(copy);
  });
  return Flow::next;
}
Flow commit_copies(Warp& warp, const Instruction&) {
  ++warp.copy_group;
  return Flow::next;
}
/// Waits for all groups but the last i.offset; i.mode: for what is not
/// committed too.
Flow wait_copies(Warp& warp, const Instruction& i) {
  int64_t last = i.mode ? int64_t{warp.copy_group}
                        : int64_t{warp.copy_group} - 1 - i.offset;
  Flow flow = Flow::next;
  std::erase_if(warp.copies, [&](Warp::PendingCopy& copy) {
    if (copy.group > last || (copy.lanes & warp.mask) == 0) return false;
    Block& block = *warp.block;
    if (block.races &&
        block.races->lane_access(
            warp, *copy.instruction, std::countr_zero(copy.lanes),
            static_cast<uint64_t>(copy.to - block.shared.data()), copy.bytes,
            Access::write, true) != Flow::next) {
      flow = Flow::fault;
    }
    if (!block.shared_hidden.empty())
      warp.hide(std::countr_zero(copy.lanes),
                static_cast<uint64_t>(copy.to - block.shared.data()),
                copy.bytes);
    std::memcpy(copy.to, copy.data, copy.bytes);
    if (copy.written) std::memset(copy.written, 1, copy.bytes);
    return true;
  });
  return flow;
}

Flow is_space(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<uint64_t>(i.a);
  const auto window = static_cast<uint64_t>(i.offset);
  auto inside = [](uint64_t x, uint64_t w) { return x - w < window_size; };
  map_lanes(warp, warp.row<uint32_t>(i.dst), [=](int k) -> uint32_t {
    if (window != 0) return inside(a[k], window);
    return !inside(a[k], shared_window) && !inside(a[k], local_window) &&
           !inside(a[k], parameter_window);
  });
  return Flow::next;
}

}  // namespace

bool decode_ld(Decoding& d) { return decode_access(d, false); }
bool decode_st(Decoding& d) { return decode_access(d, true); }

bool decode_cp_async(Decoding& d) {
  if (!d.op.has("async") || d.op.has("bulk") || d.op.has("mbarrier"))
    return d.unsupported();
  if (!d.needs(80)) return false;
  if (d.op.has("commit_group")) return d.handler(commit_copies);
  if (d.op.has("wait_all")) {
    d.out.mode = 1;
    return d.handler(wait_copies);
  }
  if (d.op.has("wait_group")) {
    if (d.count() != 1 || d.operand(0).kind != Operand::Kind::integer)
      return d.fail("`cp.async.wait_group` takes a constant");
    d.out.offset = static_cast<int64_t>(d.operand(0).bits);
    return d.handler(wait_copies);
  }
  if (d.count() < 3 || d.operand(2).kind != Operand::Kind::integer)
    return d.fail("`cp.async` takes two addresses and a size");
  uint64_t bytes = d.operand(2).bits;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return d.fail("`cp.async` copies 4, 8 or 16 bytes");
  if (bytes != 16 && d.op.has("cg"))
    return d.fail("`cp.async.cg` copies 16 bytes");
  if (!d.address(d.operand(0), Space::shared)) return false;
  Slot to = d.out.a;
  int64_t offset = d.out.offset;
  d.out.mode2 = d.out.narrow_address;
  d.out.narrow_address = false;
  d.out.a = no_slot;
  d.out.offset = 0;
  d.out.space = Space::global;
  if (!d.address(d.operand(1), Space::global)) return false;
  d.out.mode = static_cast<uint8_t>(bytes);
  if (d.count() > 3) d.out.c = d.read(d.operand(3), Type::u32, false);
  d.add_slots(d.out, {to, d.constant(static_cast<uint64_t>(offset), 4)}, 0);
  return d.handler(copy_async);
}

bool decode_isspacep(Decoding& d) {
  switch (d.op.which({"global", "shared", "shared::cta", "local", "const"})) {
    case 0: d.out.offset = 0; break;
    case 1:
    case 2: d.out.offset = static_cast<int64_t>(shared_window); break;
    case 3: d.out.offset = static_cast<int64_t>(local_window); break;
    default: return d.unsupported();
  }
  d.out.dst = d.write(d.operand(0), Type::pred, false);
  d.out.a = d.read(d.operand(1), Type::u64, false);
  return d.handler(is_space);
}

}  // namespace simcuda
