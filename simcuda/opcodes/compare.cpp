// Comparisons, selections, and what only moves bits.
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"
#include "simcuda/opcodes/float.h"

namespace simcuda {
namespace {

enum class Comparison : uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan,
};

template <Comparison How>
struct Compare {
  template <class T>
  bool operator()(T x, T y) const {
    auto a = wide(x), b = wide(y);
    bool unordered = a != a || b != b;
    switch (How) {
      case Comparison::eq: return a == b;
      case Comparison::ne: return a != b && !unordered;
      case Comparison::lt: return a < b;
      case Comparison::le: return a <= b;
      case Comparison::gt: return a > b;
      case Comparison::ge: return a >= b;
      case Comparison::equ: return a == b || unordered;
      case Comparison::neu: return a != b;
      case Comparison::ltu: return a < b || unordered;
      case Comparison::leu: return a <= b || unordered;
      case Comparison::gtu: return a > b || unordered;
      case Comparison::geu: return a >= b || unordered;
      case Comparison::num: return !unordered;
      case Comparison::nan: return unordered;
    }
    return false;
  }

 private:
  template <class T>
  static T wide(T x) {
    return x;
  }
  static float wide(Half x) { return static_cast<float>(x); }
  static float wide(Brain x) { return static_cast<float>(x); }
};
template <Comparison How>
struct CompareFtz {
  bool operator()(float a, float b) const {
    return Compare<How>()(flush(a), flush(b));
  }
};

template <Comparison How>
Handler compare_handler(Type type, bool ftz) {
  if (ftz) return binary<bool, float, CompareFtz<How>>;
  using F = Compare<How>;
  switch (type) {
    case Type::f16: return binary<bool, Half, F>;
    case Type::bf16: return binary<bool, Brain, F>;
    case Type::f32: return binary<bool, float, F>;
    case Type::f64: return binary<bool, double, F>;
    default:
      return pick_integer(
          type, []<class T>() -> Handler { return binary<bool, T, F>; });
  }
}

/// The comparison named by the suffixes; the unsigned names mean the same.
Handler pick_comparison(const Opcode& op, Type type) {
  bool ftz = op.has("ftz") && type == Type::f32;
  switch (
      op.which({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu",
                "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs"})) {
    case 0: return compare_handler<Comparison::eq>(type, ftz);
    case 1: return compare_handler<Comparison::ne>(type, ftz);
    case 2:
    case 14: return compare_handler<Comparison::lt>(type, ftz);
    case 3:
    case 15: return compare_handler<Comparison::le>(type, ftz);
    case 4:
    case 16: return compare_handler<Comparison::gt>(type, ftz);
    case 5:
    case 17: return compare_handler<Comparison::ge>(type, ftz);
    case 6: return compare_handler<Comparison::equ>(type, ftz);
    case 7: return compare_handler<Comparison::neu>(type, ftz);
    case 8: return compare_handler<Comparison::ltu>(type, ftz);
    case 9: return compare_handler<Comparison::leu>(type, ftz);
    case 10: return compare_handler<Comparison::gtu>(type, ftz);
    case 11: return compare_handler<Comparison::geu>(type, ftz);
    case 12: return compare_handler<Comparison::num>(type, ftz);
    case 13: return compare_handler<Comparison::nan>(type, ftz);
  }
  return nullptr;
}

/// A comparison joined with a predicate: the comparison's handler writes dst,
/// then this completes it, and the second result.
enum Join : uint8_t { join_and = 1, join_or = 2, join_xor = 3 };

template <class Compute>
void join(Warp& warp, Slot slot, Compute&& compute) {
  if (slot != no_slot) map_lanes(warp, warp.row<uint32_t>(slot), compute);
}
/// i.dst: the result of the comparison, a row of its own; slots: p, q.
Flow join_predicates(Warp& warp, const Instruction& i) {
  const auto* t = warp.row<uint32_t>(i.a);
  const auto* c = i.b == no_slot ? nullptr : warp.row<uint32_t>(i.b);
  const Slot* slots = &warp.kernel->slots[i.list];
  const uint32_t negate = i.mode2;
  const uint8_t how = i.mode;
  // c is the destination perhaps: both results are found before any is kept.
  uint32_t p[warp_size], q[warp_size];
  for (int lane = 0; lane < warp_size; ++lane) {
    uint32_t x = t[lane], y = c ? c[lane] ^ negate : 0;
    auto both = [&](uint32_t v) {
      return how == join_and   ? v & y
             : how == join_or  ? v | y
             : how == join_xor ? v ^ y
                               : v;
    };
    p[lane] = both(x);
    q[lane] = both(x ^ 1);
  }
  join(warp, slots[0], [&](int lane) { return p[lane]; });
  join(warp, slots[1], [&](int lane) { return q[lane]; });
  return Flow::next;
}

template <class T>
Flow select(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<T>(i.a);
  const auto* b = warp.row<T>(i.b);
  const auto* p = warp.row<uint32_t>(i.c);
  map_lanes(warp, warp.row<T>(i.dst),
            [=](int lane) { return p[lane] ? a[lane] : b[lane]; });
  return Flow::next;
}
template <class T, bool Float>
Flow select_by_sign(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<T>(i.a);
  const auto* b = warp.row<T>(i.b);
  const auto* c = warp.row<uint32_t>(i.c);
  map_lanes(warp, warp.row<T>(i.dst), [=](int lane) {
    bool first = Float ? std::bit_cast<float>(c[lane]) >= 0
                       : static_cast<int32_t>(c[lane]) >= 0;
    return first ? a[lane] : b[lane];
  });
  return Flow::next;
}

template <class T>
Flow move(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<T>(i.a);
  map_lanes(warp, warp.row<T>(i.dst), [=](int lane) { return a[lane]; });
  return Flow::next;
}
/// Part `k` of `parts` of a register; parts of 8 bytes cannot be.
template <class From>
Flow unpack(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<From>(i.a);
  const uint32_t width = static_cast<uint32_t>(8 * sizeof(From)) / i.elements;
  const From mask = static_cast<From>((From{1} << width) - 1);
  From whole[warp_size];
  std::copy(a, a + warp_size, whole);
  for (uint32_t k = 0; k < i.elements; ++k) {
    Slot slot = warp.kernel->slots[i.list + k];
    if (slot == no_slot) continue;
    map_lanes(warp, warp.row<uint32_t>(slot), [&](int lane) {
      return static_cast<uint32_t>(whole[lane] >> (k * width) & mask);
    });
  }
  return Flow::next;
}
template <class To>
Flow pack(Warp& warp, const Instruction& i) {
  const uint32_t width = static_cast<uint32_t>(8 * sizeof(To)) / i.elements;
  const To mask = static_cast<To>((To{1} << width) - 1);
  To whole[warp_size] = {};
  for (uint32_t k = 0; k < i.elements; ++k) {
    const auto* part = warp.row<uint32_t>(warp.kernel->slots[i.list + k]);
    for (int lane = 0; lane < warp_size; ++lane)
      whole[lane] |= static_cast<To>((To{part[lane]} & mask) << (k * width));
  }
  map_lanes(warp, warp.row<To>(i.dst), [&](int lane) { return whole[lane]; });
  return Flow::next;
}

template <bool To>
Flow convert_address(Warp& warp, const Instruction& i) {
  const auto* a = warp.row<uint64_t>(i.a);
  const uint64_t base = static_cast<uint64_t>(i.offset);
  map_lanes(warp, warp.row<uint64_t>(i.dst),
            [=](int lane) { return To ? a[lane] - base : a[lane] + base; });
  return Flow::next;
}

uint64_t window_of(const Opcode& op) {
  switch (op.which({"shared", "shared::cta", "local", "param"})) {
    case 0:
    case 1: return shared_window;
    case 2: return local_window;
    case 3: return parameter_window;
  }
  return 0;
}

bool decode_vector_move(Decoding& d, bool packs) {
  const Operand& vector = d.operand(packs ? 1 : 0);
  const size_t parts = vector.parts.size();
  const int bytes = type_bytes(d.op.type());
  if (bytes < 2 || (parts != 2 && parts != 4) ||
      bytes / static_cast<int>(parts) < 1) {
    return d.fail("a register has no such parts");
  }
  const Type part = bytes / parts == 4   ? Type::b32
                    : bytes / parts == 2 ? Type::b16
                                         : Type::b8;
  std::vector<Slot> slots;
  for (const Operand& operand : vector.parts) {
    if (operand.kind == Operand::Kind::sink && !packs) {
      slots.push_back(no_slot);
    } else {
      slots.push_back(packs ? d.read(operand, part, part == Type::b8)
                            : d.write(operand, part, part == Type::b8));
    }
  }
  d.out.elements = static_cast<uint8_t>(parts);
  d.add_slots(d.out, slots, packs ? 0 : slots.size());
  if (packs) {
    d.out.dst = d.write(d.operand(0), d.op.type(), false);
    return d.handler(bytes == 8 ? pack<uint64_t> : pack<uint32_t>);
  }
  d.out.a = d.read(d.operand(1), d.op.type(), false);
  return d.handler(bytes == 8   ? unpack<uint64_t>
                   : bytes == 4 ? unpack<uint32_t>
                                : unpack<uint16_t>);
}

}  // namespace

// `setp.lt.and.s32 p|q, a, b, c`: decoded as two instructions when more than
// p = a < b is asked for.
bool decode_setp(Decoding& d) {
  Type type = d.op.type();
  if (type_class(type) == TypeClass::packed) return d.unsupported();
  if (d.count() < 3) return d.fail("`setp` takes two or three values");
  Handler compare = pick_comparison(d.op, type);
  d.out.a = d.read(d.operand(1), type, false);
  d.out.b = d.read(d.operand(2), type, false);
  const Operand& result = d.operand(0);
  bool pair = result.kind == Operand::Kind::pair;
  if (!pair && d.count() == 3) {
    d.out.dst = d.write(result, Type::pred, false);
    return d.handler(compare);
  }
  if (!d.handler(compare)) return false;
  Instruction second;
  second.run = join_predicates;
  second.a = d.out.dst = d.scratch();
  auto target = [&](const Operand& operand) {
    return operand.kind == Operand::Kind::sink
               ? no_slot
               : d.write(operand, Type::pred, false);
  };
  d.add_slots(second,
              {target(pair ? result.parts[0] : result),
               pair ? target(result.parts[1]) : no_slot},
              2);
  if (d.count() == 4) {
    int how = d.op.which({"and", "or", "xor"});
    if (how < 0) return d.unsupported();
    second.mode = static_cast<uint8_t>(how + 1);
    const Operand& c = d.operand(3);
    second.mode2 = c.kind == Operand::Kind::negated;
    second.b = d.read(second.mode2 ? c.parts[0] : c, Type::pred, false);
  }
  d.follow(second);
  return true;
}

bool decode_set(Decoding& d) {
  // Both types are given: of the result, then of the values.
  if (d.count() != 3 || d.op.types.size() != 2) return d.unsupported();
  Handler compare = pick_comparison(d.op, d.op.type(1));
  d.out.a = d.read(d.operand(1), d.op.type(1), false);
  d.out.b = d.read(d.operand(2), d.op.type(1), false);
  d.out.dst = d.scratch();
  if (!d.handler(compare)) return false;
  Instruction second;
  second.run = select<uint32_t>;
  second.c = d.out.dst;
  second.dst = d.write(d.operand(0), d.op.type(), false);
  bool real = d.op.type() == Type::f32;
  second.a = d.constant(real ? 0x3f800000 : 0xffffffff, 4);
  second.b = d.constant(0, 4);
  d.follow(second);
  return true;
}

bool decode_selp(Decoding& d) {
  return d.operands("t:ttp") &&
         d.handler(type_bytes(d.op.type()) == 8 ? select<uint64_t>
                                                : select<uint32_t>);
}
bool decode_slct(Decoding& d) {
  bool real = d.op.type(1) == Type::f32;
  bool wide = type_bytes(d.op.type()) == 8;
  return d.operands("t:tts") &&
         d.handler(real ? (wide ? select_by_sign<uint64_t, true>
                                : select_by_sign<uint32_t, true>)
                        : (wide ? select_by_sign<uint64_t, false>
                                : select_by_sign<uint32_t, false>));
}
bool decode_mov(Decoding& d) {
  if (d.count() != 2) return d.fail("`mov` takes two operands");
  if (d.operand(0).kind == Operand::Kind::vector)
    return decode_vector_move(d, false);
  if (d.operand(1).kind == Operand::Kind::vector)
    return decode_vector_move(d, true);
  return d.operands("t:t") &&
         d.handler(type_bytes(d.op.type()) == 8 ? move<uint64_t>
                                                : move<uint32_t>);
}
bool decode_cvta(Decoding& d) {
  if (type_bytes(d.op.type()) != 8) return d.unsupported();
  d.out.offset = static_cast<int64_t>(window_of(d.op));
  return d.operands("t:t") &&
         d.handler(d.op.has("to") ? convert_address<true>
                                  : convert_address<false>);
}

}  // namespace simcuda
