// atom and red: one lane after the other, each atomic for the host's threads.
#include <algorithm>

#include "simcuda/machine/access.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"
#include "simcuda/opcodes/float.h"

namespace simcuda {
namespace {

enum class Change : uint8_t {
  add,
  min,
  max,
  exch,
  cas,
  inc,
  dec,
  and_,
  or_,
  xor_,
};

template <class T>
T changed(Change how, T old, T b, T c) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    U x = static_cast<U>(old), y = static_cast<U>(b);
    switch (how) {
      case Change::add: return static_cast<T>(x + y);
      case Change::min: return std::min(old, b);
      case Change::max: return std::max(old, b);
      case Change::exch: return b;
      case Change::cas: return old == b ? c : old;
      case Change::inc: return static_cast<T>(x >= y ? 0 : x + 1);
      case Change::dec: return static_cast<T>(x == 0 || x > y ? y : x - 1);
      case Change::and_: return static_cast<T>(x & y);
      case Change::or_: return static_cast<T>(x | y);
      case Change::xor_: return static_cast<T>(x ^ y);
    }
    return old;
  } else {
    if (how == Change::min) return FloatPick<false, false>()(old, b);
    if (how == Change::max) return FloatPick<true, false>()(old, b);
    return canonical(FloatAdd()(old, b));
  }
}

/// T: the type computed with; M: what lies in memory (two T for a pair).
template <class T, class M>
Flow atomic(Warp& warp, const Instruction& i) {
  LaneAddresses lanes;
  if (resolve(warp, i, sizeof(M), Access::read_write, lanes) != Flow::next)
    return Flow::fault;
  const auto how = static_cast<Change>(i.mode);
  const auto* b = warp.row<RowOf<M>>(i.b);
  const auto* c = i.c == no_slot ? b : warp.row<RowOf<M>>(i.c);
  auto* d = i.dst == no_slot ? nullptr : warp.row<RowOf<M>>(i.dst);
  each_lane(warp, [&](int k) {
    M* at = reinterpret_cast<M*>(lanes.at[k]);
    M old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    const M y = static_cast<M>(b[k]), z = static_cast<M>(c[k]);
    while (true) {
      M next;
      if constexpr (sizeof(T) == sizeof(M)) {
        next = std::bit_cast<M>(changed<T>(how, std::bit_cast<T>(old),
                                           std::bit_cast<T>(y),
                                           std::bit_cast<T>(z)));
      } else {
        auto half = [](M x, int n) {
          return std::bit_cast<T>(static_cast<uint16_t>(x >> (16 * n)));
        };
        auto one = [&](int n) {
          return uint32_t{std::bit_cast<uint16_t>(
                     changed<T>(how, half(old, n), half(y, n), half(z, n)))}
                 << (16 * n);
        };
        next = one(0) | one(1);
      }
      if (__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
        break;
      }
    }
    if (d) d[k] = old;
  });
  return Flow::next;
}

Handler pick_atomic(Type type, Change how) {
  const bool sum = how == Change::add;
  const bool half_op = sum || how == Change::min || how == Change::max;
  switch (type) {
    case Type::b32:
    case Type::u32: return atomic<uint32_t, uint32_t>;
    case Type::s32: return atomic<int32_t, uint32_t>;
    case Type::b64:
    case Type::u64: return atomic<uint64_t, uint64_t>;
    case Type::s64: return atomic<int64_t, uint64_t>;
    case Type::b16:
      return how == Change::cas ? atomic<uint16_t, uint16_t> : nullptr;
    case Type::f32: return sum ? atomic<float, uint32_t> : nullptr;
    case Type::f64: return sum ? atomic<double, uint64_t> : nullptr;
    case Type::f16: return sum ? atomic<Half, uint16_t> : nullptr;
    case Type::bf16: return sum ? atomic<Brain, uint16_t> : nullptr;
    case Type::f16x2: return half_op ? atomic<Half, uint32_t> : nullptr;
    case Type::bf16x2: return half_op ? atomic<Brain, uint32_t> : nullptr;
    default: return nullptr;
  }
}

}  // namespace

bool decode_atom(Decoding& d) {
  const bool result = d.op.base == "atom";
  const size_t first = result ? 1 : 0;
  // `.release`, `.sys` and the like change nothing but what races are: all is
  // in order here.
  d.out.acquires = d.op.has("acquire") || d.op.has("acq_rel");
  d.out.releases = d.op.has("release") || d.op.has("acq_rel");
  d.out.block_scope = d.op.has("cta");
  int how = d.op.which(
      {"add", "min", "max", "exch", "cas", "inc", "dec", "and", "or", "xor"});
  if (how < 0 || d.op.types.size() != 1) return d.unsupported();
  const bool cas = how == static_cast<int>(Change::cas);
  if (d.count() != first + 2 + cas)
    return d.fail("an atomic operation has another number of operands");
  Type type = d.op.type();
  if (type == Type::bf16 || type == Type::bf16x2) {
    if (!d.needs(90)) return false;
  } else if (type == Type::f16 || type == Type::b16) {
    if (!d.needs(70)) return false;
  }
  int space = d.op.which({"global", "shared", "shared::cta"});
  d.out.space = space == 0  ? Space::global
                : space > 0 ? Space::shared
                            : Space::generic;
  if (!d.address(d.operand(first), d.out.space)) return false;
  d.out.mode = static_cast<uint8_t>(how);
  if (result && d.operand(0).kind != Operand::Kind::sink)
    d.out.dst = d.write(d.operand(0), type, false);
  d.out.b = d.read(d.operand(first + 1), type, false);
  if (cas) d.out.c = d.read(d.operand(first + 2), type, false);
  return d.handler(pick_atomic(type, static_cast<Change>(how)));
}

}  // namespace simcuda
